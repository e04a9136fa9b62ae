"""Scripted machines with disks that no test machine has: LVM, RAID, ZFS and their kin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.execute.fake import FakeExecutor
from volbench.execute.protocol import Completed, FileStat

GIB = 1024**3
_MOUNTINFO = "/proc/self/mountinfo"


@dataclass
class Server:
    """A machine with a root disk ``sda`` (8:0, root on ``sda1``) and whatever is added.

    Attributes:
        machine: the executor.
        signatures: node to what blkid exports of it, and its exit status; ``NODE@OFFSET`` for
            a part.
        by_id: name in /dev/disk/by-id to node.
        contents: node to bytes on it, by offset; zeros elsewhere.
    """

    machine: FakeExecutor = field(default_factory=FakeExecutor)
    signatures: dict[str, tuple[int, str]] = field(default_factory=dict)
    by_id: dict[str, str] = field(default_factory=dict)
    contents: dict[str, dict[int, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set the machine up."""
        self.machine.files |= {
            _MOUNTINFO: "27 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
            "/proc/swaps": "Filename Type Size Used Priority\n",
            "/proc/sys/kernel/random/boot_id": "b00t\n",
            "/data/x": "",
        }
        self.machine.answers |= {"blkid": self._blkid, "sh": self._read}
        self.disk("sda", (8, 0))
        self.part("sda", "sda1", (8, 1))

    def disk(self, name: str, number: tuple[int, int], **attributes: str) -> str:
        """Add a disk and return its node."""
        return self._device(f"/sys/devices/{name}", name, number, attributes)

    def part(self, disk: str, name: str, number: tuple[int, int]) -> str:
        """Add a partition to a disk and return its node."""
        return self._device(f"/sys/devices/{disk}/{name}", name, number, {"partition": "1"})

    def build(self, name: str, number: tuple[int, int], *lower: str) -> str:
        """Add a device that is built on others, as LVM and RAID are, and return its node."""
        node = self.disk(name, number)
        for part in lower:
            folder = self.machine.real_path(f"/sys/class/block/{part}")
            self.machine.links[f"{folder}/holders/{name}"] = f"/sys/devices/{name}"
            self.machine.links[f"/sys/devices/{name}/slaves/{part}"] = folder
        return node

    def mount(self, line: str) -> None:
        """Add a line of mountinfo."""
        self.machine.files[_MOUNTINFO] += line + "\n"

    def _device(
        self, folder: str, name: str, number: tuple[int, int], attributes: Mapping[str, str]
    ) -> str:
        node, text = "/dev/" + name.replace("!", "/"), f"{number[0]}:{number[1]}"
        diskseq = str(1 + len(self.machine.stats))
        reported = {"dev": text, "size": str(10 * GIB // 512), "ro": "0", "diskseq": diskseq}
        reported |= attributes
        for attribute, value in reported.items():
            place = attribute.replace("__", "/")
            self.machine.files[f"{folder}/{place}"] = f"{value}\n"
        self.machine.stats[node] = FileStat("block", (0, 6), number, hash(number) & 0xFFFF, 0)
        self.machine.links[f"/sys/dev/block/{text}"] = folder
        self.machine.links[f"/sys/class/block/{name}"] = folder
        return node

    def _blkid(self, argv: tuple[str, ...]) -> Completed:
        part = f"@{argv[argv.index('-O') + 1]}" if "-O" in argv else ""
        status, text = self.signatures.get(argv[-1] + part, (2, ""))
        return Completed(argv, status, text, "")

    def _read(self, argv: tuple[str, ...]) -> Completed:
        """Answer the scripts that print names of a device, and parts of it in hexadecimal."""
        if argv[3] == "by-id":
            links = [name for name in self.by_id if self.by_id[name] == argv[4]]
            return Completed(argv, 0, "".join(f"{name}\n" for name in links), "")
        node, *sectors = argv[4:]
        spans = [int(number) * 512 for number in sectors]
        texts = []
        for start, length in zip(spans[::2], spans[1::2], strict=True):
            data = bytearray(length)
            for offset, found in self.contents.get(node, {}).items():
                if start <= offset < start + length:
                    data[offset - start : offset - start + len(found)] = found
            texts.append(f" {data.hex(' ')}\n")
        return Completed(argv, 0, "".join(texts), "")
