"""Cells of equal results on several sides, such as campaigns or volume types.

Results are equal in what was done: in each factor that varies within a side. What varies with the
side alone, such as an engine that one campaign used, is left for the caller to compare.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.frames.design import WORKLOAD, Design, Row, codes_of, design_of, hashable
from volbench.analyse.frames.job_frames import plain_rows
from volbench.analyse.frames.workload_words import workload_text

_SIDE = "side"
_NAMING = ("campaign", "run", "job", "group", "arm", "import_folder", "host", "volume")


@dataclass(frozen=True)
class MatchedCells:
    """The cell of each row, and its workload in words."""

    numbers: tuple[int, ...]
    labels: tuple[str, ...]


def cells_of_frame(
    rows: pd.DataFrame,
    sides: Sequence[str],
    *,
    compared: Collection[str] = (),
    apart: Sequence[Hashable] | None = None,
    always: Collection[str] = (),
) -> MatchedCells:
    """Return the cells of rows that were measured on several sides.

    Pattern, block size, queue depth and the like match where they vary within a side. Another
    option of fio tells results apart only where a side has several values for one workload, so that
    an option that changed between sides is found. Names tell results of a side apart that are equal
    in everything else.

    Args:
        rows: of the summary with the options of fio.
        compared: columns whose values are the sides.
        apart: what else keeps each row apart.
        always: columns that match although they vary with the side alone.
    """
    varying = [str(name) for name in rows if len(rows[name].astype(str).unique()) > 1]
    known = dict.fromkeys([*_NAMING, *WORKLOAD, *always, *varying])
    each = plain_rows(rows[[name for name in known if name in rows]])
    plain = [{**row, _SIDE: side} for row, side in zip(each, sides, strict=True)]
    design = design_of([*map(_without_arm, plain)], first=(_SIDE, *compared), has_places=False)
    kept_apart = {name for name in WORKLOAD if _varies_within(design, name)} | {*always}
    core = [name for name in WORKLOAD if name in kept_apart and name not in compared]
    kept = apart or [()] * len(rows)
    cells = codes_of(
        (extra, *(hashable(row.get(name)) for name in core))
        for row, extra in zip(plain, kept, strict=True)
    )
    others = [f.column for f in design.factors if f.column not in {_SIDE, *compared, *WORKLOAD}]
    split: list[dict[str, object]] = [{} for _ in plain]  # Factors that split the cell of each row
    for name in others:
        values = [hashable(cell.values[name]) for cell in design.cells]
        of_rows = [values[number] for number in design.cell_of_rows]
        cells = _split_where_several(cells, sides, of_rows, name, split)
    cells = _split_where_several(cells, sides, _shared_arms(cells, plain, sides), "arm", split)
    cells = _joined_by_job(cells, plain, sides, kept)
    return MatchedCells(tuple(cells), tuple(_labels(cells, plain, core, split, compared)))


def _varies_within(design: Design, column: str) -> bool:
    seen: dict[object, object] = {}
    return any(
        row.get(column) != seen.setdefault(row[_SIDE], row.get(column)) for row in design.rows
    )


def _split_where_several(
    cells: Sequence[int],
    sides: Sequence[str],
    values: Sequence[Hashable],
    name: str,
    split: Sequence[dict[str, object]],
) -> list[int]:
    of_side: dict[tuple[int, str], set[Hashable]] = {}
    for key in zip(cells, sides, values, strict=True):
        of_side.setdefault(key[:2], set()).add(key[2])
    several = {cell for (cell, _), found in of_side.items() if len(found) > 1}
    for cell, value, factors in zip(cells, values, split, strict=True):
        if cell in several:
            factors[name] = value
    return codes_of(
        (cell, value if cell in several else None)
        for cell, value in zip(cells, values, strict=True)
    )


def _shared_arms(cells: Sequence[int], rows: Sequence[Row], sides: Sequence[str]) -> list[Hashable]:
    """Return the arm of each row, by its name or its volume, where another side has one of them."""
    each = [*zip(cells, rows, strict=True)]
    arms = {(cell, row.get("volume")): row["arm"] for cell, row in each if row.get("arm")}
    keys = [(cell, row.get("arm") or arms.get((cell, row.get("volume")))) for cell, row in each]
    pairs = {*zip(keys, sides, strict=True)}
    shared = {cell for (cell, arm), n in Counter(key for key, _ in pairs).items() if arm and n > 1}
    return [hashable(arm) if cell in shared else None for cell, arm in keys]


def _without_arm(row: Row) -> Row:
    """Return a row whose names do not end in its arm."""
    ending = f"-{row['arm']}" if row.get("arm") else ""
    names = {key: row[key] for key in ("job", "group") if row.get(key)}
    return {**row, **{key: str(name).removesuffix(ending) for key, name in names.items()}}


def _joined_by_job(
    cells: Sequence[int], rows: Sequence[Row], sides: Sequence[str], apart: Sequence[Hashable]
) -> list[int]:
    """Join cells of one side each whose jobs have one name: volbench's own jobs that changed.

    Their options are then found to differ, and are not passed over in silence.
    """
    sides_of: dict[int, set[str]] = {}
    for cell, side in zip(cells, sides, strict=True):
        sides_of.setdefault(cell, set()).add(side)
    alone: dict[Hashable, dict[str, set[int]]] = {}
    for cell, row, side, extra in zip(cells, rows, sides, apart, strict=True):
        if len(sides_of[cell]) == 1 and row.get("import_folder") is None:
            key = row.get("job"), row.get("group"), row.get("direction"), extra
            alone.setdefault(key, {}).setdefault(side, set()).add(cell)
    joined: dict[int, int] = {}
    for found in alone.values():
        if len(found) > 1 and all(len(of_side) == 1 for of_side in found.values()):
            first, *others = [next(iter(of_side)) for of_side in found.values()]
            joined.update(dict.fromkeys(others, first))
    return [joined.get(cell, cell) for cell in cells]


def _labels(
    cells: Sequence[int],
    rows: Sequence[Row],
    core: Collection[str],
    split: Sequence[Mapping[str, object]],
    compared: Collection[str],
) -> list[str]:
    members: dict[int, list[int]] = {}
    for place, cell in enumerate(cells):
        members.setdefault(cell, []).append(place)
    texts: dict[int, str] = {}
    for cell, places in members.items():
        first = rows[places[0]]
        shared = {
            name: first[name]
            for name in WORKLOAD
            if name in first
            and name not in compared
            and all(rows[place].get(name) == first[name] for place in places)
        }
        known = {name: value for name, value in shared.items() if value is not None}
        unknown = {"iodepth": None} if "iodepth" in core and "iodepth" not in known else {}
        text = workload_text({**known, **unknown, **split[places[0]]})
        texts[cell] = text or str(first.get("job") or "unknown")
    return [texts[cell] for cell in cells]
