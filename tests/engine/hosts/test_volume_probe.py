"""What machines and volumes are, and which targets are none."""

import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from tests.engine.conftest import HERE, IMAGE_BYTES, Disks
from tests.engine.machines import GIB, Server
from tests.execute.fake import FakeExecutor
from volbench.engine.guard.run_guard import describe_device
from volbench.engine.guard.volume_targets import find_volume, probe_volume
from volbench.engine.hosts.host_facts import probe_host, require_fio
from volbench.errors import FioError, InputError, RefusedError
from volbench.execute.agent.block_devices import BlockDevice, Devices
from volbench.execute.agent.files import FileStat
from volbench.execute.protocol import Completed
from volbench.model.campaign.planned_run import VolumeKind


def _fio_that_says(text: str, *, status: int = 0, stderr: str = "") -> FakeExecutor:
    return FakeExecutor(answers={"fio": lambda argv: Completed(argv, status, text, stderr)})


class TestHost:
    """What a machine is."""

    def test_facts_of_this_machine_match_the_system(self) -> None:
        """Facts are those that the system itself tells."""
        facts = probe_host(HERE)
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert facts.host == "local"
        assert facts.kernel == os.uname().release
        assert facts.cpus == os.sysconf("SC_NPROCESSORS_ONLN")
        assert facts.memory_bytes == memory
        assert facts.os
        version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True)
        assert facts.fio_version == version.stdout.strip()

    def test_a_machine_is_identified_without_its_machine_id(self) -> None:
        """The machine-id is confidential: only a digest of it leaves."""
        entry, other = (
            probe_host(FakeExecutor(files={"/etc/machine-id": f"{digit * 32}\n"})).machine
            for digit in "12"
        )
        assert entry != other
        assert len(entry) == 16
        assert "1111" not in entry

    def test_a_virtual_machine_is_recognised(self) -> None:
        """CPUs are counted from the kernel's list, and its flags tell a guest."""
        machine = FakeExecutor(
            files={
                "/sys/devices/system/cpu/online": "0-2,5,8-9\n",
                "/proc/cpuinfo": "model name\t: Fast One\nflags\t\t: fpu hypervisor\n",
                "/proc/meminfo": "MemTotal:        2048 kB\nMemFree: 1 kB\n",
                "/etc/os-release": 'NAME=x\nPRETTY_NAME="Some Linux 1"\n',
                "/proc/sys/kernel/osrelease": "6.1.0\n",
            }
        )
        facts = probe_host(machine)
        assert (facts.cpus, facts.cpu_model, facts.virtualization) == (6, "Fast One", "vm")
        assert (facts.memory_bytes, facts.os, facts.kernel) == (
            2048 * 1024,
            "Some Linux 1",
            "6.1.0",
        )
        machine.answers["systemd-detect-virt"] = lambda argv: Completed(argv, 0, "kvm\n", "")
        assert probe_host(machine).virtualization == "kvm"


class TestFio:
    """Which fio runs are made with."""

    @pytest.mark.parametrize("version", ["fio-2.2.10", "fio-3.1", "fio-3.17", "fio-3.17-12-gabc"])
    def test_an_old_fio_is_refused(self, version: str) -> None:
        """Runs are not made with a fio whose results lack what is needed."""
        with pytest.raises(FioError, match=f"is {version}; runs need fio 3.18 or newer"):
            require_fio(_fio_that_says(f"{version}\n"))

    def test_a_broken_fio_is_refused(self) -> None:
        """The words of a fio that does not work are quoted, and a probe goes on without it."""
        broken = _fio_that_says("", status=127, stderr="error while loading shared libraries\n")
        with pytest.raises(FioError, match="error while loading shared libraries"):
            require_fio(broken)
        assert probe_host(broken).fio_version == ""


