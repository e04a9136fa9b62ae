"""fio's status lines give glances at a running process, zero where nothing completes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from volbench.fio.results.validation import ProgressReader
from volbench.model.campaign.event import Progress

RATED = "Jobs: 2 (f=2), 0-2000 IOPS: [m(2)][42.9%][r=9.77MiB/s,w=512KiB/s][r=2501,w=1.2k IOPS]"
STALLED = "Jobs: 1 (f=1): [R(1)][10.8%][eta 00m:33s]"


def glance(line: str, *, elapsed_s: float = 10.0) -> Progress:
    """Return the glance of one line."""
    found = ProgressReader(total_s=20.0).feed(f"{line}\r", elapsed_s=elapsed_s)
    assert found is not None
    return found


def test_rates_are_in_base_units() -> None:
    """Binary and decimal prefixes give bytes per second and plain I/Os."""
    found = glance(f"{RATED}[eta 00m:04s]")
    assert found.read_bw_bytes_per_s == 9.77 * 2**20
    assert found.write_bw_bytes_per_s == 512 * 1024
    assert (found.read_iops, found.write_iops, found.trim_iops) == (2501, 1200, None)
    assert (found.elapsed_s, found.total_s, found.state) == (10.0, 20.0, "run")


@pytest.mark.parametrize(
    ("amount", "expected"),
    [("1000B/s", 1000), ("3MB/s", 3e6), ("2GiB/s", 2**31), ("80Mbit/s", 1e7)],
)
def test_every_unit_of_bandwidth_is_read(amount: str, expected: float) -> None:
    """Bytes and bits with binary and decimal prefixes are bytes per second."""
    found = glance(f"Jobs: 1 (f=1): [w(1)][5.0%][w={amount}][w=3 IOPS][eta 01m:00s]")
    assert found.write_bw_bytes_per_s == pytest.approx(expected)


def test_missing_rates_in_the_first_seconds_are_not_a_stall() -> None:
    """In the first seconds fio reports no rates yet, which is unknown and not 0."""
    assert glance(STALLED, elapsed_s=1.5).read_iops is None
    assert glance("Jobs: 1 (f=1)", elapsed_s=9.0).read_iops is None


def test_a_stall_is_reported_at_once_after_earlier_rates() -> None:
    """After the first rates a line without them is a stall, however early."""
    reader = ProgressReader()
    reader.feed(f"{RATED}[eta 00m:04s]\r", elapsed_s=1.0)
    found = reader.feed(f"{STALLED}\r", elapsed_s=1.5)
    assert found is not None
    assert (found.read_iops, found.write_iops, found.trim_iops) == (0.0, 0.0, None)


def test_a_direction_left_out_of_the_rates_is_zero() -> None:
    """One direction may stall alone."""
    reader = ProgressReader()
    reader.feed(f"{RATED}[eta 00m:04s]\r", elapsed_s=4.0)
    line = "Jobs: 1 (f=1): [m(1)][5.0%][r=4KiB/s][r=1 IOPS][eta 01m:00s]\n"
    found = reader.feed(line, elapsed_s=4.5)
    assert found is not None
    assert (found.read_iops, found.write_iops) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ("/(4)", "ramp"),
        ("m(1),/(1)", "run"),
        ("P(2)", "layout"),
        ("I(1),C(3)", "layout"),
        ("R(2),w(1),_(3)", "run"),
        ("_(3),X(1)", "run"),
    ],
)
def test_states_follow_the_letters(states: str, state: str) -> None:
    """One running job makes the process run; ramp and layout come before."""
    assert glance(f"Jobs: 4 (f=4): [{states}][-.-%][eta 00m:09s]").state == state


def test_lines_may_arrive_in_pieces() -> None:
    """However the stream is cut, each line counts once, when it is complete."""
    text = f"Jobs: 2 (f=0)\r{RATED}[eta 00m:04s]\r\nnoise\n{STALLED}\r"
    whole = ProgressReader().feed(text, elapsed_s=5.0)
    reader = ProgressReader()
    pieces = [reader.feed(letter, elapsed_s=5.0) for letter in text]
    glances = [piece for piece in pieces if piece is not None]
    assert len(glances) == 3
    assert glances[-1] == whole


def test_real_fio_is_understood(tmp_path: Path) -> None:
    """Every line that the installed fio prints is read, with the rates it was limited to."""
    fio = shutil.which("fio")
    assert fio is not None
    command = [fio, "--eta=always", "--eta-interval=500ms", "--output=out.json", "--name=r"]
    command += ["--output-format=json", "--ioengine=null", "--size=1g", "--bs=4k", "--rw=randrw"]
    command += ["--time_based", "--runtime=5", "--rate_iops=1000", "--thread"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.replace("\n", "\r").split("\r") if line.strip()]
    assert lines
    reader = ProgressReader(total_s=5.0)
    glances = [reader.feed(f"{line}\r", elapsed_s=1.0) for line in lines]
    assert None not in glances
    rated = [found for found in glances if found is not None and found.read_iops]
    assert rated
    assert all(found.write_iops is not None for found in rated)
    assert 100 < max(found.write_iops or 0 for found in rated) < 10_000
    assert all(found.state == "run" for found in rated)
