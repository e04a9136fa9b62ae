"""Rules on burst credits: credits-ran-out, credits-refilled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import Evidence, Observation, explained, observed, rule
from volbench.analyse.frames.run_view import RunView, directions, runtime_s
from volbench.analyse.time.run_rates import rates_of
from volbench.model.results.finding import Cause, Severity
from volbench.units import format_count, format_duration, format_rate

_LEAST_BURST = 1.2  # A burst is at least this much above the level at which the run before it ended
_NEAR = 0.15  # How far the level after a burst may be from that level, relative


@rule(
    "burst credits ran out",
    looks_at=(
        "A fall of the rate of at least 15 % that lasts, to within 5 % of the declared baseline, or"
        " at the time at which a full bucket would have been empty (20 % either way). Without"
        " declared credits a fall between two flat levels, on a network or virtual volume whose"
        " I/Os queued before it as well, unless another cause is about as likely."
    ),
    why="The mean of burst and baseline is a speed that the volume never has.",
    advice=(
        "Quote both levels and the time between. Wait until the credits are back before the next"
        " run, and declare limits.burst_iops and limits.burst_ios, or limits.burst_bandwidth and"
        " limits.burst_bytes, to have it predicted."
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


@dataclass(frozen=True)
class _Burst:
    """What idle time gave back."""

    rest_s: float  # how long the volume was idle
    length_s: float  # until the credits were used up again, or to the end of the run
    iops: float  # meanwhile
    level: float  # IOPS without credits
    io_bytes: float  # mean size of an I/O
    has_ended: bool  # whether the credits were used up within the run

    @property
    def refill(self) -> float:
        """I/Os that came back in a second, in the rest and while they were spent.

        A bucket that is empty at both ends got all that was taken out of it in between.
        """
        return self.iops * self.length_s / (self.rest_s + self.length_s)


@rule(
    "burst credits came back",
    severity=Severity.NOTE,
    looks_at=(
        "A run that waited (`pause_before`) and asks the same as the run before it on the volume:"
        " it began at least 20 % above the level at which that one ended, and fell back to within"
        " 15 % of it, or stayed above to its end. What was read or written in the burst, over rest"
        " and burst together, is the rate at which credits came back: the bucket was empty before"
        " the one and after the other."
    ),
    why=(
        "It says how often a volume can burst: credits for an hour that take a day to refill"
        " suit a nightly job, not a peak at noon."
    ),
    advice=(
        "Compare it with the declared baseline, at which most providers refill. Where the burst"
        " lasted to the end of the run, or the bucket may have been full again, it is a lower"
        " bound: make the run longer or the rest shorter."
    ),
)
def credits_refilled(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield that a run after idle time began faster than the one before it ended."""
    moved = directions(view)
    if not view.run.pause_before_s or len(moved) != 1:
        return
    before = context.earlier(view).previous
    if before is None or _shapes(before) != _shapes(view):
        return
    burst = _burst(before, view, moved[0])
    if burst is not None:
        yield Observation(_words(burst), _evidence(burst), moved[0], (0.0, burst.length_s))


def _shapes(view: RunView) -> list[tuple[str, int, int]]:
    """Return the workload of a run, without its length."""
    return [
        (workload.pattern, workload.block_bytes, workload.depth * workload.numjobs)
        for workload in view.workloads
    ]


def _burst(before: RunView, view: RunView, direction: str) -> _Burst | None:
    """Return the burst at the start of a run; None where there was none."""
    drained, rates = rates_of(before, direction), rates_of(view, direction)
    if drained is None or rates is None:
        return None
    first, level = rates.plateaus[0], drained.last.level
    if level <= 0 or first.level < _LEAST_BURST * level:
        return None
    has_ended = len(rates.plateaus) > 1
    if has_ended and abs(rates.plateaus[1].level / level - 1) > _NEAR:
        return None
    return _Burst(
        rest_s=max(view.run.pause_before_s, _between_s(before, view)),
        length_s=first.to_s,
        iops=first.level,
        level=level,
        io_bytes=rates.io_bytes,
        has_ended=has_ended,
    )


def _between_s(before: RunView, view: RunView) -> float:
    """Return the time from the end of one run's I/O to the next start; 0 if unknown."""
    starts = [each.results[0]["started_utc"] for each in (before, view)]
    began = [datetime.fromisoformat(utc) for utc in starts if isinstance(utc, str)]
    if len(began) < len(starts):
        return 0.0
    return (began[1] - began[0]).total_seconds() - runtime_s(before)


def _words(burst: _Burst) -> str:
    refill = f"{format_count(burst.refill)} I/Os ({format_rate(burst.refill * burst.io_bytes)})"
    rest, length = format_duration(burst.rest_s), format_duration(burst.length_s)
    fast, slow = format_count(burst.iops), format_count(burst.level)
    if burst.has_ended:
        spent, bound = f"for {length}, then {slow} again", ""
    else:
        spent, bound = f"instead of {slow} for {length}, to the end of the run", " or more"
    return (
        f"After {rest} of idle time the volume delivered {fast} IOPS {spent}: credits refill at"
        f" {refill} a second{bound}."
    )


def _evidence(burst: _Burst) -> Evidence:
    return {
        "rest_s": burst.rest_s,
        "burst_s": burst.length_s,
        "burst_iops": burst.iops,
        "level_iops": burst.level,
        "refill_ios_per_s": burst.refill,
        "refill_bytes_per_s": burst.refill * burst.io_bytes,
        "refill_is": "measured" if burst.has_ended else "at least",
    }
