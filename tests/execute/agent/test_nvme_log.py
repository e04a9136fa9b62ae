"""Log page 0xD0 of disks of AWS: pages made as AWS documents them, and damaged ones."""

import os
import struct
from pathlib import Path

import pytest

from volbench.analyse.frames.kernel_counters import SampleReader, device_latencies, exceeded_shares
from volbench.execute.agent import nvme_log
from volbench.execute.agent.kernel_sampler import Sampler

Bins = list[tuple[int, int, int]]


def page(
    *counters: int, magic: int = nvme_log.MAGIC, read: Bins | None = None, write: Bins | None = None
) -> bytes:
    """Return a page: magic number, totals, counters, queue; reserved bytes; then histograms.

    A histogram is a number of bins and room for 64: ends in microseconds, and I/Os between them.
    """
    parts = struct.pack("<Q6Q5Q", magic, *range(100, 106), *counters).ljust(512, b"\0")
    for bins in (read or [], write or []):
        packed = b"".join(struct.pack("<QQII", *each, 0) for each in bins)
        parts += struct.pack("<Q", len(bins)) + packed.ljust(64 * 24, b"\0")
    return parts.ljust(nvme_log.PAGE_BYTES, b"\0")


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


def test_an_instance_store_has_the_same_page_with_another_number() -> None:
    """Magic number 0xEC2C0D7E, as the plugin of nvme-cli has it."""
    assert nvme_log.counters(page(0, 0, 3, 4, 5, magic=0xEC2C0D7E)) == (0, 0, 3, 4, 5)


def test_histograms_are_where_the_guide_says() -> None:
    """Reads from byte 512, writes from byte 2,056; empty bins are left out."""
    made = page(
        *range(5), read=[(0, 256, 7), (256, 512, 0), (512, 1024, 9)], write=[(1024, 2048, 3)]
    )
    assert nvme_log.histograms(made) == {"read": [(256, 7), (1024, 9)], "write": [(2048, 3)]}
    absurd = made[:512] + (2**63).to_bytes(8, "little") + made[520:]
    assert nvme_log.histograms(absurd)["read"] == [(256, 7), (1024, 9)]


def test_other_devices_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only whole NVMe namespaces of the model of EBS; others use the page for something else."""
    models = {
        "nvme0n1": b"Samsung SSD",
        "nvme1n1": b"Amazon Elastic Block Store   ",
        "nvme2n1": b"Amazon EC2 NVMe Instance Storage   ",
        "sda": b"",
    }
    asked: list[str] = []

    def read(name: str) -> bytes:
        asked.append(name)
        return page(1, 2, 3, 4, 5)

    monkeypatch.setattr(nvme_log, "_model", models.get)
    monkeypatch.setattr(nvme_log, "read_page", read)
    names = ["nvme0n1", "nvme1n1", "nvme1n1p1", "nvme2n1", "sda"]
    assert nvme_log.ebs_namespaces(names) == ["nvme1n1", "nvme2n1"]
    assert asked == ["nvme1n1", "nvme2n1"]


def test_a_device_without_the_page_gives_nothing(tmp_path: Path) -> None:
    """A file refuses the command, and a device that is gone cannot be opened."""
    (tmp_path / "file").touch()
    assert nvme_log.read_page(f"..{tmp_path}/file") == b""
    assert nvme_log.read_page("volbench-none") == b""


def test_the_sampler_reads_it_with_each_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time above each limit in percent; a damaged page is noted and not read again."""
    before: Bins = [(0, 512, 10), (512, 1024, 5)]
    now: Bins = [(0, 512, 70), (512, 1024, 44), (1024, 2048, 1)]
    pages = [
        page(0, 0, 0, 0, 1, read=before),
        page(10**6, 0, 500_000, 0, 1, read=now),
        page(1, 2, 3, 4, 5, magic=1),
    ]
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
    # 60 reads within 512 us, 39 within 1,024 us, and one above: exactly 99 % within 1,024 us.
    assert device_latencies(first, second, "nvme1n1") == {
        "ebs_read_p50_s": 512e-6,
        "ebs_read_p99_s": 1024e-6,
    }
    assert device_latencies(second, first, "nvme1n1") == {}
    assert [sample.exceeded_us for sample in others] == [{}, {}]
    assert reader.marks == ["ebs nvme1n1: damaged page, no longer read"]
