"""Work that waits without a thread: order, results, errors, and threads that are stuck."""

import threading
import time
from collections.abc import Callable
from threading import Event

import pytest

from tests.execute.fake import FakeProcess
from tests.waiting import PATIENCE_S, until
from volbench.execute import scheduler
from volbench.execute.scheduler import Wait, Work, drive, finish

CLIENTS = 300


class PushedProcess(FakeProcess):
    """Process whose host reports its end."""

    def __init__(self) -> None:
        super().__init__()
        self.wake: Callable[[], None] | None = None

    def notify(self, wake: Callable[[], None]) -> None:
        """Keep the function for the end."""
        self.wake = wake


def test_many_clients_wait_on_few_threads() -> None:
    """All clients wait at the same time, which a thread for each would need otherwise."""
    arrived = left = threads = 0
    lock = threading.Lock()

    def client() -> Work[None]:
        nonlocal arrived, left, threads
        with lock:
            arrived += 1
        while arrived < CLIENTS:
            yield Wait(0.02)
        with lock:
            threads = max(threads, threading.active_count())
            left += 1

    before = threading.active_count()
    drive((client() for _ in range(CLIENTS)), threads_max=4)
    assert left == CLIENTS
    assert threads <= before + 4
    until(lambda: threading.active_count() <= before)


def test_pushed_end_ends_a_wait() -> None:
    """A wait for a process ends when its host reports a change, and only once."""
    process, steps = PushedProcess(), list[float]()

    def client() -> Work[None]:
        steps.append(time.monotonic())
        yield Wait(PATIENCE_S, process)
        steps.append(time.monotonic())
        yield Wait(0.05)
        steps.append(time.monotonic())

    def push() -> None:
        until(lambda: process.wake is not None)
        assert process.wake is not None
        process.wake()
        process.wake()

    pusher = threading.Thread(target=push)
    pusher.start()
    drive([client()], threads_max=1)
    pusher.join(PATIENCE_S)
    assert len(steps) == 3
    assert steps[1] - steps[0] < PATIENCE_S
    assert steps[2] - steps[1] >= 0.03


def test_hung_clients_take_no_thread_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients whose hosts hang in a request do not keep the others from their work."""
    monkeypatch.setattr(scheduler, "STUCK_S", 0.05)
    released, done = Event(), list[int]()

    def hung() -> Work[None]:
        assert released.wait(PATIENCE_S)
        yield Wait(0)

    def healthy(number: int) -> Work[None]:
        yield Wait(0.01)
        done.append(number)
        if len(done) == 5:
            released.set()

    drive([*(hung() for _ in range(3)), *map(healthy, range(5))], threads_max=2)
    assert sorted(done) == [0, 1, 2, 3, 4]


def test_error_ends_one_client_only() -> None:
    """The others are driven to their ends before it is raised."""
    done = []

    def client(number: int) -> Work[None]:
        yield Wait(0.01)
        if number == 0:
            raise ArithmeticError
        yield Wait(0.05)
        done.append(number)

    with pytest.raises(ArithmeticError):
        drive(map(client, range(3)), threads_max=2)
    assert sorted(done) == [1, 2]


def test_error_of_a_wait_reaches_the_work() -> None:
    """Work that is driven in the caller's thread decides what an error of its wait means."""

    class Broken(FakeProcess):
        def wait(self, timeout_s: float) -> int | None:
            raise ConnectionError(str(timeout_s))

    def client() -> Work[str]:
        try:
            yield Wait(1.0, Broken())
        except ConnectionError as error:
            return f"lost after {error}"
        return "ended"

    assert finish(client()) == "lost after 1.0"
