"""Real sampling processes: what they print, when they end, what is kept of them."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.execute.fake import FakeExecutor
from tests.waiting import has_ended, until
from volbench.analyse.frames.kernel_counters import SampleReader
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.sampling import proc_sampler
from volbench.engine.sampling.sampler import Sampler, sampler_commands, sampling
from volbench.execute.local import LocalExecutor
from volbench.store.layout import RunFolder

PROGRAMS = ("python3", "sh")


def some_device() -> str:
    """Return a block device that this machine counts for."""
    return Path("/proc/diskstats").read_text(encoding="ascii").split()[2].replace("/", "!")


def command(program: str, *, interval_s: float = 0.1, life_s: float = 60.0) -> list[str]:
    """Return what samples with one of the two programs."""
    commands = sampler_commands(
        LocalExecutor(), [some_device()], interval_s=interval_s, life_s=life_s
    )
    return dict(zip(PROGRAMS, commands, strict=True))[program]


def test_a_run_without_a_deadline_has_a_sampler_that_ends() -> None:
    """Nothing that nobody ends goes on for ever."""
    month_s = 30 * 86400
    assert command("sh", life_s=math.inf)[5] == str(month_s)


def started(folder: Path, *commands: Sequence[str]) -> Sampler:
    """Return a sampler that has delivered its first sample."""
    sampler = Sampler(RunDirectory(LocalExecutor(), RunFolder(folder)))
    sampler.start(commands)
    assert sampler.problem == ""
    return sampler


def collected(sampler: Sampler) -> int:
    """Return how many samples there are by now."""
    sampler.collect()
    return len(sampler.samples)


def kinds(text: str) -> list[list[str]]:
    """Return the first word, and for a device the third, of each line of each whole sample."""
    return [
        [" ".join(line.split()[:1] if line[0] != " " else line.split()[2:3]) for line in lines]
        for lines in (block.strip("\n").split("\n") for block in text.split("\n.\n"))
        if lines[0].startswith("T ")
    ]


def log_of(program: str, folder: Path) -> str:
    """Return what a program prints in a few samples and when it is asked to end."""
    folder.mkdir()
    sampler = started(folder, command(program))
    until(lambda: collected(sampler) >= 3)
    sampler.stop()
    return (folder / "device.log").read_text(encoding="ascii")


def test_both_programs_print_the_same(tmp_path: Path) -> None:
    """Python and shell copy the same lines in the same order, so that one reader reads both."""
    python, shell = (log_of(program, tmp_path / program) for program in PROGRAMS)
    header, _, python = python.partition("\n")
    assert header == f"volbench-samples 1 page {os.sysconf('SC_PAGESIZE')}"
    assert shell.partition("\n")[0] == header
    lines, others = (
        # A fio of another test may start or end between the two.
        [kind for kind in kinds(text)[0] if kind != "wait"]
        for text in (python, shell.partition("\n")[2])
    )
    assert others == lines
    assert {"T", "cpu", "Dirty:", "Writeback:", some_device().replace("!", "/")} <= set(lines)
    assert ("some" in lines) == Path("/proc/pressure/io").exists()


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_counts_the_tasks_of_its_own_run(tmp_path: Path, program: str) -> None:
    """Runs that share a host wait for a CPU each for itself: only the fio of this one counts."""
    tool = tmp_path / "fio"
    shutil.copy("/bin/sleep", tool)
    tools = []
    for name in ("own", "other", "third"):
        (tmp_path / name).mkdir()
        tools.append(subprocess.Popen([tool, "60"], cwd=tmp_path / name))
    try:
        sampler = started(tmp_path / "own", command(program))
        until(lambda: collected(sampler) >= 2)
        sampler.stop()
    finally:
        for process in tools:
            process.kill()
            process.wait()
    log = (tmp_path / "own" / "device.log").read_text(encoding="ascii")
    assert {line.split()[1] for line in log.splitlines() if line.startswith("wait ")} == {"1"}


@contextmanager
def cpu_limit() -> Iterator[Path]:
    """Yield a cgroup that may use a tenth of one CPU."""
    split = Path("/sys/fs/cgroup/cpu")
    parent = split if split.is_dir() else Path("/sys/fs/cgroup")
    if parent != split:
        (parent / "cgroup.subtree_control").write_text("+cpu")
    group = parent / f"volbench-test-{os.getpid()}"
    group.mkdir()
    quota, text = ("cpu.cfs_quota_us", "10000") if parent == split else ("cpu.max", "10000 100000")
    try:
        (group / quota).write_text(text)
        yield group
    finally:
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


@pytest.mark.root
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_counts_what_a_cpu_limit_throttled(tmp_path: Path, program: str) -> None:
    """A real cgroup with a quota, and a program in it that wants a whole CPU."""
    inside = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"']
    with cpu_limit() as group:
        hog = subprocess.Popen([*inside, group, "sh", "-c", "while :; do :; done"])
        try:
            sampler = started(tmp_path, [*inside, str(group), *command(program)])
            until(lambda: collected(sampler) >= 2 and sampler.samples[-1].throttling[0][1] > 0)
            sampler.stop()
        finally:
            hog.kill()
            hog.wait()
    first, last = sampler.samples[0].throttling[0], sampler.samples[-1].throttling[0]
    assert all(later >= earlier for earlier, later in zip(first, last, strict=True))
    assert last[1] <= last[0]
    assert last[2] > 0


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_tells_both_clocks(tmp_path: Path, program: str) -> None:
    """The time of day and the time since boot agree with this machine's."""
    samples = SampleReader().feed(log_of(program, tmp_path / "run"))
    assert len(samples) >= 3
    now_s, boot_s = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
    for sample in samples:
        assert sample.utc_s - sample.uptime_s == pytest.approx(now_s - boot_s, abs=0.5)


