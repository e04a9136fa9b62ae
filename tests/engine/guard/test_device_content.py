"""What is on a disk is found partition by partition, also where the kernel has not scanned it."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.conftest import HERE, IMAGE_BYTES, Disks, call, refusal
from volbench.engine.hosts.described_volumes import Content, content_of, look_at_volume
from volbench.execute.agent import files
from volbench.execute.agent.partition_tables import read_table
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor

MIB = 1024**2
LUKS = b"LUKS\xba\xbe\0\2"
LVM = b"LABELONE"
SWAP = b"SWAPSPACE2"


def put(image: Path, offset: int, data: bytes) -> None:
    """Write bytes into an image."""
    with image.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def mbr_entry(kind: int, first: int, count: int) -> bytes:
    """Return an entry of an MBR; sectors of 512 bytes."""
    return struct.pack("<B3xB3xII", 0, kind, first, count)


def write_mbr(image: Path, *entries: bytes, sector: int = 0) -> None:
    """Write a table of up to four partitions."""
    table = b"".join(entries).ljust(64, b"\0") + b"\x55\xaa"
    put(image, sector * 512 + 446, table)


def with_mbr(image: Path) -> int:
    """Make one primary partition at 8 MiB and return its offset."""
    write_mbr(image, mbr_entry(0x83, 8 * MIB // 512, 16 * MIB // 512))
    return 8 * MIB


def with_logical(image: Path) -> int:
    """Make a second logical partition at 12 MiB within an extended one."""
    start = 4 * MIB // 512
    write_mbr(image, mbr_entry(0x0F, start, 24 * MIB // 512))
    link = 6 * MIB // 512
    write_mbr(
        image, mbr_entry(0x83, 2048, 2048), mbr_entry(0x05, link, 2 * MIB // 512), sector=start
    )
    write_mbr(image, mbr_entry(0x83, 2 * MIB // 512, 16 * MIB // 512), sector=start + link)
    return 12 * MIB


def gpt(image: Path, *, header: int, block: int) -> int:
    """Make a GPT with one partition at 8 MiB, whose header is in some block."""
    entry = bytes(range(1, 33)) + struct.pack("<QQ", 8 * MIB // block, 24 * MIB // block - 1)
    entries = header + 1 if header < 16 else header - 32
    put(
        image, header * block, b"EFI PART".ljust(72, b"\0") + struct.pack("<QII", entries, 128, 128)
    )
    put(image, entries * block, entry.ljust(128, b"\0"))
    return 8 * MIB


TABLES: dict[str, Callable[[Path], int]] = {
    "mbr": with_mbr,
    "logical": with_logical,
    "gpt": lambda image: gpt(image, header=1, block=512),
    "gpt of 4k blocks": lambda image: gpt(image, header=1, block=4096),
    "gpt of which only the backup is left": lambda image: gpt(
        image, header=IMAGE_BYTES // 512 - 1, block=512
    ),
}


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize(
    ("table", "kind"),
    [
        *((table, "ext4") for table in TABLES),
        *(("mbr", kind) for kind in ("crypto_LUKS", "LVM2_member", "swap")),
    ],
)
def test_partitions_that_the_kernel_has_not_scanned_are_examined(
    disks: Disks, table: str, kind: str
) -> None:
    """A loop device without -P shows no partitions, and the image has them all the same."""
    image = disks.image()
    offset = TABLES[table](image)
    if kind == "ext4":
        call("mkfs.ext4", "-q", "-F", "-E", f"offset={offset}", str(image), "8m")
    else:
        data, start = {"crypto_LUKS": (LUKS, 0), "LVM2_member": (LVM, 512), "swap": (SWAP, 4086)}[
            kind
        ]
        put(image, offset + start, data)
    device = disks.attach(image)
    assert not list(Path("/sys/block", Path(device).name).glob("loop*p*"))
    found = refusal(HERE, device)
    assert kind in found
    number = 6 if table == "logical" else 1
    assert f"partition {number} (16 MiB at {offset // MIB} MiB)" in found
    assert refusal(HERE, device, wipe=True) == ""


@pytest.mark.root
@pytest.mark.parametrize("table", TABLES)
def test_a_partition_table_alone_is_content(disks: Disks, table: str) -> None:
    """Empty partitions are a layout that somebody made."""
    image = disks.image()
    TABLES[table](image)
    device = disks.attach(image)
    kind = "gpt" if table.startswith("gpt") else "dos"
    assert refusal(HERE, device) == f"{device} holds partition table {kind}"


@pytest.mark.root
def test_a_scanned_partition_is_not_listed_twice(disks: Disks) -> None:
    """The kernel's partition and that of the table are the same."""
    image = disks.image()
    write_mbr(image, mbr_entry(0x83, 2048, IMAGE_BYTES // 512 - 4096))
    device = disks.attach(image)
    part = disks.partition(device)
    disks.format(part)
    assert str(content_at(HERE, device)) == f"partition table dos; {part}: ext4"


def read_from(data: bytes) -> Callable[[int, int], bytes]:
    """Return a reader of bytes in memory."""
    return lambda offset, length: data[max(offset, 0) :][:length]


def test_a_chain_of_logical_partitions_that_is_a_circle_ends(tmp_path: Path) -> None:
    """A table may lead back to itself."""
    image = tmp_path / "image"
    image.write_bytes(bytes(IMAGE_BYTES))
    write_mbr(image, mbr_entry(0x0F, 2048, 4096))
    write_mbr(image, mbr_entry(0x83, 1, 1), mbr_entry(0x05, 0, 1), sector=2048)
    assert len(read_table(read_from(image.read_bytes()), IMAGE_BYTES).regions) == 1


def test_a_boot_sector_of_a_filesystem_is_not_a_partition_table() -> None:
    """It ends with the two bytes of an MBR, and has code where the entries would be."""
    sector = bytes(446) + bytes(range(64)) + b"\x55\xaa"
    assert not read_table(read_from(sector + bytes(MIB)), MIB).kind


@pytest.fixture
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Executor:
    """Return a host that has the tools of busybox, and Python."""
    folder, busybox = tmp_path / "bin", shutil.which("busybox")
    assert busybox is not None, "install busybox"
    folder.mkdir()
    for applet in call(busybox, "--list").split():
        (folder / applet).symlink_to(busybox)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(files, "SYSTEM_PATH", ())
    return LocalExecutor()


def content_at(executor: Executor, path: str) -> Content:
    """Return what is on a device."""
    return content_of(look_at_volume(executor, VolumeQuestion(path, details=("content",))))


@pytest.mark.root
def test_a_bare_host_examines_partitions_too(disks: Disks, request: pytest.FixtureRequest) -> None:
    """The blkid of busybox finds nothing and says so with success."""
    image, empty = disks.image(), disks.attach()
    offset = with_mbr(image)
    call("mkfs.ext4", "-q", "-F", "-E", f"offset={offset}", str(image), "8m")
    other = disks.image()
    put(other, 4096, b"somebody's")
    device, unknown = disks.attach(image), disks.attach(other)
    host: Executor = request.getfixturevalue("bare_host")
    assert refusal(host, device) == (
        f"{device} holds partition table dos; partition 1 (16 MiB at 8 MiB): ext4"
    )
    assert refusal(host, unknown) == f"{unknown} holds data that cannot be identified without blkid"
    assert refusal(host, empty) == ""
