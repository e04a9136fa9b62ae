"""Used blocks of real files, filesystems and exports."""

import subprocess
from pathlib import Path

import pytest

from tests.engine.conftest import attach_loop
from volbench.execute.agent.used_blocks import used_blocks

MIB = 1 << 20
SIZE = 640 * MIB


def in_mib(path: Path | str, gap: int = 8) -> list[tuple[int, int]]:
    """Return the used ranges of a volume of 640 MiB, in MiB."""
    ranges = used_blocks(str(path), SIZE, gap * MIB).ranges
    return [(first // MIB, end // MIB) for first, end in ranges]


def made(path: Path, *written: int) -> Path:
    """Return a sparse file with data in some of its MiB."""
    with path.open("wb") as file:
        file.truncate(SIZE)
        for at in written:
            file.seek(at * MIB + 4096)
            file.write(b"x" * 4096)
    return path


def test_holes_of_a_file_are_not_used(tmp_path: Path) -> None:
    """Small holes count as used, and data is taken in whole MiB."""
    file = made(tmp_path / "f", 0, 100, 104, 639)
    assert in_mib(file) == [(0, 1), (100, 105), (639, 640)]
    assert in_mib(file, gap=200) == [(0, 105), (639, 640)]
    assert in_mib(made(tmp_path / "empty")) == []


@pytest.mark.root
def test_a_mounted_filesystem_reports_its_free_blocks(tmp_path: Path) -> None:
    """What no filesystem is known of is read: what is between partitions, and the second one."""
    file, folder = made(tmp_path / "f"), tmp_path / "m"
    folder.mkdir()
    at = f"offset={100 * MIB}"
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", at, str(file), "300M"], check=True)
    device = attach_loop(file)
    try:
        for number, start, size in (("1", 100, 300), ("2", 400, 200)):
            sectors = str(start * 2048), str(size * 2048)
            subprocess.run(["addpart", device, number, *sectors], check=True)
        subprocess.run(["mount", f"{device}p1", str(folder)], check=True)
        try:
            (folder / "data").write_bytes(b"\1" * (40 * MIB))
            subprocess.run(["sync", "-f", str(folder)], check=True)
            used = used_blocks(device, SIZE, 8 * MIB)
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    finally:
        for number in ("1", "2"):
            subprocess.run(["delpart", device, number], check=False)
        subprocess.run(["losetup", "-d", device], check=True)
    assert f"used blocks as ext4 reports; all of {device}p2 is read: no filesystem" in used.note
    assert (used.ranges[0][0], used.ranges[-1][1]) == (0, SIZE)
    assert used.ranges[0][1] > 100 * MIB
    assert used.ranges[-1][0] <= 400 * MIB
    with file.open("rb") as content:
        kept = b""
        for first, end in used.ranges:
            content.seek(first)
            kept += content.read(end - first)
    assert len(kept) < SIZE - 100 * MIB
    assert kept.count(b"\1" * 4096) == 40 * MIB // 4096
