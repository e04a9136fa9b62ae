"""End of a campaign when some of its machines hang."""

from dataclasses import dataclass, field

import pytest

from tests.waiting import until
from volbench.engine.campaign import campaign_state
from volbench.engine.campaign.campaign_state import SILENT_S, Attendance, reported_silence
from volbench.engine.hosts.connected_host import ConnectedHost, this_machine
from volbench.model.campaign.event import Event, HostBack, HostSilent


@dataclass
class Client:
    """A client whose machine has been silent for a while."""

    silent_s: float
    host: ConnectedHost = field(default_factory=this_machine)


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
    for seconds in silent_s:
        attendance.enter(Client(seconds))
    if has_ended:
        ended = Client(0)
        attendance.enter(ended)
        assert not attendance.is_over
        attendance.leave(ended)
    assert attendance.is_over is is_over


def test_working_client_answers_for_all() -> None:
    """Hundreds of clients ask several times a second, so that the cost of one question counts."""
    polls: list[float] = []

    class Polled:
        host = this_machine()

        @property
        def silent_s(self) -> float:
            polls.append(1.0)
            return polls[-1]

    attendance, clients = Attendance(120), [Polled() for _ in range(500)]
    for client in clients:
        attendance.enter(client)
    assert not attendance.is_over
    assert not polls, "nobody has ended"
    attendance.leave(clients[0])
    assert not attendance.is_over
    assert len(polls) == 1


def test_silence_and_return_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One event when a host stops answering, and one when it is back, for all of its clients."""
    monkeypatch.setattr(campaign_state, "_LOOK_S", 0.005)
    clients, events, looks = [Client(0.0), Client(0.0)], list[Event](), 0

    class Counted(Attendance):
        def silent_hosts(self) -> dict[str, float]:
            nonlocal looks
            looks += 1
            return super().silent_hosts()

    attendance = Counted(120)

    def look_twice() -> None:
        before = looks
        until(lambda: looks >= before + 3)

    for client in clients:
        attendance.enter(client)
    with reported_silence(attendance, events.append):
        look_twice()
        assert events == []
        clients[0].silent_s = SILENT_S + 1
        look_twice()
        clients[0].silent_s = 0.0
        look_twice()
    assert [type(event) for event in events] == [HostSilent, HostBack]
    assert events[0] == HostSilent("local", SILENT_S + 1)
