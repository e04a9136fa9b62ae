"""Devices of other machines: held open by fio itself, and never another disk than was checked."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.command_line import call as volbench
from tests.engine.conftest import IMAGE_BYTES, Disks, call, is_attached
from tests.loopback_fleet import loopback_fleet
from tests.planned import planned_run
from tests.waiting import PATIENCE_S, until
from volbench.engine.guard.device_guard import Attachment, attachment_of
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.hosts.described_volumes import look_at_volume
from volbench.engine.run.run_directory import RunDirectory, devices_to_hold
from volbench.engine.run.run_once import Attempt, RunOutcome, execute_run
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import RefusedError
from volbench.execute.agent.supervisor import NOT_STARTED, launch
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.execute.protocol import Supervision
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Run, RunState, Section
from volbench.store.layout import RunFolder

pytestmark = pytest.mark.root
MIB = 1024**2
WRITE = {"rw": "write", "bs": "65536", "size": str(MIB), "ioengine": "psync", "direct": "0"}


@dataclass
class Remote:
    """A host that is this machine, and a run on one of its devices.

    Attributes:
        device: its loop device.
        image: the file behind it.
        run: writes its first MiB.
        attachment: as accepted by the guard.
        attempt: executes the run, with other attributes of `Attempt`.
        executor: reaches the host.
    """

    device: str
    image: Path
    run: Run
    attachment: Attachment
    attempt: Callable[..., RunOutcome]
    executor: AgentExecutor


@pytest.fixture(name="remote")
def _remote(tmp_path: Path, disks: Disks) -> Iterator[Remote]:
    image = disks.image()
    device = disks.attach(image)
    executor = AgentExecutor(SubprocessChannel("vm1"), work_folder=str(tmp_path / "work"))
    volume = find_volume(executor, role="data", target=device)
    section = Section(name="j", options=dict(WRITE))
    run = planned_run(volume, section, host="vm1", sample_s=0, device_sample_s=0)
    attachment = attachment_of(look_at_volume(executor, VolumeQuestion(volume.target)))
    assert attachment is not None

    def attempt(run: Run = run, **options: Any) -> RunOutcome:  # noqa: ANN401 - of any attribute
        folder = RunFolder(tmp_path / "run")
        folder.path.mkdir()
        settings: dict[str, Any] = {
            "deadline_s": 60,
            "listener": lambda _event: None,
            "stop": StopRequest(),
            "attachments": {volume.target: attachment},
        }
        host = ConnectedHost(Host(name="vm1"), executor, shutil.which("fio") or "")
        directory = RunDirectory(executor, folder, name="key/run-0")
        return execute_run(Attempt(host, run, directory, **(settings | options)))

    yield Remote(device, image, run, attachment, attempt, executor)
    executor.close()


def replace_image(device: str, other: Path) -> None:
    """Attach another file under the number of a loop device."""
    call("losetup", "-d", device)
    until(lambda: not is_attached(device))
    call("losetup", device, str(other))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


def test_a_device_stays_attached_until_fio_ends(
    tmp_path: Path, disks: Disks, remote: Remote
) -> None:
    """While fio waits and has closed it, nothing else can get its number; fio writes to it."""
    gate, other = tmp_path / "gate", disks.image()
    os.mkfifo(gate)
    section = Section(name="j", options=WRITE | {"exec_prerun": f"cat {gate}"})
    attached: list[object] = []

    def swap(*_started: object) -> None:
        release: list[int] = []

        def is_waiting() -> bool:
            try:
                release.append(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                return False
            return True

        until(is_waiting)
        call("losetup", "-d", remote.device)
        done = subprocess.run(
            ["losetup", remote.device, str(other)], check=False, capture_output=True
        )
        attached.extend([is_attached(remote.device), done.returncode])
        os.close(release[0])

    run = remote.run.model_copy(update={"sections": (section,)})
    end = remote.attempt(run, on_start=swap)
    assert end.state is RunState.FINISHED, end.reason
    assert not other.read_bytes().strip(b"\0")
    assert attached[0] is True
    assert attached[1] != 0
    assert remote.image.read_bytes()[:MIB].strip(b"\0")
    until(lambda: not is_attached(remote.device))  # no process of volbench has it open any more


@pytest.mark.slow
@pytest.mark.parametrize("what", ["file", "same file", "size", "nothing"])
def test_a_device_replaced_before_the_start_is_refused(
    tmp_path: Path, disks: Disks, remote: Remote, what: str
) -> None:
    """Number, node and, except for one, size are the same; not a byte of the new disk changes."""
    other = disks.image(MIB if what == "size" else IMAGE_BYTES)
    other = remote.image if what == "same file" else other
    with other.open("r+b") as file:
        file.write(b"precious")
    before = digest(other)

    def swap(*_intent: object) -> None:
        if what != "nothing":
            replace_image(remote.device, other)

    if what == "nothing":
        assert remote.attempt(on_intent=swap) == RunOutcome(RunState.FINISHED)
        return
    with pytest.raises(RefusedError) as caught:
        remote.attempt(on_intent=swap)
    assert digest(other) == before
    assert f"{remote.device} on vm1 was replaced" in caught.value.message
    until(lambda: not list(tmp_path.glob("work/key/*")))


@pytest.mark.parametrize("several", [False, True])
def test_the_host_checks_at_the_start_itself(
    tmp_path: Path, disks: Disks, *, several: bool
) -> None:
    """A whole campaign on a host: another disk comes after the guard's yes, and stays as it is."""
    device, other = disks.attach(), disks.image()
    target = f"{disks.attach()}:{device}" if several else device
    other.write_bytes(b"precious" + other.read_bytes()[8:])
    before = digest(other)
    starts: list[list[str]] = []
    start = AgentExecutor.start

    def swapped(executor: AgentExecutor, argv: list[str], **options: Any) -> object:  # noqa: ANN401 - passed on
        if any(word.endswith("fio") for word in argv) and not starts:
            starts.append(argv)
            replace_image(device, other)
        return start(executor, argv, **options)

    with loopback_fleet(tmp_path, "vm1") as fleet:
        text = fleet.inventory.read_text().replace(str(fleet.data("vm1")), target)
        fleet.inventory.write_text(text)
        profile = fleet.profile("jobs:\n  a: {rw: write, bs: 4k}\n")
        with mock.patch.object(AgentExecutor, "start", swapped):
            done = volbench(
                *("run", profile, "--inventory", fleet.inventory, "-o", tmp_path / "out"),
                *("--allow-destroy", f"vm1:{target}", "--yes"),
            )
    assert starts, done.stderr
    assert digest(other) == before
    assert done.returncode == 3, done.stderr
    assert f"{target} on vm1 was replaced right before the start" in done.stderr


