"""Words for the values of a design, as tables, sentences and charts show them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from volbench.analyse.frames.design import NAME, WORKLOAD, Cell, Design
from volbench.analyse.frames.workload_words import (
    FACTOR_NAMES,
    factor_name,
    factor_text,
    value_text,
    workload_text,
)
from volbench.model.frames.columns import WATCHED
from volbench.model.frames.metadata import NOT_SET, UNTIL_STEADY
from volbench.present.formatting import (
    MISSING,
    block_size,
    number,
    pattern,
    printable,
    short_target,
)
from volbench.units import natural_order, parse_duration

# Constants that say nothing beside others, or nothing at all
_SILENT = frozenset({"direction", "campaign", "rw", "block_bytes", "time_based"})
_NONE: Mapping[object, str] = MappingProxyType({})
_CORE = ("rw", "block_bytes", "direction")
_LOCAL_HOSTS = frozenset({"local", "localhost"})
_FIRST = ("iodepth", "numjobs", "rwmixread", "direct", "ioengine", "runtime", "fio_version")
_EARLY = 0.95  # Share of the runtime below which a run ended early
_SECONDS = re.compile(r"(?<=\d)s$")
_MIN_CUT = 2  # Characters of a folder that are worth cutting
_NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def shown_value(column: str, value: object) -> str:
    """Return a value of a factor, safe to print; ``n/a`` for an unknown value."""
    if value is None:
        return MISSING
    text = printable(value_text(column, value))
    if column == "volume":
        return short_target(text)
    return text.replace("fio-", "fio ", 1) if column == "fio_version" else text


def value_words(column: str, value: object) -> str:
    """Return a value that names its factor, such as ``queue depth 16`` or ``60 s a run``."""
    if value in {None, NOT_SET} or column not in {"volume", "fio_version", "campaign", "runtime"}:
        return printable(factor_text(column, value))
    text, is_time = shown_value(column, value), column == "runtime" and value != UNTIL_STEADY
    return f"{_SECONDS.sub(' s', text)} a run" if is_time else text


def short_values(column: str, values: Sequence[object]) -> dict[object, str]:
    """Return the text of each value; volumes without the folders that all have in common."""
    texts = {value: shown_value(column, value) for value in values}
    whole = [str(value) for value in values if value is not None]
    if column != "volume" or len({*whole}) < 2 or any(":/" in text for text in whole):
        return texts
    first, last = min(whole), max(whole)
    same = next((n for n, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), 0)
    start = first.rfind("/", 0, same) + 1
    if start < _MIN_CUT:
        return texts
    short = {each: shown_value(column, str(each)[start:]) for each in values if each is not None}
    return {**texts, **short}


def words_of(column: str, values: Sequence[object]) -> dict[object, str]:
    """Return each value in words; volumes without the folders that all have in common."""
    is_volume = column == "volume"
    short = short_values(column, values) if is_volume else {}
    return {v: short[v] if is_volume and v is not None else value_words(column, v) for v in values}


def value_names(column: str, values: Sequence[object]) -> dict[object, str]:
    """Return the short text of each value; a number with its factor, such as ``zone 1``."""
    return {
        value: f"{factor_name(column)} {text}" if isinstance(value, int | float) else text
        for value, text in short_values(column, values).items()
    }


def level_words(values: Mapping[str, object], volumes: Mapping[object, str] = _NONE) -> str:
    """Return values of factors in words, those of a pattern as one: ``randrw 4k reads, host a``."""
    core = {name: values[name] for name in _CORE if values.get(name) is not None}
    rest = {name: value for name, value in values.items() if name not in core}
    kept = {name: value for name, value in rest.items() if value != NOT_SET}
    if kept.get(NAME, "") is None:  # names say nothing beside the other factors
        del kept[NAME]
    words = [workload_text(core)] if core else []
    for name, value in (kept if kept or core else rest).items():
        words.append(volumes.get(value, "") * (name == "volume") or value_words(name, value))
    return ", ".join(words)


def with_aliases(design: Design, cell: Cell, values: Mapping[str, object]) -> dict[str, object]:
    """Return values of factors with those of options that vary with them."""
    row = design.rows[cell.places[0]]
    known = (name for name in design.aliases if name in FACTOR_NAMES and row.get(name) is not None)
    return {**values, **{n: row[n] for n in known if design.aliases[n] in values}}


def cell_words(design: Design, cell: Cell, *, without: Collection[str] = ()) -> str:
    """Return what was measured in a cell, such as ``randread 4k, queue depth 16``."""
    row = design.rows[cell.places[0]]
    core = {"rw": row.get("rw"), "block_bytes": block_size(row), "direction": row.get("direction")}
    first = workload_text(
        {
            name: text
            for name, text in core.items()
            if name not in without and text not in {None, MISSING}
        }
    )
    jobs = {"numjobs": row["numjobs"]} if number(row, "numjobs") > 1 else {}
    values = {"iodepth": row.get("iodepth"), **jobs, **cell.values}
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
    parts = [pattern(shown)] if "rw" in same and row.get("rw") != WATCHED else []
    parts += [block_size(row)] if "block_bytes" in same else []
    ordered = [*(name for name in _FIRST if name in values), *values]
    parts += [
        f"at most {words}" if column == "runtime" and _end_early(design) else words
        for column in dict.fromkeys(ordered)
        for words in [value_words(column, values[column])]
    ]
    versions = {str(row["fio_version"]) for row in design.rows if row.get("fio_version")}
    fios = sorted((each.removeprefix("fio-") for each in versions), key=natural_order)
    if fios[1:] and "fio_version" not in design.by_column:  # of hosts, which differ in it
        parts.append(f"fio {fios[0]} {'to' if fios[2:] else 'and'} {fios[-1]}")
    return ", ".join(dict.fromkeys(part for part in parts if part != MISSING))


def _end_early(design: Design) -> bool:
    """Return whether a run ended before its runtime, such as at the end of its size."""
    if design.constants["runtime"] == UNTIL_STEADY:
        return False
    least_s = _EARLY * parse_duration(str(design.constants["runtime"]))
    return any(isinstance(s := row.get("runtime_s"), float) and s < least_s for row in design.rows)


def numeral(number: int) -> str:
    """Return a number up to ten as a word, others in digits."""
    return _NUMERALS[number] if number < len(_NUMERALS) else f"{number:,}"


def listed(names: Sequence[str]) -> str:
    """Return names as an enumeration: ``a, b and c``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
