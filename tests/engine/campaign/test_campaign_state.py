"""State and end of a campaign: hosts that hang, runs that are left, and leaves to overwrite."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.planned import planned_campaign, planned_run
from tests.waiting import until
from volbench.engine.campaign import campaign_state
from volbench.engine.campaign.campaign_engine import check_finished
from volbench.engine.campaign.campaign_state import SILENT_S, Attendance, reported_silence
from volbench.engine.campaign.host_survey import survey
from volbench.engine.guard.preflight import allowed_for
from volbench.engine.hosts.connected_host import ConnectedHost, this_machine
from volbench.errors import CampaignError
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.model.campaign.event import CampaignEnded, Event, HostBack, HostSilent
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import DevicePin, Run, Volume, VolumeKind


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
    ("failed", "left", "message"),
    [
        (("a",), (), "1 of 4 runs failed"),
        ((), ("b", "c"), "2 of 4 runs unfinished"),
        (("a",), ("b",), "1 of 4 runs failed, 1 of 4 runs unfinished"),
    ],
)
def test_states_without_runs_are_not_mentioned(
    failed: tuple[str, ...], left: tuple[str, ...], message: str
) -> None:
    """Runs of a lost host have neither failed nor are they unstarted: they are left."""
    with pytest.raises(CampaignError) as caught:
        check_finished(CampaignEnded((), failed, left, ()), Path("c"), total=4)
    assert caught.value.message == message
    assert ("--retry-failed" in caught.value.hint) is bool(failed)


@pytest.mark.parametrize(("left", "hint"), [((), "run the campaign again"), (("b",), "resume c")])
def test_runs_whose_pods_are_removed_are_not_resumed(left: tuple[str, ...], hint: str) -> None:
    """Pods stay only while runs are left to do in them."""
    end = CampaignEnded((), ("a",), left, ())
    with pytest.raises(CampaignError) as caught:
        check_finished(end, Path("c"), total=4, are_hosts_kept=False)
    assert hint in caught.value.hint
