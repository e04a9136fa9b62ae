"""Audit of volumes: what they deliver of the limits that their provider promises.

A limit is reached with enough I/Os in flight. Therefore only direct runs without a rate of their
own count, and a volume falls short only if a deeper queue gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd

from volbench.analyse.bottleneck.lasting_falls import MAX_FLAT_SPREAD
from volbench.analyse.bottleneck.sustained_level import MAX_SAME_DISTANCE
from volbench.analyse.compare.delivered_rate import (
    Estimate,
    mean_rate,
    needed_for_share,
    share_reached,
)
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.analyse.frames.disturbed import FULL_DEMAND_PERCENT, cpu_demand, grey_rows
from volbench.analyse.frames.job_frames import measured, with_latencies
from volbench.analyse.frames.kernel_counters import EXCEEDED
from volbench.analyse.frames.resample import Floats, interval_of, median
from volbench.analyse.frames.run_view import within_run
from volbench.analyse.frames.workload_spec import workloads_of
from volbench.analyse.time.change_points import find_changes
from volbench.errors import InputError
from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.finding import WORDS, Cause, Severity
from volbench.units import (
    format_count,
    format_duration,
    format_percent,
    format_rate,
    format_size,
    percent,
)

# Shortfall up to which a promise is kept: what the seconds of a throttle lose at their edges.
# Noticed by: benchmarks/audit.py
MARGIN = 0.01
# Share of the promised rate from which a second counts as delivered: "within 10 percent of its
# provisioned IOPS performance 99.9 percent of the time" (AWS, Provisioned IOPS SSD volumes).
# Noticed by: test_promised_limits.py::test_seconds_within_ten_percent_are_delivered
DELIVERED_SECOND = 0.9
# Rate over the promised one from which credits or a cache answer, as for the finding host-cache.
# Noticed by: test_promised_limits.py::test_a_burst_does_not_show_the_sustained_rate
_MAX_ABOVE = 1.05
# Block size from which bandwidth is measured, where no promise says which limit applies.
# Noticed by: test_promised_limits.py::test_rates_are_reported_without_a_promise
_MIN_LARGE_BYTES = 64 * 1024
# Share of the seconds that the host disturbed from which the rest is not typical.
# Noticed by: test_promised_limits.py::test_what_the_host_took_decides_nothing
_MAX_DISTURBED = 0.5
_OTHER_LOAD, _EMPTY = "other-load", "never-written"
_MORE = "more than promised, which a cache or burst credits may add to"
_ONE_DEPTH = "one queue depth: a deeper queue may gain more"
# Findings with which a rate is not that of the volume as it is sold, and what would decide; with
# none the page of the finding says it
_NOT_THE_VOLUME = {
    "host-cache": "above the limit: turn off host caching, measure more than the cache holds (a"
    " larger size), or declare the higher limit",
    "cold-blocks": "cold blocks: warm up the volume first",
    _EMPTY: "never-written, its blocks hold only zeros: run volbench warmup first",
    **dict.fromkeys(("page-cache", "smaller-than-memory", "memory-volume", "compressible"), ""),
    **dict.fromkeys(("cpu-bound", "cpu-throttled", "shared-limit"), ""),
    _OTHER_LOAD: "other load on the device or the machine: audit without it",
}
# What only adds to a rate leaves a shortfall, and what only takes away leaves a delivery
_ONLY_FASTER = frozenset(
    {"host-cache", _EMPTY, "page-cache", "smaller-than-memory", "memory-volume"} | {"compressible"}
)
_ONLY_SLOWER = frozenset({"cold-blocks", "cpu-bound", "cpu-throttled", "shared-limit", _OTHER_LOAD})
# Causes of a level that more I/Os in flight would not change
_LIMITS = frozenset({Cause.IOPS_LIMIT, Cause.BANDWIDTH_LIMIT})
_KINDS = ("IOPS", "bandwidth")
# Column of an EBS device to the limit it is about
_REPORTED = dict(
    zip(
        EXCEEDED,
        (f"limit of the {where} in {what}" for where in ("volume", "instance") for what in _KINDS),
        strict=True,
    )
)
# Time above a limit from which it is the bottleneck: requests are delayed most of the time.
# Noticed by: test_promised_limits.py::test_what_the_device_reports_comes_first
_MIN_REPORTED_PERCENT = 50.0
# Longer than a week nobody measures to decide.
# Noticed by: test_promised_limits.py::test_a_rate_at_the_edge_is_not_worth_waiting_for
_MAX_MORE_S = 7 * 86400.0
Frames = Callable[[str], pd.DataFrame]
_VOLUME = ["campaign", "host", "volume", "direction"]


class Outcome(StrEnum):
    """Outcome of an audit, the worst first."""

    FALLS_SHORT = "falls short"
    UNDECIDED = "undecided"
    DELIVERS = "delivers"
    NOT_PROMISED = "no promise"
    OUT_OF_REACH = "out of reach"


@dataclass(frozen=True)
class Promise:
    """One of the limits of a volume; NaN for what is not declared."""

    rate: float  # I/Os or bytes per second, sustained
    burst: float  # the same, while credits last
    credits: float  # I/Os or bytes in a full bucket
    time_share: float  # share of the time for which it is promised
    name: str  # volume type, or empty
    source: str = ""  # what named the type, and when it was compared with the provider's page


@dataclass(frozen=True)
class Delivery:
    """What a volume delivers of one limit."""

    campaign: str
    host: str
    volume: str
    direction: str  # ``read`` or ``write``
    is_iops: bool  # whether the limit is on IOPS, else on bandwidth
    promise: Promise
    rate: Interval  # mean rate with its 95 % interval
    share: Interval  # of the seconds with 90 % of the promised rate; NaN without a promise
    seconds: float  # measured and used
    effective: float  # independent ones among them
    depths: tuple[int, ...]  # I/Os in flight that were tried, ascending
    # of the deepest over the next one, as a share; NaN for one depth, or where the host disturbed
    # one of the two most of the time
    gain: float
    causes: tuple[str, ...]  # of the level and of changes, in words
    outcome: Outcome
    reason: str  # of an undecided outcome; may be empty
    time_outcome: Outcome  # for the share of time
    more_s: float  # seconds more at this limit that would decide its share of time; NaN for none

    @property
    def shortfall(self) -> Interval:
        """Missing share of the promised rate, with its interval; negative above the promise."""
        low, middle, high = (
            1 - end / self.promise.rate
            for end in (self.rate.high, self.rate.estimate, self.rate.low)
        )
        return Interval(low, middle, high)

    @property
    def is_wide(self) -> bool:
        """Whether the interval of the rate is wider than the rate, so that it says nothing."""
        return self.rate.high > 2 * self.rate.estimate

    @property
    def limit(self) -> str:
        """Name of the limit, such as ``read IOPS``."""
        return f"{self.direction} {'IOPS' if self.is_iops else 'bandwidth'}"

    def words(self, rate: float) -> str:
        """Return a rate with its unit."""
        is_known = self.is_iops and not math.isnan(rate)
        return f"{format_count(rate)} IOPS" if is_known else format_rate(rate)


@dataclass(frozen=True)
class _Measure:
    """Seconds of one run."""

    run: str
    depth: int  # I/Os in flight
    block_bytes: float
    rates: Floats  # rate of each interval that the host did not disturb
    interval_s: float
    disturbed: float  # share of intervals that the host disturbed


def deliveries(frame: Frames, plans: Mapping[str, Run], profile: str = "") -> list[Delivery]:
    """Return what each volume delivers of each of its limits, the worst first."""
    rows = measured(frame("summary"))
    rows = rows[[_measures_a_limit(plans.get(run), profile) for run in rows["run"]]]
    if rows.empty:
        raise InputError(
            "no finished run measures a limit of a volume",
            hint="use direct runs without rate options and with two or more I/Os in flight,"
            " such as those of volbench audit --on",
        )
    audited = _Audit(rows, frame, plans)
    found = [
        delivery
        for _, of_volume in rows.groupby(_VOLUME, sort=False)
        for delivery in audited.of_volume(of_volume)
    ]
    if not any(delivery.seconds for delivery in found):
        raise InputError(
            "no run that measures a limit has a log over time, or more of it than the second in"
            " which the queue fills",
            hint="measure 10 s or longer, without sample: 0; import results with fio's logs",
        )
    return sorted(found, key=_badness)


def latencies(frame: Frames) -> pd.DataFrame:
    """Return the rows of measured runs with one I/O in flight, with their latencies."""
    rows = measured(frame("summary"))
    alone = rows["iodepth"].fillna(1) * rows["numjobs"].fillna(1) == 1
    return with_latencies(rows[alone], ("p50", "p99"))[0]


def _badness(delivery: Delivery) -> tuple[int, float]:
    short = delivery.shortfall.estimate
    return [*Outcome].index(delivery.outcome), math.inf if math.isnan(short) else -short


def _measures_a_limit(run: Run | None, profile: str) -> bool:
    if run is None or run.client or profile not in {"", run.profile}:
        return False
    workloads = workloads_of(run)
    one_direction = len({(work.reads, work.writes) for work in workloads}) == 1
    return (
        one_direction
        and not any(work.is_paced or work.is_buffered or work.waits_for_sync for work in workloads)
        and not any(work.reads and work.writes for work in workloads)
        and _depth_of(run) > 1
    )


def _depth_of(run: Run) -> int:
    return sum(work.depth * work.numjobs for work in workloads_of(run))


class _Audit:
    """Frames of audited runs."""

    def __init__(self, rows: pd.DataFrame, frame: Frames, plans: Mapping[str, Run]) -> None:
        runs = set(rows["run"])
        series, device = (each[each["run"].isin(runs)] for each in map(frame, ("series", "device")))
        series = series.reset_index(drop=True)
        series["grey"] = grey_rows(series, device, rows)
        self._exceeded = device.groupby("run")[[*_REPORTED]].mean()
        samples = dict(iter(device.groupby("run")))
        self._cpu_percent = {
            str(run): _cpu_percent(plans[str(run)], samples.get(run, device.iloc[:0]), results)
            for run, results in rows.groupby("run")
        }
        self._series = dict(iter(series.groupby(["run", "direction"])))
        verdicts = frame("verdicts").drop_duplicates(["run", "direction"])
        self._causes = verdicts.set_index(["run", "direction"])["causes"].dropna().to_dict()
        findings = frame("findings")
        is_bad = findings["rule"].isin(list(_NOT_THE_VOLUME)) & (
            findings["severity"] != Severity.NOTE.value
        )
        # That a rate is above the limit is no reason against a delivery.
        is_above = findings["evidence"].astype(str).str.contains('"declared"')
        is_bad &= ~(is_above & (findings["rule"] == "host-cache"))
        bad = findings[is_bad | (findings["severity"] == Severity.INVALID.value)]
        self._findings = bad.groupby("run")["rule"].agg(list).to_dict()
        self._plans = plans

    def of_volume(self, rows: pd.DataFrame) -> Iterator[Delivery]:
        """Yield what a volume delivers of its IOPS and of its bandwidth."""
        runs = rows.sort_values("started_utc", kind="stable").drop_duplicates("run")
        first = runs.iloc[0]
        for is_iops in (True, False):
            own = [
                (str(run), float(block))
                for run, block in zip(runs["run"], runs["block_bytes"], strict=True)
                if _limits_iops(self._plans[run].limits, float(block)) is is_iops
            ]
            measures = [
                measure
                for run, block in own
                if (measure := self._measure(run, first["direction"], block, is_iops=is_iops))
            ]
            # An I/O of the other size may count as several, or not reach the limit.
            edge = min if is_iops else max
            block = edge((measure.block_bytes for measure in measures), default=0.0)
            measures = [each for each in measures if each.block_bytes == block]
            if measures:
                promise = _promise_of(self._plans[measures[0].run].limits, is_iops=is_iops)
                yield self._delivery(first, measures, promise, is_iops=is_iops)
            elif reason := self._unmeasured(runs, own, is_iops=is_iops):
                promise = _promise_of(self._plans[first["run"]].limits, is_iops=is_iops)
                unknown = Interval(math.nan, math.nan, math.nan)
                depths = sorted({_depth_of(self._plans[run]) for run, _ in own})
                yield Delivery(
                    **_place_columns(first),
                    is_iops=is_iops,
                    promise=promise,
                    rate=unknown,
                    share=unknown,
                    seconds=0.0,
                    effective=0.0,
                    depths=tuple(depths),
                    gain=math.nan,
                    causes=(),
                    outcome=Outcome.UNDECIDED if own or is_iops else Outcome.OUT_OF_REACH,
                    reason=reason,
                    time_outcome=Outcome.UNDECIDED,
                    more_s=math.nan,
                )

    def _unmeasured(
        self, runs: pd.DataFrame, own: Sequence[tuple[str, float]], *, is_iops: bool
    ) -> str:
        """Return why no run shows a declared limit; empty if none is meant to, or none is declared.

        Runs of `own`, with the size of their blocks, meet this limit first.
        """
        if math.isnan(_promise_of(self._plans[runs["run"].iloc[0]].limits, is_iops=is_iops).rate):
            return ""
        if own:
            rules = [rule for run, _ in own for rule in self._findings.get(run, ())]
            return _finding_words(rules[0]) if rules else "its runs are too short: measure longer"
        limits = self._plans[runs["run"].iloc[0]].limits
        least, most = float(runs["block_bytes"].min()), float(runs["block_bytes"].max())
        if not is_iops and most >= _MIN_LARGE_BYTES:
            first = f"{format_count(limits.iops or 0)} IOPS in blocks of {format_size(most)}"
            return f"{first} are {format_rate((limits.iops or 0) * most)} at most"
        if is_iops and least < _MIN_LARGE_BYTES:
            return (
                f"blocks of {format_size(least)} meet the bandwidth limit first: use smaller ones"
            )
        return ""

    def _measure(
        self, run: str, direction: str, block_bytes: float, *, is_iops: bool
    ) -> _Measure | None:
        """Return the seconds of a run without its first, in which the queue fills."""
        rows = self._series.get((run, direction))
        if rows is None:
            return None
        column = "iops" if is_iops else "bw_bytes_per_s"
        by_time = rows.groupby("t_s").agg(rate=(column, "sum"), grey=("grey", "any")).iloc[1:]
        rate = by_time["rate"].to_numpy(dtype=float)
        grey = by_time["grey"].to_numpy(dtype=bool) & (rate > 0)
        if not len(grey):
            return None
        disturbed = float(grey.mean())
        if disturbed > _MAX_DISTURBED:  # too few are left: all count, and decide nothing
            grey[:] = False
        interval_s = interval_of(by_time.index.to_numpy(dtype=float))
        depth = _depth_of(self._plans[run])
        return _Measure(run, depth, block_bytes, rate[~grey], interval_s, disturbed)

    def _delivery(
        self, row: pd.Series, measures: Sequence[_Measure], promise: Promise, *, is_iops: bool
    ) -> Delivery:
        depths = tuple(sorted({measure.depth for measure in measures}))
        measures, is_burst = _rates_after_burst(measures, promise)
        deepest, gain = _saturating_runs(measures)
        mean = mean_rate([measure.rates for measure in deepest])
        values = np.concatenate([measure.rates for measure in deepest])
        share = share_reached(values, DELIVERED_SECOND * promise.rate)
        seconds = sum(len(measure.rates) * measure.interval_s for measure in deepest)
        causes = self._common_causes(deepest, str(row["direction"]))
        has_other_load = any(_OTHER_LOAD in self._findings.get(run.run, ()) for run in deepest)
        outcome, reason = _outcome(mean, promise)
        time_outcome, more_s = _time_outcome(share, promise, seconds)
        if time_outcome is Outcome.FALLS_SHORT:
            outcome, reason = Outcome.FALLS_SHORT, ""
        if math.isnan(promise.rate):
            share = Estimate(Interval(math.nan, math.nan, math.nan), share.effective)
        found = Delivery(
            **_place_columns(row),
            is_iops=is_iops,
            promise=promise,
            rate=mean.interval,
            share=share.interval,
            seconds=seconds,
            effective=mean.effective,
            depths=depths,
            gain=gain,
            causes=(
                *self._exceeded_limits(deepest),
                *["other load on the device or the machine"] * has_other_load,
                *(WORDS[cause] for cause in causes if cause is not Cause.UNKNOWN),
            ),
            outcome=outcome,
            reason=reason,
            time_outcome=time_outcome,
            more_s=more_s,
        )
        if reason_against := self._reservation(deepest, causes, found):
            outcome, reason = Outcome.UNDECIDED, reason_against
        if is_burst:
            outcome, reason = Outcome.UNDECIDED, _burst_words(mean.interval.estimate, promise)
        elif outcome is Outcome.UNDECIDED and not reason:
            reason = _more_words(_more_for_rate(mean, promise, seconds))
        elif outcome is Outcome.DELIVERS and mean.interval.low > _MAX_ABOVE * promise.rate:
            reason = _MORE
        if outcome is not Outcome.DELIVERS:
            time_outcome = outcome
        return replace(found, outcome=outcome, reason=reason, time_outcome=time_outcome)

    def _exceeded_limits(self, measures: Sequence[_Measure]) -> Iterator[str]:
        shares = self._exceeded.reindex([measure.run for measure in measures]).mean()
        for column, words in _REPORTED.items():
            if shares[column] > _MIN_REPORTED_PERCENT:
                yield f"{words}, reported by the device for {shares[column]:.0f} % of the time"

    def _common_causes(self, measures: Sequence[_Measure], direction: str) -> list[Cause]:
        texts = [self._causes.get((measure.run, direction), "") for measure in measures]
        names = [name for text in texts for name in str(text).split(", ") if name]
        counts = pd.Series(names, dtype=object).value_counts(sort=False)
        return [Cause(name) for name in counts.sort_values(ascending=False, kind="stable").index]

    def _reservation(
        self, measures: Sequence[_Measure], causes: Sequence[Cause], found: Delivery
    ) -> str:
        """Return why the rate is not what the volume could deliver; empty for no reason."""
        if math.isnan(found.promise.rate):
            return ""
        gain = found.gain
        is_delivered = found.outcome is Outcome.DELIVERS
        is_short = found.outcome is Outcome.FALLS_SHORT
        is_below = found.rate.estimate < (1 - MARGIN) * found.promise.rate
        harmless = _ONLY_SLOWER if is_delivered else _ONLY_FASTER if is_below else frozenset()
        found_rules = [each for run in measures for each in self._findings.get(run.run, ())]
        rules = [rule for rule in found_rules if rule not in harmless]
        disturbed = float(np.mean([measure.disturbed for measure in measures]))
        used, busy = np.mean([self._cpu_percent[measure.run] for measure in measures], axis=0)
        rates = np.concatenate([measure.rates for measure in measures])
        is_moving = bool(rates.std() > MAX_FLAT_SPREAD * rates.mean())
        is_unsure = math.isnan(gain) and not _LIMITS & set(causes)
        reasons = (
            (rules, _finding_words(*rules[:1])),
            (
                disturbed > _MAX_DISTURBED and not is_delivered,
                f"the host disturbed {percent(disturbed)} % of the time: audit while it is idle",
            ),
            (is_short and Cause.CPU in causes, "the CPU of the host was the limit"),
            (
                is_short and used >= FULL_DEMAND_PERCENT,
                f"fio needed {min(used, 100):.0f} % of a CPU, the limit perhaps: use a faster host",
            ),
            (  # The kernel's work for a volume, such as that of a loop device, is not fio's
                is_short and busy >= FULL_DEMAND_PERCENT and is_moving,
                f"the CPUs of the host were {busy:.0f} % busy: audit while it is idle",
            ),
            (
                is_short and gain > MAX_SAME_DISTANCE,
                f"the deepest queue gained {format_percent(gain)}: a deeper one may gain more",
            ),
            (is_short and is_unsure and len(found.depths) == 1, _ONE_DEPTH),
            (is_short and is_unsure, "the host disturbed the deepest queues: they may gain more"),
            (is_short and found.is_wide, "the interval is wider than the rate: measure longer"),
        )
        reason = next((reason for holds, reason in reasons if holds), "")
        return _finding_words(_EMPTY) if reason and _EMPTY in found_rules and not rules else reason


def _place_columns(row: pd.Series) -> dict[str, str]:
    return {name: str(row[name]) for name in _VOLUME}


def _cpu_percent(run: Run, device: pd.DataFrame, summary: pd.DataFrame) -> tuple[float, float]:
    if any(workload.polls for workload in workloads_of(run)):
        return math.nan, math.nan  # busy by design
    inside = within_run(device, runtime=float(summary["runtime_s"].max()))
    used = [*(summary["cpu_usr"] + summary["cpu_sys"]), cpu_demand(device, summary)]
    return float(pd.Series(used).max()), float(inside["cpu_busy_percent"].mean())


def _finding_words(rule: str = "") -> str:
    return _NOT_THE_VOLUME.get(rule) or f"finding {rule}: see volbench check"


def _limits_iops(limits: Limits, block_bytes: float) -> bool:
    if limits.iops and limits.bandwidth_bytes_per_s:
        return limits.iops * block_bytes <= limits.bandwidth_bytes_per_s
    return block_bytes < _MIN_LARGE_BYTES


def _promise_of(limits: Limits, *, is_iops: bool) -> Promise:
    values = (
        (limits.iops, limits.burst_iops, limits.burst_ios)
        if is_iops
        else (limits.bandwidth_bytes_per_s, limits.burst_bandwidth_bytes_per_s, limits.burst_bytes)
    )
    rate, burst, full = (math.nan if value is None else float(value) for value in values)
    share, name = limits.time_percent, limits.name
    if ("iops" if is_iops else "bandwidth_bytes_per_s") in limits.machine_limits:
        name = f"{name}, limited by the machine {limits.machine}".removeprefix(", ")
    checked = f"catalogue checked on {limits.checked}" if limits.checked else ""
    source = ", ".join(filter(None, (limits.origin or "as declared", checked)))
    time_share = math.nan if share is None else share / 100
    return Promise(rate, burst, full, time_share, name, source if rate > 0 else "")


def _rates_after_burst(
    measures: Sequence[_Measure], promise: Promise
) -> tuple[Sequence[_Measure], bool]:
    """Return runs without the seconds before credits ran out; whether credits lasted to the end."""
    if math.isnan(promise.burst):
        return measures, False
    values = np.concatenate([measure.rates for measure in measures])
    changes = find_changes(np.arange(1.0, len(values) + 1), values)
    ends = [change.t_s for change in changes if change.before > _MAX_ABOVE * promise.rate]
    last = values[int(max((change.t_s for change in changes), default=0.0)) :]
    if float(np.median(last)) > _MAX_ABOVE * promise.rate:
        return measures, True
    kept_from, parts, begin = int(max(ends, default=0.0)), [], 0
    for measure in measures:
        kept = measure.rates[max(0, kept_from - begin) :]
        if len(kept):
            parts.append(replace(measure, rates=kept))
        begin += len(measure.rates)
    return parts, False


def _saturating_runs(measures: Sequence[_Measure]) -> tuple[Sequence[_Measure], float]:
    """Return the runs whose queue is deep enough, and what the deepest queue gained.

    The gain is relative to the next deepest queue; NaN for one depth, or a disturbed one.
    """
    by_depth: dict[int, list[_Measure]] = {}
    for measure in sorted(measures, key=lambda each: each.depth):
        by_depth.setdefault(measure.depth, []).append(measure)
    # Medians: a stall at one of the depths is no gain of the other.
    levels = {
        depth: median(np.concatenate([each.rates for each in _undisturbed_runs(runs)]))
        for depth, runs in by_depth.items()
    }
    enough = (1 - MAX_SAME_DISTANCE) * max(levels.values())
    deepest = [measure for measure in measures if levels[measure.depth] >= enough]
    *_, before, last = [
        math.nan,
        *(math.nan if _is_disturbed(by_depth[depth]) else levels[depth] for depth in levels),
    ]
    return _undisturbed_runs(deepest), last / before - 1 if before else math.nan


def _is_disturbed(measures: Sequence[_Measure]) -> bool:
    return float(np.mean([measure.disturbed for measure in measures])) > _MAX_DISTURBED


def _undisturbed_runs(measures: Sequence[_Measure]) -> Sequence[_Measure]:
    if _is_disturbed(measures):
        return measures
    return [measure for measure in measures if not _is_disturbed([measure])]


def _outcome(mean: Estimate, promise: Promise) -> tuple[Outcome, str]:
    if math.isnan(promise.rate):
        return Outcome.NOT_PROMISED, ""
    interval, edge = mean.interval, (1 - MARGIN) * promise.rate
    if math.isnan(interval.low):
        return Outcome.UNDECIDED, "too few undisturbed seconds for an interval: measure longer"
    if interval.low >= edge:
        return Outcome.DELIVERS, ""
    return (Outcome.FALLS_SHORT if interval.high < edge else Outcome.UNDECIDED), ""


def _more_for_rate(mean: Estimate, promise: Promise, seconds: float) -> float:
    """Return how much longer it takes until the interval is narrow enough to decide."""
    off = abs(mean.interval.estimate - (1 - MARGIN) * promise.rate)
    reach = mean.interval.high - mean.interval.estimate
    return seconds * ((reach / off) ** 2 - 1) if off else math.inf


def _more_words(more_s: float) -> str:
    if more_s > _MAX_MORE_S:
        return "too near the limit of what counts as delivered to decide"
    return f"about {format_duration(more_s)} more would decide"


def _burst_words(rate: float, promise: Promise) -> str:
    said = "burst credits: the sustained rate is seen once they are spent"
    if math.isnan(promise.credits):
        return said
    full_s = promise.credits / (rate - promise.rate)
    return f"{said}, from full buckets after {format_duration(full_s)}"


def _time_outcome(share: Estimate, promise: Promise, seconds: float) -> tuple[Outcome, float]:
    promised = promise.time_share
    if math.isnan(promised) or math.isnan(promise.rate):
        return Outcome.NOT_PROMISED, math.nan
    if share.interval.high < promised:
        return Outcome.FALLS_SHORT, math.nan
    if share.interval.low >= promised:
        return Outcome.DELIVERS, math.nan
    missing = needed_for_share(promised) / share.effective - 1
    return Outcome.UNDECIDED, seconds * missing if missing > 0 else math.nan
