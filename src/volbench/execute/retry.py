"""Retries after transient errors, with growing waits and jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from volbench.errors import TransportError

T = TypeVar("T")

# Maximum time that a host may be unreachable before giving up; programs there continue
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Patience:
    """Retry policy: exponential backoff with jitter."""

    tries: int = 6  # maximum number of attempts, including the first
    begin_within_s: float = 12.0  # latest start of an attempt after the first
    first_s: float = 0.25  # maximum wait after the first attempt; doubled after each further one
    longest_s: float = 4.0  # upper limit of a wait
    # called after each attempt; True ends the retries
    unless: Callable[[], bool] = field(default=lambda: False)

    def wait_s(self, number: int) -> float:
        """Return the wait after an attempt (from 1): random, from half to all of its maximum."""
        longest_s = min(self.longest_s, self.first_s * 2 ** (number - 1))
        return random.SystemRandom().uniform(longest_s / 2, longest_s)


def retry(
    attempt: Callable[[], T], *, may_repeat: Callable[[TransportError], bool], patience: Patience
) -> T:
    """Return the result of the first successful attempt."""
    begun = time.monotonic()
    number = 1
    while True:
        try:
            return attempt()
        except TransportError as error:
            wait_s = patience.wait_s(number)
            is_late = time.monotonic() - begun + wait_s > patience.begin_within_s
            is_exhausted = is_late or number >= patience.tries or patience.unless()
            if is_exhausted or not may_repeat(error):
                raise
        time.sleep(wait_s)
        number += 1
