"""Parts of a long task, each done in a process of its own on every core."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from volbench.errors import ArchiveError

# Takes the name of the task, and its done and total items
Tell = Callable[[str, int, int], None]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# Parts are smaller than a process's share, so that all end at about the same time
_PARTS_A_PROCESS = 8
# Items of a part: its results are held whole, such as 100 KB of tables for each run.
# Noticed by: test_stored_tables.py
_MAX_ITEMS = 64
# Items from which processes pay: a fork of a process with pandas costs some 20 ms.
# Noticed by: test_stored_tables.py
_MIN_ITEMS = 32

# Work of this worker process: it has it from its parent's memory, without a copy
_inherited: list[Callable[[int], object]] = []


def _ignore(what: str, done: int, total: int) -> None:
    del what, done, total


NOBODY: Tell = _ignore  # Discards progress


def cores() -> int:
    """Return the number of cores that this process may use."""
    if not hasattr(os, "sched_getaffinity"):  # macOS
        return os.cpu_count() or 1
    return len(os.sched_getaffinity(0))


def in_processes(
    work: Callable[[Sequence[_Item]], _Result],
    items: Sequence[_Item],
    *,
    processes: int,
    done: Callable[[int], None],
) -> Iterator[_Result]:
    """Yield the results of work on consecutive parts of items, in their order.

    Each part is done in a forked process. With few items, or one process at most, none is started.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - slow to import
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 - same
    from multiprocessing import get_context  # noqa: PLC0415 - same

    if processes < 2 or len(items) < _MIN_ITEMS:
        yield work(items)
        done(len(items))
        return
    import pandas as pd  # noqa: F401, PLC0415 - same; once here, else again in each process

    size = min(_MAX_ITEMS, -(-len(items) // (processes * _PARTS_A_PROCESS)))
    parts = [items[first : first + size] for first in range(0, len(items), size)]
    finished = 0
    with ProcessPoolExecutor(
        processes,
        mp_context=get_context("fork"),
        initializer=_begin,
        initargs=(lambda index: work(parts[index]),),
    ) as pool:
        try:
            for index, result in enumerate(pool.map(_part, range(len(parts)))):
                finished += len(parts[index])
                yield result
                done(finished)
        except BrokenProcessPool as error:
            hint = "check the kernel log: the machine may have run out of memory"
            raise ArchiveError("a worker process was killed", hint=hint) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(work: Callable[[int], object]) -> None:
    """Prepare a worker process; Ctrl-C is for its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _inherited.append(work)


def _part(index: int) -> Any:  # noqa: ANN401 - the result of whatever work was inherited
    return _inherited[0](index)
