"""Functions side by side: all run at once, and an error of one ends none of the others."""

import threading

import pytest

from tests.waiting import PATIENCE_S
from volbench.execute.scheduler import side_by_side

CLIENTS = 300


def test_many_clients_wait_for_each_other() -> None:
    """Each has a thread of its own, so that no client is behind another one."""
    meeting = threading.Barrier(CLIENTS)

    def meet() -> None:
        meeting.wait(PATIENCE_S)

    side_by_side([meet] * CLIENTS)
    assert not meeting.broken
    side_by_side([])


def test_error_ends_one_client_only() -> None:
    """The others go on to their ends before it is raised."""
    failed, done = threading.Event(), list[int]()

    def fail() -> None:
        failed.set()
        raise ArithmeticError

    def work() -> None:
        assert failed.wait(PATIENCE_S)
        done.append(1)

    with pytest.raises(ArithmeticError):
        side_by_side([fail, work, work])
    assert done == [1, 1]
