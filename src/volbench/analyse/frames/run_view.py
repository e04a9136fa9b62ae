"""View of one run: its rows of every frame, its facts, and the numbers that its rows give.

NaN always means "unknown".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from itertools import pairwise
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.job_frames import plain_rows
from volbench.analyse.frames.resample import Floats
from volbench.analyse.frames.workload_spec import WorkloadSpec, workloads_of
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.columns import DAMAGED
from volbench.model.results.provenance import ColdProbe, HostFacts, VolumeFacts

_Args = ParamSpec("_Args")
_Answer = TypeVar("_Answer")
_MOVING = ("read", "write", "trim")


@dataclass(frozen=True)
class RunView:
    """One run that has ended, with its rows of the frames that were read from raw files."""

    campaign: Campaign  # the whole plan
    run: Run  # the run
    summary: pd.DataFrame  # its rows of the summary frame, as are the following; they may be empty
    series: pd.DataFrame  # interval by interval, as fio saw it
    device: pd.DataFrame  # interval by interval, as the host's kernel saw it
    percentiles: pd.DataFrame  # of latency
    # the volume as it was right before the run; None if it was not recorded
    volume: VolumeFacts | None = None
    host: HostFacts | None = None  # the machine; None if it was not recorded
    # result of the cold-volume probe before the first run; None without one
    cold: ColdProbe | None = None
    _answers: dict[Hashable, object] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def answer(self, key: Hashable, work_out: Callable[[], object]) -> object:
        """Return a cached value, computed on first use."""
        if key not in self._answers:
            self._answers[key] = work_out()
        return self._answers[key]

    @cached_property
    def results(self) -> Sequence[Mapping[str, object]]:
        """The rows of the summary as mappings; made once, because every rule reads them."""
        kept = self.answer("results", lambda: plain_rows(self.summary))
        return cast("Sequence[Mapping[str, object]]", kept)

    @cached_property
    def workloads(self) -> tuple[WorkloadSpec, ...]:
        """The planned load of each section, in the order of the job file."""
        return workloads_of(self.run)

    @cached_property
    def is_buffered(self) -> bool:
        """Whether any section goes through the page cache."""
        return any(workload.is_buffered for workload in self.workloads)

    @cached_property
    def is_cached(self) -> bool:
        """Whether the page cache may hide the volume in any section."""
        return any(workload.is_cached for workload in self.workloads)

    @cached_property
    def is_counted(self) -> bool:
        """Whether the block layer of the host counts the I/O of every section."""
        return all(workload.is_counted for workload in self.workloads)

    @cached_property
    def writes(self) -> bool:
        """Whether any section writes."""
        return any(workload.writes for workload in self.workloads)

    @property
    def size_bytes(self) -> float:
        """Size of the volume; NaN where it is unknown."""
        size_bytes = self.run.volume.size_bytes
        return math.nan if size_bytes is None else float(size_bytes)

    @property
    def disks(self) -> set[str]:
        """Kernel names of the volume's device and of its backing disks; none if not known."""
        if self.volume is None:
            return set()
        return {name for name in (self.volume.device, *self.volume.backing) if name}

    @cached_property
    def is_finished(self) -> bool:
        """Whether the run finished, so that its numbers count."""
        return any(row["status"] == "finished" for row in self.results)

    @property
    def is_damaged(self) -> bool:
        """Return whether the run finished and its result can no longer be read."""
        return any(row["status"] == DAMAGED for row in self.results)


def once(
    function: Callable[Concatenate[RunView, _Args], _Answer],
) -> Callable[Concatenate[RunView, _Args], _Answer]:
    """Cache the results of a function of a view, which many rules share."""

    @wraps(function)
    def kept(view: RunView, /, *args: _Args.args, **kwargs: _Args.kwargs) -> _Answer:
        key = (function, args, tuple(sorted(kwargs.items())))
        return cast("_Answer", view.answer(key, lambda: function(view, *args, **kwargs)))

    return kept


