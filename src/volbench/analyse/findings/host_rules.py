"""Rules on hosts: other load, CPU, clocks, and the clients of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from volbench.analyse.bottleneck.bottleneck import FULL_CPU_PERCENT
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.bottleneck.sustained_level import LIMITS
from volbench.analyse.findings.rule import Observation, explained, observed, rule, several
from volbench.analyse.frames.disturbed import (
    FULL_DEMAND_PERCENT,
    MIN_AROUND,
    MIN_WAIT_PERCENT,
    cpu_demand,
    disturbed,
    usual_rates,
    waits_for_cpu,
)
from volbench.analyse.frames.kernel_counters import OTHERS
from volbench.analyse.frames.resample import seconds
from volbench.analyse.frames.run_view import (
    RunView,
    clock_bounds_s,
    device_rows,
    directions,
    host_rows,
    host_rows_in_run,
    rate_per_s,
    results_of,
    runtime_s,
    total,
    within_run,
)
from volbench.analyse.frames.workload_words import first_names
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.profile.profile_model import Start, Tool
from volbench.model.results.finding import Cause, Severity
from volbench.units import (
    format_count,
    format_duration,
    format_latency,
    format_percent,
    format_rate,
)

# Samples from which a mean is judged: fewer are begin and end of a run.
# Noticed by: test_threshold_edges.py::test_a_mean_needs_three_samples
MIN_SAMPLES = 3
# Seconds between two samples, and times the interval asked for, from which a host stood still.
# Noticed by: test_host_noise.py::test_a_host_that_stood_still_is_named
_MIN_STANDSTILL_S, _MIN_STANDSTILL = 5.0, 4
# I/O of others from which to warn: less is metadata.
# Noticed by: test_machine.py::test_background_activity_of_a_device_is_tolerated
_MIN_FOREIGN_BYTES_PER_S = 1e6
# The same as a share of the run's own: filesystems add a journal.
# Noticed by: test_machine.py::test_journal_writes_are_not_foreign_load
_MIN_FOREIGN_SHARE = {VolumeKind.DEVICE: 0.1, VolumeKind.FILE: 0.25, VolumeKind.DIRECTORY: 0.25}
# Share of throttled periods from which to warn: one of 100 ms in 10 s.
# Noticed by: test_machine.py::test_a_cpu_limit_that_throttled_fio_is_reported
_MIN_THROTTLED_PERCENT = 1.0
# Uncertainty below which no number is given.
# Noticed by: test_threshold_edges.py::test_host_noise_is_weighted_by_its_effect
_MIN_OFF = 0.001
# Share of disturbed intervals below which nothing is said.
# Noticed by: test_threshold_edges.py::test_host_noise_is_weighted_by_its_effect
_MIN_DISTURBED = 0.05
# Uncertainty up to which it is a note: the tolerance of comparisons.
# Noticed by: test_threshold_edges.py::test_host_noise_is_weighted_by_its_effect
_MAX_NOTE_OFF = 0.05
# Share of the machine's limit from which other disks matter: the tolerance of comparisons.
# Noticed by: test_host_noise.py::test_a_small_load_is_tolerated
_MIN_SHARE = 0.05
# Share of the machine's limit from which it is reached: the level of a throttle is flat to 3 %.
# Noticed by: test_host_noise.py::test_a_limit_that_is_not_reached_is_not_shared
_LIMIT_REACHED = 0.95
# fio divides CPU time by runtimes in whole milliseconds: below, the share is off by more than 1 %.
# Noticed by: test_machine.py::test_fio_that_uses_a_whole_core_is_reported
_MIN_RUNTIME_S = 0.1
# CPU time of an I/O for logs, nearly all for latency: 4.21M IOPS of the null engine become 3.51M.
# Noticed by: test_machine.py::test_fio_that_uses_a_whole_core_is_reported
_LOGGED_S = 40e-9
_MIN_LOGS_PERCENT = 1.0  # Noticed by: test_machine.py::test_fio_that_uses_a_whole_core_is_reported
# Step of the clock: one that is slewed moves by 0.5 ms a second at most.
# Noticed by: test_machine.py::test_a_clock_change_during_a_run_is_reported
_MIN_JUMP_S = 1.0
# Starts of thirty hosts that share two cores were within 0.1 s; half a second is not chance.
# Noticed by: test_clients.py::test_a_slow_client_is_compared_with_the_others
_MAX_LATE_S = 0.5
_MAX_NAMED = 5
_MORE_CPUS = "Give the load more or faster CPUs; with steal, dedicated ones."
_POLLING_UNKNOWN = (
    " The result does not say whether it polled, as a bare hipri asks for: if so, a busy core is no"
    " limit."
)


@rule(
    "the rate dropped temporarily",
    looks_at=(
        "A fall of the rate of at least 15 % for 2 s or more that recovers under the same load, on"
        " a volume that is known to be virtual or behind a network, with the steal during that"
        " time. Local drives and volumes of unknown kind are left out."
    ),
    why="Shared hardware was busy with other clients. Results will vary with the time of day.",
    advice="Repeat the run at other times, and report the spread of the repeats.",
)
def neighbour(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each fall of the rate that went away again."""
    for cause in explained(view, context, Cause.NEIGHBOUR):
        yield observed(
            cause,
            f"The rate fell to {format_count(cause.level)} IOPS for"
            f" {format_duration(cause.to_s - cause.from_s)} and recovered",
        )


