"""One job on several devices or files: consent, guard, lock and identity hold for each of them."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.command_line import call
from tests.engine.conftest import Disks
from volbench import open_campaign
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.device_lock import devices_of
from volbench.errors import InputError
from volbench.execute.local import LocalExecutor
from volbench.store.archive import read_campaign
from volbench.store.journal import read_history

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("disks")]
WRITE = ("--rw=randwrite", "--bs=4k", "--runtime=1s", "--time_based", "--name=t")


def write(folder: Path, *devices: str, allowed: str) -> CompletedProcess[str]:
    """Write to devices as one job."""
    consent = ("--allow-destroy", allowed) if allowed else ()
    options = ("run", "--yes", "-o", folder / "out", *consent, "--", "fio")
    return call(*options, f"--filename={':'.join(devices)}", *WRITE, cwd=folder)


@pytest.mark.parametrize("use", ["not allowed", "is mounted", "holds ext4"])
@pytest.mark.parametrize("place", [0, 1])
def test_each_device_is_guarded(tmp_path: Path, disks: Disks, use: str, place: int) -> None:
    """Not a byte of any is changed as long as one of them must not be overwritten."""
    devices = [disks.attach(), disks.attach()]
    if use != "not allowed":
        disks.format(devices[place])
    if use == "is mounted":
        disks.mount(devices[place])
    quiet = [each for each in devices if use != "is mounted" or each != devices[place]]
    before = [Path(device).read_bytes() for device in quiet]
    both = ":".join(devices)
    done = write(tmp_path, *devices, allowed=devices[1 - place] if use == "not allowed" else both)
    words = f"would overwrite {both}" if use == "not allowed" else f"{devices[place]} {use}"
    assert done.returncode == 3
    assert words in done.stderr
    assert [Path(device).read_bytes() for device in quiet] == before


def test_a_job_on_two_devices_is_one_run(tmp_path: Path, disks: Disks) -> None:
    """The job has both; each is locked, sampled and pinned, and its content known at the end."""
    devices = [disks.attach(), disks.attach()]
    done = write(tmp_path, *devices, allowed=":".join(devices))
    assert done.returncode == 0, done.stderr
    first, second = (Path(device).name for device in devices)
    assert {f"{first} and {second}: ", f"{second} and {first}: "} & {
        done.stdout.partition("1 w")[0]
    }
    assert f"filename={':'.join(devices)}\n" in next(tmp_path.glob("out/runs/*/*.fio")).read_text()
    frame = open_campaign(tmp_path / "out").frame("device")
    assert {*frame["device"]} >= {first, second, f"{first}+{second}"}
    joined = frame[frame["level"] == "volume"]["write_iops"].sum()
    assert joined == pytest.approx(
        sum(frame[frame["device"] == name]["write_iops"].sum() for name in (first, second)), rel=0.1
    )
    layout, archive = read_campaign(tmp_path / "out")
    numbers = devices_of(archive.campaign, "local")
    assert sorted(numbers.values()) == sorted(devices)
    digests = read_history(layout.journal).edges["local"]
    assert all(digests[number] for number in numbers)


def test_files_in_several_folders_share_the_size(tmp_path: Path, disks: Disks) -> None:
    """Each file system must have room for its part, and both files are gone at the end."""
    small = disks.attach(disks.image(128 << 20))
    disks.format(small)
    folders = disks.mount(small), tmp_path / "large"
    folders[1].mkdir()
    names = ":".join(f"{folder}/file" for folder in folders)
    for size, code in (("1g", 3), ("2m", 0)):
        command = ("fio", f"--filename={names}", "--rw=randrw", f"--size={size}", "--name=t")
        done = call("run", "--yes", "-o", tmp_path / size, "--", *command, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        assert code == 0 or f"{folders[0]}/file needs 512 MiB" in done.stderr
    assert not [*tmp_path.glob("large/*"), *folders[0].glob("file")]


def test_only_different_devices_make_a_list(tmp_path: Path, disks: Disks) -> None:
    """Directories do not, nor a device and a link to it."""
    device, link = disks.attach(), tmp_path / "link"
    link.symlink_to(device)
    for target, words in ((f"{device}:{link}", "twice"), (f"{tmp_path}:{link}", "not a list")):
        with pytest.raises(InputError, match=words):
            find_volume(LocalExecutor(), role="data", target=target)
