"""Files on real hosts: they arrive whole in both directions, or not at all."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.execute.host_files import names_in, stat_of, text_of
from tests.fleet import texts
from tests.fleet.hosts import Fleet, call, fleet
from tests.fleet.ways import executor_for
from volbench.engine.hosts.described_volumes import look_at_volume
from volbench.errors import ArchiveError, TransportError, VolbenchError
from volbench.execute.agent.files import write_files
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.agent_executor import AgentExecutor

pytestmark = pytest.mark.root

BINARY = bytes(range(256)) * 4096 + b"\r\n\0'\"$(id)"


def names(folder: Path) -> list[str]:
    """Return the names in a folder of ours."""
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def machine(hosts: Fleet) -> Iterator[AgentExecutor]:
    """Hand out a machine whose /tmp is emptied in the end."""
    with executor_for(hosts, hosts[0]) as executor:
        yield executor
    hosts[0].run("sh", "-c", "rm -rf /tmp/* /root/.volbench")


def test_a_file_that_does_not_fit_is_not_there(hosts: Fleet, machine: AgentExecutor) -> None:
    """A full disk is reported in the system's words, and the file before it is left as it was."""
    hosts[0].run("sh", "-c", "mkdir /tmp/full && mount -t tmpfs -o size=1m small /tmp/full")
    try:
        machine.ask(write_files, {"/tmp/full/result": "old"})
        with pytest.raises(TransportError, match="No space left on device"):
            machine.ask(write_files, {"/tmp/full/result": "x" * 2_000_000})
        assert text_of(machine, "/tmp/full/result") == "old"
        assert names_in(machine, "/tmp/full") == ("result",)
    finally:
        hosts[0].run("umount", "/tmp/full")


def test_large_files_are_fetched_whole(
    hosts: Fleet, machine: AgentExecutor, tmp_path: Path
) -> None:
    """The copy has the same bytes, replaces an older one, and nothing is left beside it."""
    into = tmp_path / "log"
    into.write_text("older", encoding="utf-8")
    (hosts[0].tmp / "d").mkdir()
    for content in (BINARY + os.urandom(9_000_000), b""):
        (hosts[0].tmp / "d/log").write_bytes(content)
        machine.fetch_work_folder("/tmp/d", str(tmp_path))
        assert hashlib.sha256(into.read_bytes()).digest() == hashlib.sha256(content).digest()
    assert names(tmp_path) == ["log"]


def test_a_full_controller_disk_has_an_error_of_its_own(
    hosts: Fleet, machine: AgentExecutor, tmp_path: Path
) -> None:
    """When our own disk is full, that is said, and it is not tried again."""
    small = tmp_path / "small"
    small.mkdir()
    (hosts[0].tmp / "d").mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=1m", "small", str(small))
    try:
        for size_bytes in (3_000_000, 5_000):
            (hosts[0].tmp / "d/log").write_bytes(os.urandom(size_bytes))
            with pytest.raises(ArchiveError, match="cannot be written: the disk is full"):
                machine.fetch_work_folder("/tmp/d", str(small))
            assert names(small) == []
            call("mount", "-o", "remount,size=4k", str(small))
    finally:
        call("umount", str(small))


def test_a_work_folder_is_fetched(hosts: Fleet, machine: AgentExecutor, tmp_path: Path) -> None:
    """Every file of it comes, folders too; then it is removed, and only it."""
    place = machine.work_folder(str(tmp_path), name="campaign/run-1")
    machine.ask(write_files, {f"{place}/": ""})
    assert place == "/root/.volbench/campaign/run-1"
    assert machine.work_folder(str(tmp_path), name="campaign/run-1") == place
    other = machine.work_folder(str(tmp_path), name="campaign/run-2")
    machine.ask(write_files, {f"{other}/": ""})
    (hosts[0].folder / "root/.volbench/campaign/run-1/fio.json").write_bytes(BINARY)
    machine.run(["mkdir", f"{place}/logs"])
    machine.ask(write_files, {f"{place}/logs/a b.log": "1, 2, 3\n"})
    machine.fetch_work_folder(place, str(tmp_path))
    assert (tmp_path / "fio.json").read_bytes() == BINARY
    assert (tmp_path / "logs/a b.log").read_text(encoding="utf-8") == "1, 2, 3\n"
    machine.remove_work_folder(place)
    machine.remove_work_folder(place)
    assert stat_of(machine, place) is None
    assert stat_of(machine, other) is not None
    for elsewhere in ("/tmp", "/root/.volbench", f"{other}/../../..", "/"):
        with pytest.raises(VolbenchError, match="not below"):
            machine.remove_work_folder(elsewhere)
    assert hosts[0].tmp.is_dir()


def test_files_created_by_sudo_are_removed(hosts: Fleet, tmp_path: Path) -> None:
    """A workplace in which root wrote goes as a whole, and sudo reaches nothing outside of it."""
    with executor_for(hosts, hosts[1], user=texts.USER, sudo=True) as executor:
        place = executor.work_folder(str(tmp_path), name="campaign/run-1")
        executor.ask(write_files, {f"{place}/": ""})
        script = 'mkdir -m 700 "$1" && touch "$1/file"'
        executor.run(["sh", "-c", script, "sh", f"{place}/root", "/dev/null"])
        executor.remove_work_folder(place)
        assert stat_of(executor, place) is None
        with pytest.raises(VolbenchError, match="not below"):
            executor.remove_work_folder("/etc")
        assert stat_of(executor, "/etc/passwd") is not None


def test_a_device_in_use_is_reported(tmp_path: Path, loop: str) -> None:
    """A device can be had alone or not: mounted and opened ones cannot."""
    devices = [{"vdb": loop}]
    with fleet(1, tmp_path / "f", devices=devices) as own, executor_for(own, own[0]) as executor:
        found = stat_of(executor, "/dev/vdb")
        assert found is not None
        assert found.kind == "block"
        assert found.rdev == (7, os.minor(Path(loop).stat().st_rdev))
        assert _exclusive_error(executor) == ""
        call("mkfs.ext4", "-q", loop)
        own[0].run("sh", "-c", "mkdir /tmp/m && mount /dev/vdb /tmp/m")
        assert _exclusive_error(executor) == "Device or resource busy"
        own[0].run("umount", "/tmp/m")
        assert _exclusive_error(executor) == ""


def _exclusive_error(executor: AgentExecutor) -> str:
    """Return why the device cannot be had alone; empty if it can."""
    device = look_at_volume(executor, VolumeQuestion("/dev/vdb", details=("use",))).device
    assert device is not None
    assert device.use is not None
    return device.use.exclusive