@pytest.mark.slow
def test_partition_has_the_attachment_of_its_disk(
    tmp_path: Path, disks: Disks, remote: Remote
) -> None:
    """The kernel numbers disks; a number that is not the checked one is refused."""
    volume = find_volume(remote.executor, role="data", target=disks.partition(remote.device))
    run = remote.run.model_copy(update={"volume": volume})
    assert (
        attachment_of(look_at_volume(remote.executor, VolumeQuestion(volume.target)))
        == remote.attachment
    )
    assert remote.attachment.diskseq.isdecimal()
    for diskseq, status in ((remote.attachment.diskseq, 0), ("1", NOT_STARTED)):
        accepted = Attachment(diskseq, remote.attachment.boot_id)
        hold = devices_to_hold(run, {run.volume.target: accepted})
        process = remote.executor.start(
            ["true"],
            cwd=str(tmp_path),
            stderr=str(tmp_path / f"{status}.txt"),
            supervision=Supervision(hold=hold),
        )
        assert process.wait(PATIENCE_S) == status


def test_program_that_holds_a_device_runs_as_root() -> None:
    """The supervisor opens the device, whatever the path of its node."""
    executor = AgentExecutor(SubprocessChannel("vm1"), sudo=True)
    hold = [{"node": "/nodes/disk"}]
    assert executor.request(launch, {"argv": ["fio", "job.fio"], "hold": hold}).as_root
