"""Rules on limits of the volume, burst credits, and caches that hide limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.bottleneck.lasting_falls import MAX_DISTANCE_FROM_LIMIT, is_near
from volbench.analyse.findings.plausibility import implausible
from volbench.analyse.findings.rule import (
    Evidence,
    Observation,
    explained,
    level_text,
    observed,
    rule,
    several,
)
from volbench.analyse.frames.resample import Floats
from volbench.analyse.frames.run_options import beside
from volbench.analyse.frames.run_view import (
    RunView,
    bytes_until_end,
    declared,
    device_rows,
    directions,
    percentiles_of,
    rate_per_s,
    runtime_s,
    total,
)
from volbench.model.results.finding import Cause, Explanation, Severity
from volbench.units import format_count, format_duration, format_latency, format_percent

_COLUMNS = {Cause.IOPS_LIMIT: "iops", Cause.BANDWIDTH_LIMIT: "bw_bytes_per_s"}
# Rate over the declared limit from which a cache is suspected; providers allow a few percent.
# Noticed by: test_memory.py::test_rates_above_the_declared_limit_are_reported
_MIN_ABOVE_LIMIT = 1.05
# The same for a few seconds: token buckets allow short bursts.
# Noticed by: test_memory.py::test_a_burst_above_the_declared_limit_is_reported
_MIN_ABOVE_LIMIT_BRIEFLY = 1.2
# Length of such a burst.
# Noticed by: test_memory.py::test_a_burst_above_the_declared_limit_is_reported
_BRIEFLY_S = 5.0
# Share of the I/O that reaches the backing disk: metadata and merges do not halve it.
# Noticed by: test_memory.py::test_a_caching_loop_device_is_reported
_MIN_BACKING_SHARE = 0.5
# Distance from a round number, and between runs, up to which a rate is a limit that providers sell.
# Noticed by: test_causes.py::test_a_round_rate_that_repeats_is_a_limit
_MAX_OFF_ROUND = 0.005
# Runs at one round rate that are no chance.
# Noticed by: test_causes.py::test_a_round_rate_that_repeats_is_a_limit
_MIN_ALIKE = 3
# First digits of limits that providers sell (Azure, AWS, Google and OpenStack price lists of 2026).
# Noticed by: test_causes.py::test_a_round_rate_that_repeats_is_a_limit
_SOLD = (1.0, 1.1, 1.2, 1.25, 1.5, 1.6, 1.8, 2.0, 2.3, 2.4, 2.5, 3.0, 4.0, 5.0, 6.0, 6.4, 7.5, 8.0)
# Smallest limit of IOPS that is sold.
# Noticed by: test_causes.py::test_a_round_rate_that_repeats_is_a_limit
_MIN_SOLD_IOPS = 100.0
# Block size from which a limit that providers sell is one of bandwidth.
# Noticed by: test_causes.py::test_a_round_rate_that_repeats_is_a_limit
_MIN_LARGE_BYTES = 64 << 10
_MAX_NAMED = 4  # Named in a finding, so that it is a sentence; all are among its values.
# Latency of slow I/Os over that of fast ones that two mechanisms explain: a cache and a disk.
# Noticed by: tests/analyse/findings/test_two_latencies.py
_MIN_LATENCY_RATIO = 8.0
# The same where at least a tenth of the I/Os is of each kind, as no tail is.
# Noticed by: test_two_latencies.py::test_two_large_groups_need_a_smaller_gap
_MIN_MIDDLE_RATIO, _MIN_MIDDLE_PERCENT = 4.0, 10.0
# Spread of each kind up to which it is one.
# Noticed by: tests/analyse/findings/test_two_latencies.py
_MAX_KIND_SPREAD = 3.0
# Percent of the I/Os between two percentiles from which they say nothing about a gap: the largest
# step of fio's list. Noticed by: test_two_latencies.py::test_few_percentiles_show_no_gap
_MAX_STEP_PERCENT = 10.0
# Percent of the I/Os of the rarer kind: fewer are the tail that each volume has.
# Noticed by: tests/analyse/findings/test_two_latencies.py
_MIN_KIND_PERCENT = 1.0
# I/Os of the rarer kind. Noticed by: tests/analyse/findings/test_two_latencies.py
_MIN_KIND_IOS = 100


@rule(
    "the volume was throttled at a limit",
    severity=Severity.NOTE,
    looks_at=(
        "The bottleneck at the end of the run is a limit, declared or inferred; or three runs or"
        " more on one volume have a rate within 0.5 % of a round number that providers sell. Below"
        " 95 % of the declared limit it is a warning."
    ),
    why=(
        "At a limit the result is what was paid for, not the speed of the hardware, and latency"
        " is time in the queue."
    ),
    advice=(
        "Report it as the limit. If it is below the declared limit, check the limits of the"
        " machine type and of its other disks, and declare the limit that applies."
    ),
)
def throttled(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each limit that throttled a run; all directions together, as providers count them."""
    yield from _repeated_round_rate(view, context)
    is_mixed = len(directions(view)) > 1
    is_paced = any(workload.is_paced for workload in view.workloads)
    for cause, column in _COLUMNS.items():
        limits = explained(view, context, cause)
        level, declared_limit = total(view, column), declared(view.run, column)[0]
        if is_mixed and not is_paced and is_near(level, declared_limit):
            yield Observation(
                f"Throttled at {level_text(column, level)} over all directions,"
                f" {format_percent(level / declared_limit)} of the declared"
                f" {level_text(column, declared_limit)}.",
                {"level": level, "of": column, "declared": declared_limit},
            )
            continue
        for limit in limits[:1] if is_mixed else limits:
            yield _throttling(view, limit, level if is_mixed else limit.level)


