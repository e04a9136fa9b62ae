"""What a storm is told in: a Storm enters, lines and sentences leave."""

from __future__ import annotations

import math
from statistics import median

import numpy as np

from volbench.analyse.time.boot_storm import INTERVAL_S, Storm
from volbench.present.formatting import printable
from volbench.units import format_count, format_duration

TOGETHER_S = 1.0
"""Starts that lie closer together are told as one."""


def headline(storm: Storm) -> str:
    """Return the numbers of a storm in three short lines."""
    return "\n".join(
        [
            f"{_clients(storm)}, {_pace(storm)}; at most {storm.most_at_once} at once",
            f"peak {format_count(storm.peak_iops)} IOPS {_when(storm)}{_later(storm)}",
            f"a client settles after {_busy(storm)}",
        ]
    )


def sentence(storm: Storm) -> str:
    """Return the main numbers of a storm, for people who can't see the chart."""
    both = ""
    if storm.overlap_s is not None:
        both = (
            f", all of them at once for {format_duration(storm.overlap_s[1] - storm.overlap_s[0])}"
        )
    return (
        f"Storm of {printable(storm.campaign)}: {_clients(storm)}, {_pace(storm)}{both}; the peak "
        f"of {format_count(storm.peak_iops)} IOPS came {_when(storm)}; a client settled "
        f"after {_busy(storm)}."
    )


def short_time(seconds: float) -> str:
    """Return a time short enough for a tick: ``5m`` for ``5m 00s``."""
    return format_duration(seconds).replace("m 00s", "m").replace("h 00m", "h")


def _clients(storm: Storm) -> str:
    told = f"{len(storm.clients)} client{'s' * (len(storm.clients) != 1)}"
    if storm.untold:
        told = f"{len(storm.clients)} of {len(storm.clients) + len(storm.untold)} clients"
    return told


def _pace(storm: Storm) -> str:
    """Return how the clients started, from their first I/Os."""
    starts = [client.start_s for client in storm.clients]
    if starts[-1] - starts[0] < TOGETHER_S:
        return "together"
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
