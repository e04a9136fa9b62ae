"""Thread pool that runs one function on many hosts and returns results or errors in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from volbench.errors import VolbenchError

T = TypeVar("T")
R = TypeVar("R")

MAX_THREADS = 64
"""Idle threads are cheap; queueing behind unresponsive hosts costs seconds."""


def on_each(items: Iterable[T], work: Callable[[T], R]) -> list[R | VolbenchError]:
    """Call `work` for each item concurrently; return the results or errors in order."""
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