def _repeated_round_rate(view: RunView, context: Context) -> Iterator[Observation]:
    is_large = all(workload.block_bytes >= _MIN_LARGE_BYTES for workload in view.workloads)
    column = _COLUMNS[Cause.BANDWIDTH_LIMIT if is_large else Cause.IOPS_LIMIT]
    if any(workload.is_paced for workload in view.workloads) or max(declared(view.run, column)):
        return
    # What a process gets beside others is a share, and equal shares are no repeats.
    if beside(view.run) or any(explained(view, context, cause) for cause in _COLUMNS):
        return
    sold = _nearest_sold(total(view, column))
    if not sold:
        return
    place = view.run.host, view.run.volume
    alike = [
        other
        for other in context.views
        if (other.run.host, other.run.volume) == place
        and other.is_finished
        and abs(total(other, column) / sold - 1) <= _MAX_OFF_ROUND
        and not any(workload.is_paced for workload in other.workloads)
    ]
    if len(alike) >= _MIN_ALIKE:
        yield Observation(
            f"Consistent with throttling at {level_text(column, sold)}: {len(alike)} runs are"
            f" within {format_percent(_MAX_OFF_ROUND)} of this round number.",
            {"level": sold, "of": column, "runs": float(len(alike))},
        )


def _nearest_sold(rate: float) -> float:
    if not _MIN_SOLD_IOPS <= rate < math.inf:
        return 0.0
    power = 10 ** math.floor(math.log10(rate) + _MAX_OFF_ROUND)
    near = (power * sold for sold in _SOLD if abs(rate / power / sold - 1) <= _MAX_OFF_ROUND)
    return next(near, 0.0)


def _throttling(view: RunView, explanation: Explanation, level: float) -> Observation:
    column = _COLUMNS[explanation.cause]
    sustained, burst = declared(view.run, column)
    evidence: Evidence = {"level": level, "of": column}
    severity, beside = Severity.NOTE, ""
    if sustained:
        evidence["declared"] = sustained
        nearest = min((sustained, burst or sustained), key=lambda limit: abs(level - limit))
        is_less = level < (1 - MAX_DISTANCE_FROM_LIMIT) * sustained
        severity = Severity.WARNING if is_less else Severity.NOTE
        beside = (
            f", {'only ' if is_less else ''}{format_percent(level / nearest)} of the declared"
            f" {level_text(column, nearest)}{_machine_words(view, column)}"
        )
    claim = "Throttled" if explanation.is_certain else "Consistent with throttling"
    message = f"{claim} at {level_text(column, level)}{beside}"
    seen = observed(explanation, message, evidence, severity=severity)
    return replace(seen, direction=None) if len(directions(view)) > 1 else seen


def _machine_words(view: RunView, column: str) -> str:
    limits = view.run.limits
    field = "iops" if column == "iops" else "bandwidth_bytes_per_s"
    if field not in limits.machine_limits:
        return ""
    beside = f", not of the {limits.name}" if limits.name else ""
    return f" of the machine {limits.machine}{beside}"


