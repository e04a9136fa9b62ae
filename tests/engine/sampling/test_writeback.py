"""How long a run is followed after its end, on hosts whose memory is scripted."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.execute.fake import FakeExecutor, FakeProcess
from volbench.analyse.frames.kernel_counters import STARTED, SampleReader
from volbench.engine.run.process_watch import StopRequest
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.sampling.sampler import sampling
from volbench.engine.sampling.writeback import MAX_WAIT_S, follow_tail, may_leave_dirt
from volbench.execute.waiting_work import finish
from volbench.model.campaign.event import Event, Notice
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.store.layout import RunFolder

BUFFERED = {"rw": "write", "bs": "65536"}
MIB = 1024**2


def run_of(
    options: dict[str, str], *, kind: VolumeKind = VolumeKind.DIRECTORY, tool: Tool = Tool.FIO
) -> Run:
    """Return a run of one section."""
    volume = Volume(role="data", kind=kind, target="/data")
    section = Section(name="j", options=options)
    return Run(id="001-j-r1", profile="p", job="j", volume=volume, sections=(section,), tool=tool)


def followed(
    folder: Path,
    dirty_mib: Sequence[float],
    *,
    options: dict[str, str] | None = None,
    stop: StopRequest | None = None,
    ran_s: int = 1,
    had_files: bool = False,
) -> tuple[str, list[float], list[Event]]:
    """Follow a run on a host with so much in memory only at each second.

    The first value is from before the run, the second from its end.

    Returns:
        Why the tail ended, what its samples saw in MiB, and the events.
    """
    steps = [
        f"T 0 {at and at + ran_s}\nDirty: {mib * 1024:.0f} kB\nWriteback: 0 kB\n.\n"
        for at, mib in enumerate(dirty_mib)
    ]
    process = FakeProcess([steps[0], *steps[2:], *([""] * 3)], exit_status=None)
    host = FakeExecutor(processes={"sh": lambda _argv: process})
    host.files["/proc/meminfo"] = f"Dirty: {dirty_mib[1] * 1024:.0f} kB\nWriteback: 0 kB\n"
    events: list[Event] = []
    place = RunDirectory(host, RunFolder(folder))
    with sampling(place, ["sda"], interval_s=1.0, life_s=1.0) as sampler:
        sampler.mark(STARTED)
        run = run_of(BUFFERED if options is None else options)
        tail = follow_tail(
            host,
            run,
            sampler,
            stop=stop or StopRequest(),
            listener=events.append,
            had_files=had_files,
        )
        finish(tail)
    reader = SampleReader()
    seen = [
        sample.unwritten_bytes / MIB
        for sample in reader.feed(place.folder.samples.read_text("ascii"))
    ]
    assert process.signals == [signal.SIGTERM]
    return reader.marks[-1], seen, events


def test_it_lasts_until_memory_is_as_before(tmp_path: Path) -> None:
    """About as much as before is enough: a host is never quite still."""
    why, seen, events = followed(tmp_path, [100, 900, 700, 400, 130, 5])
    assert why == "tail settled"
    assert seen == [100, 700, 400, 130]
    (notice,) = events
    assert isinstance(notice, Notice)
    assert notice.message.startswith("001-j-r1: 839 MB of dirty pages")


@pytest.mark.parametrize("options", [{**BUFFERED, "direct": "1"}, {"rw": "write", "fsync": "1"}])
def test_a_run_that_leaves_nothing_is_not_held_up(tmp_path: Path, options: dict[str, str]) -> None:
    """Neither a direct run on a busy host, nor a buffered one that left nothing behind."""
    left = 900 if "direct" in options else 105
    why, seen, events = followed(tmp_path, [100, left, left, left], options=options)
    assert why == "tail none: no dirty pages left"
    assert seen == [100]
    assert events == []


def test_a_read_waits_only_for_a_file_that_it_laid_out(tmp_path: Path) -> None:
    """Where its file existed, the dirty pages of a busy host are those of others."""
    options = {"rw": "randread", "direct": "1", "size": str(1 << 30)}
    others, own = (
        followed(tmp_path, [100, 900, 400, 5], options=options, had_files=had_files)[0]
        for had_files in (True, False)
    )
    assert others == "tail none: no dirty pages left"
    assert own == "tail settled"


@pytest.mark.parametrize(("ran_s", "patience_s"), [(0, 5), (6, 8), (20, 40), (600, 40)])
def test_pages_that_stay_do_not_hold_it_up_for_ever(
    tmp_path: Path, ran_s: int, patience_s: int
) -> None:
    """Nobody waits longer than the kernel holds pages back, a short run as long as it took."""
    why, seen, _ = followed(tmp_path, [100] + [900] * 120, ran_s=ran_s)
    assert why == f"tail unchanged for {patience_s} s"
    assert patience_s <= len(seen) <= patience_s + 3


def test_a_slow_device_is_followed_to_the_cap(tmp_path: Path) -> None:
    """A tail of hours is cut off, and says so."""
    why, seen, _ = followed(tmp_path, [100, *range(9000, 1000, -40)])
    assert why == f"tail cut off after {MAX_WAIT_S:.0f} s"
    assert MAX_WAIT_S <= len(seen) <= MAX_WAIT_S + 3


def test_a_wish_to_stop_ends_it(tmp_path: Path) -> None:
    """Ctrl-C is obeyed before the tail begins."""
    stop = StopRequest()
    stop.request()
    why, seen, events = followed(tmp_path, [100, 900, 900], stop=stop)
    assert why == "tail cut off: stopped by the user"
    assert seen == [100]
    assert events == []


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (run_of({"rw": "write"}), True),
        (run_of({"rw": "write", "direct": "1"}), False),
        (run_of({"rw": "read", "direct": "1"}), True),  # the file is laid out first
        (run_of({"rw": "read"}, kind=VolumeKind.DEVICE), False),
        (run_of({"rw": "randrw"}, kind=VolumeKind.DEVICE), True),
        (run_of({"rw": "write", "ioengine": "nbd"}, kind=VolumeKind.NBD), False),
        (run_of({}, tool=Tool.DD), True),
        (run_of({"oflag": "direct,sync"}, tool=Tool.DD), False),
        (run_of({"rw": "read"}, tool=Tool.DD), False),
    ],
)
def test_what_may_leave_pages_in_memory(run: Run, *, expected: bool) -> None:
    """Writes that do not go around the page cache, and files that are made for reads."""
    assert may_leave_dirt(run) is expected
