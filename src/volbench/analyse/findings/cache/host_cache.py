"""host-cache: a cache between the page cache and the volume answered."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from volbench.analyse.bottleneck.cause import Cause, Explanation
from volbench.analyse.findings.rule import Rule, Window, reasons
from volbench.analyse.findings.wording import percent
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import (
    bytes_until_end,
    device_rows,
    rate_per_s,
    runtime_s,
    total,
)
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_count, format_duration, format_rate

_OVER = 1.05
_OVER_FOR_A_WHILE = 1.2
_WHILE_S = 5.0
_BACKING_SHARE = 0.5
_LEFT = 0.5


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for rates above what is declared, and for a backing disk that saw little."""
    if view.is_buffered:
        return
    for cause in context.explanations(view):
        if cause.cause is Cause.CACHE_FULL:
            yield RULE.finding(
                view,
                f"It was fast for {format_duration(cause.from_s)} and then slow, as a write-back"
                f" cache is that got full.{reasons(cause)}",
                cause.evidence,
                direction=cause.direction,
                window=Window(cause.from_s, cause.to_s),
                severity=None if _fell_far(cause) else Severity.NOTE,
            )
    limits = view.run.limits
    most_iops = max(limits.iops or 0.0, limits.burst_iops or 0.0)
    most_bytes = max(limits.bandwidth_bytes_per_s or 0.0, limits.burst_bandwidth_bytes_per_s or 0.0)
    if most_iops:
        yield from _above(view, "iops", most_iops)
    if most_bytes:
        yield from _above(view, "bw_bytes_per_s", most_bytes)
    for direction in ("read", "write"):
        yield from _backing(view, direction)


def _fell_far(explanation: Explanation) -> bool:
    """Return whether less than half was left: smaller falls have other causes as often."""
    return explanation.level < _LEFT * explanation.evidence.get("fast_iops", math.inf)


def _above(view: RunView, column: str, most: float) -> Iterator[Finding]:
    """Yield a finding when the whole run, or 5 s of it, was above the declared limit."""
    rate = total(view, column)
    if rate > _OVER * most:
        yield RULE.finding(
            view,
            f"{_words(column, rate)} is {percent(rate / most)} of the {_words(column, most)} that"
            " is declared.",
            {"rate": rate, "declared": most, "of": column},
        )
        return
    t_s, rates = rate_per_s(view, column)
    window = max(1, round(_WHILE_S / view.run.sample_s)) if view.run.sample_s else 1
    if len(rates) < window:
        return
    means = np.convolve(rates, np.ones(window) / window, mode="valid")
    above = means > _OVER_FOR_A_WHILE * most
    if above.any():
        first, last = int(np.argmax(above)), len(above) - 1 - int(np.argmax(above[::-1]))
        start, end = float(t_s[first]) - view.run.sample_s, float(t_s[last + window - 1])
        yield RULE.finding(
            view,
            f"Up to {_words(column, float(means.max()))} for {format_duration(window * 1.0)}, but"
            f" {_words(column, most)} is declared.",
            {"rate": float(means.max()), "declared": most, "of": column},
            window=Window(start, end),
        )


def _words(column: str, rate: float) -> str:
    return f"{format_count(rate)} IOPS" if column == "iops" else format_rate(rate)


def _backing(view: RunView, direction: str) -> Iterator[Finding]:
    """Yield a note when the backing disk moved less than half of what the volume did."""
    rows, column = device_rows(view), f"{direction}_bw_bytes_per_s"
    backing, runtime = device_rows(view, level="backing"), runtime_s(view)
    moved = total(view, "io_bytes", direction=direction)
    if rows.empty or backing.empty or math.isnan(runtime) or not moved > 0:
        return
    upper = bytes_until_end(rows, column, runtime=runtime)
    lower = bytes_until_end(backing, column, runtime=runtime)
    if upper >= _BACKING_SHARE * moved and lower < _BACKING_SHARE * upper:
        yield RULE.finding(
            view,
            f"Of what the volume {'wrote' if direction == 'write' else 'read'}, the backing disk"
            f" ({', '.join(sorted({str(name) for name in backing['device']}))}) moved"
            f" {percent(lower / upper)} while the run went on.",
            {"volume_bytes": upper, "backing_bytes": lower},
            direction=direction,
            severity=Severity.NOTE,
        )


RULE = Rule(
    id="host-cache",
    title="a cache of the host or the provider is suspected",
    severity=Severity.WARNING,
    looks_at=(
        "Runs with `direct=1`: IOPS and bandwidth above 105 % of what is declared for the volume"
        " (bursts included), or above 120 % for 5 s. Writes that were fast until a write-back cache"
        " was full, then stalled or crawled; a note while more than half of the rate is left. Less"
        " than half of the I/O arriving at the backing disk of a loop or dm device is a note. The"
        " thresholds are volbench's own."
    ),
    why=(
        "O_DIRECT bypasses the page cache of this host, not the caches below it: those of the"
        " hypervisor, the provider and the disk. They are fast until they are full or cold."
    ),
    advice=(
        "Turn caching of the disk off where the provider lets you, measure over a range larger"
        " than the cache, and long enough to fill it. If the declared limit is wrong, or a burst"
        " is not declared, correct limits in the profile."
    ),
    check=check,
)