@rule(
    "the rate is implausible: a cache is suspected",
    looks_at=(
        "Runs with `direct=1`: rates above 105 % of the declared limits (bursts included), or above"
        " 120 % for 5 s; writes that were as fast as memory and then stalled or fell by more than"
        " half, if a full write-back cache is the likeliest cause. A note if less than half of the"
        " I/O reached the backing disk of a dm device, of a loop a warning. Bounds of disks: more"
        " than 1,000 random IOPS of a spinning disk; a higher bandwidth than the SATA, USB or PCIe"
        " link carries; an imported mean or median latency below 4 us, or more than 16 GB/s (PCIe"
        " 5.0 x4) for each disk in `filename`; a file or layer that is faster than the device below"
        " it with the same workload. Also ZFS, FUSE, 9p and virtiofs, which cache direct I/O, and"
        " mounts with `compress` (a note)."
    ),
    why=(
        "O_DIRECT bypasses the page cache of this host, not the caches of the filesystem, the"
        " hypervisor, the provider and the disk."
    ),
    advice=(
        "Turn off caching of the disk if the provider allows it. Measure over a range larger"
        " than the cache, and long enough to fill it. If the declared limit is wrong, or a burst"
        " is not declared, correct limits in the profile."
    ),
)
def host_cache(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield rates above what is declared or possible, and a backing disk that saw little."""
    if view.is_buffered:
        return
    yield from implausible(view, context)
    for column in _COLUMNS.values():
        limit = max(declared(view.run, column))
        if limit:
            yield from _rate_above_limit(view, column, limit)
    for direction in ("read", "write"):
        yield from _idle_backing_disk(view, direction)


def _rate_above_limit(view: RunView, column: str, limit: float) -> Iterator[Observation]:
    rate = total(view, column)
    if rate > _MIN_ABOVE_LIMIT * limit:
        yield Observation(
            f"{level_text(column, rate)} is {format_percent(rate / limit)} of the declared"
            f" {level_text(column, limit)}.",
            {"rate": rate, "declared": limit, "of": column},
        )
        return
    t_s, rates = rate_per_s(view, column)
    window = max(1, round(_BRIEFLY_S / view.run.sample_s)) if view.run.sample_s else 1
    if len(rates) < window:
        return
    means = np.convolve(rates, np.ones(window) / window, mode="valid")
    above = np.flatnonzero(means > _MIN_ABOVE_LIMIT_BRIEFLY * limit)
    if len(above):
        fastest = float(means.max())
        yield Observation(
            f"{level_text(column, fastest)} for {format_duration(window * 1.0)} is"
            f" {format_percent(fastest / limit)} of the declared {level_text(column, limit)}.",
            {"rate": fastest, "declared": limit, "of": column},
            window=(float(t_s[above[0]]) - view.run.sample_s, float(t_s[above[-1] + window - 1])),
        )


def _idle_backing_disk(view: RunView, direction: str) -> Iterator[Observation]:
    rows, column = device_rows(view), f"{direction}_bw_bytes_per_s"
    backing, runtime = device_rows(view, level="backing"), runtime_s(view)
    moved = total(view, "io_bytes", direction=direction)
    if rows.empty or backing.empty or math.isnan(runtime) or not moved > 0:
        return
    upper = bytes_until_end(rows, column, runtime=runtime)
    lower = bytes_until_end(backing, column, runtime=runtime)
    if upper >= _MIN_BACKING_SHARE * moved and lower < _MIN_BACKING_SHARE * upper:
        disks = ", ".join(sorted({str(name) for name in backing["device"]}))
        is_loop = str(rows["device"].iloc[0]).startswith("loop")
        remedy = " Set the loop device up with losetup --direct-io=on." if is_loop else ""
        yield Observation(
            f"The backing disk ({disks}) moved {format_percent(lower / upper)} of the bytes that"
            f" the volume {'wrote' if direction == 'write' else 'read'} during the run.{remedy}",
            {"volume_bytes": upper, "backing_bytes": lower},
            direction,
            severity=None if is_loop else Severity.NOTE,
        )


@rule(
    "two volumes share a disk and its limit",
    looks_at=(
        "The block device of each volume and its backing disks, as the kernel reports them,"
        " against those of other roles on the same host, and of other hosts on the same machine,"
        " such as pods of one node, that were measured at the same time."
    ),
    why=(
        "I/O on one volume uses operations and credits of the other, so the roles are not"
        " measured independently, and the limit may be that of the shared disk."
    ),
    advice="Put the volumes on separate disks, or measure only one of them.",
)
def shared_limit(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield that another role on the host, or another host on the machine, shares its disk."""
    for disk, hosts in context.hosts_beside(view).items():
        names = sorted(hosts)
        yield Observation(
            f"{several(names, _MAX_NAMED)} are on the same disk ({disk}) of one machine"
            " and share its limit.",
            {"disks": disk, "hosts": ", ".join(names)},
        )
    shared = {
        volume.target: view.disks & disks
        for volume, disks in context.disks[view.run.host].items()
        if volume.target != view.run.volume.target and view.disks & disks
    }
    if shared:
        disks = ", ".join(sorted(set().union(*shared.values())))
        names = sorted({view.run.volume.target, *shared})
        yield Observation(
            f"{several(names)} are on the same disk ({disks}) and share its limit.",
            {"disks": disks, "volumes": ", ".join(names)},
        )


@rule(
    "burst credits ran out",
    looks_at=(
        "A lasting fall of the rate of at least 15 %, to within 5 % of the declared baseline, or at"
        " the time at which a full bucket is empty (within 20 %). Without declared credits: a fall"
        " between two flat levels on a network or virtual volume whose queue was full before it."
    ),
    why="The mean of burst and baseline is a rate at which the volume never runs.",
    advice=(
        "Report both levels and the time of the change. Wait until the credits are back before"
        " the next run. To predict when credits run out, declare limits.burst_iops and"
        " limits.burst_ios, or limits.burst_bandwidth and limits.burst_bytes."
    ),
)
def credits_ran_out(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each fall of the rate that burst credits explain."""
    for cause in explained(view, context, Cause.CREDITS):
        before = cause.evidence.get("before_iops")
        fell = f" from {format_count(before)}" if before is not None else ""
        yield observed(
            cause,
            f"The rate fell{fell} to {format_count(cause.level)} IOPS after"
            f" {format_duration(cause.from_s)}, consistent with exhausted burst credits",
            dict(cause.evidence) | {"level": cause.level},
        )


@rule(
    "I/Os of two kinds of latency",
    severity=Severity.NOTE,
    looks_at=(
        "Two neighbouring percentiles of a direction of which the upper one is at least 8 "
        "times the lower one (4 times if at least 10 % are of each kind), with at most 10 % "
        "of the I/Os between them and at least 1 % and 100 I/Os of each kind."
    ),
    why=(
        "Some I/Os took another path: a cache answered them, or a disk, a retry or a flush delayed"
        " them. The mean latency describes neither kind."
    ),
    advice="Report percentiles or the histogram of latency, and the share of each kind.",
)
def two_latencies(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each direction whose I/Os are fast or slow, and nothing between."""
    beside = view.run.imported.beside if view.run.imported else 0
    is_first = not beside or context.step(view)[0].id == view.run.id
    if len(view.run.sections) != 1 or not is_first:
        return
    cause = f" {beside + 1} processes at the same time wait for each other." if beside else ""
    for direction in directions(view):
        reported = percentiles_of(view, direction)
        kinds = [kind for kind in ("lat", "clat") if (reported.latency == kind).sum() > 2]
        if not kinds:
            continue
        of_kind = reported.latency == kinds[0]
        order = np.argsort(reported.percentile[of_kind])
        numbers, values = reported.percentile[of_kind][order], reported.value_s[of_kind][order]
        ios = total(view, "total_ios", direction=direction)
        low = _gap(numbers, values)
        if low is None or not ios * (100 - numbers[low + 1]) / 100 >= _MIN_KIND_IOS:
            continue
        fast_s, slow_s = (float(value) for value in values[low : low + 2])
        most, least = (100 - float(number) for number in numbers[low : low + 2])
        yield Observation(
            f"{least:.3g} to {most:.3g} % of the {direction}s took {format_latency(slow_s)} or"
            f" longer, the others {format_latency(fast_s)} or less.{cause}",
            {"fast_s": fast_s, "slow_s": slow_s, "least_percent": least, "most_percent": most},
            direction,
        )


def _gap(numbers: Floats, values: Floats) -> int | None:
    """Return the place of the percentile below a gap between two kinds; None without one."""
    for low in range(len(values) - 1):
        below, above = numbers[low], numbers[low + 1]
        rarer, is_sparse = min(below, 100 - above), above - below > _MAX_STEP_PERCENT
        if rarer < _MIN_KIND_PERCENT or is_sparse or not values[low] > 0:
            continue
        ratio = _MIN_MIDDLE_RATIO if rarer >= _MIN_MIDDLE_PERCENT else _MIN_LATENCY_RATIO
        middle_below, middle_above = np.interp([below / 2, (above + 100) / 2], numbers, values)
        are_kinds = (
            values[low] <= _MAX_KIND_SPREAD * middle_below
            and middle_above <= _MAX_KIND_SPREAD * values[low + 1]
        )
        if values[low + 1] >= ratio * values[low] and are_kinds:
            return low
    return None