def run_views(
    campaign: Campaign,
    frame: Callable[[str], pd.DataFrame],
    *,
    volumes: Mapping[str, VolumeFacts],
    hosts: Mapping[str, HostFacts],
    colds: Mapping[str, ColdProbe] | None = None,
) -> Iterator[RunView]:
    """Yield a view of each run that has a row in the summary, in the order of the plan.

    Args:
        frame: returns a frame by name; one at a time is held, beside the parts of the others.
    """
    parts: dict[str, dict[str, pd.DataFrame]] = {}
    nothing: dict[str, pd.DataFrame] = {}
    for name in ("series", "device", "percentiles", "summary"):
        parts[name], nothing[name] = _rows_by_run(frame(name))
    results: dict[str, list[Mapping[str, object]]] = {}
    for row in plain_rows(frame("summary")):
        results.setdefault(str(row["run"]), []).append(row)
    for run in campaign.runs:
        if run.id not in parts["summary"]:
            continue
        rows = {name: part.get(run.id, nothing[name]) for name, part in parts.items()}
        view = RunView(
            campaign=campaign,
            run=run,
            **rows,
            volume=volumes.get(run.id),
            host=hosts.get(run.host),
            cold=(colds or {}).get(run.volume.role),
        )
        view.answer("results", partial(results.get, run.id))
        yield view


def _shared_texts(column: pd.Series[str]) -> pd.Series[str]:
    """Return the texts of a column as Python objects, each once; NaN for missing ones."""
    codes, texts = pd.factorize(column)
    shared = np.array([*texts, math.nan], dtype=object)  # the code of a missing one is -1
    return pd.Series(shared[codes], index=column.index, dtype=object)  # not Arrow's texts again


