"""Real runs on real devices: what the device's own counters say of them."""

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine.conftest import Disks, call
from tests.planned import planned_run
from tests.waiting import kill_all
from volbench.engine.guard.volume_targets import find_volume, probe_volume
from volbench.engine.hosts.connected_host import this_machine
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.run_once import Attempt, RunOutcome, execute_run
from volbench.engine.run.stop_request import StopRequest
from volbench.execute.local import LocalExecutor
from volbench.ingest.run_files import read_run_output, read_status
from volbench.ingest.series_rows import Samples, begun_utc_s, device_rows, read_samples
from volbench.model.campaign.event import Event, Notice, RunProgress
from volbench.model.campaign.planned_run import RunState, Section
from volbench.model.frames.columns import Row
from volbench.store.layout import RunFolder

MIB = 1024**2
WRITE = {"rw": "write", "bs": "65536", "direct": "1", "ioengine": "libaio", "iodepth": "4"}
PACED = {**WRITE, "rate": str(8 * MIB), "time_based": "1", "runtime": "2s"}


@dataclass
class Measured:
    """A Run and what was seen beside it."""

    end: RunOutcome
    folder: RunFolder
    samples: Samples
    rows: list[Row]
    io_bytes: float
    runtime_s: float

    def moved(self, column: str, *, level: str = "volume") -> float:
        """Return the bytes a device moved, in the tail too."""
        return sum(
            float(str(row[column])) * float(str(row["interval_s"]))
            for row in self.rows
            if row["level"] == level and row["device"]
        )


def measure(
    place: str | Path,
    folder: Path,
    options: dict[str, str],
    *,
    listener: Callable[[Event], None] = lambda _event: None,
    stop: StopRequest | None = None,
    sample_s: float = 0.2,
) -> Measured:
    """Execute a run and return it with its rows of the device frame."""
    executor = LocalExecutor()
    volume = find_volume(executor, role="data", target=str(place))
    section = Section(name="j", options=options)
    run = planned_run(volume, section, sample_s=0, device_sample_s=sample_s)
    facts = probe_volume(executor, volume)
    kept = RunFolder(folder)
    kept.path.mkdir()
    devices = (facts.device, *facts.backing) if facts.device else ()
    attempt = Attempt(
        this_machine(fio=shutil.which("fio") or ""),
        run,
        RunDirectory(executor, kept),
        deadline_s=60,
        listener=listener,
        stop=stop or StopRequest(),
        devices=devices,
    )
    end = execute_run(attempt)
    output = read_run_output(run, kept) if end.state is RunState.FINISHED else None
    status = read_status(kept)
    assert status
    started = str(status.started_utc)
    samples = read_samples(kept)
    begun = begun_utc_s(output, [], started_utc=started)
    results = [direction for job in output.jobs for direction in job.directions] if output else []
    return Measured(
        end,
        kept,
        samples,
        list(device_rows(samples, facts, begun_utc_s=begun)),
        sum(direction.io_bytes for direction in results),
        max((direction.runtime_s for direction in results), default=0.0),
    )


def number(row: Row, column: str) -> float:
    """Return a number of a row."""
    return float(str(row[column]))


def test_an_ordinary_user_sees_the_whole_run(tmp_path: Path) -> None:
    """In a directory: from before I/O began until after it ended, without any right."""
    (tmp_path / "place").mkdir()
    seen = measure(tmp_path / "place", tmp_path / "run", {**PACED, "direct": "0", "size": str(MIB)})
    assert seen.end.state is RunState.FINISHED, seen.end.reason
    first, last = seen.rows[0], seen.rows[-1]
    assert number(first, "t_s") - number(first, "interval_s") <= 0
    assert number(last, "t_s") >= seen.runtime_s - 0.01
    assert all(0 <= number(row, "cpu_busy_percent") <= 100 for row in seen.rows)
    assert all(number(row, "dirty_bytes") >= 0 for row in seen.rows)
    assert list(seen.samples.marks[:2]) == ["started", "ended"]
    assert running(tmp_path / "run") == []
    assert seen.folder.samples.exists()  # small ones are compressed when the campaign ends


@pytest.mark.parametrize("when", ["running", "tail"])
def test_a_stop_ends_the_sampler_at_once(tmp_path: Path, when: str) -> None:
    """Nothing of it is left, and the samples so far are kept."""
    (tmp_path / "place").mkdir()
    stop = StopRequest()

    def listener(event: Event) -> None:
        wanted = RunProgress if when == "running" else Notice
        late = not isinstance(event, RunProgress) or event.progress.elapsed_s > 1
        if isinstance(event, wanted) and late:
            stop.request()

    options = dict(PACED) if when == "running" else {**WRITE, "direct": "0"}
    options |= {"size": str(24 * MIB)} | ({"runtime": "60s"} if when == "running" else {})
    seen = measure(tmp_path / "place", tmp_path / "run", options, listener=listener, stop=stop)
    expected = RunState.INTERRUPTED if when == "running" else RunState.FINISHED
    assert seen.end.state is expected
    assert len(seen.samples.taken) >= 2
    assert running(tmp_path / "run") == []
    if stop.requested and when == "tail":
        # Where another program syncs meanwhile, nothing is left to wait for
        ends = {"tail cut off: stopped by the user", "tail settled"}
        assert seen.samples.marks[-1] in ends


