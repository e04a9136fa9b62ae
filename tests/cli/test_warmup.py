"""`volbench warmup` with real fio: every block once, proven, resumable, never without leave."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.command_line import COMMAND, Volbench
from tests.engine.conftest import attach_loop
from tests.held_fio import HeldFio
from tests.waiting import Started, until
from volbench.api.many_campaigns import open_campaign
from volbench.plan.expansion.extents import RANDOM

pytestmark = pytest.mark.slow

MIB = 1 << 20


def hole(path: Path, size: int) -> Path:
    """Return a file of a size without a single block."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


def words_of(out: Path) -> list[dict[str, object]]:
    """Return the journal."""
    return [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("size", [300, 4097, 10_000_001])  # none of them whole blocks
def test_every_block_of_a_file_is_written_once(
    size: int, tmp_path: Path, volbench: Volbench
) -> None:
    """No hole is left, the file keeps its length, and fio counted exactly its bytes."""
    file = hole(tmp_path / "f", size)
    words = "--allow-destroy", file, "--numjobs", 3, "--output", "c"
    done = volbench("warmup", "--on", file, *words)
    assert done.returncode == 0, done.stderr
    assert f"write: {size} of {size} bytes" in done.stdout
    assert f"read: {size} of {size} bytes" in done.stdout
    assert "bandwidth" not in done.stdout  # that of a table is of the jobs while all of them run
    content = file.read_bytes()
    assert (len(content), file.stat().st_blocks * 512 >= size) == (size, True)
    pages = (content[at : at + 4096] for at in range(0, size, 4096))
    # A single random byte is zero once in 256 times; 16 of them never are.
    assert all(any(page) for page in pages if len(page) >= 16)


@pytest.mark.smoke
def test_reading_needs_no_consent_and_never_writes(tmp_path: Path, volbench: Volbench) -> None:
    """The mode read changes nothing; a file that is too short is refused, not laid out."""
    file = tmp_path / "f"
    file.write_bytes(b"mine" * (MIB // 2))
    done = volbench("warmup", "--on", file, "--mode", "read", "--output", "c")
    assert done.returncode == 0, done.stderr
    assert "write" not in done.stdout.partition("warm:")[2]
    assert file.read_bytes() == b"mine" * (MIB // 2)
    part = volbench("warmup", "--on", file, "--mode", "read", "--output", "p", "--size", "1m")
    assert f"warm: the first 1m of 2m of {file}." in part.stdout
    short = volbench("warmup", "--on", file, "--mode", "read", "--output", "s", "--size", "4m")
    assert short.returncode == 3, short.stderr
    assert "shorter than" in short.stderr
    assert file.read_bytes() == b"mine" * (MIB // 2)


PROFILE = """name: p
sample: 0
device_sample: 0
phases:
  warmup:
    fill: {warming: {mode: write, extents: 6}, numjobs: 1, iodepth: 1, rate: ",2m"}
jobs:
  after: {rw: randread, bs: 4k, io_size: 64k, ioengine: psync}
"""


def killed_after(count: int, arguments: list[str], folder: Path) -> None:
    """Start volbench and kill it without notice when so many extents of 1 MiB are written."""
    held = HeldFio(folder, f"^offset={count * MIB}$").environment
    command = [*COMMAND, *arguments]
    with Started(command, cwd=folder, env=held, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(f"finished {count:03}" in line for line in process.stderr)
        process.kill()
    assert process.returncode == -signal.SIGKILL


def test_a_killed_warm_up_continues_where_it_was(tmp_path: Path, volbench: Volbench) -> None:
    """Nothing that was finished before the controller was killed is done again."""
    file, out = hole(tmp_path / "f", 6 * MIB), tmp_path / "c"
    (tmp_path / "p.yaml").write_text(PROFILE)
    arguments = ["run", "p.yaml", "--on", str(file), "--allow-destroy", str(file), "--output", "c"]
    killed_after(2, arguments, tmp_path)
    done = volbench("resume", out)
    assert done.returncode == 0, done.stderr
    assert f"write: {6 * MIB} of {6 * MIB} bytes" in done.stdout
    ended = [line["run"] for line in words_of(out) if line.get("state") == "finished"]
    assert len(ended) == len(set(ended)) == 8


def test_lost_writes_are_not_verified_as_warm(tmp_path: Path, volbench: Volbench) -> None:
    """The sample fails on a file that holds zeros where blocks were written."""
    file, out = hole(tmp_path / "f", 6 * MIB), tmp_path / "c"
    (tmp_path / "p.yaml").write_text(PROFILE)
    arguments = ["run", "p.yaml", "--on", str(file), "--allow-destroy", str(file), "--output", "c"]
    killed_after(5, arguments, tmp_path)
    with file.open("r+b") as content:
        content.write(bytes(5 * MIB))
    done = volbench("resume", out)
    assert done.returncode == 9
    assert "a block read back differs from the data written" in done.stderr
    assert "warm:" not in done.stdout


def test_a_missing_volume_is_not_created_by_a_warm_up(tmp_path: Path, volbench: Volbench) -> None:
    """No file is made to warm: volbench would remove what it made when a campaign ends."""
    for target in (tmp_path / "nothing", tmp_path):
        done = volbench("warmup", "--on", target, "--size", "1m", "--output", "c")
        assert done.returncode == 2, done.stderr
        assert "is not an existing device, file" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("size", [4096, 20 * MIB + 2560])
def test_every_sector_of_a_device_is_written_once(
    size: int, tmp_path: Path, volbench: Volbench
) -> None:
    """The kernel's own counter of written sectors grew by the size of the device, no more."""
    file = hole(tmp_path / "f", size)
    device = attach_loop(file)
    try:
        statistics = Path("/sys/block", Path(device).name, "stat")
        before = int(statistics.read_text().split()[6])
        refused = volbench("warmup", "--on", device, "--output", "no")
        assert refused.returncode == 3
        allowed = ("--allow-destroy", device, "--size", str(size + 512), "--output", "no")
        larger = volbench("warmup", "--on", device, *allowed)
        assert larger.returncode == 2
        assert f"has only {size}" in larger.stderr
        done = volbench(
            "warmup", "--on", device, "--allow-destroy", device, "--numjobs", 4, "--output", "c"
        )
        assert done.returncode == 0, done.stderr
        assert (int(statistics.read_text().split()[6]) - before) * 512 == size
        assert file.stat().st_blocks * 512 >= size
        again = volbench(
            "warmup", "--on", device, "--mode", "read", "--numjobs", 4, "--output", "r"
        )
        assert again.returncode == 0, again.stderr
        assert (int(statistics.read_text().split()[6]) - before) * 512 == size
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


# The options of fio 3.41, no package of which is at hand: instead of sprandom, 15 % more is written
NEWER = r"""#!/bin/sh
case "$*" in
--version) exec echo fio-3.41 ;;
--cmdhelp=all) echo 'sprandom : Precondition' ;;
--cmdhelp=sprandom) printf 'sprandom: Precondition\n type: Boolean value\n'; exit ;;
--parse-only*) exit ;;
esac
for word; do
    shift
    case "$word" in *job.fio) sed -i 's/^sprandom=1$/io_size=1150000/' "$word" ;; esac
    set -- "$@" "$word"
done
exec /usr/bin/fio "$@"
"""


@pytest.mark.parametrize(
    ("version", "mode"), [("3.33", "random"), ("3.41", "random"), ("3.33", "sprandom")]
)
def test_an_ssd_is_conditioned(
    version: str, mode: str, tmp_path: Path, volbench: Volbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By sprandom where fio has it, which writes more than the volume; else as its mode says."""
    if is_newer := version == "3.41":
        fio = tmp_path / "fio"
        fio.write_text(NEWER, encoding="utf-8")
        fio.chmod(0o755)
        monkeypatch.setenv("PATH", str(fio.parent), prepend=os.pathsep)
    file = hole(tmp_path / "f", 1_000_001)
    done = volbench("warmup", "--on", file, "--mode", mode, "--allow-destroy", file, "-o", "c")
    assert done.returncode == 0, done.stderr
    first, *rest = open_campaign(tmp_path / "c").campaign.runs
    options = first.sections[0].options
    twice = {"rw": "write", "bs": "131072", "loops": "2"}
    assert options.items() >= ({**RANDOM, "bs": "4096"} if mode == "random" else twice).items()
    assert ("sprandom" in options, "has it from 3.41" in done.stderr) == (is_newer, not is_newer)
    said = volbench("check", "c").stdout
    how = "writes in random order" if mode == "random" else "two sequential writes"
    assert (f"{how}, 100%" in said, "by sprandom" in said) == (True, is_newer)
    assert not any("sprandom" in run.sections[0].options for run in rest)
    pages = (file.read_bytes()[at : at + 4096] for at in range(0, 1_000_000, 4096))
    assert all(map(any, pages))
    assert ("writes in random order: 11" in done.stdout) == is_newer, done.stdout


def test_used_blocks_of_an_export_are_read_once(tmp_path: Path, volbench: Volbench) -> None:
    """In order, none of the holes, and none twice after an interruption; what is cold is named."""
    file, log, socket = hole(tmp_path / "f", 700 * MIB), tmp_path / "log", tmp_path / "s"
    with file.open("r+b") as content:
        for at in (0, 200, 264, 328, 390, 699):
            content.seek(at * MIB)
            content.write(b"x" * MIB)
    uri = f"nbd+unix:///?socket={socket}"
    server = ["nbdkit", "-f", "-U", socket, "--filter=log", "file", file, f"logfile={log}"]
    with Started([str(word) for word in server]) as serving:
        until(socket.exists)
        arguments = ["warmup", "--on", uri, "--mode", "read-written", "--output", "c"]
        held = HeldFio(tmp_path, f"^offset={264 * MIB}$").environment
        command, to = [*COMMAND, *arguments], subprocess.PIPE
        with Started(command, cwd=tmp_path, env=held, stderr=to, text=True) as process:
            assert process.stderr is not None
            assert any("finished 002" in line for line in process.stderr)
            process.kill()
        done = volbench("resume", "c")
        serving.terminate()
    assert done.returncode == 0, done.stderr
    assert "still cold: 507m that hold no data" in done.stdout
    assert "used blocks as the NBD server reports" in done.stdout
    entries = words_of(tmp_path / "c")
    chosen = {line["run"]: line["options"] for line in entries if line["kind"] == "chosen"}
    assert next(iter(chosen.values())) == {"iodepth": "4"}
    assert [line["run"] for line in entries if line.get("state") == "finished"] == [*chosen]
    reads = re.findall(r" Read id=\d+ offset=(0x[0-9a-f]+) count=0x100000", log.read_text())
    assert {int(offset, 16) // MIB for offset in reads} == {0, *range(200, 391), 699}
