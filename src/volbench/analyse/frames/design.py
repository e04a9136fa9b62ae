"""Design of an experiment: what varies over its results, what is constant, and what is repeated.

An option of fio counts by its value, whatever a file or a job is called. Names are the last resort:
the parts of an imported name that restate a value, count or date are left out, and what remains
tells results apart only where nothing else does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import starmap

from volbench.model.frames.columns import LABEL_PREFIX, SUMMARY
from volbench.model.frames.metadata import FACTS, NOT_SET
from volbench.units import counted_noun, format_size, natural_order

Row = Mapping[str, object]

# Fastest over slowest repeat from which they are not of one workload: on shared volumes, repeats
# differ by some 20 %. Noticed by: test_steady.py::test_repeats_that_differ_twofold_are_warned_of
MIN_REPEAT_RATIO = 2.0
_UNNAMED = "unnamed"  # A name that says nothing that others do not say
_FOLDER = "_folder"  # Column of words of the folder that tell rows of a side apart
GIVEN = "_given"  # Column of names of arms and hosts in the order in which a user gave them
HOST = "_host"  # Column of the facts of the host
NAME = "name"  # Factor of what names of jobs, sections and folders say beside everything else
# Core of a workload, in the order in which its parts are named
WORKLOAD = ("rw", "direction", "block_bytes", "iodepth", "numjobs", "rwmixread", "direct")
# Rates and latencies that fio was asked to keep: a factor, and a bound of what was measured
ASKED = ("rate_iops", "rate", "rate_process", "latency_target")
_PLACES = ("host", "volume", "client")  # After the arm and the labels
# Facts of a place, where rows have them
_PLACE_FACTS = ("scheduler", "filesystem", "machine_type", "csi_driver")
_OCCASIONS = ("campaign", "fio_version")
_DEPENDENT = (*_OCCASIONS, *_PLACE_FACTS)  # No factors where all others decide them
# Factors whose values are compared, the first that varies; labels count as arms
_COMPARED = (
    *("campaign", "arm", "volume", "host", "client"),
    *(*_PLACE_FACTS, "fio_version", "ioengine", NAME),
)
_OTHERS = ("ioengine", "size_bytes")  # Further options that are columns of the summary
# Options that change where a run writes or what it is called, not what it does
_IGNORED = frozenset({"uri", "port", "hostname", "logname", "allow_mounted_write"})
# Columns that are no options of fio: results, facts of host and volume, and what analyses add
_NO_OPTIONS = frozenset(
    {
        *(column.name for column in SUMMARY),
        *FACTS,
        *("by", "cell", "colour", "label", "line", "origin", "panel", "side", "step", "volume_key"),
        *("options_known", "options_unreported"),
    }
)
_ADDED = ("aggregate_", "by_", "steady_", "_")  # Beginnings of further columns that analyses add
UNKNOWN = "unknown"  # Name of a host or volume that a result does not tell
_SEPARATOR = re.compile(r"[-_/.,=:+@ ()\[\]]+")
# A date, or a number that is drawn at random
_DATE = re.compile(
    r"(?<![0-9a-z])([0-9a-f]{8}(-[0-9a-f]{4}){3}-|(?=[a-f]*\d)(?=\d*[a-f]))[0-9a-f]{8,}(?![0-9a-z])"
    r"|(19|20)\d{2}[-_.]?[01]\d[-_.]?[0-3]\d([-_.T]?\d{4,6}Z?)?"
)
# A word that counts: with a number or letter behind it, or alone in front of one
_COUNTING = re.compile(
    r"(r|run|rep|repeat|repetition|iter|iteration|trial|try|attempt|loop|round|no|n|num|nr|x|t|"
    r"result|results|out|output|fio|log|test|json|txt|am|pm|morning|evening)?(\d*)[a-h]?"
)
_KEYS = {
    "iodepth": ("iodepth", "qdepth", "queuedepth", "queue", "depth", "iod", "qd", "q", "d"),
    "numjobs": ("numjobs", "jobs", "job", "threads", "thread", "nj", "j", "t"),
    "block_bytes": ("blocksize", "block", "bs", "b"),
    "rwmixread": ("rwmixread", "mixread", "mix", "read", "r"),
    "rw": ("rw", "pattern"),
    "ioengine": ("ioengine", "engine"),
    "direct": ("direct",),
    "size_bytes": ("filesize", "size", "s"),
}
_PATTERN_WORDS = {
    "read": ("seqread", "seqr", "seq", "sequential", "r", "sr"),
    "write": ("seqwrite", "seqw", "seq", "sequential", "w", "sw"),
    "randread": ("rndread", "randomread", "rread", "rand", "random", "rnd", "read", "rr", "r"),
    "randwrite": ("rndwrite", "randomwrite", "rand", "random", "rnd", "write", "rw", "w"),
    "randrw": ("randreadwrite", "rand", "random", "rnd", "mixed", "mix", "rw"),
    "rw": ("seqrw", "readwrite", "seq", "sequential", "mixed", "mix"),
    "randtrim": ("rand", "random", "rnd", "trim"),
}


@dataclass(frozen=True)
class Factor:
    """A column whose values differ."""

    column: str  # of the results, or `NAME`
    values: tuple[object, ...]  # numbers ascending, texts in natural order, None (unknown) last

    @property
    def known(self) -> tuple[object, ...]:
        """The values that are known."""
        return tuple(value for value in self.values if value is not None)

    @property
    def is_ordered(self) -> bool:
        """Whether its values are numbers, such as queue depths; numbers of clients are names."""
        if self.column in _PLACES:
            return False
        return all(isinstance(value, int | float) for value in self.known) and bool(self.known)


@dataclass(frozen=True)
class Cell:
    """Results that are equal in all factors: repeats of each other."""

    values: Mapping[str, object]  # factor to value
    places: tuple[int, ...]  # of its rows


@dataclass(frozen=True, repr=False)
class Design:
    """What varies over some results, what is constant, and what is repeated."""

    rows: Sequence[Row]
    factors: tuple[Factor, ...]  # places first, then the workload, occasions and other options
    constants: Mapping[str, object]  # column to the value that all rows have
    aliases: Mapping[str, str]  # column to the factor that it varies with
    cells: tuple[Cell, ...]  # in the order of their first rows
    first: tuple[str, ...] = ()  # columns that the caller put before all others

    def __repr__(self) -> str:
        """Return what varies, with the number of its values."""
        varying = ", ".join(f"{factor.column} ({len(factor.values)})" for factor in self.factors)
        cells = counted_noun(len(self.cells), "cell")
        return f"<Design: {cells} of {counted_noun(len(self.rows), 'result')}; varies: {varying}>"

    @cached_property
    def by_column(self) -> Mapping[str, Factor]:
        """Column to factor."""
        return {factor.column: factor for factor in self.factors}

    @cached_property
    def cell_of_rows(self) -> tuple[int, ...]:
        """The number of the cell of each row."""
        numbers = [0] * len(self.rows)
        for number, cell in enumerate(self.cells):
            for place in cell.places:
                numbers[place] = number
        return tuple(numbers)

    @property
    def repeats(self) -> Counter[int]:
        """How many cells have how many repeats."""
        return Counter(len(cell.places) for cell in self.cells)

    @cached_property
    def compared(self) -> str:
        """The factor whose values are compared; empty where no two were measured at one setting.

        What the caller put first, else a place or an occasion, else an engine or a name.
        """
        ranks = {name: number for number, name in enumerate((*self.first, *_COMPARED))}
        ranks |= {name: ranks["arm"] for name in self.by_column if name.startswith(LABEL_PREFIX)}
        ranks |= {name: number for number, name in enumerate(self.first)}
        known = [name for name, factor in self.by_column.items() if len(factor.known) > 1]
        for column in sorted({*known} & {*ranks}, key=lambda name: (ranks[name], name)):
            values: dict[Hashable, set[Hashable]] = {}
            for key, cell in zip(self.key_without(column), self.cell_of_rows, strict=True):
                value = self.cells[cell].values[column]
                values.setdefault(key, set()).update([] if value is None else [hashable(value)])
            if any(len(shared) > 1 for shared in values.values()):
                return column
        return ""

    def factor_of(self, column: str) -> str:
        """Return the factor that a column is or varies with; empty for neither."""
        return column if column in self.by_column else self.aliases.get(column, "")

    def key_without(self, *columns: str) -> list[Hashable]:
        """Return what is equal in rows that differ in some columns alone, for each row.

        Of places, those that decide each other are left out together: the type of a volume with
        the volume.
        """
        left_out = {self.factor_of(column) or column for column in columns}
        left_out |= {nested for column in left_out for nested in self.nested_places(column)}
        kept = [factor.column for factor in self.factors if factor.column not in left_out]
        cells = [tuple(hashable(cell.values[column]) for column in kept) for cell in self.cells]
        return [cells[number] for number in self.cell_of_rows]

    def nested_places(self, column: str) -> Iterator[str]:
        """Yield the places that decide a place, or that it decides."""
        places = [name for name in self.by_column if _is_location(name)]
        for other in places if column in places else ():
            pairs = {
                (hashable(cell.values[column]), hashable(cell.values[other])) for cell in self.cells
            }
            if len(pairs) in {len({own for own, _ in pairs}), len({value for _, value in pairs})}:
                yield other

    def facts(self, *, is_course: bool) -> list[dict[str, object]]:
        """Return what is known of each row and its host beside the factors; None for unknown.

        Of campaigns in the course of time, host and fio may change.
        """
        known = {*_COMPARED, *WORKLOAD, *FACTS}
        options = [n for n in self.aliases if n not in known and not n.startswith(LABEL_PREFIX)]
        names = [
            *(n for n in (_OTHERS if is_course else FACTS) if n not in self.by_column),
            *options,
        ]
        hosts = (h if isinstance(h := row.get(HOST), dict) else {} for row in self.rows)
        rows = ({**host, **row} for host, row in zip(hosts, self.rows, strict=True))
        return [{name: _known_value(row, name) for name in names} for row in rows]

    def missing(self) -> list[Mapping[str, object]]:
        """Return the cells of a full grid that were not measured; none where most are missing."""
        wide = [factor for factor in self.factors if factor.column != NAME]
        total = math.prod(len(factor.values) for factor in wide)
        if not len(self.cells) < total <= 2 * len(self.cells):
            return []
        there = {tuple(hashable(cell.values[f.column]) for f in wide) for cell in self.cells}
        grid: list[dict[str, object]] = [{}]
        for factor in wide:
            grid = [{**cell, factor.column: value} for cell in grid for value in factor.values]
        return [cell for cell in grid if tuple(map(hashable, cell.values())) not in there]


def design_of(rows: Sequence[Row], *, first: Sequence[str] = (), has_places: bool = True) -> Design:
    """Return the design of some results.

    Args:
        rows: of the summary, finished and measured, with the options of fio where they are known;
            None for what is unknown. Columns of results are passed over.
        first: columns that come before all others, such as what a user compares. Names that tell
            equal results apart for one of their values are a factor for all of them.
        has_places: whether places and occasions are factors; without them the factors are what was
            done, and what was done on several volumes is equal.
    """
    columns = [
        column
        for column in _candidates(rows, first)
        if has_places or column in first or not (column in _OCCASIONS or _is_location(column))
    ]
    values: dict[str, Sequence[object]] = {
        column: [_known_value(row, column) for row in rows] for column in columns
    }
    codes = {column: codes_of(of_rows) for column, of_rows in values.items()}
    constants = {
        column: of_rows[0] for column, of_rows in values.items() if len(set(codes[column])) == 1
    }
    chosen: list[str] = []
    aliases: dict[str, str] = {}
    keys = [0] * len(rows)
    for column in columns:
        if column in constants:
            continue
        joined = _joined_codes(keys, codes[column])
        if column not in first and len(set(joined)) == len(set(keys)):
            # A workload is named beside each volume, even if each volume ran another one; an arm
            # is what its options are.
            owners = [n for n in chosen if column not in WORKLOAD or n in {*WORKLOAD, "arm"}]
            owner = next((name for name in owners if _decides(codes[name], codes[column])), "")
            if owner or column in _DEPENDENT:
                aliases[column] = owner
                continue
        chosen.append(column)
        keys = joined
    names = _separating_names(rows, chosen, codes, first)
    if any(names):
        chosen.append(NAME)
        values[NAME] = names
        keys = _joined_codes(keys, codes_of(names))
    factors = tuple(Factor(column, _ordered(column, values[column], rows)) for column in chosen)
    cells: dict[int, list[int]] = {}
    for place, key in enumerate(keys):
        cells.setdefault(key, []).append(place)
    return Design(
        rows,
        factors,
        constants,
        aliases,
        tuple(
            Cell({column: values[column][places[0]] for column in chosen}, tuple(places))
            for places in cells.values()
        ),
        tuple(first),
    )


def asked_rate(row: Row) -> str:
    """Return what fio was asked to keep, such as ``rate_iops=3000``; empty for nothing."""
    if row.get("direction") == "other":  # I/O without a name, which no rate is asked of
        return ""
    given = ((name, row.get(name)) for name in ASKED)
    return ", ".join(f"{name}={value}" for name, value in given if value not in {None, NOT_SET, ""})


def hashable(value: object) -> Hashable:
    """Return a value that can be a key: its text where it cannot be."""
    return value if isinstance(value, Hashable) else str(value)


def codes_of(values: Iterable[object]) -> list[int]:
    """Return a number for each value, equal for equal values."""
    numbers: dict[Hashable, int] = {}
    keys = (v if callable(v.__hash__) else str(v) for v in values)  # as `hashable`, quicker
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _candidates(rows: Sequence[Row], first: Sequence[str]) -> list[str]:
    present = dict.fromkeys(column for row in rows for column in row)
    labels = [column for column in present if column.startswith(LABEL_PREFIX)]
    # An address of SPDK may be that of any disk that the kernel has a name for.
    spdk = ["ioengine"] if any("traddr" in str(row.get("volume")) for row in rows) else []
    places = [*first, "arm", *labels, *spdk, *_PLACES]
    known = [*places, *WORKLOAD, *_OCCASIONS, *_PLACE_FACTS, *_OTHERS]
    others = {*present} - _NO_OPTIONS - _IGNORED - {*known}
    options = sorted(name for name in others if not name.startswith(_ADDED))
    ordered = [*known, *ASKED, *options]
    return [column for column in dict.fromkeys(ordered) if column in present]


def _known_value(row: Row, column: str) -> object:
    value = row.get(column)
    if isinstance(value, str):
        if not value or (value == UNKNOWN and column in {"host", "volume"}):
            return None
        return int(value) if value.isdecimal() else value
    return None if isinstance(value, float) and math.isnan(value) else value


def _is_location(column: str) -> bool:
    return column in {"arm", *_PLACES, *_PLACE_FACTS} or column.startswith(LABEL_PREFIX)


def _joined_codes(keys: Sequence[int], codes: Sequence[int]) -> list[int]:
    return codes_of(zip(keys, codes, strict=True))


def _decides(owner: Sequence[int], other: Sequence[int]) -> bool:
    return len(set(zip(owner, other, strict=True))) == len(set(owner))


def _ordered(column: str, values: Sequence[object], rows: Sequence[Row]) -> tuple[object, ...]:
    distinct = list(dict.fromkeys(map(hashable, values)))
    known = [value for value in distinct if value is not None]
    if column == "campaign":  # in the order of time
        starts: dict[object, str] = {}
        for value, row in zip(values, rows, strict=True):
            start = str(row.get("started_utc") or "~")
            starts[value] = min(start, starts.get(value, start))
        known.sort(key=lambda value: (starts[value], natural_order(str(value))))
    else:
        named = (row.get(GIVEN) for row in rows if column in {"arm", "host"})
        given = dict.fromkeys(name for names in named if isinstance(names, tuple) for name in names)
        places = {name: place for place, name in enumerate(given)}
        known.sort(key=lambda value: (places.get(str(value), len(places)), _order(value)))
    return (*known, *([None] if None in distinct else []))


def _order(value: object) -> tuple[int, float, list[tuple[float, str]]]:
    if value == NOT_SET:
        return (0, 0.0, [])
    if isinstance(value, int | float):
        return (1, float(value), [])
    return (2, 0.0, [*natural_order(str(value))])


def _separating_names(
    rows: Sequence[Row],
    chosen: Sequence[str],
    codes: Mapping[str, Sequence[int]],
    first: Sequence[str],
) -> list[str | None]:
    """Return what names say of rows that are equal in everything else; None where it is nothing.

    Rows that differ in the first columns or the place are named if names tell equal ones apart.
    """
    compared, others = [0] * len(rows), [0] * len(rows)
    for column in chosen:
        if column in first or _is_location(column):
            compared = _joined_codes(compared, codes[column])
        else:
            others = _joined_codes(others, codes[column])
    folders = _folder_words(rows, compared)
    members: dict[int, dict[int, list[int]]] = {}
    for place, (other, side) in enumerate(zip(others, compared, strict=True)):
        members.setdefault(other, {}).setdefault(side, []).append(place)
    names: list[str | None] = [None] * len(rows)
    for sides in members.values():
        texts = {
            side: _names_of_equals([{**rows[place], _FOLDER: folders[place]} for place in places])
            for side, places in sides.items()
            if max(map(len, sides.values())) > 1
        }
        if any(len(set(of_side)) > 1 for of_side in texts.values()):
            for side, places in sides.items():
                for place, text in zip(places, texts[side], strict=True):
                    names[place] = text or _UNNAMED
    # A name that never comes again with other options was given to a file, not to a treatment;
    # unless nothing but the name is known.
    is_imported = all(row.get("import_folder") for row in rows)
    if is_imported and max(Counter(filter(None, names)).values(), default=0) == 1 < len(members):
        names = [None if row.get("rw") else name for name, row in zip(names, rows, strict=True)]
    return _without_common_words(names)


def _folder_words(rows: Sequence[Row], sides: Sequence[int]) -> list[str]:
    """Return the folder of each row without the words that all folders of its side have."""
    folders = (_DATE.sub(" ", str(row.get("import_folder") or "")).lower() for row in rows)
    words = [_SEPARATOR.split(folder) for folder in folders]
    keys = [*zip(sides, (row.get("campaign") for row in rows), strict=True)]
    common: dict[Hashable, set[str]] = {}
    for key, of_row in zip(keys, words, strict=True):
        common.setdefault(key, {*of_row}).intersection_update(of_row)
    pairs = zip(keys, words, strict=True)
    return [" ".join(word for word in of_row if word not in common[key]) for key, of_row in pairs]


def _without_common_words(names: Sequence[str | None]) -> list[str | None]:
    words = [name.split() for name in names if name]
    common = set(words[0]).intersection(*words[1:]) if len({*names} - {None}) > 1 else set()
    return [
        name and (" ".join(word for word in name.split() if word not in common) or _UNNAMED)
        for name in names
    ]


def _names_of_equals(rows: Sequence[Row]) -> list[str]:
    """Return what the name of each row says; rows are equal in all else."""
    runs = Counter((row.get("campaign"), row.get("run")) for row in rows)
    if max(runs.values()) > 1:  # sections of one run, which are no repeats of each other
        return [_full_name(row) for row in rows]
    labels = [name for name in rows[0] if name.startswith(LABEL_PREFIX)]
    told = [_telling_name(row, [*_KEYS, "volume", "host", *labels]) for row in rows]
    if all(row.get("iodepth") is not None and row.get("rw") is not None for row in rows):
        return [words for words, _ in told]
    # A number may be an option that the results do not report, unless the numbers count the rows.
    numbers: dict[str, set[int]] = {}
    for words, number in told:
        numbers.setdefault(words, set()).update(number)
    counting = {w for w, n in numbers.items() if n in ({*range(len(n))}, {*range(1, len(n) + 1)})}
    return [
        words if words in counting else " ".join([words, *map(str, number)]).strip()
        for words, number in told
    ]


def _full_name(row: Row) -> str:
    job, group = str(row.get("job") or ""), row.get("group")
    return job if group in (None, job) else f"{job}/{group}"


def _telling_name(row: Row, columns: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the parts of a name that neither restate a value, nor count, nor date; and numbers.

    A job of volbench's own has its name on purpose: all of it counts.
    """
    if row.get("import_folder") is None:
        return _full_name(row), ()
    values = tuple((name, _known_value(row, name)) for name in columns)
    return _told(f"{row[_FOLDER]} {_full_name(row)}", values)


