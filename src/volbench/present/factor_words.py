"""Words for factors of a design and for their values, alike in tables, sentences and charts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from volbench.analyse.frames.design import NAME, WORKLOAD, Cell, Design
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.frames.metadata import NOT_SET
from volbench.present.formatting import MISSING, block_size, pattern, printable, short_target
from volbench.units import format_size

SHORT_NAMES = {
    "iodepth": "queue depth",
    "block_bytes": "block size",
    "numjobs": "numjobs",
    "rwmixread": "percent of reads",
}
OPTION_WORDS = {"rw": "pattern", **SHORT_NAMES}
_FACTOR_WORDS = {
    **OPTION_WORDS,
    "fio_version": "fio version",
    "ioengine": "engine",
    "size_bytes": "size",
}
# Columns whose values name themselves
_PLAIN = frozenset(
    {"rw", "direction", "block_bytes", "direct", "ioengine", "campaign", "fio_version", NAME}
    | {"host", "volume", "arm"}
)
# Constants that say nothing beside others, or nothing at all
_SILENT = frozenset({"direction", "campaign", "rw", "block_bytes", "time_based"})
_LOCAL_HOSTS = frozenset({"local", "localhost"})
_FIRST = ("iodepth", "numjobs", "rwmixread", "direct", "ioengine", "runtime", "fio_version")
_SECONDS = re.compile(r"(?<=\d)s$")
_MIN_CUT = 2  # Characters of a folder that are worth cutting
_NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def factor_words(column: str) -> str:
    """Return the name of a factor for people, such as ``queue depth``."""
    return _FACTOR_WORDS.get(column, column.removeprefix(LABEL_PREFIX))


def value_text(column: str, value: object) -> str:
    """Return a value of a factor: ``4k``, ``16``, ``buffered``; ``n/a`` for an unknown value."""
    if value is None:
        return MISSING
    if column == "direct":
        return "direct" if value else "buffered"
    if column.endswith("_bytes") and isinstance(value, int | float):
        return format_size(value)
    if column == "volume":
        return short_target(printable(str(value)))
    if column == "fio_version":
        return str(value).replace("fio-", "fio ", 1)
    return printable(f"{value:g}" if isinstance(value, float) else str(value))


def value_words(column: str, value: object) -> str:
    """Return a value that names its factor, such as ``queue depth 16`` or ``rate_iops=3000``."""
    if value is None:
        return f"{factor_words(column)} unknown"
    text = value_text(column, value)
    is_label = column == "client" or column.startswith(LABEL_PREFIX)
    if column in _PLAIN or (is_label and isinstance(value, str)):
        return text
    if column == "rwmixread":
        return f"{text} % reads"
    if column == "runtime":
        return f"{_SECONDS.sub(' s', text)} a run"
    if column in SHORT_NAMES or column == "size_bytes" or is_label:
        return f"{factor_words(column)} {text}"
    return f"{column} {NOT_SET}" if value == NOT_SET else f"{column}={text}"


def short_values(column: str, values: Sequence[object]) -> dict[object, str]:
    """Return the text of each value; volumes without the folders that all have in common."""
    texts = {value: value_text(column, value) for value in values}
    whole = [str(value) for value in values if value is not None]
    if column != "volume" or len({*whole}) < 2:
        return texts
    first, last = min(whole), max(whole)
    same = next((n for n, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), 0)
    start = first.rfind("/", 0, same) + 1
    if start < _MIN_CUT:
        return texts
    short = {value: value_text(column, str(value)[start:]) for value in values if value is not None}
    return {**texts, **short}


def value_names(column: str, values: Sequence[object]) -> dict[object, str]:
    """Return the short text of each value; a number with its factor, such as ``zone 1``."""
    return {
        value: value_words(column, value) if isinstance(value, int | float) else text
        for value, text in short_values(column, values).items()
    }


def cell_words(design: Design, cell: Cell, *, without: Collection[str] = ()) -> str:
    """Return what was measured in a cell, such as ``randread 4k, queue depth 16``.

    Args:
        without: factors that the words leave out.
    """
    row = design.rows[cell.places[0]]
    first = " ".join(text for text in (pattern(row), block_size(row)) if text != MISSING)
    values = {"iodepth": row.get("iodepth"), **cell.values}
    ordered = [*(name for name in WORKLOAD if name in values), *values]
    others = [
        value_words(column, values[column])
        for column in dict.fromkeys(ordered)
        if column not in {"rw", "direction", "block_bytes", *without}
        and values[column] not in {None, NOT_SET}
    ]
    return ", ".join(filter(None, [first, *others]))


def constants_words(design: Design) -> str:
    """Return what is equal in all results, such as ``direct, libaio, 60s a run, fio 3.36``."""
    values = {
        column: value
        for column, value in design.constants.items()
        if value is not None and value != NOT_SET and column not in _SILENT
    }
    if values.get("numjobs") == 1:
        del values["numjobs"]
    if values.get("host") in _LOCAL_HOSTS:
        del values["host"]
    row = design.rows[0] if design.rows else {}
    same = {"rw", "block_bytes"} & {*design.constants}
    shown = row if "direction" in design.constants else {"rw": row.get("rw")}
    parts = [pattern(shown)] if "rw" in same else []
    parts += [block_size(row)] if "block_bytes" in same else []
    ordered = [*(name for name in _FIRST if name in values), *values]
    parts += [value_words(column, values[column]) for column in dict.fromkeys(ordered)]
    return ", ".join(part for part in parts if part != MISSING)


def numeral(number: int) -> str:
    """Return a number up to ten as a word, others in digits."""
    return _NUMERALS[number] if number < len(_NUMERALS) else f"{number:,}"


def listed(names: Sequence[str]) -> str:
    """Return names as an enumeration: ``a, b and c``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
