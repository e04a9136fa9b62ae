"""Titles of charts say what all runs have in common, and no more."""

from collections.abc import Mapping

import pytest

from tests.present.frames_for_plots import frames, result
from volbench.present.plots.chart import MAX_LENGTH, build_plot


def title(kind: str, *changes: Mapping[str, object]) -> str:
    """Return the title of a chart of jobs that differ from a 4k randwrite in these columns."""
    rows = [result(f"job{n}", volume="/dev/nvme0n1") | {**own} for n, own in enumerate(changes)]
    return build_plot(kind, frames(rows)).title


def test_a_title_names_workload_quantity_options_and_volume() -> None:
    """Jobs that differ in options are told apart by these; a common queue depth is named."""
    jobs = [{"iodepth": depth, "numjobs": jobs} for depth in (1, 8) for jobs in (1, 4)]
    expected = "randwrite 4k: IOPS by queue depth and numjobs, /dev/nvme0n1"
    assert title("iops", *jobs) == expected
    single = {"iodepth": 16, "numjobs": 1}
    assert title("iops", single) == "randwrite 4k, queue depth 16: IOPS per job, /dev/nvme0n1"
    several = {"iodepth": 16, "numjobs": 4}
    assert "queue depth 16, numjobs 4: latency percentiles" in title("latency", several)


def test_a_title_omits_what_only_some_runs_have() -> None:
    """Patterns, volumes and hosts that differ are left to the labels."""
    other = {"rw": "randread", "block_bytes": 65536, "volume": "/dev/sdb", "iodepth": 4}
    assert title("iops", {"iodepth": 1}, other) == "IOPS per job"
    assert title("iops", {}, {"rw": "write"}).startswith("4k blocks, queue depth")


def test_a_volume_of_another_machine_has_its_host() -> None:
    """The machine at hand is not named; one host of a fleet is, two are not."""
    assert title("iops", {"host": "vm7"}).endswith("/dev/nvme0n1 on vm7")
    assert title("iops", {"host": "unknown"}).endswith("/dev/nvme0n1")
    assert title("iops", {"host": "vm7"}, {"host": "vm8"}).endswith("/dev/nvme0n1")


@pytest.mark.parametrize("length", [30, 300])
def test_a_title_stays_short(length: int) -> None:
    """A long path is shortened, a long host name is left out."""
    far = {"volume": "/dev/disk/by-id/" + "x" * length, "host": "h" * length}
    made = title("latency", far)
    assert len(made) <= MAX_LENGTH
    assert "latency percentiles" in made.lower()


def test_sockets_are_not_spelled_out() -> None:
    """The path of a socket says nothing about the volume."""
    made = title("iops", {"volume": "nbd+unix:///export?socket=/run/user/0/a/b/c.sock"})
    assert made.endswith("IOPS per job, an NBD volume")


def test_a_caption_is_true_of_every_result() -> None:
    """A result of other blocks or an unknown depth is not counted among those of 4k."""
    same = {"block_bytes": 4096, "iodepth": 8}
    unknown = {"block_bytes": None, "iodepth": None}
    varied = {"block_bytes": None, "block_min_bytes": 4096, "block_max_bytes": 65536}
    for other, wanted in (
        ({**unknown, "rw": "mixed"}, "Block size 4k or mixed, queue depth 8 or mixed"),
        (unknown, "Block size 4k where it is known, queue depth 8 where it is known"),
        (varied, "Block sizes 4k to 64k, queue depth 8"),
    ):
        rows = [{**result("a"), **same}, {**result("b"), **same, **other}]
        assert build_plot("iops", frames(rows)).caption[1].startswith(wanted + ",")