class TestTarget:
    """What a target is."""

    def test_folders_and_files_are_recognised(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Targets are told apart and made absolute; a file need not exist."""
        (tmp_path / "file").write_text("x", encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        kinds = {".": VolumeKind.DIRECTORY, "file": VolumeKind.FILE, "new": VolumeKind.FILE}
        for target, kind in kinds.items():
            volume = find_volume(HERE, role="data", target=target)
            assert (volume.role, volume.kind, volume.pin) == ("data", kind, None)
            assert volume.target == str(tmp_path / target)

    @pytest.mark.parametrize("target", ["", "a\nb", "\x00", "/dev/sd\x1bb"])
    def test_a_path_must_be_text(self, target: str) -> None:
        """Control characters never get further."""
        with pytest.raises(InputError, match="is not a target for role data"):
            find_volume(HERE, role="data", target=target)

    def test_a_mistyped_device_is_refused(self, tmp_path: Path) -> None:
        """A name under /dev where nothing stands is refused, not made; so is a link to it."""
        link, name = tmp_path / "link", "/dev/no-such-disk"
        link.symlink_to(name)
        for target in (name, "/dev/../dev/no-such-disk", "/dev/disk/by-id/none", str(link)):
            with pytest.raises(RefusedError, match="does not exist: fio would create a file"):
                find_volume(HERE, role="data", target=target)
        assert not Path("/dev/no-such-disk").exists()

    def test_character_devices_and_pipes(self, tmp_path: Path) -> None:
        """What is neither file, folder nor block device is no volume."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        kinds = {"/dev/null": "a character device", str(pipe): "a pipe or a socket"}
        for target, what in kinds.items():
            with pytest.raises(RefusedError, match=f"is {what}, which cannot be measured"):
                find_volume(HERE, role="data", target=target)

    def test_a_path_of_a_process_is_refused(self, tmp_path: Path) -> None:
        """Fio is another process, in another folder."""
        with pytest.raises(RefusedError, match="differs between processes"):
            find_volume(HERE, role="data", target=f"/proc/self/root{tmp_path}")
        (tmp_path / "here").symlink_to("/proc/self/cwd")
        (tmp_path / "door").symlink_to("here/")
        with pytest.raises(RefusedError, match="door/x differs between processes") as caught:
            find_volume(HERE, role="data", target=f"{tmp_path}/door/x")
        assert caught.value.hint == f"name it as {Path.cwd()}/x"

    def test_a_file_named_twice_is_refused(self, tmp_path: Path) -> None:
        """By one name, by two of a new file, or by a hard link."""
        file, link, folder = (tmp_path / name for name in ("file", "link", "folder"))
        file.write_bytes(b"x")
        link.hardlink_to(file)
        folder.symlink_to(".")
        for one, two in ((file, file), (file, link), (tmp_path / "new", folder / "new")):
            with pytest.raises(InputError, match="has a device or file twice"):
                find_volume(HERE, role="data", target=f"{one}:{two}")

    def test_a_missing_folder(self, tmp_path: Path) -> None:
        """A new file needs a folder that is there: fio would make it on the backing disk."""
        for target in (tmp_path / "none" / "file", tmp_path / "none" / "deeper" / "file"):
            with pytest.raises(RefusedError, match=f"there is no folder {target.parent}") as caught:
                find_volume(HERE, role="data", target=str(target))
            assert "mkdir -p" in caught.value.hint
        with pytest.raises(RefusedError, match="does not exist"):
            find_volume(HERE, role="data", target=f"{tmp_path}/none/")

    @pytest.mark.parametrize("target", ["/data", "/mnt/volume", "/media/volume"])
    def test_a_missing_mount_point(self, target: str) -> None:
        """A new name where mount points are is a volume that is not there."""
        machine = Server().machine
        machine.files = {k: v for k, v in machine.files.items() if not k.startswith("/data/")}
        machine.files |= {"/mnt/x": "", "/media/x": ""}
        folder = target.rpartition("/")[0] or "/"
        with pytest.raises(RefusedError, match=f"fio would fill the disk of {folder}$"):
            find_volume(machine, role="data", target=target)

    def test_a_new_file_on_a_volume_at_mnt(self) -> None:
        """A filesystem mounted at /mnt itself may take new files."""
        server = Server()
        server.machine.files["/mnt/x"] = ""
        server.mount("28 27 8:17 / /mnt rw - ext4 /dev/sdb1 rw")
        volume = find_volume(server.machine, role="data", target="/mnt/new")
        assert volume.kind is VolumeKind.FILE

    def test_the_link_of_a_disk(self) -> None:
        """SATA, PCIe of a controller and of a subsystem, USB, and a virtual disk without one."""
        texts = {
            "/sys/class/ata_link/link3/sata_spd": "6.0 Gbps\n",
            "/sys/devices/p/nvme0/device/current_link_speed": "8.0 GT/s PCIe\n",
            "/sys/devices/p/nvme0/device/current_link_width": "4\n",
            "/sys/devices/sub/nvme1/device/current_link_speed": "5.0 GT/s PCIe\n",
            "/sys/devices/sub/nvme1/device/current_link_width": "2\n",
            "/sys/devices/usb2/2-1/speed": "5000\n",
            "/sys/devices/usb2/2-1/busnum": "2\n",
        }
        snapshot = mock.Mock(
            text=lambda path: texts.get(path, ""),
            names=lambda path: ["nvme1"] if path.endswith("sub") else ["nvme0n1"],
        )
        disks = ("ata3/host2/sdb", "p/nvme0/nvme0n1", "sub/nvme0n1", "usb2/2-1/host1/sdc", "v/vda")
        for path, megabytes in zip(disks, (600, 3938, 1000, 500, 0), strict=True):
            disk = BlockDevice((8, 16), path.rpartition("/")[2], "", f"/sys/devices/{path}")
            assert Devices(snapshot).link(disk)[1] // 10**6 == megabytes

    def test_a_device_is_pinned(self) -> None:
        """A device is known by number, size, serial and model, those of the disk for its part."""
        server = Server()
        server.disk(
            *("nvme0n1", (259, 0)),
            device__vpd_pg80="\x00\ufffd\x00\x04ABC ",  # SCSI has a binary header
            device__model="Fast 1",
            wwid="eui.1",
        )
        server.part("nvme0n1", "nvme0n1p1", (259, 1))
        server.machine.links["/dev/disk/by-id/it"] = "/dev/nvme0n1p1"
        volume = find_volume(server.machine, role="data", target="/dev/disk/by-id/it")
        assert volume.target == "/dev/disk/by-id/it"
        assert volume.pin is not None
        assert volume.pin.model_dump() == {
            "path": "/dev/nvme0n1p1",
            "major": 259,
            "minor": 1,
            "size_bytes": 10 * GIB,
            "serial": "ABC",
            "model": "Fast 1",
            "wwid": "eui.1",
            "by_id": "it",
            "backing": "",
            "start_sector": 0,
            "boot_id": "b00t",
            "diskseq": 3,
            "edges": "",
            "signature": "",
        }

    def test_a_device_without_a_medium(self) -> None:
        """A device of no size, or one that the kernel does not know, is refused."""
        server = Server()
        empty = server.disk("sr0", (11, 0), size="0")
        server.machine.stats["/dev/old"] = FileStat("block", (0, 6), (3, 0), 9, 0)
        for target in (empty, "/dev/old"):
            with pytest.raises(RefusedError, match=f"{target} is a block device without capacity"):
                find_volume(server.machine, role="data", target=target)


class TestVolume:
    """What stands under a volume."""

    def test_a_folder_is_described(self, tmp_path: Path) -> None:
        """A folder has the filesystem, the free bytes and the device that the system tells."""
        facts = probe_volume(HERE, find_volume(HERE, role="d", target=str(tmp_path)))
        reported = subprocess.run(
            ["findmnt", "-n", "-o", "TARGET,FSTYPE", "-T", str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert [facts.mount_point, facts.filesystem] == reported.stdout.split()
        assert facts.free_bytes
        assert facts.content == ""

    def test_every_device_of_a_stack_is_named(self) -> None:
        """Everything under a device is named, nearest first, and its disk's queue is read."""
        server = Server()
        server.disk("sdb", (8, 16), queue__rotational="0", queue__scheduler="none [kyber]")
        server.part("sdb", "sdb1", (8, 17))
        server.build("md0", (9, 0), "sdb1")
        top = server.build("dm-0", (253, 0), "md0")
        facts = probe_volume(server.machine, find_volume(server.machine, role="d", target=top))
        assert facts.backing == ("md0", "sdb1", "sdb")
        assert (facts.rotational, facts.scheduler, facts.write_cache) == (None, "", "")
        part = find_volume(server.machine, role="d", target="/dev/sdb1")
        facts = probe_volume(server.machine, part)
        assert facts.backing == ("sdb",)
        assert (facts.rotational, facts.scheduler) == (False, "kyber")
        assert (facts.major, facts.minor, facts.size_bytes) == (8, 17, 10 * GIB)

    @pytest.mark.parametrize("lower", ["/data", "/data/x"])
    def test_a_mount_that_a_younger_one_hides_does_not_count(self, lower: str) -> None:
        """A path is on what the kernel finds there, not on the longest mount point."""
        server = Server()
        server.mount(f"28 27 8:17 / {lower} rw - ext4 /dev/sdb1 rw")
        above = 28 if lower == "/data" else 27
        server.mount(f"29 {above} 0:40 / /data rw - tmpfs none rw,size=1k")
        folder = find_volume(server.machine, role="d", target=lower)
        facts = probe_volume(server.machine, folder)
        assert (facts.filesystem, facts.mount_options, facts.device) == ("tmpfs", "rw,size=1k", "")


class TestRealDevice:
    """What stands under and on a loop device."""

    pytestmark = pytest.mark.root

    def test_a_device_in_use_lists_its_users(self, disks: Disks) -> None:
        """A loop device tells its image, its content, its mount and the backing disk."""
        image = disks.image()
        device = disks.attach(image)
        disks.format(device)
        point = disks.mount(device)
        facts = probe_volume(HERE, find_volume(HERE, role="d", target=device))
        assert facts.kind is VolumeKind.DEVICE
        assert (facts.device, facts.major) == (Path(device).name, 7)
        assert (facts.model, facts.size_bytes) == (f"file {image}", IMAGE_BYTES)
        assert (facts.filesystem, facts.mount_point, facts.content) == ("ext4", str(point), "ext4")
        assert facts.read_only is False
        assert facts.logical_block_bytes == 512
        folder = probe_volume(HERE, find_volume(HERE, role="d", target=str(point)))
        assert folder.model_dump(include={"device", "model", "backing", "mount_options"}) == (
            facts.model_dump(include={"device", "model", "backing", "mount_options"})
        )
        assert folder.content == ""
        assert 0 < (folder.free_bytes or 0) < IMAGE_BYTES

    def test_a_device_is_described_in_plain_english(self, disks: Disks) -> None:
        """A person sees model, size, serial and what would be lost."""
        image = disks.image()
        device = disks.attach(image)
        words = describe_device(
            probe_volume(HERE, find_volume(HERE, role="d", target=device)), host="vm01"
        )
        assert words.splitlines() == [
            "host:    vm01",
            f"device:  {device}",
            f"model:   file {image}",
            f"size:    32 MiB ({IMAGE_BYTES} bytes)",
            "serial:  unknown",
            "on it:   no known signature",
        ]
        disks.format(device)
        subprocess.run(["tune2fs", "-L", "backup", device], capture_output=True, check=True)
        facts = probe_volume(HERE, find_volume(HERE, role="d", target=device))
        assert describe_device(facts, host="vm01").splitlines()[-1] == 'on it:   ext4 "backup"'
        evil = facts.model_copy(update={"content": "\x1b[2Jext4"})
        assert "\x1b" not in describe_device(evil, host="vm01")
