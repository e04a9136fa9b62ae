"""`volbench show --use` and the device's chart on a filesystem of a real block device."""

import json
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.engine.conftest import Disks

pytestmark = pytest.mark.root

MIB = 1024**2

PROFILE = """\
name: use
defaults: {ioengine: psync, filename: it, size: 48m}
jobs:
  direct: {rw: write, bs: 64k, direct: 1, rate_iops: 250, runtime: 5s, time_based: 1}
  buffered: {rw: write, bs: 256k, direct: 0}
"""


@pytest.mark.alone
def test_the_device_is_reported_beside_fio(
    disks: Disks, volbench: Volbench, tmp_path: Path
) -> None:
    """A direct run has its share of the limit; a buffered one leaves bytes to write later."""
    device = disks.attach(disks.image(192 * MIB), "--direct-io=on")
    disks.format(device)
    point = disks.mount(device)
    (tmp_path / "use.yaml").write_text(PROFILE)
    limits = ("--set", "limits.iops=1000")
    done = volbench("run", "use.yaml", "--on", point, "--output", "c", *limits)
    assert done.returncode == 0, done.stderr

    direct, buffered = json.loads(volbench("show", "c", "--use", "--json").stdout)
    assert direct["device"] == buffered["device"] == Path(device).name
    assert 20 <= direct["iops_percent"] <= 35
    assert 90 <= direct["device_share_percent"] <= 150  # a new ext4 writes its tables meanwhile
    assert 40_000 <= direct["write_request_bytes"] <= 130_000
    assert not buffered["direct"]
    assert buffered["tool_bytes"] == 48 * MIB
    found = [buffered[name] for name in ("device_bytes", "tail_bytes", "dirty_remaining_bytes")]
    assert 0.95 <= sum(found) / (48 * MIB) <= 1.5
    assert buffered["device_share_percent"] < 50

    table = volbench("show", "c", "--use").stdout
    assert "tail" in table
    assert table.index("direct") < table.index("buffered")
    drawn = volbench("plot", "device", "c", "--format", "png", "--output", "device.png")
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "device.png").read_bytes()[:4] == b"\x89PNG"
