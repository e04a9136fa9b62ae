"""Hosts and volumes of plans with several clients, and profiles from text."""

from collections.abc import Mapping

from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import DevicePin, Volume, VolumeKind
from volbench.model.profile.profile_settings import Limits

MIB = 1 << 20
LOCAL = Host(name="local")
VM1 = Host(name="vm01", address="10.0.0.1", labels={"flavor": "small"})
VM2 = Host(name="vm02", address="10.0.0.2", limits={"*": Limits(iops=7)})


def folder(path: str = "/data") -> Mapping[str, Volume]:
    """Return the role data on a directory."""
    return {"data": Volume(role="data", kind=VolumeKind.DIRECTORY, target=path)}


def device(size_bytes: int) -> Mapping[str, Volume]:
    """Return the role data on a block device."""
    pin = DevicePin(path="/dev/sdx", major=8, minor=0, size_bytes=size_bytes)
    volume = Volume(role="data", kind=VolumeKind.DEVICE, target="/dev/sdx", pin=pin)
    return {"data": volume}
