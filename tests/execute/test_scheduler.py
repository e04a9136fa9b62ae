"""Work of many hosts at once: its order, its errors and its second tries."""

import importlib.util
import threading
import time
from collections.abc import Callable
from threading import Event

import pytest

from tests.execute.fake import FakeProcess
from tests.waiting import PATIENCE_S, until
from volbench.errors import AuthError, ConnectError, TransportError
from volbench.execute import program_bundle, scheduler
from volbench.execute.channels import Patience, retry
from volbench.execute.scheduler import Wait, Work, drive, finish, on_each, parallel_limit

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


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (8, 4)])
def test_the_number_of_parallel_workers_is_limited(limit: int, most: int) -> None:
    """The limit holds; below it everybody works at the same time."""
    lock, working, seen = threading.Lock(), 0, []
    together = threading.Barrier(most)

    def work(item: int) -> int:
        nonlocal working
        with lock:
            working += 1
            seen.append(working)
        together.wait(20)
        with lock:
            working -= 1
        return item

    with parallel_limit(limit):
        assert on_each(range(4), work) == [0, 1, 2, 3]
    assert max(seen) == most


def test_the_program_of_the_agent_is_built_once() -> None:
    """Hosts that are connected at the same time share one, in a process that has none yet."""
    spec = importlib.util.find_spec(program_bundle.__name__)
    assert spec is not None
    assert spec.loader is not None
    new = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(new)
    programs = on_each(range(8), lambda _: new.agent_program())
    assert all(program is programs[0] for program in programs)


QUICK = Patience(tries=4, first_s=0.001, longest_s=0.002)


class _Attempts:
    """Fails with each error in turn, then returns."""

    def __init__(self, *errors: TransportError) -> None:
        self._errors = list(errors)
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        if self._errors:
            raise self._errors.pop(0)
        return "done"


def _transient(error: TransportError) -> bool:
    return error.transient


def test_temporary_errors_are_retried() -> None:
    """Two failures and a success are a success."""
    attempts = _Attempts(ConnectError("a"), ConnectError("b"))
    assert retry(attempts, may_repeat=_transient, patience=QUICK) == "done"
    assert attempts.count == 3


def test_permanent_errors_are_not_retried() -> None:
    """A refused key is refused once."""
    attempts = _Attempts(ConnectError("a"), AuthError("b"))
    with pytest.raises(AuthError, match="b"):
        retry(attempts, may_repeat=_transient, patience=QUICK)
    assert attempts.count == 2


def test_retries_end_after_the_deadline() -> None:
    """After so many tries, or so late, the last error stands."""
    attempts = _Attempts(*(ConnectError(str(number)) for number in range(9)))
    with pytest.raises(ConnectError, match="3"):
        retry(attempts, may_repeat=_transient, patience=QUICK)
    late = _Attempts(ConnectError("a"), ConnectError("b"))
    with pytest.raises(ConnectError, match="a"):
        retry(late, may_repeat=_transient, patience=Patience(begin_within_s=0.0))
    assert (attempts.count, late.count) == (4, 1)


def test_waits_grow_with_jitter() -> None:
    """Each wait is between half and all of what it may be, which doubles up to a limit."""
    patience = Patience(first_s=1.0, longest_s=4.0)
    for number, most in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 4.0)):
        waits = {patience.wait_s(number) for _ in range(50)}
        assert len(waits) > 40
        assert all(most / 2 <= wait <= most for wait in waits)
