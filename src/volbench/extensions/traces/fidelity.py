"""Fidelity of a replay: how close its I/O came to the load that it was to repeat.

The measures are those of Ghodrati, Moon and Maas, "Thesios: Synthesizing Accurate Counterfactual
I/O Traces from I/O Samples", ASPLOS 2024: numbers of requests, utilization, and latency. Requests
are also compared by their bytes, their mix and their times of arrival.

fio logs when each I/O ended, in whole milliseconds, and its latency; its arrival is known to half a
millisecond. The clock of the replay is set by the median of its first tenth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from volbench.analyse.frames.kernel_counters import host_rates
from volbench.errors import InputError
from volbench.extensions.traces.replay_plan import FOLDER, MAX_IOS, whole_blocks
from volbench.extensions.traces.trace_file import UNKNOWN, Kind, read_rows, trace_path
from volbench.fio.jobs.render_job import replays
from volbench.fio.logs.log_rows import CHUNK_BYTES, Form, Log, Tally, read_tables
from volbench.fio.logs.section_logs import parse_log_name
from volbench.ingest.run_files import read_run_output, read_status
from volbench.ingest.series_rows import read_samples
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.model.profile.profile_model import Phase
from volbench.model.results.result import Direction
from volbench.store.layout import TRACE, Layout, RunFolder
from volbench.store.log_files import open_log, plain_name
from volbench.units import SECTOR_BYTES, format_latency, percent

Floats = npt.NDArray[np.float64]

# Differences that a replay may have, by the goals of the project: Thesios reached 0.5 to 5 % of
# the requests and 3 to 10 % of the utilization. Noticed by: tests/test_fidelity.py
MAX_SHARE, MAX_LAG_S, MAX_UTILIZATION = 0.01, 1e-3, 0.05
# Time with a task waiting for a CPU that explains late arrivals. Noticed by:
# tests/extensions/traces/test_fidelity.py
_MIN_WAITED_PERCENT = 10.0
_HALF_MS = 0.5e-3
# Share of I/Os without a latency, such as the last ones of a recording, up to which the others
# stand for all. Noticed by: tests/extensions/traces/test_fidelity.py
_MAX_UNKNOWN = 0.01
# Ratio of requests from which a profile is called one of another trace: those made from it stayed
# within a few percent. Noticed by: tests/extensions/traces/test_trace_profile.py
_UNRELATED = 2.0
_BLOCKS_BYTES = tuple(SECTOR_BYTES << doublings for doublings in range(8))  # of a target
_SYNCS = 3  # Direction of fio's syncs and of all that follow
_ROW_BYTES = 128  # Of a log. Noticed by: tests/store/test_oversized_files.py


@dataclass(frozen=True)
class Arrivals:
    """I/Os that were recorded or replayed, in order of arrival, without flushes."""

    arrivals_s: Floats
    latencies_s: Floats  # NaN where unknown
    sizes: Floats  # bytes
    reads: npt.NDArray[np.bool_]
    flushes: float = math.nan  # their number; NaN where fio did not count them

    @property
    def utilization(self) -> float:
        """Share of the time with I/O in flight; NaN without latencies."""
        known = ~np.isnan(self.latencies_s)
        if not _stand_for_all(known):
            return float("nan")
        arrivals_s = self.arrivals_s[known]
        ends = np.maximum.accumulate(arrivals_s + self.latencies_s[known])
        idle = np.maximum(arrivals_s[1:] - ends[:-1], 0).sum()
        whole = ends[-1] - arrivals_s[0]
        return float(1 - idle / whole) if whole > 0 else float("nan")


@dataclass(frozen=True)
class Measure:
    """One measure of a replay."""

    run: str  # ID of the run, or name of the campaign if no run is compared by itself
    name: str
    recorded: float  # NaN where the trace does not have it
    replayed: float
    difference: float  # as a share, or in seconds for a lag; NaN where either is unknown
    limit: float | None  # of the difference; None where the target decides it, not the replay
    show: Callable[[float], str]  # formats a value
    reason: str = ""  # of a difference beyond the limit, or of none where nothing is compared
    campaign: str = ""  # its name, or its folder where another has the same name
    host: str = ""  # of the run; empty if no run is compared by itself

    @property
    def is_met(self) -> bool | None:
        """Whether it is within its limit; None without a limit or a value."""
        if self.limit is None or np.isnan(self.difference):
            return None
        return bool(abs(self.difference) <= self.limit)


def read_recorded(path: Path) -> Arrivals:
    """Return the load of a trace.

    Raises:
        InputError: it is no trace, or has no I/Os.
    """
    names = ["time_ns", "latency_ns", "size_bytes", "kind"]
    table = read_rows(trace_path(path), names)
    kinds = table["kind"].to_numpy()
    times, latencies, sizes = (table[name].to_numpy().astype(float) for name in names[:3])
    latencies[latencies == UNKNOWN] = np.nan
    chosen = kinds != Kind.FLUSH
    return Arrivals(
        (times / 1e9)[chosen],
        (latencies / 1e9)[chosen],
        sizes[chosen],
        (kinds == Kind.READ)[chosen],
        flushes=int((~chosen).sum()),
    )


def read_replayed(folder: RunFolder) -> Arrivals:
    """Return the load of a run by its logs of single I/Os; empty without such logs."""
    parts = [table for log in _logs(folder) for table in read_tables(log, Form(), Tally(log.name))]
    rows = np.concatenate(parts, axis=1) if parts else np.zeros((4, 0), dtype=np.int64)
    ended_ms, latency_ns, direction, sizes = rows[:, (rows[2] < _SYNCS) & (rows[3] > 0)]
    latencies = latency_ns / 1e9
    arrivals = (ended_ms - ended_ms.min(initial=2**62)) / 1e3 + _HALF_MS - latencies
    order = np.argsort(arrivals, kind="stable")
    return Arrivals(
        arrivals[order], latencies[order], sizes[order].astype(float), direction[order] == 0
    )


def _logs(folder: RunFolder) -> Iterator[Log]:
    limit = MAX_IOS * _ROW_BYTES + CHUNK_BYTES
    for path in sorted(folder.path.iterdir()):
        key = parse_log_name(plain_name(path))
        if key is not None and key[0] == "lat":
            yield Log(*key, name=str(path), open=partial(open_log, path, max_bytes=limit))


def compare(
    run: str, recorded: Arrivals, replayed: Arrivals, *, waited_percent: float = float("nan")
) -> list[Measure]:
    """Return the measures of a replay against its recording.

    Args:
        waited_percent: of the time, in which some task waited for a CPU; NaN if unknown.
    """
    count, done = len(recorded.arrivals_s), len(replayed.arrivals_s)
    lost = f"{count - done:,} I/Os did not complete: fio ended early, or they failed"
    changed = "the target received other I/Os than those in the trace"
    totals = [
        _share(run, "requests", count, done, lost if done < count else changed),
        _share(run, "bytes", recorded.sizes.sum(), replayed.sizes.sum(), lost),
        _points(run, "reads", _mean(recorded.reads), _mean(replayed.reads), MAX_SHARE, changed),
    ]
    unfinished = "not all flushes of the trace completed, or fio did not count them"
    flushes = _share(run, "flushes", recorded.flushes, replayed.flushes, unfinished)
    return [
        *totals,
        *([flushes] if recorded.flushes > 0 else []),
        *_lags(run, recorded, replayed, waited_percent),
        *_busy(run, recorded, replayed),
    ]


def _share(run: str, name: str, recorded: float, replayed: float, reason: str) -> Measure:
    difference = replayed / recorded - 1 if recorded else float("nan")
    return Measure(run, name, recorded, replayed, difference, MAX_SHARE, _count, reason)


def _points(
    run: str, name: str, recorded: float, replayed: float, limit: float, reason: str
) -> Measure:
    difference = replayed - recorded
    return Measure(run, name, recorded, replayed, difference, limit, _percent, reason)


def _lags(
    run: str, recorded: Arrivals, replayed: Arrivals, waited_percent: float
) -> Iterator[Measure]:
    """Yield the lag of the n-th arrival behind the n-th of the recording."""
    nan = float("nan")
    same = len(recorded.arrivals_s) == len(replayed.arrivals_s) > 0
    late = np.zeros(0)
    reason = ""
    if same:
        late = replayed.arrivals_s - recorded.arrivals_s
        late = late - np.median(late[: max(1, len(late) // 10)])
        reason = _why_late(late, recorded, replayed, waited_percent)
    for name, level in (("lag p50", 50), ("lag p99", 99)):
        lag = float(np.percentile(np.abs(late), level)) if same else nan
        yield Measure(run, name, nan, lag, lag, MAX_LAG_S, format_latency, reason)


def _why_late(late: Floats, recorded: Arrivals, replayed: Arrivals, waited_percent: float) -> str:
    end = float(np.median(late[-max(1, len(late) // 10) :]))
    slower = _slowdown(recorded, replayed)
    if end > MAX_LAG_S and slower > 1:
        return (
            f"the target is {slower:.1f} times as slow as the recorded one, so jobs waited for "
            "earlier I/Os"
        )
    if end > MAX_LAG_S:
        return "fio or the host could not issue I/Os at this rate, so the replay ended late"
    if np.isnan(waited_percent):
        return "no cause found: the host does not report whether tasks waited for a CPU"
    waited = f"tasks waited for a CPU {waited_percent:.0f} % of the time"
    if waited_percent >= _MIN_WAITED_PERCENT:
        return f"the host scheduled fio late: {waited}"
    return f"no cause found: {waited}"


def _slowdown(recorded: Arrivals, replayed: Arrivals) -> float:
    if np.isnan(recorded.latencies_s).all():
        return float("nan")
    return _mean(replayed.latencies_s) / max(float(np.nanmean(recorded.latencies_s)), 1e-9)


def _busy(run: str, recorded: Arrivals, replayed: Arrivals) -> Iterator[Measure]:
    slower = _slowdown(recorded, replayed)
    reason = f"the target's mean latency is {slower:.2f} times that of the recording"
    shares = recorded.utilization, replayed.utilization
    yield _points(run, "utilization", *shares, MAX_UTILIZATION, reason)
    for direction, of_recorded, of_replayed in (
        ("read", recorded.reads, replayed.reads),
        ("write", ~recorded.reads, ~replayed.reads),
    ):
        before, after = recorded.latencies_s[of_recorded], replayed.latencies_s[of_replayed]
        for name, level in (("p50", 50), ("p99", 99)):
            if len(before) and len(after):
                old, new = _percentile(before, level), _percentile(after, level)
                change = new / old - 1 if old else float("nan")
                yield Measure(run, f"{direction} {name}", old, new, change, None, format_latency)


def _stand_for_all(known: npt.NDArray[np.bool_]) -> bool:
    return bool(len(known)) and float(known.mean()) >= 1 - _MAX_UNKNOWN


def _percentile(latencies_s: Floats, level: int) -> float:
    known = ~np.isnan(latencies_s)
    if not _stand_for_all(known):
        return float("nan")
    return float(np.percentile(latencies_s[known], level))


def _mean(values: npt.NDArray[np.bool_] | Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{percent(value)} %"


def fidelity(layout: Layout, campaign: Campaign, *, trace: Path | None = None) -> list[Measure]:
    """Return the measures of all replays of a campaign.

    Args:
        trace: the recording; None for the one in the campaign folder.

    Raises:
        InputError: no run replays a log and no trace is given, or the recording is not known or
            not that of the campaign.
    """
    replayed = [run for run in campaign.runs if replays(run)]
    if not replayed and trace is None:
        raise InputError(
            f"{campaign.name} contains no replay",
            hint="run volbench replay TRACE; for a profile made from a trace, pass the trace with "
            "--trace",
        )
    if trace is not None and not replayed:
        return _of_profile(layout, campaign, read_recorded(trace))
    loads: dict[Path, Arrivals] = {}
    measures = []
    for run in replayed:
        own = recording_of(run, layout.run(run.id))
        reference = trace or own
        if not reference.exists():
            raise InputError(
                f"{campaign.name} does not contain the trace that it replayed",
                hint="convert the log with volbench trace import, and pass the result with --trace",
            )
        path = own if own.exists() else reference
        if path not in loads:
            if trace and own.exists() and not _are_alike(trace, own):
                raise InputError(
                    f"{trace} is not the trace that {campaign.name} replayed",
                    hint="omit --trace to use the trace in the campaign folder",
                )
            loads[path] = read_recorded(path)
        measures += _of_run(run, layout.run(run.id), loads[path])
    return measures


def _are_alike(trace: Path, replayed: Path) -> bool:
    """Return whether two traces, one of them fitted to its target, have the same I/Os.

    Fitted I/Os are of whole blocks of the target, and lack discards where it is a file.
    """
    names = ["kind", "offset_bytes", "size_bytes"]
    table, fitted = (read_rows(path, names) for path in (trace, replayed))
    if not pc.any(pc.equal(fitted["kind"], Kind.DISCARD)).as_py():
        table = table.filter(pc.not_equal(table["kind"], Kind.DISCARD))
    return table["kind"].equals(fitted["kind"]) and any(
        np.array_equal(whole_blocks(table, block)[1] * block, fitted["size_bytes"].to_numpy())
        for block in _BLOCKS_BYTES
    )


def _of_profile(layout: Layout, campaign: Campaign, recorded: Arrivals) -> list[Measure]:
    """Return the totals of all measured runs against a trace; they log no single I/Os."""
    ios, sizes = Counter[Direction](), Counter[Direction]()
    repeats = max((run.repeat for run in campaign.runs), default=1)
    for run in campaign.runs:
        folder = layout.run(run.id)
        if run.phase is Phase.MEASURED and folder.status.exists():
            for job in read_run_output(run, folder).jobs:
                for done in job.directions:
                    ios[done.direction] += done.total_ios or 0
                    sizes[done.direction] += done.io_bytes or 0
    moved = (Direction.READ, Direction.WRITE)
    count = sum(ios[way] for way in moved) / repeats
    total = sum(sizes[way] for way in moved) / repeats
    read_share = ios[Direction.READ] / (count * repeats) if count else float("nan")
    share = count / max(len(recorded.arrivals_s), 1)
    reason = (
        "the profile reproduces only the mean rates of each phase"
        if 1 / _UNRELATED < share < _UNRELATED
        else "the profile was probably not made from this trace"
    )
    name = campaign.name
    return [
        _share(name, "requests", len(recorded.arrivals_s), count, reason),
        _share(name, "bytes", recorded.sizes.sum(), total, reason),
        _points(name, "reads", _mean(recorded.reads), read_share, MAX_SHARE, reason),
    ]


def recording_of(run: Run, folder: RunFolder) -> Path:
    """Return the trace that a run replays, as fitted to its target."""
    logs = run.replayed.logs if run.replayed else (f"{FOLDER}/",)
    return folder.path.parent.parent / logs[0].rpartition("/")[0] / TRACE


def _of_run(run: Run, folder: RunFolder, recorded: Arrivals) -> list[Measure]:
    if not folder.path.is_dir():
        return []
    replayed = replace(read_replayed(folder), flushes=_flushes(run, folder))
    measures = compare(run.id, recorded, replayed, waited_percent=_waited_percent(folder))
    return [replace(each, host=run.host) for each in measures]


def _flushes(run: Run, folder: RunFolder) -> float:
    """Return the flushes that fio counted in a run, which are in no log; NaN for none."""
    if read_status(folder).get("state") != RunState.FINISHED:
        return math.nan
    jobs = read_run_output(run, folder).jobs
    counts = [done.total_ios for job in jobs if (done := job.direction(Direction.SYNC))]
    return sum(count or 0 for count in counts) if counts else math.nan


def _waited_percent(folder: RunFolder) -> float:
    """Return the share of a run in which some task of the host waited for a CPU."""
    samples = read_samples(folder)
    taken = [each for each in samples.taken if each.after_start and not each.after_end]
    if len(taken) < 2:
        return float("nan")
    first, last = taken[0], taken[-1]
    elapsed_s, page_bytes = last.uptime_s - first.uptime_s, samples.page_bytes
    rates = host_rates(first, last, interval_s=elapsed_s, page_bytes=page_bytes)
    return rates["cpu_pressure_percent"]


def shortfall(run: Run, folder: RunFolder) -> str:
    """Return what a replay does not fulfil, with reasons; empty where all is met or unknown."""
    recording = recording_of(run, folder)
    if not recording.exists():
        return ""
    measures = _of_run(run, folder, read_recorded(recording))
    return "; ".join(
        f"{each.name} {change_of(each)}, {each.reason}" for each in measures if each.is_met is False
    )


def change_of(measure: Measure) -> str:
    """Return the difference in words: a lag as it is, a share with its sign."""
    if np.isnan(measure.difference):
        return "n/a"
    if measure.name.startswith("lag"):
        return measure.show(measure.difference)
    sign = "+" if measure.difference >= 0 else "-"
    points = " points" if measure.show is _percent else " %"
    return f"{sign}{percent(abs(measure.difference))}{points}"