@lru_cache(maxsize=8192)  # A table and its answer ask for the same names
def _told(name: str, values: tuple[tuple[str, object], ...]) -> tuple[str, tuple[int, ...]]:
    restated, beginnings = _restated(values)
    told: dict[str, None] = {}
    numbers: dict[int, None] = {}
    for part in _SEPARATOR.split(_DATE.sub(" ", name).lower()):
        rests = {part} if part in restated else _rests(part, beginnings)
        if "" in rests or not rests.isdisjoint(restated):
            continue
        counting = next(filter(None, map(_COUNTING.fullmatch, rests)), None)
        if counting is None:
            told.setdefault(part)
        elif counting[2]:
            numbers.setdefault(int(counting[2]))
    return " ".join(told), tuple(numbers)


def _rests(part: str, beginnings: Mapping[str, Sequence[str]]) -> set[str]:
    """Return what is left of a part of a name without values at its beginning."""
    found, waiting = {part}, [part]
    while waiting:
        rest = waiting.pop()
        for text in beginnings.get(rest[:1], ()):
            shorter = rest[len(text) :]
            if rest.startswith(text) and shorter not in found:
                found.add(shorter)
                waiting.append(shorter)
    return found


@lru_cache(maxsize=4096)  # Of many results few differ in more than their repeat
def _restated(
    values: tuple[tuple[str, object], ...],
) -> tuple[frozenset[str], Mapping[str, Sequence[str]]]:
    """Return the ways in which a name may write some values, in small letters.

    Of more than a letter also by the first of them.
    """
    texts = frozenset(("direct", "sync", "async", "job", "jobs")).union(*starmap(_texts_of, values))
    beginnings: dict[str, list[str]] = {}
    for text in texts:
        beginnings.setdefault(text[0], []).extend([text] if len(text) > 1 else [])
    return texts, beginnings


@lru_cache(maxsize=4096, typed=True)
def _texts_of(column: str, value: object) -> frozenset[str]:
    """Return the ways in which a name may write one value; none of them is empty."""
    if value is None or (keys := _KEYS.get(column)) is None:
        text = str(value or "").lower()
        return frozenset({text, *_SEPARATOR.split(text)} - {""})
    written = _written(column, value)
    named = {f"{key}{text}" for key in keys for text in written}
    return frozenset((written | named | {key for key in keys if len(key) > 1}) - {""})


def _written(column: str, value: object) -> set[str]:
    if column in {"block_bytes", "size_bytes"} and isinstance(value, int):
        short = format_size(value).lower().removesuffix("b").removesuffix("i")
        return {str(value), short, *(f"{short}{unit}" for unit in ("b", "i", "ib"))}
    if column == "rw":
        plain = str(value).partition(":")[0]
        return {plain, *_PATTERN_WORDS.get(plain, ())}
    if column == "direct":
        return {"direct", "1", "true"} if value else {"buffered", "cached", "0", "false"}
    if column == "rwmixread" and isinstance(value, int):
        return {str(value), str(100 - value), f"{value}{100 - value}"}
    return {str(value).lower()}
