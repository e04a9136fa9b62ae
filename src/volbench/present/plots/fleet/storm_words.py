"""Main numbers of a boot storm in words."""

from __future__ import annotations

import math
from statistics import median
from textwrap import fill

import numpy as np

from volbench.analyse.time.boot_storm import INTERVAL_S, Storm
from volbench.present.formatting import printable
from volbench.units import format_count, format_duration

_SIMULTANEOUS_S = 1.0  # Starts that lie closer to each other count as one


def headline(storm: Storm, *, letters: int) -> str:
    """Return the numbers of a storm in lines of at most so many letters."""
    sentences = [
        f"{_clients(storm)}, {_pace(storm)}; max {storm.most_at_once} at once",
        f"peak {format_count(storm.peak_iops)} IOPS {_when(storm)}",
        _later(storm),
        f"a client finishes booting after {_busy(storm)}",
    ]
    return "\n".join(fill(own, letters) for own in sentences if own)


def sentence(storm: Storm) -> str:
    """Return the main numbers of a storm, for readers who cannot see the chart."""
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
    if storm.without_series:
        return f"{len(storm.clients)} of {len(storm.clients) + len(storm.without_series)} clients"
    return f"{len(storm.clients)} client{'s' * (len(storm.clients) != 1)}"


def _is_at_once(storm: Storm) -> bool:
    return storm.last_start_s - storm.clients[0].start_s < _SIMULTANEOUS_S


def _pace(storm: Storm) -> str:
    """Return the interval between the starts of clients, from their first I/Os."""
    starts = [client.start_s for client in storm.clients]
    if _is_at_once(storm):
        return "started at once"
    return f"started {format_duration(float(np.median(np.diff(starts))))} apart"


def _when(storm: Storm) -> str:
    """Return the time of the peak relative to the last start."""
    gap_s = storm.peak_s - storm.last_start_s
    if abs(gap_s) < INTERVAL_S / 2:
        return "at the last start"
    after = "after" if gap_s >= 0 else "before"
    # A mean of some seconds is not known to the tenth of one.
    return f"{format_duration(round(abs(gap_s)))} {after} the last start"


def _later(storm: Storm) -> str:
    share = storm.later_share
    if math.isnan(share) or _is_at_once(storm):
        return ""
    return f"{100 * share:.0f} % of all I/Os after the last start"


def _busy(storm: Storm) -> str:
    times = [client.busy_s for client in storm.clients]
    low, high = min(times), max(times)
    if format_duration(low) == format_duration(high):
        return format_duration(high)
    middle = format_duration(float(median(times)))
    return f"{middle} ({format_duration(low)} to {format_duration(high)})"
