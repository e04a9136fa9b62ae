"""A machine's clock beside the controller's: looks at both in, their difference and its bound out.

The remote clock is read between two looks at the own one: it belongs somewhere between them, so the
middle is wrong by half the time between them at most (D. L. Mills, RFC 5905, chapter 8). The
quickest of several looks counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from volbench.execute.protocol import Executor

_LOOKS = 8


@dataclass(frozen=True)
class Clock:
    """How a machine's clock stands against the controller's.

    Attributes:
        offset_s: what the machine's clock is ahead.
        bound_s: how far the offset may be wrong.
    """

    offset_s: float = 0.0
    bound_s: float = 0.0


def read_clock(executor: Executor) -> Clock | None:
    """Return how a machine's clock stands; None when it does not tell its time."""
    found: list[tuple[float, float]] = []
    for _ in range(_LOOKS):
        before_s = time.time()
        told = executor.run(["date", "+%s.%N"]).stdout.strip()
        after_s = time.time()
        try:
            there_s = float(told)
        except ValueError:
            continue
        found.append(((after_s - before_s) / 2, there_s - (before_s + after_s) / 2))
    if not found:
        return None
    bound_s, offset_s = min(found)
    return Clock(offset_s=offset_s, bound_s=bound_s)
