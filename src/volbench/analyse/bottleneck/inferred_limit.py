"""Limits that nobody declared: on IOPS or on bandwidth, and runs that went beyond them."""

from __future__ import annotations

from collections.abc import Sequence

from volbench.analyse.time.run_rates import Rates
from volbench.model.results.finding import Cause
from volbench.units import format_count, format_rate

SAME = 0.05  # Relative distance of two levels that count as equal: doubling the depth gains more
_LARGE_BYTES = 64 * 1024
_MIB = 2**20
_ROUND_IOPS = 100.0
_NEAR_ROUND = 0.005


def which_limit(rates: Rates, others: Sequence[Rates]) -> tuple[Cause, float]:
    """Return the kind of limit that a level is, and its value.

    Args:
        others: of more runs on the same volume; those with other block sizes tell the kinds apart.
    """
    iops, bandwidth = rates.last.level, rates.bandwidth_of(rates.last)
    size = bandwidth / iops if iops else 0.0
    for other in others:
        other_size = _block_size(other)
        if other_size and not 0.8 <= other_size / size <= 1.25:
            if abs(other.bandwidth_of(other.last) / bandwidth - 1) <= SAME:
                return Cause.BANDWIDTH_LIMIT, bandwidth
            if abs(other.last.level / iops - 1) <= SAME:
                return Cause.IOPS_LIMIT, iops
    is_bandwidth = _is_round(bandwidth / _MIB) or _is_round(bandwidth / 1e6)
    if size >= _LARGE_BYTES or (is_bandwidth and not _is_round(iops / _ROUND_IOPS)):
        return Cause.BANDWIDTH_LIMIT, bandwidth
    return Cause.IOPS_LIMIT, iops


def reached_more(cause: Cause, level: float, others: Sequence[tuple[str, Rates]]) -> str:
    """Return the run that went furthest beyond a limit of its volume; empty if none did."""
    reached = {
        job: rates.last.level if cause is Cause.IOPS_LIMIT else rates.bandwidth_of(rates.last)
        for job, rates in others
    }
    most = max(reached, key=reached.__getitem__, default="")
    if not most or reached[most] <= (1 + SAME) * level:
        return ""
    is_iops = cause is Cause.IOPS_LIMIT
    shown = f"{format_count(reached[most])} IOPS" if is_iops else format_rate(reached[most])
    return f"{most} reached {shown} on the same volume"


def _block_size(rates: Rates) -> float:
    return rates.bandwidth_of(rates.last) / rates.last.level if rates.last.level else 0.0


def _is_round(value: float) -> bool:
    """Return whether a level is near a multiple of 5, as the limits that are sold are."""
    nearest = 5 * round(value / 5)
    return nearest > 0 and abs(value / nearest - 1) <= _NEAR_ROUND
