"""Matching of results over campaigns by their workload: what was done, not what it is called.

Two results are of one workload when access pattern, read/write mix, block size, queue depth,
numjobs, O_DIRECT, class of engine and class of size are equal. Names of jobs are labels: they tell
results of one workload apart where both sides use the same names, and stand on charts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from volbench.analyse.frames.workload_spec import SYNCHRONOUS
from volbench.units import format_size

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, object]

_ASYNCHRONOUS = frozenset({"libaio", "io_uring", "posixaio", "windowsaio", "solarisaio", "guasi"})
# Sizes within a factor of two of a power of four are of one class: 1 GB and 1 GiB, not 10 GiB.
# Noticed by: test_matched_workloads.py
_SIZE_STEP = 2.0
_RUN = ("campaign", "run", "group", "direction")


def _engine_class(row: Row) -> str | None:
    """Return ``asynchronous``, ``synchronous``, or the engine itself where it is neither."""
    engine = row.get("ioengine")
    if engine is None:
        return None
    if engine in _ASYNCHRONOUS:
        return "asynchronous"
    is_plain = engine in SYNCHRONOUS and str(engine).endswith(("sync", "sync2"))
    return "synchronous" if is_plain else str(engine)


def _size_class(row: Row) -> int | None:
    size = row.get("size_bytes")
    known = isinstance(size, int | float) and size > 0
    return round(math.log2(float(str(size))) / _SIZE_STEP) if known else None


# Column to what must be equal in it
_PARTS: Mapping[str, Callable[[Row], Hashable]] = MappingProxyType(
    {
        "rw": lambda row: str(row["rw"]).partition(":")[0],
        "rwmixread": lambda row: row.get("rwmixread"),
        "block_bytes": lambda row: row.get("block_bytes"),
        "iodepth": lambda row: row.get("iodepth"),
        "numjobs": lambda row: row.get("numjobs"),
        "direct": lambda row: row.get("direct"),
        "ioengine": _engine_class,
        "size_bytes": _size_class,
    }
)
_NEEDED = (*_PARTS, "tool", "job", "group", "profile", "direction")


@dataclass(frozen=True)
class _Entry:
    """A row to match: its side, what keeps it apart, its workload (None if unknown), its name."""

    place: int
    side: str
    apart: Hashable
    workload: Hashable
    name: str


def match_workloads(
    rows: Sequence[Row],
    sides: Sequence[str],
    *,
    ignored: str = "",
    apart: Sequence[Hashable] | None = None,
    by_name: bool = False,
) -> list[str]:
    """Return a label for each row; rows of one workload have the same one on every side.

    Results of one side that are of one workload under different names stay apart by their names
    where both sides have these names.

    Args:
        rows: of the summary frame, None for what is unknown.
        by_name: pool results of one side whose names differ, and match what is left by name; the
            caller then checks that facts which matter are equal.
    """
    fixed = [name for name in _PARTS if name != ignored]
    kept = apart or [()] * len(rows)
    names = _row_names(rows, sides)
    entries = [
        _Entry(
            index,
            side,
            (row.get("direction"), extra),
            tuple(_PARTS[name_of_part](row) for name_of_part in fixed) if row.get("rw") else None,
            name,
        )
        for index, (row, side, extra, name) in enumerate(zip(rows, sides, kept, names, strict=True))
    ]
    cells = _cell_of_entries(entries, by_name=by_name)
    return _labels(entries, cells, rows, fixed)


def order_by_workload(rows: Sequence[Row]) -> list[Row]:
    """Return rows of several campaigns with those of one workload below each other."""
    labels = match_workloads(rows, [str(row.get("campaign")) for row in rows])
    first: dict[tuple[str, object], int] = {}
    for index, (label, row) in enumerate(zip(labels, rows, strict=True)):
        first.setdefault((label, row.get("direction")), index)
    keys = [first[label, row.get("direction")] for label, row in zip(labels, rows, strict=True)]
    return [rows[index] for index in sorted(range(len(rows)), key=lambda index: keys[index])]


def workload_labels(
    summary: pd.DataFrame,
    side: str,
    *,
    ignored: str = "",
    apart: Sequence[str] = (),
    by_name: bool = False,
) -> pd.Series[str]:
    """Return the label of each row of a summary, as `match_workloads` gives it."""
    import pandas as pd  # noqa: PLC0415 - the table of results does without

    columns = [name for name in _NEEDED if name in summary]
    plain = summary[columns].astype(object)
    records = plain.where(plain.notna(), None).to_dict("records")
    sides = summary[side].astype(str).tolist()
    rows: list[Row] = [{str(name): value for name, value in row.items()} for row in records]
    extra: list[Hashable] = [*summary[[*apart]].astype(str).itertuples(index=False, name=None)]
    labels = match_workloads(rows, sides, ignored=ignored, apart=extra, by_name=by_name)
    return pd.Series(labels, index=summary.index, dtype="str")


def named_by_workload(
    frames: Mapping[str, pd.DataFrame], side: str, *, ignored: str = ""
) -> dict[str, pd.DataFrame]:
    """Return frames whose measured runs have the label of their workload as job and group.

    Args:
        frames: by name, the summary among them; those without a column ``run`` stay.
    """
    summary = frames["summary"]
    rows = summary[summary["phase"].eq("measured").fillna(value=False)]
    label = workload_labels(rows, side, ignored=ignored)
    labelled = rows[[*_RUN]].assign(_label=label)
    return {
        name: _label_frame(frame, labelled) if "run" in frame and len(frame) else frame
        for name, frame in frames.items()
    }


def _label_frame(frame: pd.DataFrame, labelled: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415 - as above

    keys = [name for name in _RUN if name in frame]
    texts = labelled.drop_duplicates(keys).set_index(keys)["_label"]
    index = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else frame[keys[0]]
    label = pd.Series(texts.reindex(index).to_numpy(), index=frame.index)
    columns = [name for name in ("job", "group") if name in frame]
    return frame.assign(**{name: label.where(label.notna(), frame[name]) for name in columns})


def _row_names(rows: Sequence[Row], sides: Sequence[str]) -> list[str]:
    """Return the job of each row, with its section and profile where they are needed."""
    names = []
    for row in rows:
        job, group = str(row.get("job")), row.get("group")
        names.append(job if group in {None, job} else f"{job}/{group}")
    profiles: dict[tuple[str, str], set[object]] = {}
    for row, name, side in zip(rows, names, sides, strict=True):
        profiles.setdefault((name, side), set()).add(row.get("profile"))
    if all(len(names_of_profile) == 1 for names_of_profile in profiles.values()):
        return names
    return [f"{row.get('profile') or '?'}/{name}" for row, name in zip(rows, names, strict=True)]


def _cell_of_entries(entries: Sequence[_Entry], *, by_name: bool) -> list[Hashable]:
    cells: list[Hashable] = [()] * len(entries)
    for group in _group_entries(entries, lambda entry: (entry.apart, entry.workload)):
        for entry, cell in _cells_of_workload(group, by_name=by_name):
            cells[entry.place] = cell
    if not by_name:
        return cells
    sides = _sides_by_cell(entries, cells)
    alone = [entry for entry in entries if len(sides[cells[entry.place]]) == 1]
    for group in _group_entries(alone, lambda entry: (entry.apart, entry.name)):
        if len({entry.side for entry in group}) > 1:
            for entry in group:
                cells[entry.place] = (entry.apart, entry.name)
    return cells


def _cells_of_workload(
    group: Sequence[_Entry], *, by_name: bool
) -> Iterator[tuple[_Entry, Hashable]]:
    """Yield the entries of one workload with their cells.

    That is one cell, unless a side has several names for it: then names that several sides have
    are cells of their own, and what is left is one if each side has one name for it.
    """
    pairs = {(entry.side, entry.name) for entry in group}
    names = Counter(name for _, name in pairs)
    is_split = max(Counter(side for side, _ in pairs).values()) > 1
    others = Counter(side for side, name in pairs if names[name] == 1)
    is_rest_one = len(others) > 1 and (by_name or max(others.values()) == 1)
    for entry in group:
        key = (entry.apart, entry.workload)
        is_named = is_split and not (names[entry.name] == 1 and is_rest_one)
        yield entry, (*key, entry.name) if is_named or entry.workload is None else key


def _group_entries(
    entries: Sequence[_Entry], key: Callable[[_Entry], Hashable]
) -> list[list[_Entry]]:
    groups: dict[Hashable, list[_Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return list(groups.values())


def _sides_by_cell(
    entries: Sequence[_Entry], cells: Sequence[Hashable]
) -> dict[Hashable, set[str]]:
    sides: dict[Hashable, set[str]] = {}
    for entry in entries:
        sides.setdefault(cells[entry.place], set()).add(entry.side)
    return sides


def _labels(
    entries: Sequence[_Entry],
    cells: Sequence[Hashable],
    rows: Sequence[Row],
    fixed: Sequence[str],
) -> list[str]:
    """Return the name of each cell: that of its job if it is its own, else its workload."""
    first: dict[Hashable, _Entry] = {}
    names: dict[Hashable, set[str]] = {}
    for entry, cell in zip(entries, cells, strict=True):
        first.setdefault(cell, entry)
        names.setdefault(cell, set()).add(entry.name)
    texts = dict(
        zip(first, _workload_texts([rows[e.place] for e in first.values()], fixed), strict=True)
    )
    labels = {cell: entry.name for cell, entry in first.items()}
    for cell in {cell for cell, jobs in names.items() if len(jobs) > 1} | _ambiguous_cells(
        first, labels
    ):
        labels[cell] = texts[cell]
    for cell in _ambiguous_cells(first, labels):
        labels[cell] = f"{texts[cell]} ({first[cell].name})"
    return [labels[cell] for cell in cells]


def _ambiguous_cells(
    first: Mapping[Hashable, _Entry], labels: Mapping[Hashable, str]
) -> set[Hashable]:
    """Return the cells with a label that another cell has too."""
    owners: dict[tuple[Hashable, str], list[Hashable]] = {}
    for cell, entry in first.items():
        owners.setdefault((entry.apart, labels[cell]), []).append(cell)
    return {cell for cells in owners.values() if len(cells) > 1 for cell in cells}


def _workload_texts(rows: Sequence[Row], fixed: Sequence[str]) -> list[str]:
    """Return the workload of each row in words, as far as rows differ in it."""
    varying = [
        name
        for name in fixed
        if len({value for row in rows if (value := row.get(name)) is not None}) > 1
    ]
    varying_names = [name for name in fixed if name in {"rw", "block_bytes", *varying}]
    return [
        " ".join(text for name in varying_names if (text := _part_text(name, row.get(name))))
        or "unknown"
        for row in rows
    ]


def _part_text(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif name.endswith("_bytes"):
        text = format_size(int(str(value)))
    else:
        text = str(value)
    return text if name in {"rw", "block_bytes", "ioengine"} else f"{name}={text}"
