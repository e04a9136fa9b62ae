import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, has_ended, until
from volbench.errors import InputError, RefusedError, VolbenchError
from volbench.extensions.lab import server
from volbench.extensions.lab.scenario import Scenario, load_scenario, read_scenario
from volbench.extensions.lab.server import check_tools, serve

pytestmark = pytest.mark.slow

COLD = """
name: cold
size: 4m
block: 64k
service: {read: 0.5ms, write: 0.5ms}
first_touch: {write: 50ms}
"""
CONTROLLER = """
import sys
from pathlib import Path
from volbench.extensions.lab.scenario import read_scenario
from volbench.extensions.lab.server import serve
with serve(read_scenario("p15"), Path(sys.argv[1]), device=sys.argv[2] == "device") as volume:
    print(volume.pid, volume.device, flush=True)
    sys.stdin.read()
"""


def fio(target: str, *options: str) -> dict[str, float]:
    """Run fio on a volume and return what it says of its writes."""
    where = ["--ioengine=nbd", f"--uri={target}"]
    if target.startswith("/dev/"):
        where = ["--ioengine=libaio", "--direct=1", f"--filename={target}"]
    command = ["fio", "--name=x", "--output-format=json", *where, *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    written = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["write"]
    median_ns = written["clat_ns"].get("percentile", {}).get("50.000000", 0)
    return {"iops": written["iops"], "lat_s": median_ns / 1e9}


def printed(*command: str) -> str:
    """Return what a program that must succeed prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def attached_files() -> str:
    """Return the files behind all loop devices."""
    return printed("losetup", "--list", "--raw")


@pytest.fixture
def cold() -> Scenario:
    """Return a small volume whose first writes are slow."""
    return load_scenario(COLD, path="cold.yaml")


def test_warm_blocks_and_data_outlive_a_connection(cold: Scenario, tmp_path: Path) -> None:
    """A second fio finds warm the blocks that a first one wrote, and its bytes."""
    write = ("--rw=write", "--bs=64k", "--size=1m", "--iodepth=1", "--verify_state_save=0")
    with serve(cold, tmp_path) as volume:
        first = fio(volume.uri, *write, "--verify=crc32c", "--do_verify=1")
        second = fio(volume.uri, *write)
        extents = printed("nbdinfo", "--map", volume.uri).split()
    assert first["lat_s"] > 0.05
    assert second["lat_s"] < 0.04
    assert extents[:4] == ["0", str(1024**2), "0", "data"]


def test_trim_makes_blocks_cold_again(cold: Scenario, tmp_path: Path) -> None:
    """A trimmed block pays its first write once more."""
    write = ("--rw=write", "--bs=64k", "--size=512k", "--iodepth=1")
    with serve(cold, tmp_path) as volume:
        fio(volume.uri, *write)
        fio(volume.uri, "--rw=trim", "--bs=512k", "--size=512k")
        assert fio(volume.uri, *write)["lat_s"] > 0.05


@pytest.mark.smoke
def test_each_server_starts_with_a_fresh_volume(cold: Scenario, tmp_path: Path) -> None:
    """The same folder serves a cold volume again, and nothing of the first is left running."""
    write = ("--rw=write", "--bs=64k", "--size=512k", "--iodepth=1")
    pids = []
    for _ in range(2):
        with serve(cold, tmp_path) as volume:
            pids.append(volume.pid)
            assert fio(volume.uri, *write)["lat_s"] > 0.05
        assert has_ended(volume.pid)
    assert pids[0] != pids[1]
    assert not (tmp_path / "volume.sock").exists()


@pytest.mark.root
def test_the_block_device_is_removed_when_the_server_ends(tmp_path: Path) -> None:
    """The device has the volume's size, keeps its cap, and is detached at the end."""
    with serve(read_scenario("p15"), tmp_path, device=True) as volume:
        assert int(printed("blockdev", "--getsize64", volume.device)) == 64 * 1024**2
        options = ("--rw=randwrite", "--bs=4k", "--iodepth=16", "--number_ios=2200")
        assert fio(volume.device, *options)["iops"] < 1100 * 1.01
    until(lambda: str(tmp_path) not in attached_files())
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


@pytest.mark.parametrize("how", ["uri", pytest.param("device", marks=[pytest.mark.root])])
def test_a_killed_controller_leaves_nothing_running(tmp_path: Path, how: str) -> None:
    """Server, FUSE and loop device end with a controller that could not clean up."""
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(tmp_path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert controller.stdin is not None
    assert controller.stdout is not None
    pid, _, device = controller.stdout.readline().strip().partition(" ")
    assert not has_ended(int(pid))
    controller.send_signal(signal.SIGKILL)
    controller.communicate(timeout=PATIENCE_S)
    until(lambda: has_ended(int(pid)))
    if device:
        until(lambda: str(tmp_path) not in attached_files())
        until(lambda: str(tmp_path) not in Path("/proc/mounts").read_text())


def test_the_error_of_a_failed_server_is_reported(
    cold: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When nbdkit ends at once, the error quotes it and names its log."""
    monkeypatch.setattr(server, "_PLUGIN", tmp_path / "missing.py")
    with (
        pytest.raises(VolbenchError, match=r"nbdkit exited: .*missing\.py") as caught,
        serve(cold, tmp_path),
    ):
        pass
    assert "nbdkit.log" in caught.value.hint


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nbdkit the error says which packages to install."""
    monkeypatch.setattr(server, "_path", lambda: "/nonexistent")
    with pytest.raises(InputError, match="nbdkit is not installed") as caught:
        check_tools()
    assert "nbdkit-plugin-python" in caught.value.hint


@pytest.mark.parametrize("name", ["a b", "x" * 100])
def test_a_socket_that_fio_would_misread_is_refused(
    cold: Scenario, tmp_path: Path, name: str
) -> None:
    """Paths that are too long or hold signs with a meaning in a URI are refused before serving."""
    with pytest.raises(InputError, match="socket cannot be created"), serve(cold, tmp_path / name):
        pass
    assert not (tmp_path / name).exists()


def test_a_folder_with_an_image_of_the_user_is_refused(cold: Scenario, tmp_path: Path) -> None:
    """Its lab would hide the image, and remove it in the end."""
    image = tmp_path / "volume.img"
    image.write_bytes(b"guest")
    for name in ("parameters.json", "nbdkit.log"):
        with pytest.raises(InputError, match=" which the lab would"), serve(cold, tmp_path):
            pass
        (tmp_path / name).touch()
    assert image.read_bytes() == b"guest"


def test_parameters_of_the_user_are_not_replaced(cold: Scenario, tmp_path: Path) -> None:
    """A folder is that of a lab by the keys of its parameters, not by names of files alone."""
    (tmp_path / "nbdkit.log").write_text("mine")
    (tmp_path / "parameters.json").write_text('{"learning_rate": 1}')
    with pytest.raises(RefusedError, match="is not replaced"), serve(cold, tmp_path):
        pass
    assert (tmp_path / "nbdkit.log").read_text() == "mine"


def test_plugin_runs_without_the_dependencies(tmp_path: Path) -> None:
    """What nbdkit's own Python imports is the standard library alone."""
    code = (
        "import sys; import volbench.extensions.lab.simulated_disk;"
        "import volbench.extensions.lab.disk_model;"
        "from pathlib import Path; own = {m.partition('.')[0] for m in sys.modules};"
        "print(sorted(own & {'pydantic', 'ruamel', 'numpy', 'pandas', 'click'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("name", "holds_data"), [("clean", True), ("never-written", False)])
def test_restored_volume_holds_data(name: str, tmp_path: Path, *, holds_data: bool) -> None:
    """Every page of a restored volume has content; a fresh one is all zeros."""
    with serve(read_scenario(name).resized(1024**2), tmp_path / "lab") as volume:
        copy = tmp_path / "copy"
        subprocess.run(["nbdcopy", volume.uri, str(copy)], check=True, timeout=300)
    content = copy.read_bytes()
    pages = {content[at : at + 4096] for at in range(0, len(content), 4096)}
    assert (bytes(4096) in pages) is not holds_data
    assert len(pages) == (256 if holds_data else 1)


@pytest.mark.root
@pytest.mark.parametrize(
    ("owner", "mode", "name"),
    [(4711, 0o755, "lab/deep"), (0, 0o777, "lab"), (0, 0o1777, "lab"), (0, 0o1777, "lab/deep")],
)
def test_root_serves_in_no_folder_that_others_write_to(
    cold: Scenario, tmp_path: Path, owner: int, mode: int, name: str
) -> None:
    """A link in the place of the parameters would lead root to any file."""
    secret = tmp_path / "secret"
    secret.write_text("kept")
    folder = tmp_path / name
    folder.mkdir(parents=True)
    (folder / "parameters.json").symlink_to(secret)
    os.chown(tmp_path / "lab", owner, owner)
    (tmp_path / "lab").chmod(mode)
    if name != "lab" and mode == 0o1777:  # what is in a sticky folder can be trusted
        (folder / "parameters.json").unlink()
        with serve(cold, folder):
            return
    with pytest.raises(RefusedError, match="who could"), serve(cold, folder):
        pass
    assert secret.read_text() == "kept"
