"""Identity of a device over time, on scripted machines: restarts, attachments, kernels, content."""

from dataclasses import dataclass, field

import pytest

from tests.engine.machines import Server
from volbench.engine.guard.device_guard import check_identity
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.described_volumes import look_at_volume
from volbench.errors import RefusedError
from volbench.execute.agent.held_device import BLANK
from volbench.execute.agent.volumes import VolumeQuestion

DEVICE = "/dev/vdb"
QUESTION = VolumeQuestion(DEVICE, details=("content", "edges"))
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass
class Disk:
    """A scripted disk that is planned at once, and changes later."""

    attributes: dict[str, str] = field(default_factory=dict)
    edges: str = "digest"

    def __post_init__(self) -> None:
        """Plan a campaign on it."""
        self.server = Server()
        self.server.disk("vdb", (254, 16), **self.attributes)
        self.server.machine.edges[DEVICE] = self.edges
        self.volume = find_volume(self.server.machine, role="data", target=DEVICE)

    def attach_again(self) -> None:
        """Give it a new number of attachment."""
        self.server.machine.files["/sys/devices/vdb/diskseq"] = "77\n"

    def restart(self) -> None:
        """Restart the machine, which numbers attachments anew."""
        self.server.machine.files[_BOOT_ID] = "later\n"

    def refusal(self, *, edges: str | None) -> str:
        """Return why it is refused."""
        try:
            check_identity(self.volume, look_at_volume(self.server.machine, QUESTION), edges=edges)
        except RefusedError as error:
            return error.message
        return ""


def test_the_same_attachment_is_the_same_device() -> None:
    """Within one boot the kernel's number is enough, whatever is known of the content."""
    disk = Disk()
    assert [disk.refusal(edges=edges) for edges in (None, "", "digest")] == ["", "", ""]


def test_content_that_something_else_wrote_is_refused() -> None:
    """Also on the same attachment."""
    assert "something else wrote to it" in Disk().refusal(edges="as we left it")


@pytest.mark.parametrize("change", [Disk.attach_again, Disk.restart])
def test_a_nameless_device_needs_its_content(change: object) -> None:
    """After a restart, or attached again, only what volbench left on it tells it from another."""
    disk = Disk()
    assert callable(change)
    change(disk)
    assert disk.refusal(edges="digest") == ""
    for edges in (None, "", "other"):
        refusal = disk.refusal(edges=edges)
        assert "may not be the device that was planned: " in refusal
        assert "no serial number or WWN" in refusal
    disk = Disk(edges=BLANK)  # any new disk begins and ends with zeros
    disk.restart()
    assert "the machine has restarted" in disk.refusal(edges=BLANK)


@pytest.mark.parametrize("name", ["serial", "wwid"])
def test_a_device_that_names_itself_survives_a_restart(name: str) -> None:
    """A serial number or WWN is an identity, though not of its content."""
    disk = Disk({name: "X1"})
    disk.restart()
    assert disk.refusal(edges="digest") == ""
    assert disk.refusal(edges="") == ""
    assert "something else wrote to it" in disk.refusal(edges="other")
    disk.server.machine.files[f"/sys/devices/vdb/{name}"] = "X2\n"
    assert "was X1, is X2" in disk.refusal(edges="digest")


def test_an_older_kernel_trusts_its_boot_and_the_content() -> None:
    """Before Linux 5.15 attachments have no number: reading is allowed, writing needs content."""
    disk = Disk({"diskseq": ""}, edges=BLANK)
    assert disk.refusal(edges=None) == ""
    assert disk.refusal(edges=BLANK) == ""
    assert "attached again" in disk.refusal(edges="")


def test_a_new_signature_after_a_crash_is_refused() -> None:
    """What an interrupted run left is unknown, but it makes no filesystem."""
    disk = Disk()
    disk.server.signatures[DEVICE] = (0, "TYPE=ext4\nUUID=1\nUSAGE=filesystem\n")
    assert "it holds ext4 1 now" in disk.refusal(edges="")
    planned = Disk()
    planned.server.signatures[DEVICE] = (0, "TYPE=ext4\nUUID=1\nUSAGE=filesystem\n")
    planned.volume = find_volume(planned.server.machine, role="data", target=DEVICE)
    assert planned.refusal(edges="") == ""
    planned.server.signatures[DEVICE] = (0, "TYPE=ext4\nUUID=2\nUSAGE=filesystem\n")
    assert "it holds ext4 2 now" in planned.refusal(edges="")
