"""Intervals of a run that its host disturbed: steal, waits for a CPU, swapping, other I/O.

What the sampler saw beside each interval says whether the host or the volume slowed the run. The
thresholds are volbench's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.job_frames import is_watched
from volbench.analyse.frames.resample import Floats, covered, interval_of, spread
from volbench.analyse.frames.run_view import RunView, once, rate_per_s

Flags = npt.NDArray[np.bool_]

STEAL, CPU, PRESSURE = "steal", "waits for a CPU", "CPU pressure"
SWAPPING, OTHER = "swapping", "other I/O on the device"
LOST_CPU = frozenset({STEAL, CPU})  # Of which the time lost is known

# Steal of an interval from which the host disturbed it: below, rates move less than their noise.
# Noticed by: test_host_noise.py::test_disturbed_seconds_are_counted_and_left_out
MIN_STEAL_PERCENT = 5.0
# CPU time and run-queue delay of a job from which the CPU limits it; below, it also waited for the
# volume.
# Noticed by: test_host_noise.py::test_a_busy_host_limits_only_jobs_that_need_a_cpu_all_the_time
FULL_DEMAND_PERCENT = 90.0
# Run-queue delay of each job from which the host disturbed an interval, as for steal.
# Noticed by: test_host_noise.py::test_disturbed_seconds_are_counted_and_left_out
MIN_WAIT_PERCENT = 5.0
# CPU pressure, where the run-queue delay of the tool is unknown: other tasks count as well.
# Noticed by: test_host_noise.py::test_disturbed_seconds_are_counted_and_left_out
_MIN_PRESSURE_PERCENT = 25.0
# Swapping from which to warn: 1 % of a disk at 100 MB/s.
# Noticed by: test_threshold_edges.py::test_swapping_counts_from_one_megabyte_a_second
_MIN_SWAP_BYTES_PER_S = 1e6
# I/O of others as a share of the run's own: filesystems add a journal.
# Noticed by: test_host_noise.py::test_disturbed_seconds_are_counted_and_left_out
_MIN_OTHER_SHARE = 0.25
# I/O of others from which it counts: less is metadata.
# Noticed by: test_host_noise.py::test_disturbed_seconds_are_counted_and_left_out
_MIN_OTHER_BYTES_PER_S = 1e6
# Share of an interval that was sampled, so that it can be judged: a majority.
# Noticed by: test_host_noise.py::test_disturbed_seconds_are_counted_and_left_out
_MIN_COVERED = 0.5
# Undisturbed intervals from which the disturbed ones are left out: as many as steadiness needs.
# Noticed by: test_host_noise.py::test_a_third_of_quiet_seconds_is_enough
_MIN_CLEAN = 8
# The same as a share of all: fewer may not be typical.
# Noticed by: test_host_noise.py::test_a_third_of_quiet_seconds_is_enough
_MIN_CLEAN_SHARE = 0.3
# Rate around disturbed intervals over theirs from which the host slowed them.
# Noticed by: test_host_noise.py::test_disturbed_seconds_at_the_rate_around_them_count
_MIN_SLOWED = 1.02
# Undisturbed intervals whose mean is a rate.
# Noticed by: test_threshold_edges.py::test_host_noise_is_weighted_by_its_effect
MIN_AROUND = 5


@dataclass(frozen=True)
class Disturbance:
    """Disturbed intervals of a run."""

    t_s: Floats  # ends of the intervals
    by: Mapping[str, Flags]  # reason to the intervals that it disturbed

    @property
    def flags(self) -> Flags:
        """Whether anything disturbed each interval."""
        found: Flags = np.zeros(len(self.t_s), dtype=bool)
        for flags in self.by.values():
            found = found | flags
        return found

    def at(self, t_s: Floats) -> Flags:
        """Return the flags of some of the intervals, by their ends."""
        ends_s = self.t_s[self.flags]
        found: Flags = np.isin(t_s, ends_s) if len(ends_s) else np.zeros(len(t_s), dtype=bool)
        return found

    def leaves_few(self, t_s: Floats) -> bool:
        """Return whether too few intervals are undisturbed to judge by these."""
        flags = self.at(t_s)
        return bool((~flags).sum() < max(_MIN_CLEAN, _MIN_CLEAN_SHARE * len(flags)))


@once
def disturbed(view: RunView) -> Disturbance:
    """Return the intervals of a run that its host disturbed."""
    return disturbances(view.series, view.device, view.summary)


@once
def clean_rate_per_s(
    view: RunView, column: str, *, direction: str | None = None
) -> tuple[Floats, Floats]:
    """Return time and a rate as `rate_per_s` does, without the intervals that the host disturbed.

    Intervals in which nothing completed stay: a host that is busy slows a run, it does not stop it.
    All stay where fewer than 8, or less than 30 %, are undisturbed, and where the disturbed ones
    are as fast as those around them: the host did not slow them.
    """
    t_s, rate = rate_per_s(view, column, direction=direction)
    kept = ~disturbed(view).at(t_s) | ~(rate > 0)
    if disturbed(view).leaves_few(t_s) or kept.all():
        return t_s, rate
    is_slow = usual_rates(t_s, rate, ~kept)[~kept].mean() >= _MIN_SLOWED * rate[~kept].mean()
    return (t_s[kept], rate[kept]) if is_slow else (t_s, rate)


def usual_rates(t_s: Floats, rate: Floats, flags: Flags) -> Floats:
    """Return a rate, with that of the undisturbed intervals around each disturbed one.

    Before and after all of these, it is no more than their trend: a climb is not noise.
    """
    clean_s, clean = t_s[~flags], pd.Series(rate[~flags])
    around = clean.rolling(MIN_AROUND, center=True, min_periods=1).median()
    usual = np.interp(t_s, clean_s, around)
    trend = np.polyval(np.polyfit(clean_s, clean, 1), t_s)
    is_outside = (t_s < clean_s[0]) | (t_s > clean_s[-1])
    usual = np.where(is_outside, np.minimum(usual, trend), usual)
    found: Floats = np.where(flags, usual, rate)
    return found


def waits_for_cpu(device: pd.DataFrame, summary: pd.DataFrame) -> float:
    """Return the mean run-queue delay of each job of a run, in percent; NaN if unknown."""
    if device.empty or "tool_wait_percent" not in device:
        return math.nan
    host = device.drop_duplicates("t_s")
    runtime_s = float(summary["runtime_s"].max())
    inside = (host["t_s"] > 0) & ~(host["t_s"] > runtime_s)
    waits = host[inside]["tool_wait_percent"].dropna()
    return float(waits.mean()) / _parallel_jobs(summary) if len(waits) else math.nan


def cpu_demand(device: pd.DataFrame, summary: pd.DataFrame) -> float:
    """Return the time that a job used a CPU or waited for one, in percent; NaN if unknown.

    Below 100 % the job also waited for the volume: more CPU would have changed its rate by less.
    """
    used = float((summary["cpu_usr"] + summary["cpu_sys"]).max())
    return used + waits_for_cpu(device, summary)


def disturbances(series: pd.DataFrame, device: pd.DataFrame, summary: pd.DataFrame) -> Disturbance:
    """Return the intervals of one run that the host disturbed."""
    t_s = np.unique(series["t_s"].to_numpy(dtype=float))
    if device.empty:
        return Disturbance(t_s, {})
    host = device.drop_duplicates("t_s").sort_values("t_s")
    if not len(t_s):
        return Disturbance(t_s, {})
    width_s = interval_of(t_s)
    edges_s = np.concatenate([[t_s[0] - width_s], t_s])
    ends, widths = (host[name].to_numpy(dtype=float) for name in ("t_s", "interval_s"))
    is_seen = covered(ends, widths, edges_s) >= _MIN_COVERED

    def beside(column: str) -> Floats:
        known = host[host[column].notna()] if column in host else host.iloc[:0]
        if known.empty:
            return np.full(len(t_s), math.nan)
        columns = [known[name].to_numpy(dtype=float) for name in ("t_s", "interval_s", column)]
        return spread(columns[0], columns[1], columns[2], edges_s)

    jobs = _parallel_jobs(summary)
    wait = beside("tool_wait_percent")
    flags_by_cause = {
        STEAL: beside("steal_percent") >= MIN_STEAL_PERCENT,
        CPU: wait / jobs >= MIN_WAIT_PERCENT,
        SWAPPING: beside("swap_bytes_per_s") >= _MIN_SWAP_BYTES_PER_S,
        OTHER: _other_io(series, device, summary, edges_s),
    }
    if np.isnan(wait).all():
        flags_by_cause[PRESSURE] = beside("cpu_pressure_percent") >= _MIN_PRESSURE_PERCENT
    return Disturbance(t_s, {name: flags & is_seen for name, flags in flags_by_cause.items()})


def _parallel_jobs(summary: pd.DataFrame) -> float:
    jobs = summary.drop_duplicates("group")["numjobs"].astype("float64")
    return max(1.0, float(jobs.fillna(1.0).sum()))


def _other_io(
    series: pd.DataFrame, device: pd.DataFrame, summary: pd.DataFrame, edges_s: Floats
) -> Flags:
    """Return where a device moved clearly more than the run; nowhere where others are expected."""
    nothing: Flags = np.zeros(len(edges_s) - 1, dtype=bool)
    is_direct = summary["direct"].fillna(value=False).astype(bool).all()
    has_clients = summary["step_start_s"].notna().any() or summary["client"].notna().any()
    is_device = summary["volume_bytes"].notna().all()
    rows = device[(device["level"] == "volume") & device["device"].notna()].sort_values("t_s")
    if rows.empty or not is_direct or has_clients or not is_device:
        return nothing
    moved = (rows["read_bw_bytes_per_s"] + rows["write_bw_bytes_per_s"]).to_numpy(dtype=float)
    ends, widths = (rows[name].to_numpy(dtype=float) for name in ("t_s", "interval_s"))
    measured = series.groupby("t_s")["bw_bytes_per_s"].sum(min_count=1).to_numpy(dtype=float)
    # Neighbouring intervals count together, for the two clocks are some hundredths apart.
    other = _smooth(spread(ends, widths, moved, edges_s) - measured)
    usual = float(np.nanmedian(measured)) if np.isfinite(measured).any() else 0.0
    flags: Flags = other > np.maximum(_MIN_OTHER_BYTES_PER_S, _MIN_OTHER_SHARE * usual)
    return flags


def _smooth(values: Floats) -> Floats:
    padded = np.pad(values, 1, mode="edge")
    means: Floats = np.minimum(values, (padded[:-2] + padded[1:-1] + padded[2:]) / 3)
    return means


def grey_rows(series: pd.DataFrame, device: pd.DataFrame, summary: pd.DataFrame) -> Flags:
    """Return which rows of the series of several runs the host disturbed."""
    flags: Flags = np.zeros(len(series), dtype=bool)
    samples = dict(iter(device.groupby("run"))) if len(device) else {}
    results = dict(iter(summary.groupby("run")))
    for run, rows in series.reset_index(drop=True).groupby("run"):
        # A load that was only watched is not disturbed by the rest of its host: it is all of it.
        if run in samples and run in results and not is_watched(results[run]).all():
            seen = disturbances(rows, samples[run], results[run])
            flags[rows.index] = seen.at(rows["t_s"].to_numpy(dtype=float))
    return flags
