"""Samples of a run: what is sampled, and what the controller keeps of it."""

from pathlib import Path

import pytest

from tests.execute.fake import FakeProcess
from tests.planned import planned_run
from volbench.engine.run.stop_request import StopRequest
from volbench.engine.sampling.sample_log import SampleLog, may_leave_dirt, sampling_of
from volbench.errors import ArchiveError
from volbench.model.campaign.event import Event, Notice
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind

BUFFERED = {"rw": "write", "bs": "65536"}


def run_of(options: dict[str, str], *, kind: VolumeKind = VolumeKind.DIRECTORY) -> Run:
    """Return a run of one section."""
    volume = Volume(role="data", kind=kind, target="/data")
    section = Section(name="j", options=options)
    return planned_run(volume, section)


class SampledProcess(FakeProcess):
    """A process that has ended, and whose sampler prints one part a look."""

    def __init__(self, *parts: str) -> None:
        super().__init__()
        self.parts = list(parts)
        self.skipped = 0
        self.stops = 0

    @property
    def is_sampled(self) -> bool:
        """Whether there are more parts."""
        return bool(self.parts)

    def skip(self, *, output_bytes: int = 0, sample_bytes: int = 0) -> None:
        """Take note of the bytes to skip."""
        assert output_bytes == 0
        self.skipped = sample_bytes

    def read_samples(self) -> str:
        """Return the next part."""
        return self.parts.pop(0) if self.parts else ""

    def stop_sampling(self) -> None:
        """Print the last part next."""
        self.stops += 1
        del self.parts[:-1]


def sample(at_s: int, dirty_mib: int) -> str:
    """Return a sample of a host with so much in memory only."""
    return f"T 0 {at_s}\nDirty: {dirty_mib * 1024} kB\nWriteback: 0 kB\n.\n"


def follow(path: Path, process: SampledProcess, stop: StopRequest | None = None) -> list[Event]:
    """Follow the tail of a process, and return the events."""
    events: list[Event] = []
    log = SampleLog(path, process)
    stop = stop or StopRequest()
    log.follow_tail(
        run_of(BUFFERED), is_stop_requested=lambda: stop.requested, listener=events.append
    )
    return events


PARTS = (
    "volbench-samples 1 page 4096\n" + sample(0, 100) + "\n! started\n",
    sample(1, 500),
    "\n! ended\n" + sample(2, 900),
    sample(3, 400),
    sample(4, 101) + "\n! tail settled\n",
)


def test_write_back_is_announced_once_and_kept(tmp_path: Path) -> None:
    """The log is what the sampler printed, byte for byte."""
    (notice,) = follow(tmp_path / "device.log", SampledProcess(*PARTS))
    assert isinstance(notice, Notice)
    assert notice.message == ("001-j-r1: 839 MB of dirty pages left; following their write-back")
    assert (tmp_path / "device.log").read_text() == "".join(PARTS)


def test_run_without_dirty_pages_is_not_announced(tmp_path: Path) -> None:
    """Its sampler ends with it."""
    parts = (*PARTS[:2], "\n! ended\n" + sample(2, 100) + "\n! tail none: no dirty pages left\n")
    assert follow(tmp_path / "device.log", SampledProcess(*parts)) == []


def test_stop_request_ends_the_sampler_once(tmp_path: Path) -> None:
    """Ctrl-C is obeyed before the tail ends."""
    stop = StopRequest()
    stop.request()
    process = SampledProcess(*PARTS)
    follow(tmp_path / "device.log", process, stop)
    assert process.stops == 1
    assert (tmp_path / "device.log").read_text().endswith("! tail settled\n")


def test_lost_sampler_is_reported(tmp_path: Path) -> None:
    """A log without its end would look like a run whose write-back took no time."""
    events = follow(tmp_path / "device.log", SampledProcess(*PARTS[:2]))
    assert [event.message for event in events if isinstance(event, Notice)] == [
        "001-j-r1: the device was not sampled to the end"
    ]


def test_later_controller_continues_the_log(tmp_path: Path) -> None:
    """What an earlier one has stored is not asked for again."""
    path = tmp_path / "device.log"
    path.write_text(PARTS[0] + PARTS[1])
    process = SampledProcess(*PARTS[2:])
    (notice,) = follow(path, process)
    assert "839 MB" in str(notice)
    assert process.skipped == len(PARTS[0] + PARTS[1])
    assert path.read_text() == "".join(PARTS)


def test_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The results would be incomplete, and nobody would know."""
    with pytest.raises(ArchiveError, match=r"device\.log cannot be written"):
        follow(tmp_path / "none" / "device.log", SampledProcess(*PARTS))


@pytest.mark.parametrize(
    ("options", "had_files", "is_followed"),
    [
        (BUFFERED, False, True),
        (BUFFERED, True, True),
        ({**BUFFERED, "direct": "1"}, True, False),
        # A read waits only for a file that it laid out: other dirty pages are those of others.
        ({"rw": "randread", "direct": "1", "size": str(1 << 30)}, False, True),
        ({"rw": "randread", "direct": "1", "size": str(1 << 30)}, True, False),
        ({"rw": "randread", "direct": "1", "size": "4096"}, False, False),
    ],
)
def test_write_back_of_own_pages_is_followed(
    options: dict[str, str], *, had_files: bool, is_followed: bool
) -> None:
    """A run without dirty pages of its own is not delayed by those of a busy host."""
    sampling = sampling_of(run_of(options), ("sda",), had_files=had_files)
    assert sampling == {"devices": ["sda"], "interval_s": 1.0, "is_tail_followed": is_followed}


def test_no_interval_means_no_sampler() -> None:
    """``device_sample: 0`` leaves no file."""
    run = run_of(BUFFERED).model_copy(update={"device_sample_s": 0})
    assert sampling_of(run, ("sda",), had_files=False) is None


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (run_of({"rw": "write"}), True),
        (run_of({"rw": "write", "direct": "1"}), False),
        (run_of({"rw": "read", "direct": "1"}), True),  # the file is laid out first
        (run_of({"rw": "read"}, kind=VolumeKind.DEVICE), False),
        (run_of({"rw": "randrw"}, kind=VolumeKind.DEVICE), True),
        (run_of({"rw": "write", "ioengine": "nbd"}, kind=VolumeKind.NBD), False),
    ],
)
def test_runs_that_may_leave_dirty_pages(run: Run, *, expected: bool) -> None:
    """Writes that do not bypass the page cache, and files that are laid out for reads."""
    assert may_leave_dirt(run) is expected