@rule(
    "other load on the device or the machine",
    looks_at=(
        "Runs with `direct=1` that do not flush: bytes moved by the device, as counted by the"
        " kernel, beyond those of fio, for reads and writes separately, and for the device and"
        " the disk that a partition is on. It needs 3 samples, 1 MB/s, and 10 % of the run's own"
        " rate; 25 % for files, because filesystems write a journal. I/O of other clients in the"
        " same step is expected. With a declared machine type also I/O of the machine's other"
        " disks, except backing devices of the volume and local disks of the machine: at least 5 %"
        " of the machine's limit, which it reaches to 95 % together with the run's own."
        " And other campaigns on the disk."
    ),
    why=(
        "The run got only part of the device's performance, or of the limits that the disks of a"
        " virtual machine share."
    ),
    advice=(
        "Find the other load (iotop, lsof, iostat -x; it may be the write-back tail of the previous"
        " run), stop it, and measure again."
    ),
)
def other_load(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield I/O on the run's device that is not the tool's, and load on other disks."""
    yield from _load_on_device(view, context)
    yield from _load_on_other_disks(view)
    if view.volume is not None and view.volume.other_campaigns:
        keys = ", ".join(view.volume.other_campaigns)
        yield Observation(f"Other campaigns used the same disk: {keys}.", {"campaigns": keys})


def _load_on_device(view: RunView, context: Context) -> Iterator[Observation]:
    more = _MIN_FOREIGN_SHARE.get(view.run.volume.kind)
    if more is None or view.is_buffered or any(load.waits_for_sync for load in view.workloads):
        return
    if view.device.empty:
        return
    rows = within_run(_own_devices(view), runtime=runtime_s(view))
    moved = {way: total(view, "io_bytes", direction=way) for way in ("read", "write")}
    io_bytes = {way: float(np.fmax(count, 0.0)) for way, count in moved.items()}  # 0 for NaN
    for device, samples in rows.groupby("device", sort=False):
        if len(samples) >= MIN_SAMPLES:
            known = _bytes_of_clients(view, context, samples, io_bytes)
            least = max(
                _MIN_FOREIGN_BYTES_PER_S, more * math.fsum(known.values()) / runtime_s(view)
            )
            for direction, own in known.items():
                yield from _foreign_load(
                    view, str(device), samples, direction, own=own, least=least
                )


def _bytes_of_clients(
    view: RunView, context: Context, rows: pd.DataFrame, io_bytes: dict[str, float]
) -> dict[str, float]:
    """Return the tool's bytes with those of other clients meanwhile; NaN when one is unknown."""
    load = context.load(view)
    if load is None:
        return io_bytes
    ends_s = seconds(rows["utc"])
    from_s, to_s = float((ends_s - rows["interval_s"]).min()), float(ends_s.max())
    return {
        way: moved + load.others_bytes(view.run.id, way, from_s=from_s, to_s=to_s)
        for way, moved in io_bytes.items()
    }


def _own_devices(view: RunView) -> pd.DataFrame:
    rows = device_rows(view)
    names = {str(name) for name in rows["device"]}
    backing = device_rows(view, level="backing")
    disks = backing["device"].map(lambda disk: any(name.startswith(str(disk)) for name in names))
    return pd.concat([rows, backing[disks.astype(bool)]]) if disks.any() else rows


def _foreign_load(
    view: RunView, device: str, rows: pd.DataFrame, direction: str, *, own: float, least: float
) -> Iterator[Observation]:
    seconds = float(rows["interval_s"].sum())
    moved = float((rows[f"{direction}_bw_bytes_per_s"] * rows["interval_s"]).sum())
    foreign = (moved - own) / seconds
    if foreign > least:  # never true for NaN
        yield Observation(
            f"{device} did {format_rate(moved / seconds)} of {direction}s, at least"
            f" {format_rate(foreign)} of them ({format_percent(foreign * seconds / moved)}) for"
            " other processes.",
            {
                "device": device,
                "device_bw_bytes_per_s": moved / seconds,
                "tool_bw_bytes_per_s": own / runtime_s(view),
                "foreign_bw_bytes_per_s": foreign,
            },
            direction,
        )


def _load_on_other_disks(view: RunView) -> Iterator[Observation]:
    """Yield how much other disks used of the machine's limit, where the limit was reached."""
    rows, limits = host_rows_in_run(view), view.run.limits
    if "other_disks_iops" not in rows or rows["other_disks_iops"].count() < MIN_SAMPLES:
        return
    ios, moved = (float(rows[name].mean()) for name in OTHERS)
    for column, theirs, limit in (
        ("iops", ios, limits.machine_iops),
        ("bw_bytes_per_s", moved, limits.machine_bandwidth_bytes_per_s),
    ):
        share = theirs / limit if limit else 0.0
        if limit and share >= _MIN_SHARE and share + total(view, column) / limit >= _LIMIT_REACHED:
            yield Observation(
                f"Load on the machine's other disks: {format_count(ios)} IOPS and"
                f" {format_rate(moved)}; {format_percent(share)} of the limit of {limits.machine},"
                " which was reached.",
                {
                    "other_disks_iops": ios,
                    "other_disks_bw_bytes_per_s": moved,
                    "machine_share_percent": 100 * share,
                },
            )
            return


@rule(
    "the host disturbed the run",
    looks_at=(
        "Samples of the host: steal of at least 5 %; run-queue delay of fio's jobs of at "
        "least 5 % (CPU pressure of 25 % if it is unknown); other I/O on the device, above a "
        "quarter of the run's own. Disturbed intervals, grey in charts, are excluded from "
        "verdicts as long as at least 30 % are undisturbed and those around them at least 2 % "
        "faster. A warning if the mean rate is more than 5 % below that with the undisturbed "
        "rates around them, or if fewer than five are undisturbed and no limit keeps the rate "
        "flat. Samples that are 5 s late: the host was frozen or suspended."
    ),
    why="The host slowed this run, not the volume. Results will vary between runs.",
    advice="Measure again on an idle host, or report the rate with its uncertainty.",
)
def host_noise(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield how many intervals of each direction the host disturbed, and what that costs."""
    yield from _standstills(view)
    noise = disturbed(view)
    for direction in directions(view):
        t_s, iops = rate_per_s(view, "iops", direction=direction)
        flags, every = noise.at(t_s), float(iops.mean()) if len(iops) else 0.0
        if len(t_s) < MIN_SAMPLES or flags.mean() < _MIN_DISTURBED:
            continue
        by = [name for name, mask in noise.by.items() if np.isin(t_s, noise.t_s[mask]).any()]
        has_clean = (~flags).sum() >= MIN_AROUND and every > 0
        clean = float(usual_rates(t_s, iops, flags).mean()) if has_clean else math.nan
        off = max(clean / every - 1, 0.0) if has_clean else math.nan
        is_limited = any(
            each.cause in LIMITS and each.direction == direction
            for each in context.explanations(view)
        )
        if math.isnan(off):
            shown = "none shows" if flags.all() else "the others are too few to show"
            limited = ", but the rate was flat at a limit" if is_limited else ""
            result = f"{shown} the rate on an idle host{limited}"
        elif off < _MIN_OFF or format_count(clean) == format_count(every):
            result = f"they changed the result by less than {0.1 if off < _MIN_OFF else 1} %"
        else:
            result = f"without them {format_count(clean)} IOPS instead of {format_count(every)}"
            result += f", so the result is uncertain by {format_percent(off)}"
        is_note = is_limited if math.isnan(off) else off <= _MAX_NOTE_OFF
        share = f"{flags.sum()} of {len(t_s)}" if not flags.all() else f"All {len(t_s)}"
        yield Observation(
            f"{share} intervals were disturbed by {several(by)}: {result}.",
            {
                "disturbed": float(flags.sum()),
                "intervals": float(len(t_s)),
                "by": ", ".join(by),
                "clean_iops": clean,
                "uncertain_percent": 100 * off,
            },
            direction,
            severity=Severity.NOTE if is_note else None,
        )


def _standstills(view: RunView) -> Iterator[Observation]:
    rows = host_rows(view)
    ends_s, long_s = rows["t_s"].to_numpy(float), rows["interval_s"].to_numpy(float)
    begins_s, least_s = (
        ends_s - long_s,
        max(_MIN_STANDSTILL_S, _MIN_STANDSTILL * view.run.device_sample_s),
    )
    is_one = (begins_s >= 0) & (begins_s <= runtime_s(view)) & (long_s >= least_s)
    for to_s, took_s in zip(ends_s[is_one], long_s[is_one], strict=True):
        yield Observation(
            f"The whole host stood still for {format_duration(round(took_s))} after"
            f" {format_duration(max(0, round(to_s - took_s)))}: no sample was taken either.",
            {"standstill_s": float(took_s)},
            window=(float(to_s - took_s), float(to_s)),
        )


@rule(
    "the CPU was the limit",
    looks_at=(
        "fio's CPU time per job, from 95 % of a core on, unless it polls by design (`hipri`, "
        "`sqthread_poll`, SPDK), a note where a result does not tell; below that, CPU time that"
        " reaches 95 % together with the steal. A host whose CPUs are at least 95 % busy is a note."
        " Logs take at least 40 ns an I/O, said from 1 % of a core on."
    ),
    why="The result is how fast the CPU submits I/O, not how fast the volume completes it.",
    advice=(
        "Increase numjobs, or use larger blocks or io_uring. With steal, measure on a machine"
        " with dedicated CPUs, or at another time."
    ),
)
def cpu_bound(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield the evidence of a saturated CPU, with advice that fits the load."""
    # Neither the log of a database nor a watched load is free to submit otherwise.
    is_given = view.run.tool is Tool.WATCH or any(load.waits_for_sync for load in view.workloads)
    for seen in _saturated_cpus(view, context):
        yield replace(seen, advice=_MORE_CPUS) if is_given else seen


def _saturated_cpus(view: RunView, context: Context) -> Iterator[Observation]:
    by_tool, logs = list(_busy_cores(view)), _cost_of_logs(view)
    yield from (replace(seen, message=f"{seen.message}{logs}") for seen in by_tool)
    limited = [] if by_tool else explained(view, context, Cause.CPU)
    for cause in limited:
        is_sure = cause.is_certain
        claim = "The CPU limited the run" if is_sure else "The rate is consistent with a CPU limit"
        mean = total(view, "iops", direction=cause.direction)  # its last level may be write-back
        seen = observed(cause, f"{claim} at {format_count(mean)} IOPS on average")
        yield replace(seen, message=f"{seen.message}{logs}", advice=_MORE_CPUS)
    rows, waits = host_rows_in_run(view), waits_for_cpu(view.device, view.summary)
    if limited or len(rows) < MIN_SAMPLES or waits < MIN_WAIT_PERCENT:
        return
    # The tasks of a job wait at the same time: together for longer than the run.
    share = f"{min(waits, 100):.3g} %"
    waited = "" if math.isnan(waits) else f"; each job waited for a CPU {share} of the time"
    busy = float(rows["cpu_busy_percent"].mean())
    if busy >= FULL_CPU_PERCENT and not cpu_demand(view.device, view.summary) < FULL_DEMAND_PERCENT:
        yield Observation(
            f"The CPUs of the host were {busy:.3g} % busy{waited}.",
            {"cpu_busy_percent": busy},
            severity=Severity.NOTE,
        )


@rule(
    "a CPU limit throttled the run",
    looks_at=(
        "The counters in `cpu.stat` of the run's cgroup (that of its sampler) and of its"
        " parents with a CPU limit: 1 % of throttled periods or more, mean over the run. The"
        " threshold is volbench's own; a period is usually 100 ms, so one throttled period"
        " delays every request in it by tens of ms."
    ),
    why="The result is the CPU limit of the container or service, not the speed of the volume.",
    advice=(
        "Run without a CPU limit (for pods omit --pod limit.cpu=..., or raise it), and reserve"
        " CPUs by requests instead."
    ),
)
def cpu_throttled(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield how often, and for how long, a CPU limit throttled the run."""
    rows = host_rows_in_run(view)
    rows = (
        rows[rows["cpu_throttled_percent"].notna()] if "cpu_throttled_percent" in rows else rows[:0]
    )
    if rows.empty:
        return
    share = float(np.average(rows["cpu_throttled_percent"], weights=rows["interval_s"]))
    stalled_s, sampled_s = float(rows["cpu_throttled_s"].sum()), float(rows["interval_s"].sum())
    if share >= _MIN_THROTTLED_PERCENT:
        yield Observation(
            f"A CPU limit throttled fio in {share:.3g} % of its periods, for"
            f" {format_duration(stalled_s)} of CPU time in {format_duration(sampled_s)}.",
            {"throttled_percent": share, "throttled_s": stalled_s},
        )


def _busy_cores(view: RunView) -> Iterator[Observation]:
    seen = {workload.section for workload in view.workloads if workload.surely_polls}
    may_poll = {workload.section for workload in view.workloads if workload.polls}
    for result in results_of(view):
        user, system = result["cpu_usr"], result["cpu_sys"]
        is_long = result["runtime_s"] >= _MIN_RUNTIME_S
        if not (is_long and user + system >= FULL_CPU_PERCENT) or result.section in seen:
            continue
        seen.add(result.section)
        yield Observation(
            f"fio used {user + system:.3g} % of a core per job ({user:.3g} % user,"
            f" {system:.3g} % system)."
            f"{_POLLING_UNKNOWN if result.section in may_poll else ''}",
            {"cpu_usr_percent": user, "cpu_sys_percent": system, "section": result.section},
            severity=Severity.NOTE if result.section in may_poll else None,
        )


def _cost_of_logs(view: RunView) -> str:
    """Return what share of a core the logs of a run take; empty below one percent."""
    jobs = sum(workload.numjobs for workload in view.workloads)
    percent = 100 * _LOGGED_S * total(view, "iops") / max(1, jobs)
    if view.run.imported or not view.run.sample_s or not percent >= _MIN_LOGS_PERCENT:
        return ""
    return f" Logs take at least {percent:.2g} % of a core per job; --set sample=0 leaves them out."


@rule(
    "the clock jumped",
    looks_at=(
        "Time of day against the measured length of the intervals in the device's samples, and on"
        " several hosts against the monotonic clock since their survey: a step of 1 s or more."
    ),
    why=(
        "Rates are divided by time, and series of several sources are aligned by the time of day."
    ),
    advice="Let the clock synchronize (chronyc tracking, timedatectl), then measure again.",
)
def clock_jumped(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the largest step between the time of day and the length of the intervals."""
    moved_s = math.nan
    if len(view.summary) and "clock_moved_s" in view.summary:
        moved_s = float(view.summary["clock_moved_s"].iloc[0])
    if abs(moved_s) >= _MIN_JUMP_S:
        yield Observation(
            f"The clock of the host was set by {moved_s:+.4g} s since the survey of the hosts: its"
            " start and its results are placed by the monotonic clock.",
            {"jump_s": moved_s},
        )
        return
    rows = host_rows(view).reindex(columns=["t_s", "utc", "interval_s"]).dropna()
    if len(rows) < 2:
        return
    day = pd.to_datetime(rows["utc"], utc=True, format="ISO8601")
    day_s = (day - day.iloc[0]).dt.total_seconds().to_numpy(dtype=float)
    steps = np.diff(day_s) - rows["interval_s"].to_numpy(dtype=float)[1:]
    at = int(np.argmax(np.abs(steps)))
    if abs(steps[at]) >= _MIN_JUMP_S:
        t_s = rows["t_s"].to_numpy(dtype=float)
        yield Observation(
            f"The clock of the host jumped by {steps[at]:+.4g} s.",
            {"jump_s": float(steps[at])},
            window=(float(t_s[at]), float(t_s[at + 1])),
        )


@rule(
    "the clients did not start together",
    looks_at=(
        "Start times of the clients of a step on one clock: more than 0.5 s apart, beyond the"
        " uncertainty of the clock offsets and the planned delays."
    ),
    why=(
        "A client that ran before or after the others did not share the storage with them. A"
        " run that was repeated alone after a failure had the storage to itself."
    ),
    advice="Run the whole step again on all clients: volbench resume DIR --redo-step STEP.",
)
def start_skew(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield how far apart the clients started, at the first run of a step."""
    if not view.run.step or view.run.start is Start.SEQUENTIAL:
        return
    step = [run for run in context.step(view) if run.id in context.finished]
    if len(step) < 2 or view.run.id != step[0].id:
        return
    known = {run.id: _start_s(context.by_id[run.id]) for run in step}
    starts_s = {run_id: start_s for run_id, start_s in known.items() if start_s is not None}
    if len(starts_s) < 2:
        return
    first_s = min(starts_s.values())
    skew_s = max(starts_s.values()) - first_s
    bound_s = clock_bounds_s(context.by_id[run_id].summary for run_id in starts_s)
    if skew_s - bound_s <= _MAX_LATE_S:
        return
    late = [
        run.client_name for run in step if starts_s.get(run.id, first_s) - first_s > _MAX_LATE_S
    ]
    yield Observation(
        f"The clients of this step started {format_latency(skew_s)} ± {format_latency(bound_s)}"
        f" apart: {several(late, _MAX_NAMED)} started after the others.",
        {"start_skew_s": skew_s, "start_skew_bound_s": bound_s},
    )


def _start_s(view: RunView) -> float | None:
    starts = view.summary["step_start_s"].dropna()
    return None if starts.empty else float(starts.iloc[0]) - view.run.start_offset_s


@rule(
    "clients are missing",
    looks_at="The number of clients that finished a step of the campaign, and the number planned.",
    why=(
        "The aggregate covers only the remaining clients, and each of them had a larger share"
        " of the common storage."
    ),
    advice=(
        "Find out why. Repeat incomplete steps on all clients: volbench resume DIR --redo-step"
        " unfinished. Clients that were left out are in no step; with them: volbench run --like DIR"
        " --inventory FILE."
    ),
)
def missing_clients(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield who is missing, at the first run of a step that some clients did not finish."""
    campaign = view.campaign
    step = context.step(view)
    planned = len(step) + campaign.clients_absent
    first = next(run.id for run in step if run.id in context.finished)
    if not view.run.step or planned == 1 or view.run.id != first:
        return
    missing = [run for run in step if run.id not in context.finished]
    if not (missing or campaign.absent):
        return
    names = [run.client_name for run in missing]
    names += [absent.host for absent in campaign.absent]
    did = len(step) - len(missing)
    what = f"finished step {view.run.step}" if missing else "took part"
    yield Observation(
        f"Only {did} of {planned} clients {what}: {first_names(names, _MAX_NAMED)} did not.",
        {"clients": float(planned), "missing": float(planned - did)},
    )