def _rows_by_run(frame: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Return run to its rows, with an index from 0, and the frame without rows.

    Texts and names of columns become Python objects, which short frames compare many times faster
    than Arrow's; equal ones are one object. The copy joins columns of one type, so that a part is
    a few slices. Instants stay as they are: all of them differ, and few rules need them.
    """
    texts = [str(name) for name in frame.select_dtypes(["string", "category"]) if name != "utc"]
    plain = frame.assign(**{name: _shared_texts(frame[name]) for name in texts})
    del frame  # before the copy, so that both are not in memory at once
    plain = plain.copy()
    plain.columns = plain.columns.astype(object)
    codes, runs = pd.factorize(plain["run"])
    order = np.argsort(codes, kind="stable")
    ordered = plain if (order[:-1] < order[1:]).all() else plain.iloc[order]
    edges = np.searchsorted(codes[order], np.arange(len(runs) + 1))
    parts = {
        str(run): ordered.iloc[first:last]
        for run, (first, last) in zip(runs, pairwise(edges), strict=True)
    }
    for part in parts.values():
        part.index = pd.RangeIndex(len(part))  # unlike reset_index() this copies nothing
    return parts, plain.iloc[:0].copy()


@dataclass(frozen=True)
class Result:
    """Result of fio for one direction of one section."""

    section: str
    direction: str
    row: Mapping[str, object]

    def __getitem__(self, column: str) -> float:
        """Return a number of the summary; NaN when it is unknown."""
        value = self.row[column]
        return float(value) if isinstance(value, int | float) else math.nan


def results_of(view: RunView, *, with_syncs: bool = False) -> Iterator[Result]:
    """Yield the rows of the summary that moved data, and of fsync only if they are wanted."""
    for row in view.results:
        if row["direction"] in _MOVING or with_syncs:
            yield Result(str(row["group"]), str(row["direction"]), row)


def total(view: RunView, column: str, *, direction: str | None = None) -> float:
    """Return the sum of a column of the summary over sections; NaN when nothing was reported."""
    values = [
        result[column]
        for result in results_of(view)
        if direction in (None, result.direction) and not math.isnan(result[column])
    ]
    return math.fsum(values) if values else math.nan


def declared(run: Run, column: str) -> tuple[float, float]:
    """Return the declared limit of a rate, sustained and in a burst; 0 for none."""
    limits = run.limits
    if column == "iops":
        return limits.iops or 0.0, limits.burst_iops or 0.0
    return limits.bandwidth_bytes_per_s or 0.0, limits.burst_bandwidth_bytes_per_s or 0.0


def directions(view: RunView) -> list[str]:
    """Return the directions in which data moved, in the order of the summary."""
    return list(dict.fromkeys(result.direction for result in results_of(view)))


def runtime_s(view: RunView) -> float:
    """Return the runtime of the I/O; NaN if the tool reported none."""
    return max((result["runtime_s"] for result in results_of(view)), default=math.nan)


@once
def rate_per_s(
    view: RunView, column: str, *, direction: str | None = None
) -> tuple[Floats, Floats]:
    """Return time (end of each interval) and a rate, all sections added.

    Only times at which every direction and section has a row are kept: fio may lose the last one.
    Nor are those kept in which not all parallel jobs of a section ran.
    """
    values = view.series[column].to_numpy(dtype=float)
    intervals = _intervals(view)
    wanted = intervals.is_whole & ~np.isnan(values)
    if direction is not None:
        wanted &= intervals.direction == direction
    lines = len(np.unique(intervals.line[wanted])) if intervals.line.any() else 1
    at_s, values = intervals.t_s[wanted], values[wanted]
    if lines == 1 and (at_s[:-1] < at_s[1:]).all() and not np.isnan(at_s[-1:]).any():
        return at_s, values + 0.0
    order = np.argsort(at_s, kind="stable")
    times, firsts, counts = np.unique(at_s[order], return_index=True, return_counts=True)
    whole = (counts == lines) & ~np.isnan(times)
    places = firsts[whole, np.newaxis] + np.arange(lines)
    return times[whole], _row_sums(values[order][places])


def is_partial(series: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return whether fewer jobs ran through each interval than at other times of its section."""
    jobs = series["jobs_running"].to_numpy(dtype=float, na_value=math.nan)
    known = jobs[~np.isnan(jobs)]
    if not len(known) or known.min() == known.max():
        return np.zeros(len(series), dtype=np.bool_)  # so for nearly all runs, without the groups
    running = pd.Series(jobs, index=series.index)
    most = running.groupby([series["run"], series["group"]], dropna=False).transform("max")
    partly: npt.NDArray[np.bool_] = (running < most).to_numpy(dtype=bool)
    return partly


@dataclass(frozen=True)
class _Intervals:
    """Rows of a run's series, as arrays of one length."""

    t_s: Floats  # end of each interval
    direction: npt.NDArray[np.object_]  # of its I/O
    line: npt.NDArray[np.int64]  # number of its section and direction
    is_whole: npt.NDArray[np.bool_]  # whether all jobs of its section ran through it


@once
def _intervals(view: RunView) -> _Intervals:
    direction = view.series["direction"].to_numpy(dtype=object)
    sections, _ = _number_texts(view.series["group"].to_numpy(dtype=object))
    ways, names = _number_texts(direction)
    return _Intervals(
        t_s=view.series["t_s"].to_numpy(dtype=float),
        direction=direction,
        line=sections * max(1, names) + ways,
        is_whole=~is_partial(view.series),
    )


def _number_texts(texts: npt.NDArray[np.object_]) -> tuple[npt.NDArray[np.int64], int]:
    if len(texts) and (texts == texts[0]).all():
        return np.zeros(len(texts), dtype=np.int64), 1
    codes, names = pd.factorize(texts, use_na_sentinel=False)
    return codes.astype(np.int64), len(names)


def _row_sums(table: Floats) -> Floats:
    """Return the sum of each row, compensated (Kahan), so that the order hardly matters."""
    total = np.zeros(len(table))
    lost = np.zeros(len(table))
    for column in table.T:
        part = column - lost
        grown = total + part
        lost = grown - total - part
        total = grown
    return total


@dataclass(frozen=True)
class Percentiles:
    """Latency percentiles of one direction of a run, as arrays of one length."""

    group: npt.NDArray[np.object_]  # section of the job file
    latency: npt.NDArray[np.object_]  # ``lat``, ``clat`` or ``slat``
    percentile: Floats  # from 0 to 100
    value_s: Floats  # latency at that percentile


@once
def percentiles_of(view: RunView, direction: str) -> Percentiles:
    """Return the latency percentiles that were reported for one direction."""
    rows = view.percentiles
    mine = rows["direction"].to_numpy(dtype=object) == direction
    return Percentiles(
        group=rows["group"].to_numpy(dtype=object)[mine],
        latency=rows["latency"].to_numpy(dtype=object)[mine],
        percentile=rows["percentile"].to_numpy(dtype=float)[mine],
        value_s=rows["value_s"].to_numpy(dtype=float)[mine],
    )


@once
def device_rows(view: RunView, *, level: str = "volume") -> pd.DataFrame:
    """Return the samples of the volume's device, or of its backing disks, in order of time.

    There are none for a volume without a device, such as an NBD export or a network filesystem.
    """
    if view.device.empty:
        return view.device
    rows = view.device[(view.device["level"] == level) & view.device["device"].notna()]
    return rows.sort_values("t_s", ignore_index=True)


@once
def host_rows(view: RunView) -> pd.DataFrame:
    """Return one sample of the host's own numbers (CPU, memory) for each time, in order."""
    if view.device.empty:
        return view.device
    rows = view.device.drop_duplicates("t_s")
    return rows.sort_values("t_s", ignore_index=True)


@once
def host_rows_in_run(view: RunView) -> pd.DataFrame:
    """Return the host's samples whose whole interval is within the run's I/O."""
    return within_run(host_rows(view), runtime=runtime_s(view))


def within_run(rows: pd.DataFrame, *, runtime: float) -> pd.DataFrame:
    """Return the samples whose whole interval is within the run's I/O."""
    if rows.empty:
        return rows
    inside = (rows["t_s"] - rows["interval_s"] >= -0.05) & (rows["t_s"] <= runtime + 0.05)
    return rows[inside & ~rows["after_fio"].fillna(value=False).astype(bool)]


def clock_bounds_s(summaries: Iterable[pd.DataFrame]) -> float:
    """Return how far the distance of two instants on different hosts may be wrong, in seconds.

    Each instant may be wrong by the bound of its host's clock offset; the two largest add up.
    """
    bounds = pd.concat(
        [
            rows.drop_duplicates("run").get("clock_bound_s", pd.Series(dtype=float))
            for rows in summaries
        ]
    )
    return float(bounds.fillna(0.0).nlargest(2).sum())


def bytes_until_end(rows: pd.DataFrame, column: str, *, runtime: float) -> float:
    """Return the bytes a device moved from the begin of the I/O until the tool ended.

    Args:
        column: a column of rates, such as ``write_bw_bytes_per_s``.
        runtime: when the tool's I/O ended; infinity for all that was sampled.
    """
    return float(np.nansum(bytes_before(rows, column, end_s=runtime)))


def bytes_before(rows: pd.DataFrame, column: str, *, end_s: float) -> Floats:
    """Return the bytes of each interval from the begin of the I/O until an instant.

    An interval that reaches past the instant counts by its share before it; one that began before
    the I/O did is taken to be idle until then.

    Args:
        column: a column of rates, such as ``write_bw_bytes_per_s``.
        end_s: seconds since the I/O began.
    """
    interval = rows["interval_s"].to_numpy(dtype=float)
    end = rows["t_s"].to_numpy(dtype=float)
    begin = np.maximum(end - interval, 0.0)
    share = np.clip((end_s - begin) / np.maximum(end - begin, 1e-9), 0.0, 1.0)
    share[end <= 0] = 0.0
    moved: Floats = rows[column].to_numpy(dtype=float) * interval * share
    return moved
