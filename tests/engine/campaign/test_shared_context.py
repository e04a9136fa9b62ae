"""End of a campaign when some of its machines hang."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from volbench.engine.campaign.shared_context import Attendance


@dataclass
class Client:
    """A client whose machine has been silent for a while."""

    silent_s: float


@pytest.mark.parametrize(
    ("has_ended", "silent_s", "is_over"),
    [
        (True, [120.0], True),
        (True, [120.0, 3600.0], True),
        (True, [120.0, 1.0], False),
        (True, [], False),
        (False, [120.0, 120.0], False),
    ],
)
def test_end_waits_for_machines_that_answer(
    *, has_ended: bool, silent_s: list[float], is_over: bool
) -> None:
    """Hung machines are not waited for once a client has ended and none works any more."""
    attendance = Attendance(120)
    with ExitStack() as stack:
        for seconds in silent_s:
            stack.enter_context(attendance.of(Client(seconds)))
        if has_ended:
            with attendance.of(Client(0)):
                assert not attendance.is_over
        assert attendance.is_over is is_over
