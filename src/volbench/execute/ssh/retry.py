"""Trying again: waits that grow, with a share of chance, so that many do not come back at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from volbench.errors import TransportError

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How long to go on.

    Attributes:
        tries: at most so many, the first included.
        begin_within_s: no try begins later than this after the first.
        first_s: longest wait after the first try; doubled each time.
        longest_s: no wait is longer.
        unless: asked after each try; True ends the patience at once.
    """

    tries: int = 6
    begin_within_s: float = 12.0
    first_s: float = 0.25
    longest_s: float = 4.0
    unless: Callable[[], bool] = field(default=lambda: False)

    def wait_s(self, number: int) -> float:
        """Return the wait after a try (from 1): between half and all of what it may be."""
        most = min(self.longest_s, self.first_s * 2 ** (number - 1))
        return random.SystemRandom().uniform(most / 2, most)


def again(
    attempt: Callable[[], T], *, may_repeat: Callable[[TransportError], bool], patience: Patience
) -> T:
    """Return what an attempt returns; repeat it after an error that passes, while it may be.

    Raises:
        TransportError: the last try's.
    """
    begun = time.monotonic()
    number = 1
    while True:
        try:
            return attempt()
        except TransportError as error:
            wait_s = patience.wait_s(number)
            late = time.monotonic() - begun + wait_s > patience.begin_within_s
            spent = late or number >= patience.tries or patience.unless()
            if spent or not may_repeat(error):
                raise
        time.sleep(wait_s)
        number += 1
