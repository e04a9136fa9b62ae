"""Work on many hosts at once, in threads: results or errors, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from volbench.errors import VolbenchError

T = TypeVar("T")
R = TypeVar("R")

MAX_THREADS = 64
"""Threads cost little; too few of them behind hosts that do not answer cost seconds."""


def on_each(items: Iterable[T], work: Callable[[T], R]) -> list[R | VolbenchError]:
    """Do some work for every item, side by side; return the results, or errors, in their order."""
    listed = list(items)

    def attempt(item: T) -> R | VolbenchError:
        try:
            return work(item)
        except VolbenchError as error:
            return error

    if len(listed) < 2:
        return [attempt(item) for item in listed]
    with ThreadPoolExecutor(min(len(listed), MAX_THREADS), thread_name_prefix="host") as threads:
        return list(threads.map(attempt, listed))
