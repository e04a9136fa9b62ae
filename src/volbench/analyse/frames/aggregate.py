"""Sums: latency bins over the repeats of a job, and rates over the clients of a step.

Rates are added up only over the time in which every client ran: outside it some clients had the
shared storage to themselves. Latencies are merged bin by bin over the whole runs; percentiles
of several clients are never averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.job_frames import (
    COLOUR,
    COLOUR_PLACE,
    is_of_kind,
    key_of,
    labels,
    measured,
    percentiles_of_bins,
    places_of,
)
from volbench.analyse.frames.resample import on_clock, spread_rows
from volbench.analyse.frames.run_view import clock_bounds_s
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.columns import LABEL_PREFIX, Row
from volbench.model.profile.profile_model import Phase, Start
from volbench.units import format_latency

# Columns of the histogram that charts read: the summary has what else identifies its rows
BINS = ("run", "group", "direction", "latency", "bin_s", "bin_high_s", "count")
Frames = Mapping[str, pd.DataFrame]
# fio stamps in whole milliseconds, so that up to one is missing between two of its instants.
# Noticed by: test_aggregate.py
_STAMP_S = 0.001
# A total needs this many times the error of its ends, and this share of the longest run, in common:
# over 0.4 s with clocks known to 0.5 s, storage limited to 300 IOPS had a total of 410.
# Noticed by: test_aggregate.py::test_a_short_overlap_has_no_total
_MIN_BOUNDS, _MIN_SHARE = 10, 0.2
_MAX_NAMED = 5
_PERCENTILES = ("p50", "p99", "p999")


def distribution(histogram: pd.DataFrame, summary: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Add up the latency bins of all repeats of each job and direction.

    Args:
        summary: the summary frame; it identifies the bins, and says which runs are finished and
            measured.

    Returns:
        A row for each combination of `KEY` and bin, ascending in the bin: `KEY` and ``label`` as
        categories, ``bin_high_s`` (upper edge), ``count`` (int), ``share`` (of the I/Os faster
        than the upper edge, 0 to 1) and ``line``, the number of the combination from 0; and the
        kind of latency, ``lat`` or ``clat``.
    """
    rows, places = _measured_rows(histogram, summary)
    key = key_of(rows)
    order = rows.groupby(key, sort=False, dropna=False).ngroup().to_numpy().astype(np.int32)
    kind = _kind_of_all(histogram, places, order)
    kept = (places >= 0) & is_of_kind(histogram, kind)
    counts = histogram.loc[kept, ["bin_high_s", "count"]].assign(order=order[places[kept]])
    del places, kept
    pooled = counts.groupby(["order", "bin_high_s"])["count"].sum().astype("int64").reset_index()
    running = pooled.groupby("order")["count"]
    pooled["share"] = running.cumsum() / running.transform("sum")
    names = [*key, "label", *(name for name in (COLOUR, COLOUR_PLACE) if name in rows)]
    identity = rows.assign(order=order).drop_duplicates("order")[names]
    texts = identity.astype(dict.fromkeys(identity.columns, "category"))
    named = texts.iloc[pooled["order"].to_numpy()].reset_index(drop=True)
    line = pd.factorize(pooled["order"])[0]
    return pd.concat([named, pooled.drop(columns="order").assign(line=line)], axis=1), kind


def _kind_of_all(
    histogram: pd.DataFrame, places: npt.NDArray[np.intp], order: npt.NDArray[np.int32]
) -> str:
    """Return the kind of latency that every combination reports: total latency if all do."""
    is_reported = (places >= 0) & histogram["direction"].ne("sync").to_numpy()
    reported = histogram.loc[is_reported, ["latency"]].assign(order=order[places[is_reported]])
    kinds = reported.drop_duplicates().astype({"latency": str}).groupby("order")["latency"].agg(set)
    return "clat" if any("clat" in known and "lat" not in known for known in kinds) else "lat"


