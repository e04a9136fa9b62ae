"""A person at a terminal sees what a device is and types its name before it is overwritten."""

from pathlib import Path

import pytest

from tests.command_line import at_a_terminal, settings
from tests.engine.conftest import Disks, call

pytestmark = pytest.mark.slow

SMALL = settings("size=4m", "runtime=100ms", "sample=0", "rand*=", "mixed*=", "read*=")
"""The fill and one job that writes."""


@pytest.fixture
def loop_device(disks: Disks) -> str:
    """Return an empty block device of 32 MiB."""
    return disks.attach()


@pytest.mark.root
@pytest.mark.parametrize(("typed", "code"), [("yes", 3), ("", 3), ("the device", 0)])
def test_only_the_exact_name_confirms(
    tmp_path: Path, loop_device: str, typed: str, code: int
) -> None:
    """Anything but the device's own name is a refusal, and nothing is written."""
    arguments = ["run", "quick", "--on", loop_device, "--allow-destroy", loop_device]
    answer = loop_device if typed == "the device" else typed
    status, stderr = at_a_terminal([*arguments, *SMALL, "--output", str(tmp_path / "out")], answer)
    assert status == code, stderr
    assert loop_device in stderr
    assert "32 MiB" in stderr
    written = Path(loop_device).read_bytes().strip(b"\0")
    assert bool(written) is (code == 0)


@pytest.mark.smoke
@pytest.mark.root
def test_a_filesystem_is_shown_and_needs_two_consents(tmp_path: Path, loop_device: str) -> None:
    """Naming the device is not enough; the question names the host and what would be lost."""
    call("mkfs.ext4", "-q", "-F", "-L", "archive", loop_device)
    before = Path(loop_device).read_bytes()
    arguments = ["run", "quick", "--on", loop_device, "--allow-destroy", loop_device]
    out = tmp_path / "out"
    status, stderr = at_a_terminal([*arguments, *SMALL, "--output", str(out)], loop_device)
    assert status == 3, stderr
    assert "--wipe-signatures" in stderr
    wipe = [*arguments, *SMALL, "--wipe-signatures", "--output", str(out)]
    status, stderr = at_a_terminal(wipe, "no")
    assert status == 3, stderr
    assert 'on it:   ext4 "archive"' in stderr
    assert Path("/proc/sys/kernel/hostname").read_text().strip() in stderr
    assert Path(loop_device).read_bytes() == before
    status, stderr = at_a_terminal(wipe, loop_device)
    assert status == 0, stderr
    assert Path(loop_device).read_bytes() != before


def test_a_directory_needs_no_confirmation(tmp_path: Path, scratch: Path) -> None:
    """Scratch files in a folder need no question."""
    arguments = ["run", "quick", "--on", str(scratch), "--output", str(tmp_path / "out")]
    status, stderr = at_a_terminal([*arguments, *SMALL], "")
    assert status == 0, stderr
    assert "Type" not in stderr
