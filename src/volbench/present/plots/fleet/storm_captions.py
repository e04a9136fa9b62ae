"""Sentences about a boot storm: its headline over a column, and its description."""

from __future__ import annotations

import math
from statistics import median

import numpy as np

from volbench.analyse.time.boot_storm import INTERVAL_S, Storm
from volbench.present.formatting import printable
from volbench.units import format_count, format_duration

SIMULTANEOUS_S = 1.0
"""Starts that lie closer to each other count as one."""


def headline(storm: Storm) -> str:
    """Return the numbers of a storm in three short lines."""
    return "\n".join(
        [
            f"{_clients(storm)}, {_pace(storm)}; max {storm.most_at_once} at once",
            f"peak {format_count(storm.peak_iops)} IOPS {_when(storm)}{_later(storm)}",
            f"a client finishes booting after {_busy(storm)}",
        ]
    )


def sentence(storm: Storm) -> str:
    """Return the main numbers of a storm, for people who can't see the chart."""
    both = ""
    if storm.overlap_s is not None:
        lasted = format_duration(storm.overlap_s[1] - storm.overlap_s[0])
        both = f", all of them at once for {lasted}"
    return (
        f"Storm of {printable(storm.campaign)}: {_clients(storm)}, {_pace(storm)}{both}; the peak "
        f"of {format_count(storm.peak_iops)} IOPS came {_when(storm)}; a client finished booting "
        f"after {_busy(storm)}."
    )


def _clients(storm: Storm) -> str:
    if storm.untold:
        return f"{len(storm.clients)} of {len(storm.clients) + len(storm.untold)} clients"
    return f"{len(storm.clients)} client{'s' * (len(storm.clients) != 1)}"


def _pace(storm: Storm) -> str:
    """Return how the clients started, from their first I/Os."""
    starts = [client.start_s for client in storm.clients]
    if starts[-1] - starts[0] < SIMULTANEOUS_S:
        return "started at once"
    return f"started {format_duration(float(np.median(np.diff(starts))))} apart"


def _when(storm: Storm) -> str:
    """Return when the peak came, relative to the last start."""
    gap_s = storm.peak_s - storm.last_start_s
    if abs(gap_s) < INTERVAL_S / 2:
        return "at the last start"
    after = "after" if gap_s >= 0 else "before"
    # A mean of some seconds is not known to the tenth of one.
    return f"{format_duration(round(abs(gap_s)))} {after} the last start"


def _later(storm: Storm) -> str:
    share = storm.later_share
    return "" if math.isnan(share) else f", {100 * share:.0f} % of all I/Os after that"


def _busy(storm: Storm) -> str:
    times = [client.busy_s for client in storm.clients]
    low, high = min(times), max(times)
    if format_duration(low) == format_duration(high):
        return format_duration(high)
    middle = format_duration(float(median(times)))
    return f"{middle} ({format_duration(low)} to {format_duration(high)})"