def in_classes(shares: pd.DataFrame, summary: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return the I/Os of each run in fio's own classes, which it reports without json+ too.

    Args:
        quantity: ``clat`` or ``iodepth``.

    Returns:
        A row of the summary for each run, section and class that holds an I/O, with ``label``,
        ``low`` and ``high`` (its ends) and ``count`` (float). The direction is ``all`` where a
        section had several: fio does not count them apart.
    """
    rows = measured(summary)
    rows["label"] = labels(rows)
    sections = rows.groupby(["run", "group"], sort=False)
    rows["total_ios"] = sections["total_ios"].transform("sum")
    is_single = sections["direction"].transform("nunique") == 1
    rows["direction"] = rows["direction"].where(is_single, "all")
    chosen = shares[shares["quantity"] == quantity][["run", "group", "low", "high", "percent"]]
    bins = rows.drop_duplicates(["run", "group"]).merge(chosen, on=["run", "group"])
    return bins.assign(count=bins["percent"] / 100 * bins["total_ios"])


def _measured_rows(
    histogram: pd.DataFrame, summary: pd.DataFrame
) -> tuple[pd.DataFrame, npt.NDArray[np.intp]]:
    rows = measured(summary)
    rows["label"] = labels(rows)
    return rows, places_of(histogram, rows)


def aggregate_rows(
    campaign: Campaign,
    frame: Callable[[str], pd.DataFrame],
    *,
    on_failure: Callable[[Run, Exception], None],
    invalid: Collection[str] = (),
) -> Sequence[Row]:
    """Return a row for each measured step of several clients, section and direction.

    Args:
        frame: returns a frame by name: summary, series and histogram, if there are such steps.
        on_failure: called with a run of each step that cannot be added up, and the error.
        invalid: runs with an invalid result; a step of one has no sums and no latencies.
    """
    steps = _aggregated_steps(campaign)
    if not steps:
        return []
    step_of = {run.id: run.step for runs in steps for run in runs}
    parts = {
        name: {int(s): part for s, part in rows.groupby(rows["run"].map(step_of), sort=False)}
        for name in ("summary", "series", "histogram")
        for rows in [frame(name)]
    }
    nothing = {name: frame(name).iloc[:0] for name in parts}
    rows: list[Row] = []
    for runs in steps:
        frames = {name: part.get(runs[0].step, nothing[name]) for name, part in parts.items()}
        finished = set(frames["summary"]["run"])
        try:
            rows += _step_rows(campaign, runs, frames, invalid)
        except Exception as error:  # noqa: BLE001 - one bad step must not take all others with it
            on_failure(next(run for run in runs if run.id in finished), error)
    return rows


def _aggregated_steps(campaign: Campaign) -> list[list[Run]]:
    steps: dict[tuple[int, str], list[Run]] = {}
    for run in campaign.runs:
        # Clients in turn share no time: sums over them would say nothing. Nor would sums of arms.
        if run.step and run.phase is Phase.MEASURED and run.start is not Start.SEQUENTIAL:
            steps.setdefault((run.step, run.arm), []).append(run)
    several = [runs for runs in steps.values() if len(runs) + campaign.clients_absent > 1]
    clients = {(run.host, run.client) for runs in several for run in runs}
    # with several numbers of clients, also the step of a single one
    return [
        runs for runs in steps.values() if any((run.host, run.client) in clients for run in runs)
    ]


def _step_rows(
    campaign: Campaign, runs: Sequence[Run], frames: Frames, invalid: Collection[str]
) -> list[Row]:
    summary = frames["summary"]
    done = summary[(summary["status"] == "finished").fillna(value=False)]
    rows: list[Row] = []
    labels = _common_labels(campaign, runs)
    are_beside = all(run.imported is not None and run.imported.beside for run in runs)
    if len({tuple(section.name for section in run.sections) for run in runs}) > 1:
        # sections of one job on several volumes, which are added up
        done = done.assign(group=runs[0].job)
        frames = {name: frame.assign(group=runs[0].job) for name, frame in frames.items()}
    for (group, direction), section in done.groupby(["group", "direction"], sort=False):
        step_frames = {
            name: frame[(frame["group"] == group) & (frame["direction"] == direction)]
            for name, frame in frames.items()
        }
        is_valid = not section["run"].isin(invalid).any()
        first, names = runs[0], {run.id: run.client_name for run in runs}
        rows.append(
            {
                "campaign": campaign.name,
                "profile": first.profile,
                "job": first.job,
                "group": group,
                "step": first.step,
                "repeat": first.repeat,
                "direction": direction,
                **labels,
                "clients": len(section),
                "clients_planned": len(runs) + campaign.clients_absent,
                **(_sums(step_frames, section, invalid, names) if direction != "sync" else {}),
                **(_sums_of_means(section) if is_valid and are_beside else {}),
                **(_latency_columns(step_frames["histogram"], section) if is_valid else {}),
            }
        )
    return rows


def _common_labels(campaign: Campaign, runs: Sequence[Run]) -> Row:
    common = set.intersection(*(set(campaign.labels_of(run).items()) for run in runs))
    return {f"{LABEL_PREFIX}{name}": value for name, value in common}


def _sums(
    frames: Frames, done: pd.DataFrame, invalid: Collection[str], names: Mapping[str, str]
) -> Row:
    if bad := _listed((run for run in done["run"] if run in invalid), names):
        return {"no_total": f"the result of {bad} is invalid"}
    return _rate_columns(frames, done, names)


def _listed(runs: Iterable[str], names: Mapping[str, str]) -> str:
    clients = [names[run] for run in runs]
    more = [f"{len(clients) - _MAX_NAMED} more"] if clients[_MAX_NAMED:] else []
    return ", ".join([*clients[:_MAX_NAMED], *more])


def _rate_columns(frames: Frames, done: pd.DataFrame, names: Mapping[str, str]) -> Row:
    """Return the sums over the time that all clients share, and how far apart their ends are."""
    series = frames["series"]
    is_known = series["utc"].notna() & series["iops"].notna()
    series = series[series["run"].isin(done["run"]) & is_known]
    if series["run"].nunique() < len(done):
        lacking = _listed((run for run in done["run"] if run not in {*series["run"]}), names)
        return {"no_total": f"the logs of {lacking} hold no interval: measure longer"}
    rows = on_clock(series, done, rate="iops", total="total_ios")
    begins = (rows["end_s"] - rows["width_s"]).groupby(rows["run"]).min()
    ends = rows["end_s"].groupby(rows["run"]).max()
    from_s, to_s = float(begins.max()), float(ends.min())
    skew_s, end_skew_s = float(begins.max() - begins.min()), float(ends.max() - ends.min())
    bound_s = clock_bounds_s([done]) + _STAMP_S
    sums: Row = {
        "overlap_s": max(0.0, to_s - from_s),
        "start_skew_s": skew_s,
        "start_skew_bound_s": bound_s,
        "end_skew_s": end_skew_s,
    }
    least_s = max(_MIN_BOUNDS * bound_s, _MIN_SHARE * float((ends - begins).max()))
    if to_s - from_s < least_s:
        client = names[str(begins.idxmax() if skew_s >= end_skew_s else ends.idxmin())]
        when = "began after" if skew_s >= end_skew_s else "ended before"
        sums["no_total"] = (
            f"{client} {when} the others by {format_latency(max(skew_s, end_skew_s))}, all ran"
            f" together for {format_latency(max(0.0, to_s - from_s))}, and a total needs"
            f" {format_latency(least_s)}: measure longer, on hosts with the same time"
        )
    else:
        edges = np.array([from_s, to_s])
        sizes = on_clock(series, done, rate="bw_bytes_per_s", total="io_bytes")
        rates = _rates_of_clients(rows, "iops", edges)
        sums["iops"] = float(rates.sum())
        sums["bw_bytes_per_s"] = float(_rates_of_clients(sizes, "bw_bytes_per_s", edges).sum())
        if squares := float((rates**2).sum()):
            # Source: R. Jain et al., "A Quantitative Measure of Fairness", DEC-TR-301, 1984
            sums["fairness"] = float(rates.sum()) ** 2 / (len(rates) * squares)
    return sums


def _sums_of_means(done: pd.DataFrame) -> Row:
    """Return the sums of rates of imported processes, which ran at the same time for the most."""
    return {"no_total": None} | {
        name: float(done[name].astype("float64").sum()) for name in ("iops", "bw_bytes_per_s")
    }


def _rates_of_clients(
    rows: pd.DataFrame, column: str, edges: np.ndarray
) -> npt.NDArray[np.float64]:
    return np.array([spread_rows(own, column, edges)[0] for _, own in rows.groupby("run")])


def _latency_columns(histogram: pd.DataFrame, done: pd.DataFrame) -> Row:
    counts = done["total_ios"].astype("float64")
    total = float(counts.sum())
    max_s = float(done["lat_max_s"].max())
    latencies: Row = {"lat_max_s": max_s}
    if total:
        latencies["lat_mean_s"] = float((done["lat_mean_s"] * counts).sum() / total)
    kinds = set(histogram["latency"])
    kind = "lat" if "lat" in kinds else "clat"
    mine = histogram[(histogram["latency"] == kind) & histogram["run"].isin(done["run"])]
    bins = mine.groupby("bin_s")["count"].sum().sort_index()
    if len(bins):
        for name, value_s in zip(
            _PERCENTILES, percentiles_of_bins(bins, _PERCENTILES), strict=True
        ):
            # The midpoint of the last bin that holds an I/O may be above the longest of them
            latencies[f"lat_{name}_s"] = min(value_s, max_s)
    return latencies