def test_killed_supervisor_is_reported(tmp_path: Path) -> None:
    """SIGKILL in the middle: the end of the run is unknown, and rows so far are kept."""
    (tmp_path / "place").mkdir()
    notices: list[str] = []
    killed: list[int] = []

    def listener(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.message)
        if isinstance(event, RunProgress) and event.progress.elapsed_s > 1 and not killed:
            killed.extend(pid for pid in running(tmp_path / "run") if command_of(pid) != "fio")
            kill_all(killed)

    options = {**PACED, "size": "4194304", "runtime": "8s"}
    seen = measure(tmp_path / "place", tmp_path / "run", options, listener=listener)
    assert len(killed) == 1
    assert seen.end.state is RunState.FAILED
    assert "its supervisor was killed" in seen.end.reason
    assert len(seen.samples.taken) >= 2
    assert "001-j-r1: the device was not sampled to the end" in notices


def running(folder: Path) -> list[int]:
    """Return the processes that work in a folder, and the supervisors of programs there."""
    pids = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            is_supervisor = b"supervisor" in words and f"{folder}/".encode() in words[-2]
            if is_supervisor or (path / "cwd").readlink() == folder:
                pids.append(int(path.name))
        except OSError:
            continue  # it ended, or is another user's
    return pids


def command_of(pid: int) -> str:
    """Return the name of a program that runs."""
    return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()


@pytest.mark.root
def test_the_device_counts_the_bytes_that_fio_wrote(tmp_path: Path, disks: Disks) -> None:
    """With direct=1 both agree within 2 %, and so do the requests' sizes."""
    device = disks.attach(disks.image(64 * MIB))
    seen = measure(device, tmp_path / "run", {**PACED, "size": str(64 * MIB)})
    assert seen.end.state is RunState.FINISHED, seen.end.reason
    assert seen.moved("write_bw_bytes_per_s") == pytest.approx(seen.io_bytes, rel=0.02)
    assert {row["device"] for row in seen.rows if row["level"] == "volume"} == {device[5:]}
    busy = [row for row in seen.rows if number(row, "write_iops") > 0 and row["level"] == "volume"]
    assert all(number(row, "write_request_bytes") == 65536 for row in busy)
    assert all(number(row, "active_percent") <= 100 for row in busy)
    assert seen.samples.marks[-1] == "tail none: no dirty pages left"


@pytest.mark.root
def test_a_partition_is_reported_with_its_backing_disk(tmp_path: Path, disks: Disks) -> None:
    """What the partition writes its disk writes, and both have rows of their own."""
    disk = disks.attach()
    part = disks.partition(disk)
    seen = measure(part, tmp_path / "run", {**PACED, "size": str(16 * MIB)})
    reported = {(row["level"], row["device"]) for row in seen.rows}
    assert {("volume", part[5:]), ("backing", disk[5:])} <= reported
    assert seen.moved("write_bw_bytes_per_s") == pytest.approx(seen.io_bytes, rel=0.02)
    below = [row for row in seen.rows if row["device"] == disk[5:]]
    total = sum(number(row, "write_bw_bytes_per_s") * number(row, "interval_s") for row in below)
    assert total == pytest.approx(seen.io_bytes, rel=0.02)


@pytest.mark.alone  # dirty pages are those of the machine, and whoever syncs writes all of them
@pytest.mark.root
def test_a_buffered_write_shows_dirty_pages_and_write_back(tmp_path: Path, disks: Disks) -> None:
    """What fio left in memory grows there, and is seen on its way to the device afterwards."""
    device = disks.attach(disks.image(128 * MIB))
    disks.format(device)
    place = disks.mount(device)
    stop = StopRequest()
    call("sync")  # what tests before this one left

    def write_back() -> None:
        call("sync", "-f", str(place))
        stop.request()  # after one more sample

    def listener(event: Event) -> None:
        if isinstance(event, Notice):
            threading.Thread(target=write_back).start()

    options = {"rw": "write", "bs": "65536", "direct": "0", "size": str(64 * MIB)}
    seen = measure(place, tmp_path / "run", options, listener=listener, stop=stop)
    assert seen.end.state is RunState.FINISHED, seen.end.reason
    unwritten = [sample.unwritten_bytes for sample in seen.samples.taken]
    assert max(unwritten) - min(unwritten) > 0.5 * seen.io_bytes
    tail = [row for row in seen.rows if row["after_fio"] and row["device"] == device[5:]]
    written = sum(number(row, "write_bw_bytes_per_s") * number(row, "interval_s") for row in tail)
    assert written > 0.5 * seen.io_bytes
    assert seen.moved("write_bw_bytes_per_s") > 0.98 * seen.io_bytes
