"""Offset of a host's clock from the controller's, with its error bound.

The remote clock is read between two readings of the local one, so taking their midpoint is wrong by
at most half the time between them (D. L. Mills, RFC 5905, section 8). Of several attempts the
shortest counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from volbench.execute.protocol import Executor

_ATTEMPTS = 8


@dataclass(frozen=True)
class Clock:
    """Offset of a host's clock.

    Attributes:
        offset_s: how far it is ahead of the controller's.
        bound_s: largest error of the offset.
    """

    offset_s: float = 0.0
    bound_s: float = 0.0


def read_clock(executor: Executor) -> Clock | None:
    """Return the clock offset of a host; None when its `date` prints no such time."""
    found: list[tuple[float, float]] = []
    for _ in range(_ATTEMPTS):
        before_s = time.time()
        text = executor.run(["date", "+%s.%N"]).stdout.strip()
        after_s = time.time()
        try:
            remote_s = float(text)
        except ValueError:
            continue
        found.append(((after_s - before_s) / 2, remote_s - (before_s + after_s) / 2))
    if not found:
        return None
    bound_s, offset_s = min(found)
    return Clock(offset_s=offset_s, bound_s=bound_s)
