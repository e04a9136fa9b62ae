"""Bottleneck of a run: limits, CPU, latency or reduced data, and the events that led to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from volbench.analyse.bottleneck.lasting_falls import MAX_DISTANCE_FROM_LIMIT, MAX_FLAT_SPREAD
from volbench.analyse.bottleneck.rate_changes import explain_events
from volbench.analyse.bottleneck.sustained_level import (
    MAX_SAME_DISTANCE,
    at_upper_edge,
    reached_more,
    which_limit,
)
from volbench.analyse.bottleneck.volume_context import FLASH, LOCAL, Earlier, device_kind
from volbench.analyse.frames.disturbed import FULL_DEMAND_PERCENT, cpu_demand
from volbench.analyse.frames.run_view import (
    RunView,
    bytes_until_end,
    device_rows,
    host_rows_in_run,
    results_of,
    total,
)
from volbench.analyse.frames.workload_spec import WorkloadSpec
from volbench.analyse.time.run_rates import Rates, rates_of
from volbench.model.results.finding import WORDS, Cause, Explanation
from volbench.units import format_count, format_latency, format_rate

# Share of the bytes written up to which a device did not store all of them; counters agree within 2
# %, a journal adds up to 10 %.
# Noticed by: test_volume_context.py::test_fewer_bytes_stored_than_written_show_data_reduction
_MAX_STORED_SHARE = 0.8
# Percent of compressible or duplicate data that can explain such a share: the rest of
# `_MAX_STORED_SHARE`.
# Noticed by: test_volume_context.py::test_fewer_bytes_stored_than_written_show_data_reduction
_MIN_COMPRESSIBLE_PERCENT = 20
_COMPRESSING = frozenset({"zfs", "bcachefs"})  # Filesystems that compress by default
# Percent of a CPU from which it is saturated; the kernel and interrupts take the rest.
# Noticed by: test_explain.py::test_a_busy_cpu_is_reported
FULL_CPU_PERCENT = 95.0
# Share of the intervals that have the usual rate, so that it is one: a majority.
# Noticed by: test_sustained_level.py::test_a_cpu_that_was_taken_away_is_still_the_limit
_MIN_USUAL_SHARE = 0.5
# Mean over minimum latency from which I/Os queue: half of the time is spent waiting.
# Noticed by: benchmarks/truth.py
_MIN_QUEUED_RATIO = 2.0
# The same ratio where I/Os did not all wait alike, if 99 % took half as long; chosen on the even
# seeds of the truth benchmark. Noticed by: benchmarks/truth.py
_MIN_QUEUED_RATIO_UNEVEN = 8.0
# Percentile 30 (or 1) over the mean latency from which all I/Os wait alike; chosen on the even
# seeds of the truth benchmark. Noticed by: benchmarks/truth.py
_MIN_UNIFORM_RATIO = 0.7
# Percentile 70 over 30 up to which all I/Os wait alike; stolen CPU time moves neither; chosen on
# the even seeds of the truth benchmark. Noticed by: benchmarks/truth.py
_MAX_MIDDLE_RATIO = 1.15
# Spread of samples of a limit that is not always reached, where all I/Os wait; chosen on the even
# seeds of the truth benchmark. Noticed by: benchmarks/truth.py
_MAX_FLAT_SPREAD_UNREACHED = 0.10
# Mean over minimum latency, and percentile 1 over the mean, of large I/Os: the fastest takes
# longer, so they have to be more uniform; chosen on the even seeds of the truth benchmark.
# Noticed by: test_explain.py::test_large_ios_at_a_flat_rate_are_throttled
_MIN_QUEUED_RATIOS_LARGE = (1.5, 0.9)
# Spread of samples that only a throttle or a saturated CPU keeps while I/Os wait unevenly; chosen
# on the even seeds of the truth benchmark.
# Noticed by: test_explain.py::test_stolen_cpu_does_not_hide_an_exact_limit
_MAX_CONSTANT_SPREAD = 0.007
# Intervals that such a level lasts at least: fewer are alike by chance.
# Noticed by: test_explain.py::test_a_constant_rate_lasts_ten_intervals
_MIN_CONSTANT_INTERVALS = 10
# Distance of a level from the rate that latency gives.
# Noticed by: test_explain.py::test_stolen_cpu_does_not_hide_an_exact_limit
_MAX_LAW_DISTANCE = 0.15
# Events that determine the level at the end of a run
_BINDING = frozenset({Cause.CREDITS, Cause.SLOWER})
# Causes of a level that such an event overrides
_BY_EVENTS = frozenset({Cause.UNKNOWN, Cause.LATENCY, Cause.IOPS_LIMIT})
# The same for exhausted credits: their baseline is a limit, of I/Os or of bytes
_BY_CREDITS = _BY_EVENTS | {Cause.BANDWIDTH_LIMIT}


def reduction(view: RunView, direction: str) -> tuple[list[str], list[str]] | None:
    """Return the evidence for and against reduced data; None where all of it was stored.

    It needs a device that wrote clearly less than the run did past the page cache, and data or a
    filesystem that explains it.
    """
    written = total(view, "io_bytes", direction="write")
    if direction != "write" or view.is_buffered or not view.is_counted or not written > 0:
        return None
    levels = (device_rows(view, level=level) for level in ("volume", "backing"))
    stored = [
        bytes_until_end(rows, "write_bw_bytes_per_s", runtime=math.inf)
        for rows in levels
        if not rows.empty
    ]
    share = min(stored, default=written) / written
    causes = [*_data_reasons(view), *_filesystem_reasons(view)]
    if share >= _MAX_STORED_SHARE or not causes:
        return None
    seen = f"the device wrote {100 * share:.0f} % of what the run wrote"
    return [seen, *causes], ["a cache below the filesystem would look the same"]


def _data_reasons(view: RunView) -> Iterator[str]:
    for load in view.workloads:
        if not load.writes:
            continue
        if load.is_on("zero_buffers") or "buffer_pattern" in load.options:
            yield "it wrote zeros or one pattern"
        elif (percent := _compressible(load)) >= _MIN_COMPRESSIBLE_PERCENT:
            yield f"its data is {percent} % compressible or duplicate"
        elif not load.is_on("refill_buffers") and "refill_buffers" not in load.unreported_flags:
            yield "it wrote the same buffers again and again (no refill_buffers)"


def _compressible(load: WorkloadSpec) -> int:
    names = ("buffer_compress_percentage", "dedupe_percentage")
    return max(load.number(name, default=0) for name in names)


def _filesystem_reasons(view: RunView) -> Iterator[str]:
    facts = view.volume
    if facts is None:
        return
    options = [option for option in facts.mount_options.split(",") if "compress" in option]
    if options:
        yield f"its filesystem is mounted with {options[0]}"
    elif facts.filesystem in _COMPRESSING:
        yield f"{facts.filesystem} compresses by default"


def cpu_evidence(view: RunView, rates: Rates) -> tuple[list[str], list[str]] | None:
    """Return the evidence for and against a limit of the CPU; None where nothing speaks for it."""
    polling = {load.section for load in view.workloads if load.polls}
    usage = (
        row["cpu_usr"] + row["cpu_sys"] for row in results_of(view) if row.section not in polling
    )
    used = max((value for value in usage if not math.isnan(value)), default=0.0)
    rows = host_rows_in_run(view)
    steal = float(rows["steal_percent"].mean()) if len(rows) else math.nan
    busy = float(rows["cpu_busy_percent"].median()) if len(rows) else math.nan
    reasons: list[str] = []
    against: list[str] = []
    if used >= FULL_CPU_PERCENT:
        reasons.append(f"fio used {used:.0f} % of a CPU")
    elif used >= FULL_CPU_PERCENT * (1 - steal / 100):
        reasons.append(f"fio used {used:.0f} % of a CPU, and {steal:.1f} % of the time was stolen")
        against.append("steal is measured over all CPUs")
    elif (at_most := used * _usual_over_mean(rates)) >= FULL_CPU_PERCENT:
        reasons.append(f"fio used {used:.0f} % of a CPU, {at_most:.0f} % at its usual rate")
        against.append("the CPU was partly idle on average")
    if busy >= FULL_CPU_PERCENT and cpu_demand(view.device, view.summary) >= FULL_DEMAND_PERCENT:
        reasons.append(
            f"the CPUs of the host were {busy:.0f} % busy, and a job used one or waited for one"
            f" {cpu_demand(view.device, view.summary):.0f} % of the time"
        )
    return (reasons, against) if reasons else None


def _usual_over_mean(rates: Rates) -> float:
    """Return the rate that most intervals have over the mean; 0 where they have no such rate.

    While something else took the CPU, fio did less with less; an I/O takes the same CPU time.
    """
    usual, mean = float(np.quantile(rates.iops, 0.95)), float(rates.iops.mean())
    is_usual = np.abs(rates.iops / usual - 1) <= _MAX_CONSTANT_SPREAD if usual > 0 else np.array(0)
    if not mean > 0 or np.mean(is_usual) < _MIN_USUAL_SHARE:
        return 0.0
    return usual / mean


@dataclass(frozen=True)
class _Case:
    """Evidence that all judges share."""

    view: RunView
    rates: Rates
    others: Sequence[tuple[RunView, Rates]]

    @property
    def iops(self) -> float:
        return self.rates.last.level

    @property
    def bandwidth(self) -> float:
        return self.rates.bandwidth_of(self.rates.last)

    def explanation(
        self,
        cause: Cause,
        level: float,
        speaks_for: Sequence[str],
        speaks_against: Sequence[str] = (),
    ) -> Explanation:
        rates = self.rates
        return Explanation(
            cause=cause,
            direction=rates.direction,
            from_s=rates.last.from_s,
            to_s=rates.last.to_s,
            level=level,
            speaks_for=tuple(speaks_for),
            speaks_against=tuple(speaks_against),
            evidence=self._evidence(),
            is_certain=not speaks_against,
        )

    def _evidence(self) -> dict[str, float]:
        limits = self.view.run.limits
        values = {
            "iops": self.iops,
            "bw_bytes_per_s": self.bandwidth,
            "spread_percent": 100 * self.rates.last.spread,
            "depth": float(self.rates.depth),
            "lat_mean_s": self.rates.lat_mean_s,
            "lat_min_s": self.rates.lat_min_s,
            "limit_iops": limits.iops,
            "limit_bw_bytes_per_s": limits.bandwidth_bytes_per_s,
        }
        return {n: v for n, v in values.items() if v is not None and math.isfinite(v)}


def explain_level(
    view: RunView, rates: Rates, *, others: Sequence[tuple[RunView, Rates]] = ()
) -> Explanation:
    """Return the bottleneck at the end of a run."""
    case = _Case(view, rates, others)
    if not case.iops > 0:
        return case.explanation(Cause.UNKNOWN, 0.0, [], ["no I/O completed at the end"])
    for judge in (
        _own_rate,
        _reduced_data,
        _declared_limit,
        _cpu_limit,
        _limit_by_comparison,
        _limit_by_queue,
        _latency_bound,
    ):
        explanation = judge(case)
        if explanation is not None:
            return at_upper_edge(explanation, rates)
    depth = f"{rates.depth} I/Os in flight and no run with another queue depth to compare"
    why = depth if rates.depth > 1 else "latency does not explain it"
    flat = [f"flat within {100 * rates.last.spread:.1f} %, as at a limit"] * _may_be_limited(case)
    return case.explanation(Cause.UNKNOWN, case.iops, flat, ["no declared limit is near", why])


def _own_rate(case: _Case) -> Explanation | None:
    if not any(workload.is_paced for workload in case.view.workloads):
        return None
    own = "the job limits its own rate (rate, rate_iops, thinktime or latency_target)"
    return case.explanation(Cause.UNKNOWN, case.iops, [], [own])


def _reduced_data(case: _Case) -> Explanation | None:
    evidence = reduction(case.view, case.rates.direction)
    return None if evidence is None else case.explanation(Cause.REDUCTION, case.iops, *evidence)


def _declared_limit(case: _Case) -> Explanation | None:
    limits = case.view.run.limits
    bandwidths = limits.bandwidth_bytes_per_s, limits.burst_bandwidth_bytes_per_s
    sides = (
        (Cause.IOPS_LIMIT, case.iops, (limits.iops, limits.burst_iops), format_count),
        (Cause.BANDWIDTH_LIMIT, case.bandwidth, bandwidths, format_rate),
    )
    edge = case.rates.last.ceiling / case.iops
    near = [
        (off, cause, level, limit, written)
        for cause, level, declared, written in sides
        for limit in declared
        if limit and (off := _distance_from_limit(level, edge, limit)) <= MAX_DISTANCE_FROM_LIMIT
    ]
    if not near:
        return None
    off, cause, level, limit, written = min(near, key=lambda candidate: candidate[0])
    reasons = [f"within {100 * off:.1f} % of the declared {written(limit)}"]
    if case.rates.last.spread <= MAX_FLAT_SPREAD:
        reasons.append(f"flat within {100 * case.rates.last.spread:.1f} %")
    against = [] if len(near) == 1 else ["the other limit is near as well"]
    if not case.rates.at_device:
        reasons += _queue_reasons(case)
        if case.rates.depth == 1:
            against.append("with one I/O in flight its latency may be the limit")
    return case.explanation(cause, level, reasons, against)


def _distance_from_limit(level: float, edge: float, limit: float) -> float:
    off = abs(level / limit - 1)
    return off if math.isnan(edge) else min(off, abs(level * edge / limit - 1))


def _queue_reasons(case: _Case) -> list[str]:
    rates = case.rates
    times, low_share = _MIN_QUEUED_RATIOS_LARGE
    close = rates.lat_mean_s >= times * rates.lat_min_s
    close = close and rates.lat_low_s >= low_share * rates.lat_mean_s
    waits = close or (
        rates.lat_mean_s >= _MIN_QUEUED_RATIO * rates.lat_min_s and not _waits_unevenly(rates)
    )
    if rates.depth > 1 and waits:
        mean, least = map(format_latency, (rates.lat_mean_s, rates.lat_min_s))
        return [f"I/Os wait: mean latency {mean}, minimum {least}"]
    return []


def _waits_unevenly(rates: Rates) -> bool:
    """Return whether I/Os are known to take different times, as those that do not wait do."""
    return rates.lat_p70_s > _MAX_MIDDLE_RATIO * (1 + rates.last.spread / 2) * rates.lat_p30_s


def _is_uniform(rates: Rates) -> bool:
    if not math.isnan(rates.lat_p70_s):
        return (
            not _waits_unevenly(rates) and rates.lat_p30_s >= _MIN_UNIFORM_RATIO * rates.lat_mean_s
        )
    return rates.lat_low_s >= _MIN_UNIFORM_RATIO * rates.lat_mean_s


def _cpu_limit(case: _Case) -> Explanation | None:
    evidence = cpu_evidence(case.view, case.rates)
    return None if evidence is None else case.explanation(Cause.CPU, case.iops, *evidence)


def _limit_by_comparison(case: _Case) -> Explanation | None:
    """Infer a limit from a run with more or larger I/Os in flight that gained nothing."""
    if case.rates.depth == 1 and not case.rates.at_device:
        return None
    for other, rates in case.others:
        if rates.depth == case.rates.depth or rates.at_device != case.rates.at_device:
            continue
        if (
            abs(rates.last.level / case.iops - 1) <= MAX_SAME_DISTANCE
            and min(rates.depth, case.rates.depth) > 1
        ):
            text = f"{other.run.job} with {rates.depth} in flight reached the same IOPS"
            return _inferred_limit(case, [text, *_queue_reasons(case)])
    return None


def _limit_by_queue(case: _Case) -> Explanation | None:
    """Infer a limit from a single run: a flat rate, and I/Os that all wait equally long."""
    rates = case.rates
    waiting, spread = _queue_reasons(case), rates.last.spread
    is_far = rates.lat_p30_s >= _MIN_QUEUED_RATIO * rates.lat_min_s
    is_uniform = _is_uniform(rates) and spread <= (
        _MAX_FLAT_SPREAD_UNREACHED if is_far else MAX_FLAT_SPREAD
    )
    if rates.at_device or not waiting or not (is_uniform or _is_constant(case)):
        return None
    reasons = [f"flat within {100 * spread:.1f} %", *waiting]
    if not is_uniform:
        reasons += _littles_law(case)
    elif is_far:
        reasons.append(f"70 % of I/Os took at least {format_latency(rates.lat_p30_s)}")
    else:
        reasons.append(f"99 % of I/Os took at least {format_latency(rates.lat_low_s)}")
    against = [] if is_uniform else ["not all I/Os waited equally long"]
    return _inferred_limit(case, reasons, against)


def _is_constant(case: _Case) -> bool:
    """Return whether a rate is as constant as only a throttle makes it, whatever delayed I/Os.

    A throttle gives back I/Os after a pause of the CPU; a drive has a ceiling that is as flat.
    """
    last, kind = case.rates.last, device_kind(case.view)
    is_long = last.to_s - last.from_s >= _MIN_CONSTANT_INTERVALS * case.rates.interval_s
    return last.spread <= _MAX_CONSTANT_SPREAD and is_long and kind not in FLASH | LOCAL


def _may_be_limited(case: _Case) -> bool:
    """Return whether a rate is constant and its I/Os took much longer than the fastest of them."""
    rates = case.rates
    waited = rates.depth > 1 and rates.lat_mean_s >= _MIN_QUEUED_RATIO * rates.lat_min_s
    return waited and not rates.at_device and _is_constant(case)


def _littles_law(case: _Case) -> list[str]:
    """Return the rate that latency gives, where it is that of the end of the run."""
    rates = case.rates
    expected = rates.depth / rates.lat_mean_s if rates.lat_mean_s > 0 else math.nan
    if not abs(case.iops / expected - 1) <= _MAX_LAW_DISTANCE:
        return []
    each = format_latency(rates.lat_mean_s)
    return [f"{rates.depth} in flight at {each} each give {format_count(expected)} IOPS"]


def _inferred_limit(
    case: _Case, speaks_for: Sequence[str], speaks_against: Sequence[str] = ()
) -> Explanation:
    others = [(view.run.job, rates) for view, rates in case.others]
    cause, level = which_limit(case.rates, [rates for _, rates in others])
    declared = case.view.run.limits
    is_known = declared.iops is not None or declared.bandwidth_bytes_per_s is not None
    against = ["no declared limit is near" if is_known else "no limit is declared"]
    if more := reached_more(cause, level, others):
        against.append(more)
    return case.explanation(cause, level, speaks_for, [*against, *speaks_against])


def _latency_bound(case: _Case) -> Explanation | None:
    """Explain a level by Little's law: I/Os in flight / latency, without queueing."""
    rates, reasons = case.rates, _littles_law(case)
    far_s = _MIN_QUEUED_RATIO_UNEVEN * rates.lat_min_s
    queued = _queue_reasons(case) or (rates.lat_mean_s >= far_s and rates.lat_low_s >= far_s / 2)
    queued = queued or _may_be_limited(case)
    if rates.at_device or not reasons or (rates.depth > 1 and queued):
        return None
    against = []
    if rates.depth > 1:
        against.append("a limit cannot be excluded without a second queue depth")
    return case.explanation(Cause.LATENCY, case.iops, reasons, against)


