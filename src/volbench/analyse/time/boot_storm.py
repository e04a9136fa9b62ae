"""Boot storms: the series of all clients of a step, and of their devices, on one time axis.

All times are by the clock, so that series of several hosts are aligned as they ran.
A client has settled at the end of the last interval in which it did more than a tenth of what it
did in its own busiest one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import is_watched, measured
from volbench.analyse.frames.resample import Floats, covered_rows, on_clock, seconds, spread_rows

# Of the axis, as ``iostat 5`` in "IOPS in a Windows boot storm" (Curtis Collicutt).
# Noticed by: test_boot_storm.py::test_no_io_is_lost
INTERVAL_S = 5.0
# Share of a client's own peak that it stays below once it has settled: volbench's choice.
# Noticed by: test_boot_storm.py::test_a_client_settles_after_its_last_busy_interval
SETTLED = 0.1

Frames = Mapping[str, pd.DataFrame]
_STEP = ["campaign", "profile", "job", "repeat"]
_RUN = ["campaign", "run"]
_WAYS = ("read", "write")
# Share of the best view of an interval that counts as equally good: the error of interval ends.
# Noticed by: test_boot_storm.py::test_partial_samples_of_an_interval_yield_to_whole_ones
_MIN_VIEW_SHARE = 0.95
# Share of an interval that must be sampled for its rate to be reported.
# Noticed by: test_boot_storm.py::test_a_device_that_all_clients_watched_counts_once
_MIN_SEEN = 0.25


@dataclass(frozen=True)
class StormClient:
    """One client in a storm."""

    run: str  # its run
    name: str  # short, such as ``c03``, ``vm01`` or ``vm01-c03``
    host: str  # it ran on
    start_s: float  # when its I/O began, since the first client's
    end_s: float  # when its I/O ended, on the same clock
    settled_s: float  # when it had settled, on the same clock
    read_iops: Floats  # in each interval of the storm
    write_iops: Floats  # the same for writes

    @property
    def iops(self) -> Floats:
        """Reads and writes in each interval."""
        return self.read_iops + self.write_iops

    @property
    def busy_s(self) -> float:
        """Duration from its start until it had settled."""
        return self.settled_s - self.start_s

    @property
    def settles_early(self) -> bool:
        """Whether it settled more than one interval before its I/O ended."""
        return self.settled_s < self.end_s - INTERVAL_S


@dataclass(frozen=True)
class Storm:
    """One step of a campaign that several clients did side by side."""

    campaign: str  # its name
    profile: str  # of the step
    job: str  # of the step
    repeat: int  # of the step
    started_utc_s: float  # when the first client's I/O began, since the epoch
    # of the intervals, since then; one more than there are intervals, of which the last ends with
    # the storm
    edges_s: Floats
    clients: tuple[StormClient, ...]  # in the order of their starts; at least one
    # runs of the step without a series with times, such as failed ones
    without_series: tuple[str, ...]
    # kernel name of the one device that backs all of it, or how many there are; empty where none
    # was watched
    device: str
    # of the devices together, in each interval; NaN where none was watched
    device_read_iops: Floats
    device_write_iops: Floats  # the same for writes
    limit_iops: float  # declared limit of the one volume that all clients share; NaN for none
    is_watched: bool = False  # whether the clients are disks under a load that was only watched
    # what users noted during a watch: when, on the same clock, and the text
    notes: tuple[tuple[float, str], ...] = ()

    @property
    def mean_iops(self) -> float:
        """Mean from the first start to the end."""
        widths = np.diff(np.clip(self.edges_s, 0.0, self.end_s))
        return float((self.iops * widths).sum() / widths.sum()) if widths.sum() else math.nan

    @property
    def read_iops(self) -> Floats:
        """Reads of all clients in each interval."""
        return _sum_rates([client.read_iops for client in self.clients])

    @property
    def write_iops(self) -> Floats:
        """Writes of all clients in each interval."""
        return _sum_rates([client.write_iops for client in self.clients])

    @property
    def iops(self) -> Floats:
        """Reads and writes of all clients in each interval."""
        return self.read_iops + self.write_iops

    @property
    def peak_iops(self) -> float:
        """The most in any interval."""
        return float(self.iops.max())

    @property
    def peak_span_s(self) -> tuple[float, float]:
        """Beginning and end of the interval with the most."""
        at = int(self.iops.argmax())
        return float(self.edges_s[at]), float(self.edges_s[at + 1])

    @property
    def peak_s(self) -> float:
        """Middle of the interval with the most."""
        return sum(self.peak_span_s) / 2

    @property
    def last_start_s(self) -> float:
        """When the last client began."""
        return self.clients[-1].start_s

    @property
    def end_s(self) -> float:
        """When the last client ended."""
        return max(client.end_s for client in self.clients)

    @property
    def later_share(self) -> float:
        """Which share of all I/Os came after the last start; NaN where there was no I/O."""
        done = float(self.iops.sum())
        if not done:
            return math.nan
        widths = np.clip(self.edges_s[1:] - self.last_start_s, 0, np.diff(self.edges_s))
        return float((self.iops * widths / np.diff(self.edges_s)).sum()) / done

    @property
    def most_at_once(self) -> int:
        """How many clients were at it at once at most."""
        return max(
            sum(other.start_s <= client.start_s < other.end_s for other in self.clients)
            for client in self.clients
        )


def storm_steps(frames: Frames) -> list[pd.DataFrame]:
    """Return the rows of each measured step of at least two clients with a series of known times.

    Steps whose clients ran one after another are left out.

    Args:
        frames: ``summary`` and ``series`` of one or more campaigns.
    """
    summary, series = frames["summary"], frames["series"]
    wanted = summary[(summary["phase"] == "measured").fillna(value=False)]
    timed = series.loc[series["utc"].notna() & series["iops"].notna(), [*_RUN, "utc", "t_s"]]
    timed = timed.merge(measured(wanted)[_RUN].drop_duplicates())
    end_s = seconds(timed["utc"])
    spans = timed.assign(start_s=end_s - timed["t_s"], end_s=end_s).groupby(_RUN)
    times = spans.agg({"start_s": "min", "end_s": "max"}).reset_index()
    return [
        step
        for _, step in wanted.groupby(_STEP, sort=False, dropna=False)
        if len(step["run"].unique()) > 1
        and not _is_in_turn(times.merge(step[_RUN].drop_duplicates()))
    ]


def _is_in_turn(times: pd.DataFrame) -> bool:
    """Return whether each run started after all earlier ones had ended; True without a run."""
    ordered = times.sort_values("start_s")
    starts_late = ordered["start_s"] >= ordered["end_s"].cummax().shift()
    return len(times) != 1 and bool(starts_late[1:].all())


def storms(frames: Frames, *, limit: int | None = None) -> tuple[Storm, ...]:
    """Return the storms of `storm_steps`, in order.

    Args:
        frames: as of `storm_steps`, and ``device``, and ``marks`` of watches.
        limit: maximum number of storms, those with most clients, then with least IOPS; None for
            all.
    """
    steps = storm_steps(frames)
    sizes = [(-len(step["run"].unique()), float(step["iops"].sum())) for step in steps]
    order = sorted(range(len(steps)), key=sizes.__getitem__)
    storms_of_steps = []
    for step in (steps[index] for index in sorted(order[:limit])):
        finished = measured(step.drop_duplicates("run"))[_RUN]
        series = frames["series"].merge(finished).dropna(subset=["utc", "iops"])
        key = tuple(step[name].iloc[0] for name in _STEP)
        storm = _storm(key, step, series, frames["device"])
        if "marks" in frames:
            storm = _add_notes(storm, frames["marks"].merge(finished))
        storms_of_steps.append(storm)
    return tuple(storms_of_steps)


def _storm(
    key: tuple[object, ...], step: pd.DataFrame, series: pd.DataFrame, device: pd.DataFrame
) -> Storm:
    runs = step.drop_duplicates("run")
    campaign, profile, job, repeat = (str(part) for part in key)
    rows = on_clock(series, step, rate="iops", total="total_ios")
    rows["start_s"] = rows["end_s"] - rows["width_s"]
    first_s = float(rows["start_s"].min())
    rows[["start_s", "end_s"]] -= first_s
    edges_s = _edges(float(rows["end_s"].max()))
    clients = [
        _client(str(run), name or str(own["host"].iloc[0]), own, edges_s)
        for run, own in rows.groupby("run", sort=False)
        # such as c03, behind the step
        for name in [str(run).partition(f"{job}-r{repeat}")[2].removeprefix("-")]
    ]
    if is_watched(runs).any():  # a disk does not boot
        clients = [replace(client, settled_s=client.end_s) for client in clients]
    seen = {client.run for client in clients}
    samples = device.merge(runs[["campaign", "run"]])
    if is_watched(runs).any():
        samples = samples.iloc[:0]  # the clients are the devices
    name, reads, writes = devices_on(samples, edges_s, first_s=first_s)
    return Storm(
        campaign=campaign,
        profile=profile,
        job=job,
        repeat=int(repeat),
        started_utc_s=first_s,
        edges_s=edges_s,
        clients=tuple(sorted(clients, key=lambda client: client.start_s)),
        without_series=tuple(str(run) for run in runs["run"] if run not in seen),
        device=name,
        device_read_iops=reads,
        device_write_iops=writes,
        limit_iops=_shared_limit(runs),
        is_watched=bool(is_watched(runs).any()),
    )


def _add_notes(storm: Storm, events: pd.DataFrame) -> Storm:
    once = events.drop_duplicates("text")
    at_s = seconds(once["utc"]) - storm.started_utc_s
    notes = zip(at_s.astype(float), once["text"].astype(str), strict=True)
    return replace(storm, notes=tuple(notes))


def _edges(end_s: float) -> Floats:
    """Return the edges of intervals up to an end; the last one is longer or shorter by a half."""
    count = max(1, round(end_s / INTERVAL_S))
    edges = np.linspace(0.0, count * INTERVAL_S, count + 1, dtype=np.float64)
    edges[-1] = end_s
    return edges


def _shared_limit(runs: pd.DataFrame) -> float:
    limits = runs[["host", "volume", "limit_iops"]].drop_duplicates()
    is_known = len(limits) == 1 and limits["limit_iops"].notna().all()
    return float(limits["limit_iops"].iloc[0]) if is_known else math.nan


def _client(run: str, name: str, series: pd.DataFrame, edges_s: Floats) -> StormClient:
    rates = {way: np.zeros(len(edges_s) - 1) for way in _WAYS}
    for (_, way), section in series.groupby(["group", "direction"], sort=False, dropna=False):
        if way in rates:
            rates[str(way)] += spread_rows(section, "iops", edges_s)
    start_s, end_s = float(series["start_s"].min()), float(series["end_s"].max())
    total = rates["read"] + rates["write"]
    busy = np.flatnonzero(total > SETTLED * total.max())
    settled_s = min(float(edges_s[busy[-1] + 1]), end_s) if len(busy) else start_s
    host = str(series["host"].iloc[0])
    return StormClient(run, name, host, start_s, end_s, settled_s, rates["read"], rates["write"])


def _sum_rates(parts: Sequence[Floats]) -> Floats:
    total: Floats = np.sum(parts, axis=0)
    return total


def devices_on(
    samples: pd.DataFrame, edges_s: Floats, *, first_s: float
) -> tuple[str, Floats, Floats]:
    """Return the name of the devices, and the reads and writes of all of them together.

    Args:
        first_s: where the axis begins, in seconds since the epoch.

    Returns:
        The kernel name, or how many devices there are, empty for none; and for each interval the
        reads and the writes a second, NaN where nothing was sampled.
    """
    rows = samples[(samples["level"] == "volume").fillna(value=False)]
    rows = rows.dropna(subset=["device", "utc", "read_iops", "write_iops"])
    if not len(rows):
        nothing = np.full(len(edges_s) - 1, np.nan)
        return "", nothing, nothing
    rows = rows.assign(end_s=seconds(rows["utc"]) - first_s, width_s=rows["interval_s"])
    groups = rows.groupby(["host", "device"], sort=False)
    views = np.array([_device_rates(part, edges_s) for _, part in groups])
    is_known = ~np.isnan(views).all(axis=0)
    sums = np.where(is_known, np.nansum(views, axis=0), np.nan)
    name = str(rows["device"].iloc[0]) if len(groups) == 1 else f"{len(groups)} devices"
    return name, sums[0], sums[1]


def _device_rates(rows: pd.DataFrame, edges_s: Floats) -> Floats:
    """Return reads and writes of one device that several clients may have sampled.

    In each interval those count that cover most of it: its busy half would overestimate it.
    """
    parts = [samples for _, samples in rows.groupby("run", sort=False)]
    seen = np.array([covered_rows(samples, edges_s) for samples in parts])
    rates = np.array(
        [[spread_rows(samples, f"{way}_iops", edges_s) for samples in parts] for way in _WAYS]
    )
    most = seen.max(axis=0)
    weights = np.where(seen >= _MIN_VIEW_SHARE * most, seen, 0.0)
    total = weights.sum(axis=0)
    enough = most >= _MIN_SEEN
    rates_by_way: Floats = np.full((len(_WAYS), len(edges_s) - 1), np.nan)
    rates_by_way[:, enough] = (rates * (weights > 0)).sum(axis=1)[:, enough] / total[enough]
    return rates_by_way
