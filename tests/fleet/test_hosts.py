"""The test hosts themselves: apart from each other, and gone when nobody needs them."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.hosts import Fleet, call
from tests.waiting import until

pytestmark = pytest.mark.root

CHILD = """
import sys, time
from pathlib import Path
from tests.fleet.hosts import fleet
with fleet(2, Path(sys.argv[1])) as hosts:
    print(*(host.space.init for host in hosts.hosts), flush=True)
    time.sleep(1000)
"""


def test_hosts_are_isolated(hosts: Fleet) -> None:
    """Each has its own name, address, processes, boot, host key and /tmp."""
    first, second = hosts.hosts
    for argv in (
        ["hostname"],
        ["cat", "/proc/sys/kernel/random/boot_id"],
        ["ip", "-4", "-o", "address", "show", "eth0"],
    ):
        assert first.run(*argv) != second.run(*argv)
    assert first.public_key != second.public_key
    first.run("touch", "/tmp/mine")
    assert second.run("ls", "/tmp") == ""
    first.run("rm", "/tmp/mine")
    assert "pytest" not in first.run("ps", "ax", "-o", "args")


def test_hosts_end_with_the_process_that_created_them(tmp_path: Path) -> None:
    """When the tests are killed, no process, no interface and no namespace stays."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "f")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    with child.stdout as reported:
        first_processes = reported.readline().split()
    assert len(first_processes) == 2
    child.send_signal(signal.SIGKILL)
    child.wait(60)
    until(lambda: not any(Path(f"/proc/{pid}/ns/pid").exists() for pid in first_processes))
    cable = f"vb{child.pid % 100000}"
    until(lambda: cable not in call("ip", "-o", "link"))
