"""Which devices a host's own leave names: by serial number or by id, on that host alone."""

import pytest

from volbench.engine.guard.preflight import allowed_for
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import (
    Campaign,
    DevicePin,
    Run,
    Section,
    Volume,
    VolumeKind,
)

BY_ID = "/dev/disk/by-id/scsi-1"


def a_run(host: str, serial: str) -> Run:
    """Return a run on a disk of a host."""
    pin = DevicePin(path="/dev/sdb", major=8, minor=16, size_bytes=1, serial=serial)
    volume = Volume(role="data", kind=VolumeKind.DEVICE, target="/dev/sdb", pin=pin)
    return Run(
        id="r", profile="p", job="j", volume=volume, sections=(Section(name="j"),), host=host
    )


@pytest.mark.parametrize(
    ("host", "serial", "allowed"),
    [
        ("vm1", "S1", (BY_ID, "/dev/sdb")),
        ("vm1", "S2", (BY_ID,)),
        ("vm1", "", (BY_ID,)),
        ("vm2", "S1", ("/dev/sdy",)),
        ("desk", "S1", ("/dev/sdz", "vm2:/dev/sdy")),
    ],
)
def test_overwrite_permissions_belong_to_one_host_and_disk(
    host: str, serial: str, allowed: tuple[str, ...]
) -> None:
    """Another disk in the same place, and the same name on another host, are not meant."""
    run = a_run(host, serial)
    hosts = (
        Host(name="vm1", address="10.0.0.1", allow_destroy=("serial:S1", "serial:", BY_ID)),
        Host(name="vm2", address="10.0.0.2"),
        Host(name="desk"),
    )
    given = ("/dev/sdz", "vm2:/dev/sdy")
    campaign = Campaign(
        name="c", created_utc="", runs=(run,), seed=1, hosts=hosts, allow_destroy=given
    )
    assert allowed_for(run, campaign) == allowed