@pytest.mark.parametrize("program", PROGRAMS)
def test_one_last_sample_when_requested_to_end(tmp_path: Path, program: str) -> None:
    """SIGTERM does not lose what happened since the last sample, however long the interval."""
    sampler = started(tmp_path, command(program, interval_s=1000))
    assert len(sampler.samples) == 1
    sampler.stop()
    assert len(sampler.samples) == 2
    assert sampler.problem == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_ends_by_itself_when_its_life_is_over(tmp_path: Path, program: str) -> None:
    """Nobody has to be there to end it."""
    sampler = started(tmp_path, command(program, life_s=1.0))
    until(lambda: collected(sampler) > 0 and sampler.problem != "")
    assert sampler.problem == "the sampler ended early"


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_ends_when_its_parent_was_killed(tmp_path: Path, program: str) -> None:
    """SIGKILL of the controller leaves no sampler behind."""
    script = textwrap.dedent("""
        import subprocess, sys, time
        child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, start_new_session=True)
        child.stdout.readline()
        print(child.pid, flush=True)
        time.sleep(600)
    """)
    argv = [sys.executable, "-c", script, *command(program)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=tmp_path) as parent:
        assert parent.stdout is not None
        sampler = int(parent.stdout.readline())
        assert not has_ended(sampler)
        parent.kill()
    until(lambda: has_ended(sampler))


def test_a_killed_sampler_leaves_what_it_had(tmp_path: Path) -> None:
    """Samples so far are kept, marks still land, and the reason is told."""
    argv = command("python3")
    sampler = started(tmp_path, argv)
    (process,) = running(tmp_path)
    os.kill(process, signal.SIGKILL)
    until(lambda: collected(sampler) > 0 and sampler.problem != "")
    sampler.mark("ended")
    sampler.stop()
    assert sampler.problem == "the sampler ended early"
    reader = SampleReader()
    kept = reader.feed((tmp_path / "device.log").read_text(encoding="ascii"))
    assert kept == sampler.samples
    assert reader.marks == ["ended"]


def test_shell_where_python_is_none_or_broken(tmp_path: Path) -> None:
    """A python3 that fails, as a version switch without versions does, is no obstacle."""
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho 'python3: command not found' >&2\nexit 127\n")
    broken.chmod(0o755)
    sampler = started(tmp_path, [str(broken), "-c", "pass"], command("sh"))
    sampler.stop()
    assert len(sampler.samples) >= 2


def test_a_host_without_either_is_reported(tmp_path: Path) -> None:
    """Nothing is sampled, the block goes on, and the reason is there."""
    with sampling(
        RunDirectory(FakeExecutor(), RunFolder(tmp_path)), ["sda"], interval_s=1.0, life_s=1.0
    ) as sampler:
        sampler.mark("started")
        assert sampler.problem == "neither python3 nor sh was found"
    assert list(tmp_path.iterdir()) == []


def test_what_a_failing_sampler_says_is_reported(tmp_path: Path) -> None:
    """The reason is in its own words, and they stay in the folder."""
    sampler = Sampler(RunDirectory(LocalExecutor(), RunFolder(tmp_path)))
    sampler.start([["sh", "-c", "echo no room >&2; exit 1"]])
    sampler.tidy()
    assert sampler.problem == "no room"
    assert (tmp_path / "device.stderr").read_text(encoding="ascii") == "no room\n"


def test_no_interval_means_no_sampler(tmp_path: Path) -> None:
    """device_sample_s 0 leaves no process and no file."""
    with sampling(
        RunDirectory(LocalExecutor(), RunFolder(tmp_path)), ["sda"], interval_s=0, life_s=1.0
    ) as sampler:
        sampler.mark("started")
    assert sampler.samples == []
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_the_block_fails(tmp_path: Path) -> None:
    """An exception in the block ends the sampler, and its silence leaves no empty file."""
    place = RunDirectory(LocalExecutor(), RunFolder(tmp_path))
    with (
        pytest.raises(ZeroDivisionError),
        sampling(place, ["sda"], interval_s=0.1, life_s=60.0) as sampler,
    ):
        raise ZeroDivisionError
    assert len(sampler.samples) >= 2
    assert [path.name for path in tmp_path.iterdir()] == ["device.log"]
    assert running(tmp_path) == []


def running(folder: Path) -> list[int]:
    """Return processes whose working directory is a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if path.readlink() == folder:
                found.append(int(path.parent.name))
        except OSError:
            continue  # it ended, or is another user's
    return found


@pytest.mark.parametrize(
    ("here", "parents", "own"),
    [
        ({"7": True, "8": None}, {"8": "1"}, ["7"]),
        ({"7": None, "8": None, "9": False}, {"7": "1", "8": "7"}, ["7", "8"]),
        ({"7": None, "8": None}, {"7": "1", "8": "1"}, []),
        ({"7": False}, {}, []),
    ],
)
def test_whose_fio_is_sampled(
    here: dict[str, bool | None],
    parents: dict[str, str],
    own: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That of the run's directory; one that sudo hides only if it is alone, with its children."""
    stats = {f"/proc/{pid}/stat": f"{pid} (fio) S {parent} 1" for pid, parent in parents.items()}
    monkeypatch.setattr(proc_sampler, "_is_here", here.__getitem__)
    monkeypatch.setattr(proc_sampler, "_read", lambda path: stats[path].encode())
    assert proc_sampler._own(list(here)) == own  # noqa: SLF001 - a script without other names
