"""What a campaign will take: an Estimate enters, sentences for people leave."""

from __future__ import annotations

from volbench.plan.expansion.estimate import Estimate
from volbench.units import format_duration, format_size


def estimate_words(estimate: Estimate, *, bill: object = None) -> str:
    """Return time, bytes and money in one line.

    Args:
        estimate: of the plan.
        bill: what it costs at most, as text; None where nobody knows.
    """
    parts = [f"Time: {_time(estimate)}.", f"Bytes written: {_written(estimate)}."]
    if bill is not None:
        parts.append(f"Money: {'at most' if estimate.is_most else 'about'} {bill}.")
    return " ".join(parts)


def _time(estimate: Estimate) -> str:
    if estimate.total_s is None:
        return "only sizes bound it"
    most, least_s = _spoken(estimate.total_s), estimate.least_s
    if not estimate.is_most:
        words = f"about {most}"
    elif least_s is not None and _spoken(least_s) != most:
        words = f"at least {_spoken(least_s)}, at most {most}"
    else:
        words = f"at most {most}"
    if estimate.least_runs < estimate.runs:
        words += f" ({estimate.least_runs} to {estimate.runs} Runs)"
    if estimate.untimed:
        noun = "Run" if estimate.untimed == 1 else "Runs"
        words += f", and {estimate.untimed} {noun} more that only a size bounds"
    return words


def _spoken(seconds: float) -> str:
    """Return a time without what nobody can foresee of a long one."""
    return format_duration(round(seconds / 60) * 60 if seconds >= 3600 else round(seconds))


def _written(estimate: Estimate) -> str:
    most, least = estimate.bytes_written, estimate.least_bytes
    if most is None and not estimate.bounded_bytes:
        return "only time bounds it"
    words = f"at most {format_size(estimate.bounded_bytes)}"
    if most is not None and least is not None and least < most:
        words += f", or {format_size(least)} if all is steady at once"
    if estimate.times_capacity >= 1:
        words += f" ({estimate.times_capacity:.1f} times the capacity)"
    if estimate.unbounded:
        noun = "Run" if estimate.unbounded == 1 else "Runs"
        words += f", and {estimate.unbounded} {noun} more that only time bounds"
    return words
