"""Parallel work on many hosts: a thread pool, and work that holds no thread while it waits.

A piece of work is a generator: it yields what it waits for, and goes on when that has happened or
its time is over. Hundreds of clients that mostly wait for their hosts need few threads then.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from threading import Condition, Lock, Thread, current_thread
from typing import TypeVar

from volbench.errors import VolbenchError
from volbench.execute.protocol import Process

T = TypeVar("T")
R = TypeVar("R")

MAX_THREADS = 64  # Idle threads are cheap; queueing behind unresponsive hosts costs seconds

_limit: ContextVar[int] = ContextVar("_limit", default=MAX_THREADS)

THREADS_MAX = 64  # Threads that drive work, apart from those that are stuck
# A thread that is busy with one step for longer, such as with a hung host, is replaced
STUCK_S = 30.0
_TICK_S = 0.01  # Waits that end within this time end together


@contextmanager
def parallel_limit(count: int) -> Iterator[None]:
    """Let `on_each` work on at most `count` items at once inside the block."""
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


def on_each(items: Iterable[T], work: Callable[[T], R]) -> list[R | VolbenchError]:
    """Call `work` for each item concurrently; return the results or errors in order."""
    listed = list(items)

    def attempt(item: T) -> R | VolbenchError:
        try:
            return work(item)
        except VolbenchError as error:
            return error

    threads_max = min(len(listed), _limit.get())
    if threads_max < 2:
        return [attempt(item) for item in listed]
    with ThreadPoolExecutor(threads_max, thread_name_prefix="host") as threads:
        return list(threads.map(attempt, listed))


@dataclass(frozen=True)
class Wait:
    """Condition that a piece of work waits for."""

    seconds: float  # the longest wait
    # its end, or the appearance of a followed file, ends the wait; None to wait for the time only
    process: Process | None = None

    def block(self) -> None:
        """Wait in this thread."""
        if self.process is None:
            time.sleep(self.seconds)
        else:
            self.process.wait(self.seconds)


Work = Generator[Wait, None, T]


def finish(work: Work[T]) -> T:
    """Drive work to its end in this thread, and return its result."""
    try:
        wait = next(work)
        while True:
            try:
                wait.block()
            except BaseException as error:  # noqa: BLE001 - the work decides what to do about it
                wait = work.throw(error)
            else:
                wait = next(work)
    except StopIteration as end:
        result: T = end.value
        return result


def drive(works: Iterable[Work[None]], *, threads_max: int = THREADS_MAX) -> None:
    """Drive pieces of work to their ends, side by side."""
    _Drive(works, threads_max).run()


@dataclass(eq=False)
class _Piece:
    """A piece of work; `turn` counts its waits, so that each ends once."""

    work: Work[None]
    turn: int = 0
    began_s: float = 0.0


class _Drive:
    """State of `drive`."""

    def __init__(self, works: Iterable[Work[None]], threads_max: int) -> None:
        self._ready = deque(_Piece(work) for work in works)
        self._left = len(self._ready)
        self._threads_max = threads_max
        self._lock = Lock()
        self._may_work = Condition(self._lock)
        self._may_release = Condition(self._lock)
        self._waiting: list[tuple[float, int, _Piece, int]] = []
        self._order = itertools.count()
        self._busy: set[_Piece] = set()
        self._threads: set[Thread] = set()
        self._errors: list[BaseException] = []

    def run(self) -> None:
        """Start threads, and end waits whose time is over, until no work is left."""
        with self._lock:
            while self._left:
                now_s = time.monotonic()
                self._release(now_s)
                self._add_threads(now_s)
                until_s = self._waiting[0][0] if self._waiting else now_s + 1
                self._may_release.wait(max(_TICK_S, min(1.0, until_s - now_s)))
            self._may_work.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _release(self, now_s: float) -> None:
        while self._waiting and self._waiting[0][0] <= now_s + _TICK_S:
            _, _, piece, turn = heapq.heappop(self._waiting)
            self._resume(piece, turn)

    def _resume(self, piece: _Piece, turn: int) -> None:
        if piece.turn == turn:
            piece.turn += 1
            self._ready.append(piece)
            self._may_work.notify()

    def _add_threads(self, now_s: float) -> None:
        while len(self._threads) < min(self._limit(now_s), len(self._busy) + len(self._ready)):
            thread = Thread(target=self._work, name="client", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _limit(self, now_s: float) -> int:
        stuck = sum(now_s - piece.began_s > STUCK_S for piece in self._busy)
        return self._threads_max + stuck

    def _work(self) -> None:
        while (piece := self._next()) is not None:
            wait, error = None, None
            try:
                wait = next(piece.work)
            except StopIteration:
                pass
            except BaseException as raised:  # noqa: BLE001 - raised by `run`
                error = raised
            self._put_back(piece, wait, error)

    def _next(self) -> _Piece | None:
        """Return a piece that is ready; None for a thread that is no longer needed."""
        with self._lock:
            while not self._ready and self._left:
                self._may_work.wait()
            is_spare = len(self._threads) > self._limit(now_s := time.monotonic())
            if not self._left or is_spare:
                self._threads.discard(current_thread())
                self._may_work.notify()  # it may have been woken for a piece
                return None
            piece = self._ready.popleft()
            piece.began_s = now_s
            self._busy.add(piece)
            return piece

    def _put_back(self, piece: _Piece, wait: Wait | None, error: BaseException | None) -> None:
        """Let a piece wait; without a wait it has ended."""
        with self._lock:
            self._busy.discard(piece)
            if wait is None:
                self._end_task(error)
                return
            turn = piece.turn
            entry = (time.monotonic() + wait.seconds, next(self._order), piece, turn)
            heapq.heappush(self._waiting, entry)
            if self._waiting[0] is entry:
                self._may_release.notify()
        if wait.process is not None:
            wait.process.notify(partial(self._wake, piece, turn))

    def _wake(self, piece: _Piece, turn: int) -> None:
        with self._lock:
            self._resume(piece, turn)

    def _end_task(self, error: BaseException | None) -> None:
        self._left -= 1
        if error is not None:
            self._errors.append(error)
        if not self._left:
            self._may_release.notify()
            self._may_work.notify_all()
