"""Duration, bytes and cost of a campaign in one line."""

from __future__ import annotations

from volbench.plan.expansion.estimate import Estimate
from volbench.units import format_capacity, format_duration


def estimate_words(estimate: Estimate, *, bill: object = None) -> str:
    """Return time, bytes and money in one line.

    Args:
        estimate: of the plan.
        bill: what it costs at most, as text; None if prices are not known.
    """
    parts = [f"Time: {_time(estimate)}.", f"Bytes written: {_written(estimate)}."]
    if bill is not None:
        parts.append(f"Money: {'at most' if estimate.is_most else 'about'} {bill}.")
    return " ".join(parts)


def _time(estimate: Estimate) -> str:
    if estimate.total_s is None:
        return "limited by sizes alone"
    most, least_s = _spoken(estimate.total_s), estimate.least_s
    if not estimate.is_most:
        words = f"about {most}"
    elif least_s is not None and _spoken(least_s) != most:
        words = f"at least {_spoken(least_s)}, at most {most}"
    else:
        words = f"at most {most}"
    if estimate.least_runs < estimate.runs:
        words += f" ({estimate.least_runs} to {estimate.runs} runs)"
    if estimate.untimed:
        words += f", plus {_runs(estimate.untimed)} limited by size, not time"
    return words


def _spoken(seconds: float) -> str:
    """Return a time to the second, or to the minute from an hour on."""
    return format_duration(round(seconds / 60) * 60 if seconds >= 3600 else round(seconds))


def _written(estimate: Estimate) -> str:
    most, least = estimate.bytes_written, estimate.least_bytes
    if most is None and not estimate.bounded_bytes:
        return "limited by time alone"
    words = f"at most {format_capacity(estimate.bounded_bytes)}"
    if most is not None and least is not None and least < most:
        words += f", or {format_capacity(least)} if everything is steady at once"
    if estimate.times_capacity >= 1:
        words += f" ({estimate.times_capacity:.1f} times the capacity)"
    if estimate.unbounded:
        words += f", plus {_runs(estimate.unbounded)} limited by time, not size"
    return words


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"
