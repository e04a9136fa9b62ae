"""Scripted machines with disks that no test machine has: LVM, RAID, ZFS and their kin."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.execute.fake import FakeExecutor
from volbench.execute.agent.files import FileStat
from volbench.execute.protocol import Completed

GIB = 1024**3
_MOUNTINFO = "/proc/self/mountinfo"
_BY_ID = "/dev/disk/by-id/"


@dataclass
class Server:
    """A machine with a root disk ``sda`` (8:0, root on ``sda1``) and whatever is added.

    Attributes:
        machine: the executor.
        signatures: node to what blkid exports of it, and its exit status; ``NODE@OFFSET`` for
            a part.
        contents: node to bytes on it, by offset; zeros elsewhere.
    """

    machine: FakeExecutor = field(default_factory=FakeExecutor)
    signatures: dict[str, tuple[int, str]] = field(default_factory=dict)
    contents: dict[str, dict[int, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set the machine up."""
        self.machine.files |= {
            _MOUNTINFO: "27 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
            "/proc/swaps": "Filename Type Size Used Priority\n",
            "/proc/sys/kernel/random/boot_id": "b00t\n",
            "/data/x": "",
        }
        self.machine.answers |= {"blkid": self._blkid}
        self.machine.content = self._read  # type: ignore[method-assign]  # scripted
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

    def _read(self, node: str, offset: int, length: int) -> bytes:
        data = bytearray(length)
        for start, found in self.contents.get(node, {}).items():
            for number, byte in enumerate(found, start - offset):
                if 0 <= number < length:
                    data[number] = byte
        return bytes(data)

    def name(self, by_id: str, node: str) -> None:
        """Give a device its only name in /dev/disk/by-id."""
        for path in [path for path in self.machine.links if path.startswith(_BY_ID)]:
            del self.machine.links[path]
        self.machine.links[_BY_ID + by_id] = node
