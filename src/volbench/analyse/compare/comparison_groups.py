"""Groups of a comparison: cells and sides of rows, and one value for each repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from volbench.analyse.compare.comparability import values_of
from volbench.analyse.compare.repeat_statistics import Group
from volbench.analyse.frames.job_frames import merged_percentiles, plain_values
from volbench.analyse.frames.matched_cells import cells_of_frame
from volbench.analyse.frames.run_facts import STEADY, STEP, VOLUME_KEY
from volbench.analyse.frames.workload_words import first_names, value_text
from volbench.errors import ComparisonError, InputError
from volbench.model.frames.columns import LABEL_PREFIX, PERCENTILES
from volbench.units import natural_order

_MAX_NAMED = 5
ADDED = ("iops", "bw_bytes_per_s", *STEADY)  # Columns that are summed over the clients of a volume
_LATENCIES = ("lat_", "clat_", "slat_")
_CPU = ("cpu_usr", "cpu_sys")
ARM = "arm"  # Column of the variants that one plan compares
# What is equal in all rows of a repeat
_REPEAT = ["cell", "side", "origin", "campaign", STEP, "block", VOLUME_KEY]


def sides_between(
    rows: pd.DataFrame, column: str, *, named: str, base: str, order: Sequence[str] = ()
) -> tuple[pd.DataFrame, str]:
    """Make each value of a column a side.

    Args:
        column: whose values are compared; rows without one are left out.
        named: the column, as a user named it.
        base: the value that is the base, as a user writes it; empty for the first in order.
        order: values that come first; the others follow, sorted.

    Returns:
        The rows, their ``side`` anew, and the name of the base.
    """
    values = sorted(values_of(rows, column), key=_order_key)
    names = [value_text(column, value) for value in values]
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    if len(values) < 2:
        is_hidden = f"{LABEL_PREFIX}{column}" in rows
        raise ComparisonError(
            f"nothing to compare: {named} "
            + (f"is {names[0]} in all runs" if names else "is not known of any run"),
            hint=f"for the label of this name, write {LABEL_PREFIX}{column}"
            if is_hidden
            else "name a column that differs between the runs: --between COLUMN",
        )
    if base and base not in names:
        raise InputError(f"{named} has no value {base!r}", hint=f"choose one of {', '.join(names)}")
    kept = rows[rows[column].notna()].reset_index(drop=True)
    kept["side"] = [value_text(column, value) for value in plain_values(kept[column])]
    first = base or names[0]
    place = kept["side"].map(lambda name: -1 if name == first else names.index(name))
    return kept.loc[place.sort_values(kind="stable").index].reset_index(drop=True), first


def pairing_columns(rows: pd.DataFrame, named: Sequence[str], base: str) -> list[str]:
    """Return the labels, or the volume, in which imported results of one side differ.

    Each of their values is compared with the same one of the base: other values are no repeats.
    """
    if "import_folder" not in rows or rows["import_folder"].isna().any():
        return []
    labels = [str(name) for name in rows if str(name).startswith(LABEL_PREFIX)]
    found: list[str] = []
    for name in [*labels, "volume"]:
        sides = rows.groupby("side")[name].unique()
        of_base = {*sides[base]} if base in sides else set()
        is_paired = any(
            of_base.intersection(of_side) for side, of_side in sides.items() if side != base
        )
        is_decided = bool(found) and rows.groupby(found)[name].nunique().max() == 1
        if name not in named and sides.map(len).max() > 1 and is_paired and not is_decided:
            found.append(name)
    return found


def lay_out_cells(
    rows: pd.DataFrame, *, by: Sequence[str], between: str, named: str, base: str
) -> tuple[pd.DataFrame, list[str]]:
    """Give each row its cell.

    Args:
        rows: with their ``side``, and the options of fio.
        between: the column whose values are the sides; empty for none.
        named: that column, as a user named it.

    Returns:
        The rows of cells that the base and another side have, with ``cell`` (a number), ``label``
        (its workload in words) and ``by_<column>`` (texts); and what is left out, in sentences.
    """
    rows = rows.copy()
    for name in by:
        values = plain_values(rows[name])
        rows[f"by_{name}"] = ["n/a" if each is None else value_text(name, each) for each in values]
    keys = [f"by_{name}" for name in by]
    matched = cells_of_frame(
        rows,
        rows["side"].tolist(),
        compared=[between, *by],
        apart=[*rows[keys].itertuples(index=False, name=None)],
    )
    laid_out = rows.assign(cell=matched.numbers, label=matched.labels)
    is_of_base = laid_out["cell"].isin(laid_out[laid_out["side"] == base]["cell"])
    several = laid_out.groupby("cell")["side"].transform("nunique") > 1
    laid_out = laid_out.assign(shared=several & is_of_base)
    remarks = []
    alone = laid_out[~laid_out["shared"]]
    for side, side_rows in alone.groupby("side", sort=False):
        names = side_rows[["label", *(f"by_{name}" for name in by)]].itertuples(index=False)
        only = first_names([" ".join(map(str, row)) for row in names], _MAX_NAMED, "; ")
        remarks.append(f"only in {side}: {only}")
    kept = laid_out[laid_out["shared"]].reset_index(drop=True)
    if not len(kept):
        if between:
            what = f"no workload ran with {named} {base} and with another {named}"
            hint = f"compare runs that differ in {named} only, or choose another base with --base"
        else:
            what = f"{base} has no workload in common with the others"
            hint = "compare results of the same pattern, block size, queue depth and options"
        raise ComparisonError(what + "".join(f"; {remark}" for remark in remarks), hint=hint)
    return kept, remarks


def _order_key(value: object) -> list[tuple[float, str]]:
    """Return a key that sorts numbers by size, also within texts: P4 before P15."""
    if isinstance(value, int | float):
        return [(float(value), "")]
    return [*natural_order(str(value))]


def repeats_of(
    rows: pd.DataFrame,
    values: pd.Series[float],
    *,
    column: str,
    bins: Callable[[], pd.DataFrame | None],
) -> pd.DataFrame:
    """Return one value for each repeat; clients that ran at one time are one repeat.

    Rates of clients are summed. Where a repeat has all clients of its step, the sum is that of the
    aggregate, over the time in which all ran, and without such a time it is left out. Of latencies,
    the mean is that of all I/Os, the percentiles are those of their added bins, and minimum and
    maximum are those of all; CPU time is the mean of the clients. Other statistics of several
    clients are left out, as are percentiles without bins.

    Args:
        rows: with ``cell``, ``side``, `VOLUME_KEY`, `STEP` and what identifies a run's result.
        values: the number that is wanted, of each row; rows without it are left out.
        bins: returns the latency bins of all rows, or None; called where several are merged.

    Returns:
        ``cell``, ``side``, ``origin``, ``campaign``, `STEP`, ``block``, `VOLUME_KEY`, ``clients``
        (rows of the repeat), ``started_utc`` and ``value``, NaN where it is left out.
    """
    known = rows.assign(value=values.astype(float)).dropna(subset=["value"])
    grouped = known.groupby(_REPEAT, sort=False, dropna=False)
    known = known.assign(_thing=grouped.ngroup())
    repeats = grouped.agg(clients=("value", "size"), started_utc=("started_utc", "min"))
    repeats = repeats.reset_index()
    repeats["value"] = (
        _values_of_clients(known, column, bins).reindex(range(len(repeats))).to_numpy()
    )
    return repeats


def _values_of_clients(
    known: pd.DataFrame, column: str, bins: Callable[[], pd.DataFrame | None]
) -> pd.Series[float]:
    """Return the value of each ``_thing``; none where several values give no value for all."""
    values = known.groupby("_thing")["value"]
    if column in ADDED:
        added = values.sum()
        if (aggregate := f"aggregate_{column}") not in known:
            return added
        step = known.groupby("_thing")[[aggregate, "aggregate_clients"]].first().astype(float)
        is_whole = values.size().gt(1) & values.size().eq(step["aggregate_clients"])
        return added.mask(is_whole, step[aggregate])
    if column in _CPU:
        return values.mean()
    single = values.first().where(values.size().eq(1))
    if single.notna().all() or not column.startswith(_LATENCIES):
        return single
    return single.fillna(_latency_of_all(known, column, bins))


def _latency_of_all(
    known: pd.DataFrame, column: str, bins: Callable[[], pd.DataFrame | None]
) -> pd.Series[float]:
    """Return a statistic of the latency of all I/Os of each ``_thing``, where it is known."""
    kind, _, statistic = column.removesuffix("_s").partition("_")
    things = known["_thing"]
    if statistic in {"min", "max"}:
        return known.groupby("_thing")["value"].agg(statistic)
    if statistic == "mean":
        ios = known["total_ios"].astype(float)
        return (known["value"] * ios).groupby(things).sum(min_count=1) / ios.groupby(things).sum()
    if statistic in PERCENTILES:
        return merged_percentiles(known, bins(), kind=kind, names=[statistic])[statistic]
    return pd.Series(dtype=float)


def groups_of(repeats: pd.DataFrame) -> dict[tuple[str, str], Group]:
    """Return the repeats of each cell and side.

    Clients that used one volume at the same time are not repeats of each other: they share the
    volume and the time. A volume that was measured in several campaigns counts as one in each:
    repeats of one campaign share its day.
    """
    repeats = repeats.dropna(subset=["value"]).reset_index(drop=True)
    # Runs of one step start together: the milliseconds between them are no order.
    together = repeats.groupby(["campaign", STEP], sort=False)["started_utc"]
    repeats["started_utc"] = together.transform("min")
    keys = ["cell", "side"]
    places = repeats.drop_duplicates([*keys, "campaign", VOLUME_KEY])
    several = pd.MultiIndex.from_frame(places[places.duplicated([*keys, VOLUME_KEY])][keys])
    apart = pd.MultiIndex.from_frame(repeats[keys]).isin(several)
    repeats.loc[apart, VOLUME_KEY] = (
        repeats.loc[apart, "campaign"].astype(str) + "|" + repeats.loc[apart, VOLUME_KEY]
    )
    return {
        (str(cell), str(side)): Group(
            group["value"].to_numpy(dtype=float),
            group[VOLUME_KEY].tolist(),
            blocks=[
                None if pd.isna(block) else (campaign, int(block))
                for campaign, block in zip(group["campaign"], group["block"], strict=True)
            ],
            starts=group["started_utc"].tolist(),
        )
        for (cell, side), group in repeats.groupby(keys, sort=False)
    }
