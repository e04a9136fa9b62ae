"""Groups of a comparison: cells and sides of rows, and one value for each repeat."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from volbench.analyse.compare.comparability import value_text, values_of
from volbench.analyse.frames.run_facts import STEP, VOLUME_KEY
from volbench.analyse.price.steady_performance import STEADY
from volbench.errors import ComparisonError, InputError
from volbench.model.frames.columns import LABEL_PREFIX

_WORKLOAD = ("rw", "block_bytes", "iodepth", "numjobs", "direct", "ioengine", "size_bytes")
"""What distinguishes workloads whose jobs are named after what is compared."""
_NUMBERS = re.compile(r"(\d+)", re.ASCII)
_SHOWN = 5
_ADDED = ("iops", "bw_bytes_per_s", *STEADY)
"""Columns that are summed over the clients of a volume."""


def sides_between(rows: pd.DataFrame, column: str, *, base: str) -> tuple[pd.DataFrame, str]:
    """Make each value of a column a side.

    Args:
        rows: of all campaigns.
        column: whose values are compared; rows without one are left out.
        base: the value that is the base, as a user writes it; empty for the first in order.

    Returns:
        The rows, their ``side`` anew, and the name of the base.

    Raises:
        InputError: the base must be one of the values.
        ComparisonError: there are not two values.
    """
    values = sorted(values_of(rows, column), key=_order)
    names = [value_text(column, value) for value in values]
    if len(values) < 2:
        raise ComparisonError(
            f"there is nothing to compare between: {column.removeprefix(LABEL_PREFIX)} has "
            + (f"only the value {names[0]}" if names else "no value"),
            hint="name a column that differs between the runs",
        )
    if base and base not in names:
        raise InputError(
            f"{column.removeprefix(LABEL_PREFIX)} has no value {base!r}",
            hint=f"choose one of {', '.join(names)}",
        )
    kept = rows[rows[column].notna()].reset_index(drop=True)
    kept["side"] = [value_text(column, _plain(value)) for value in kept[column]]
    first = base or names[0]
    order = {name: place for place, name in enumerate([first, *names])}
    place = kept["side"].map(lambda name: -1 if name == first else order[name])
    return kept.loc[place.sort_values(kind="stable").index].reset_index(drop=True), first


def lay_out_cells(
    rows: pd.DataFrame, *, by: Sequence[str], between: str, base: str
) -> tuple[pd.DataFrame, list[str]]:
    """Give each row its cell.

    Args:
        rows: with their ``side``.
        by: columns that keep cells apart.
        between: the column whose values are the sides; empty for none.
        base: name of the side that is the base.

    Returns:
        The rows of cells that the base and another side have, with ``cell`` (a number), ``label``
        (its job in words) and ``by_<column>`` (texts); and what is left out, in sentences.
    """
    rows = rows.copy()
    for name in by:
        rows[f"by_{name}"] = [
            "n/a" if pd.isna(value) else value_text(name, _plain(value)) for value in rows[name]
        ]
    by_job, remarks = _with_cells(rows.assign(label=_jobs(rows)), by, base), []
    if not by_job["shared"].any():
        by_work = _with_cells(rows.assign(label=_workloads(rows, between)), by, base)
        if by_work["shared"].any():
            by_job = by_work
            if not between:
                remarks.append("no job has one name on both sides: workloads are compared")
    alone = by_job[~by_job["shared"]]
    remarks += [
        f"only in {side}: {_some(_named(part, by))}"
        for side, part in alone.groupby("side", sort=False)
    ]
    kept = by_job[by_job["shared"]].reset_index(drop=True)
    if not len(kept):
        raise ComparisonError(
            f"no job or workload is in {base} and elsewhere"
            + "".join(f"; {remark}" for remark in remarks),
            hint="choose another base with --base, or compare folders of one profile",
        )
    return kept, remarks


def _with_cells(rows: pd.DataFrame, by: Sequence[str], base: str) -> pd.DataFrame:
    """Number the cells, and mark those that the base and another side have."""
    keys = ["label", "direction", *(f"by_{name}" for name in by)]
    rows["cell"] = rows.groupby(keys, sort=False, dropna=False).ngroup()
    several = rows.groupby("cell")["side"].transform("nunique") > 1
    return rows.assign(shared=several & rows["cell"].isin(rows[rows["side"] == base]["cell"]))


def _some(names: Sequence[str]) -> str:
    """Return the first few of a list, and how many more there are."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return ", ".join(distinct[:_SHOWN]) + more


def _named(part: pd.DataFrame, by: Sequence[str]) -> list[str]:
    columns = ["label", "direction", *(f"by_{name}" for name in by)]
    return [" ".join(map(str, row)) for row in part[columns].itertuples(index=False)]


def _jobs(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the job of each row, with its section and profile where they are needed."""
    plain = rows["group"].isna() | (rows["group"] == rows["job"])
    names = rows["job"].where(plain, rows["job"] + "/" + rows["group"].fillna(""))
    profiles = rows.groupby([names, "side"], dropna=False)["profile"].transform("nunique")
    if (profiles > 1).any():
        names = rows["profile"].fillna("?") + "/" + names
    return names.astype(str)


def _workloads(rows: pd.DataFrame, between: str) -> pd.Series[str]:
    """Return the workload of each row, as far as rows differ in it."""
    fixed = [name for name in _WORKLOAD if name != between]
    varying = [name for name in fixed if len(values_of(rows, name)) > 1]
    shown = [name for name in fixed if name in {"rw", "block_bytes", *varying}]
    columns = [[_workload_part(name, value) for value in rows[name]] for name in shown]
    texts = [" ".join(part for part in parts if part) for parts in zip(*columns, strict=True)]
    return pd.Series([text or "unknown" for text in texts], index=rows.index, dtype="str")


def _workload_part(name: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # one cell of a frame, of any type
        return ""
    text = value_text(name, _plain(value))
    return text if name in {"rw", "block_bytes", "ioengine"} else f"{name}={text}"


def _plain(value: object) -> object:
    """Return a numpy value as Python has it."""
    return value.item() if hasattr(value, "item") else value


def _order(value: object) -> list[tuple[int, float, str]]:
    """Return a key that sorts numbers by size, also within texts: P4 before P15."""
    if isinstance(value, int | float):
        return [(0, float(value), "")]
    parts = _NUMBERS.split(str(value))
    return [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts if part]


def one_row_a_repeat(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Aggregate clients that used one volume at the same time.

    They are not repeats of each other: they share the volume and the time. Rates are summed; of
    everything else the median over the clients is taken.

    Args:
        rows: of one side and cell, with `VOLUME_KEY` and `STEP`.
        column: the number that is wanted.

    Returns:
        A row for each step and volume that has the number: ``value`` and `VOLUME_KEY`. A volume
        that was measured in several campaigns counts as one in each: repeats of one campaign
        share its day.
    """
    values = rows[["origin", "campaign", STEP, VOLUME_KEY]].assign(value=rows[column].astype(float))
    values = values.dropna(subset=["value"])
    keys = ["origin", "campaign", STEP, VOLUME_KEY]
    groups = values.groupby(keys, sort=False, dropna=False)["value"]
    values = (groups.sum() if column in _ADDED else groups.median()).reset_index()
    places = values.drop_duplicates(["campaign", VOLUME_KEY])
    if places[VOLUME_KEY].duplicated().any():
        values[VOLUME_KEY] = values["campaign"].astype(str) + "|" + values[VOLUME_KEY]
    return values