def explain(
    view: RunView, direction: str, *, others: Sequence[RunView] = (), earlier: Earlier | None = None
) -> tuple[Explanation, ...]:
    """Explain one direction of a run: its bottleneck first, then its events.

    Args:
        direction: ``read``, ``write`` or ``trim``.
        others: further runs of the campaign: another depth or block size on the same volume shows
            whether a level is a limit.
        earlier: what finished on the volume before; None for nothing.

    Returns:
        At least one explanation, unless the run has no series; UNKNOWN when nothing
        explains the level.
    """
    rates = rates_of(view, direction)
    if rates is None:
        return ()
    events = [
        at_upper_edge(event, rates) for event in explain_events(view, rates, earlier or Earlier())
    ]
    level = explain_level(view, rates, others=_comparable_runs(view, direction, others))
    if level.cause is Cause.CPU:
        events = [_dip_of_host(event) for event in events]
    binding = [event for event in events if event.cause in _BINDING]
    further = [event for event in events if event.cause not in _BINDING]
    ran_out = any(event.cause is Cause.CREDITS for event in binding)
    is_declared = level.cause is Cause.IOPS_LIMIT and level.is_certain
    is_from_events = binding and level.cause in _BY_EVENTS and not is_declared
    if (ran_out and level.cause in _BY_CREDITS) or is_from_events:
        return (*binding, *further)
    if further and level.cause is Cause.UNKNOWN and not binding:
        return (*further, level)
    return (level, *binding, *further)


def _dip_of_host(event: Explanation) -> Explanation:
    """Return a dip of a run that the CPU limits: the host is as likely to be its cause."""
    if event.cause is not Cause.NEIGHBOUR:
        return event
    return replace(
        event,
        cause=Cause.UNKNOWN,
        candidates=(WORDS[Cause.HOST_NOISE], WORDS[Cause.NEIGHBOUR]),
        speaks_against=(*event.speaks_against, "the CPU limited the run"),
    )


def _comparable_runs(
    view: RunView, direction: str, others: Sequence[RunView]
) -> list[tuple[RunView, Rates]]:
    comparable = []
    for other in others:
        same = other.run.volume.target == view.run.volume.target and other.run.host == view.run.host
        if other.run.id == view.run.id or not same or not other.is_finished:
            continue
        rates = rates_of(other, direction)
        if rates is not None:
            comparable.append((other, rates))
    return comparable
