"""Log page 0xD0 of EBS volumes: pages made as AWS documents them, and damaged ones."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from volbench.analyse.frames.kernel_counters import SampleReader, exceeded_shares
from volbench.execute.agent import nvme_log
from volbench.execute.agent.kernel_sampler import Sampler


def page(*counters: int, magic: int = nvme_log.MAGIC) -> bytes:
    """Return a page: magic number, totals, counters, queue; then reserved bytes and histograms."""
    head = struct.pack("<Q6Q5Q", magic, *range(100, 106), *counters)
    return head.ljust(nvme_log.PAGE_BYTES, b"\0")


def test_counters_are_where_the_guide_says() -> None:
    """At bytes 56 to 95: of the volume, of the instance, and the queue."""
    assert nvme_log.counters(page(1, 2, 3, 4, 5)) == (1, 2, 3, 4, 5)
    assert page(1, 2, 3, 4, 5)[56:64] == (1).to_bytes(8, "little")


@pytest.mark.parametrize(
    "damaged", [b"", page(1, 2, 3, 4, 5)[:-1], page(1, 2, 3, 4, 5, magic=7), bytes(4096)]
)
def test_damaged_pages_give_nothing(damaged: bytes) -> None:
    """A page that is short or of another kind."""
    assert nvme_log.counters(damaged) == ()


def test_other_devices_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only whole NVMe namespaces of the model of EBS; others use the page for something else."""
    models = {"nvme0n1": b"Samsung SSD", "nvme1n1": b"Amazon Elastic Block Store   ", "sda": b""}
    asked: list[str] = []

    def read(name: str) -> bytes:
        asked.append(name)
        return page(1, 2, 3, 4, 5)

    monkeypatch.setattr(nvme_log, "_model", models.get)
    monkeypatch.setattr(nvme_log, "read_page", read)
    assert nvme_log.ebs_namespaces(["nvme0n1", "nvme1n1", "nvme1n1p1", "sda"]) == ["nvme1n1"]
    assert asked == ["nvme1n1"]


def test_a_device_without_the_page_gives_nothing(tmp_path: Path) -> None:
    """A file refuses the command, and a device that is gone cannot be opened."""
    (tmp_path / "file").touch()
    assert nvme_log.read_page(f"..{tmp_path}/file") == b""
    assert nvme_log.read_page("volbench-none") == b""


def test_the_sampler_reads_it_with_each_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time above each limit in percent; a damaged page is noted and not read again."""
    pages = [page(0, 0, 0, 0, 1), page(10**6, 0, 500_000, 0, 1), page(1, 2, 3, 4, 5, magic=1)]
    monkeypatch.setattr(nvme_log, "ebs_namespaces", lambda _names: ["nvme1n1"])
    monkeypatch.setattr(nvme_log, "read_page", lambda _name: pages.pop(0))
    log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    sampler = Sampler(log, ["nvme1n1"], 1.0, is_tail_followed=False)
    for _ in range(3):
        sampler.take()
    os.close(log)
    reader = SampleReader()
    first, second, *others = reader.feed((tmp_path / "log").read_text(encoding="ascii"))
    assert exceeded_shares(first, second, "nvme1n1", interval_s=1.0) == {
        "volume_iops_exceeded_percent": 100.0,
        "volume_bw_exceeded_percent": 0.0,
        "instance_iops_exceeded_percent": 50.0,
        "instance_bw_exceeded_percent": 0.0,
    }
    assert [sample.exceeded_us for sample in others] == [{}, {}]
    assert reader.marks == ["ebs nvme1n1: damaged page, no longer read"]
