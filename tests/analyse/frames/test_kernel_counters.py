"""The log of samples, line by line."""

import math

import pytest

from volbench.analyse.frames.kernel_counters import Disk, Sample, SampleReader, host_rates

LOG = """\
volbench-samples 1 page 16384
T 1795248323.828574646 14481.20
cpu  439161 5516 118808 2301136 6759 1 8511 106 3 0
 254       0 vda 22390484 84150 526819154 4454707 22392663 505307 824802960 1527324 2 789116 6014837
 104       0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11
Dirty:             18196 kB
Writeback:            12 kB
WritebackTmp:          7 kB
pswpin 40
pswpout 2
some avg10=0.17 avg60=0.48 avg300=0.23 total=60264734
full avg10=0.11 avg60=0.16 avg300=0.09 total=48120991
ioerr vda 0x1f
.
"""


def read(text: str) -> list[Sample]:
    """Return the samples of a log."""
    return SampleReader().feed(text)


def test_every_line_of_a_sample_is_read() -> None:
    """Numbers have their units; cciss/c0d0 of diskstats is cciss!c0d0 below /sys."""
    reader = SampleReader()
    (sample,) = reader.feed(LOG)
    assert reader.page_bytes == 16384
    assert (sample.utc_s, sample.uptime_s) == (1795248323.828574646, 14481.20)
    assert sample.cpu[:8] == (439161, 5516, 118808, 2301136, 6759, 1, 8511, 106)
    assert sample.disks["vda"] == Disk(
        reads=22390484,
        read_sectors=526819154,
        read_ticks=4454707,
        writes=22392663,
        write_sectors=824802960,
        write_ticks=1527324,
        busy_ticks=789116,
        queue_ticks=6014837,
        read_merges=84150,
        write_merges=505307,
    )
    assert sample.memory == {"Dirty": 18196 * 1024, "Writeback": 12 * 1024}
    assert sample.unwritten_bytes == 18208 * 1024
    assert sample.swapped_pages == 42
    assert sample.pressure_us == {"some": 60264734, "full": 48120991}
    assert sample.io_errors == {"vda": 31}
    (sample,) = read(LOG)
    assert sample.disks["cciss!c0d0"].queue_ticks == 11


@pytest.mark.parametrize("kept", range(0, len(LOG) - 2, 7))
def test_a_truncated_sample_is_ignored(kept: int) -> None:
    """A sampler may be killed after any byte: half a number must not pass for a whole one."""
    assert read(LOG[:kept]) == []


def test_text_may_arrive_in_any_pieces() -> None:
    """The output of a process is read while it writes; what follows a cut is whole."""
    reader = SampleReader()
    pieces = [LOG[at : at + 11] for at in range(0, len(LOG), 11)]
    found = [sample for piece in pieces for sample in reader.feed(piece)]
    assert found == read(LOG)
    whole = LOG.partition("\n")[2]
    samples = read(LOG[:200] + "\n! ended\n" + whole)
    assert len(samples) == 1
    assert samples[0].cpu == read(whole)[0].cpu
    assert samples[0].after_end


def test_marks_separate_samples_outside_the_run() -> None:
    """A sample knows whether the measured process had been started and had ended."""
    reader = SampleReader()
    samples = reader.feed(f"{LOG}\n! started\n{LOG}\n! ended\n{LOG}\n! tail settled\n")
    reported = [(sample.after_start, sample.after_end) for sample in samples]
    assert reported == [(False, False), (True, False), (True, True)]
    assert reader.marks == ["started", "ended", "tail settled"]


def test_a_host_that_reports_little_is_read_as_far_as_possible() -> None:
    """No pressure, no swap, no memory, no disk: unknown stays unknown."""
    (sample,) = read("T 5.0 3.0\ncpu  1 2 3 4 5 6 7 8\n.\n")
    assert math.isnan(sample.unwritten_bytes)
    assert sample.swapped_pages is None
    assert not sample.disks
    assert not sample.pressure_us


def test_waits_of_the_tool_and_cpu_pressure() -> None:
    """Half a second of run-queue delay in a second is 50 %, and NaN once a task has ended."""
    text = (
        "T 1 1\ncpu-some avg10=0 avg60=0 avg300=0 total=0\nwait 2 1000000000 0\n.\n"
        "T 2 2\ncpu-some avg10=0 avg60=0 avg300=0 total=250000\nwait 2 1200000000 500000000\n.\n"
        "T 3 3\nwait 1 100000000 100000000\n.\n"
    )
    first, second, third = SampleReader().feed(text)
    rates = host_rates(first, second, interval_s=1.0, page_bytes=4096)
    assert rates["cpu_pressure_percent"] == pytest.approx(25)
    assert rates["tool_cpu_percent"] == pytest.approx(20)
    assert rates["tool_wait_percent"] == pytest.approx(50)
    later = host_rates(second, third, interval_s=1.0, page_bytes=4096)
    assert math.isnan(later["tool_wait_percent"])


def test_the_cpu_limit_that_throttled_most_counts() -> None:
    """Of two nested ones; without a running task 0 is known."""
    text = "T 1 1\nthrottle 100 0 0\nthrottle 100 50 9000000\n.\n"
    later = "T 2 2\nthrottle 110 8 500000\nthrottle 110 51 9010000\n.\nT 3 3\n.\n"
    first, second, third = SampleReader().feed(text + later)
    rates = host_rates(first, second, interval_s=1.0, page_bytes=4096)
    assert rates["cpu_throttled_percent"] == pytest.approx(80)
    assert rates["cpu_throttled_s"] == pytest.approx(0.5)
    unknown = host_rates(second, third, interval_s=1.0, page_bytes=4096)
    assert math.isnan(unknown["cpu_throttled_percent"])
    assert math.isnan(unknown["cpu_throttled_s"])
    first, second = SampleReader().feed("T 1 1\nthrottle 5 5 5\n.\nT 2 2\nthrottle 5 5 5\n.\n")
    rates = host_rates(first, second, interval_s=1.0, page_bytes=4096)
    assert rates["cpu_throttled_percent"] == 0
