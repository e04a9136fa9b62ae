"""State and end of a campaign: hosts that hang, runs that are left, and leaves to overwrite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.planned import planned_campaign, planned_run
from tests.waiting import until
from volbench.engine.campaign import campaign_state
from volbench.engine.campaign.campaign_engine import check_finished, left_out
from volbench.engine.campaign.campaign_state import SILENT_S, Attendance, reported_silence
from volbench.engine.campaign.host_survey import survey
from volbench.engine.guard.preflight import allowed_for
from volbench.engine.hosts.connected_host import ConnectedHost, this_machine
from volbench.errors import CampaignError
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.model.campaign.event import CampaignEnded, Event, HostBack, HostSilent
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Absent, DevicePin, Run, Volume, VolumeKind


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
        def silent_hosts(self) -> dict[str, tuple[float, str]]:
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


def test_absent_hosts_of_one_cause_are_one_line() -> None:
    """A number in a name, and an address, are no other cause."""
    dead = {f"dead{n:03}": f"dead{n:03} cannot be reached at 10.0.0.{n}" for n in range(1, 151)}
    absent = [Absent(host=host, reason=reason) for host, reason in {**dead, "x": "full"}.items()]
    assert [*left_out(absent)] == [
        f"left out: dead001 to dead150: {dead['dead001']} (the first of 150 hosts)",
        "left out: x: full",
    ]


WORDS = "error while loading shared libraries: libaio.so.1"


@pytest.mark.parametrize("has_version", [True, False])
def test_the_error_of_a_broken_fio_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_version: bool
) -> None:
    """Whether it fails at once or only when it is to run: its own words are in the problem."""
    version = '[ "$1" = --version ] && { echo fio-3.33; exit 0; }\n' if has_version else ""
    fio = tmp_path / "fio"
    fio.write_text(f"#!/bin/sh\n{version}echo 'fio: {WORDS}' >&2\nexit 127\n")
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    executor = AgentExecutor(SubprocessChannel("vm1"), work_folder=str(tmp_path / "work"))
    (surveyed,) = survey([ConnectedHost(Host(name="vm1", address="192.0.2.1"), executor)])
    executor.close()
    assert WORDS in surveyed.problem
    assert "fio" in surveyed.hint


BY_ID = "/dev/disk/by-id/scsi-1"
ABSENT = (Absent(host="vm9", reason="silent", clients=39),)
POD = (Host(name="pod", address="10.0.0.1", connection={"kind": "pod"}),)


def a_run(host: str, serial: str) -> Run:
    """Return a run on a disk of a host."""
    pin = DevicePin(path="/dev/sdb", major=8, minor=16, size_bytes=1, serial=serial)
    volume = Volume(role="data", kind=VolumeKind.DEVICE, target="/dev/sdb", pin=pin)
    return planned_run(volume, host=host)


@pytest.mark.parametrize(
    ("host", "serial", "allowed"),
    [
        ("vm1", "S1", (BY_ID, "/dev/sdb")),
        ("vm1", "S2", (BY_ID,)),
        ("vm1", "", (BY_ID,)),
        ("vm2", "S1", ("/dev/sdy",)),
        ("desk", "S1", ("/dev/sdz", "vm2:/dev/sdy")),
    ],
)
def test_overwrite_permissions_belong_to_one_host_and_disk(
    host: str, serial: str, allowed: tuple[str, ...]
) -> None:
    """Another disk in the same place, and the same name on another host, are not meant."""
    run = a_run(host, serial)
    hosts = (
        Host(name="vm1", address="10.0.0.1", allow_destroy=("serial:S1", "serial:", BY_ID)),
        Host(name="vm2", address="10.0.0.2"),
        Host(name="desk"),
    )
    given = ("/dev/sdz", "vm2:/dev/sdy")
    campaign = planned_campaign(run, hosts=hosts, allow_destroy=given)
    assert allowed_for(run, campaign) == allowed


@pytest.mark.parametrize(
    ("failed", "left", "plan", "message", "hint"),
    [
        (("a",), (), {}, "1 of 1 run failed", "--retry-failed"),
        ((), ("b",), {}, "1 of 1 run unfinished", "resume c"),
        (("a",), ("b",), {}, "1 of 1 run failed, 1 of 1 run unfinished", "--retry-failed"),
        ((), (), {"absent": ABSENT}, "39 of 40 clients left out", "run --like c --inventory FILE"),
        (("a",), (), {"hosts": POD}, "1 of 1 run failed", "run the campaign again"),
        (("a",), ("b",), {"hosts": POD}, "1 of 1 run failed, 1 of 1 run unfinished", "resume c"),
    ],
)
def test_a_partial_result_is_an_error(
    failed: Sequence[str], left: Sequence[str], plan: Mapping[str, object], message: str, hint: str
) -> None:
    """A lost host has runs left, an absent one has none; pods stay while runs are left."""
    end = CampaignEnded((), tuple(failed), tuple(left), ())
    with pytest.raises(CampaignError) as caught:
        check_finished(end, Path("c"), planned_campaign(a_run("vm1", ""), **plan))
    assert caught.value.message == message
    assert hint in caught.value.hint
