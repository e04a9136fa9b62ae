"""Limits of a volume from what others say of it: Kubernetes, a metadata service, or labels."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress

from volbench.errors import InputError
from volbench.extensions.catalogue.machine_types import machine_types
from volbench.extensions.catalogue.price_list import FLAVOR, VOLUME_TYPE
from volbench.extensions.catalogue.volume_type import GIB
from volbench.extensions.catalogue.volume_types import catalogue, declared_limits, known_limits
from volbench.model.profile.profile_settings import Limits, VolumeOfType
from volbench.units import parse_rate

# CSI driver to its provider, the parameters that name the type, and the type without them
_DRIVERS = {
    "disk.csi.azure.com": ("azure", ("skuname", "storageaccounttype"), "StandardSSD_LRS"),
    "ebs.csi.aws.com": ("aws", ("type",), "gp3"),
    "ebs.csi.eks.amazonaws.com": ("aws", ("type",), "gp3"),
    "pd.csi.storage.gke.io": ("gcp", ("type",), "pd-standard"),
}
_AZURE = {  # SKU without its redundancy, such as _LRS or _ZRS
    "premium": "premium-ssd",
    "premiumv2": "premium-ssd-v2",
    "ultrassd": "ultra-disk",
    "standardssd": "standard-ssd",
    "standard": "standard-hdd",
}
# Parameters in lower case, as the drivers compare them; for bandwidth with the unit of a number.
# Sources: driver-parameters.md of azuredisk-csi-driver, parameters.md of aws-ebs-csi-driver,
# README.md of gcp-compute-persistent-disk-csi-driver
_IOPS = ("diskiopsreadwrite", "iops", "provisioned-iops-on-create")
_BANDWIDTH = {
    "diskmbpsreadwrite": "MB/s",
    "throughput": "MiB/s",
    "provisioned-throughput-on-create": "MiB/s",
}
# What the driver asks for where the class of an Ultra Disk does not
_OF_ULTRA_DISK = {"diskiopsreadwrite": "500", "diskmbpsreadwrite": "100"}
# With these a disk has more than the limits of its type, which are then not known
_RAISING = ("enablebursting", "enableperformanceplus")

# All hosts of a campaign ask at the same time; only the first is to parse the files
_reading = threading.Lock()
# Type of a disk in the metadata of Google Cloud to its volume type
_GCP = {"PERSISTENT-BALANCED": "pd-balanced", "PERSISTENT-SSD": "pd-ssd"}
_MAX_DIGITS = 9  # As many IOPS no volume has; a longer text is a mistake


def class_limits(
    driver: str, parameters: Mapping[str, str], *, size_bytes: int | None, machine: str
) -> Limits | None:
    """Return the limits of a volume of a CSI driver; None where they are not known.

    Args:
        driver: name of the driver, such as ``disk.csi.azure.com``.
        parameters: of the StorageClass and of the volume.
        size_bytes: capacity of the volume.
        machine: type of the node's machine, as its provider names it; may be empty.
    """
    if driver not in _DRIVERS:
        return None
    provider, names, usual = _DRIVERS[driver]
    given = {name.lower(): value.strip() for name, value in parameters.items()}
    if any(given.get(name, "").lower() == "true" for name in _RAISING):
        return None
    kind = next((given[name] for name in names if given.get(name)), usual).lower()
    if provider == "azure":
        kind = _AZURE.get(kind.partition("_")[0], kind)
    if kind == "ultra-disk":
        given = _OF_ULTRA_DISK | given
    if (per_gib := given.get("iopspergb")) and size_bytes is not None:  # of io1 and io2
        given.setdefault("iops", str(_parse_iops(per_gib) * -(-size_bytes // GIB)))
    iops = next((_parse_iops(given[name]) for name in _IOPS if given.get(name)), None)
    rates = (
        parse_rate(f"{given[name].removesuffix('i').removesuffix('M')}{unit}")
        for name, unit in _BANDWIDTH.items()
        if given.get(name)
    )
    volume = VolumeOfType(
        type=f"{provider}/{kind}",
        size_bytes=size_bytes,
        iops=iops,
        bandwidth_bytes_per_s=next(rates, None),
    )
    node = f"{provider}/{machine}"
    is_known = node in machine_types()
    return declared_limits(volume).model_copy(update={"machine": node if is_known else ""})


def disk_limits(
    provider: str,
    machine: str,
    *,
    type: str = "",  # noqa: A002 - as the metadata service calls it
    size_gib: int = 0,
    iops: int = 0,
    bytes_per_s: int = 0,
) -> Limits | None:
    """Return the limits of a disk that a metadata service describes; None where none is known.

    Those of the machine remain where the disk is not described, as by AWS, or where its provisioned
    performance is not.
    """
    node = f"{provider}/{machine}"
    of_machine = Limits(machine=node) if node in machine_types() else None
    kind = _GCP.get(type, type)
    is_open = kind.startswith("PremiumV2") or (kind.startswith("UltraSSD") and not iops)
    if (
        provider == "aws"
        or not kind
        or is_open
        or (provider == "gcp" and kind not in _GCP.values())
    ):
        return of_machine
    provisioned = {
        "diskiopsreadwrite": str(iops or ""),
        "diskmbpsreadwrite": f"{bytes_per_s / 1e6:g}" if bytes_per_s else "",
    }
    driver = "disk.csi.azure.com" if provider == "azure" else "pd.csi.storage.gke.io"
    parameters = {"skuname": kind, "type": kind, **provisioned}
    limits = class_limits(driver, parameters, size_bytes=size_gib * GIB or None, machine=machine)
    return limits or of_machine


def label_limits(labels: Mapping[str, str], *, size_bytes: int | None) -> Limits | None:
    """Return the limits that labels of a host name; None where the catalogue has neither.

    Labels are free text: what cannot be a volume or a machine gives no limits.
    """
    with _reading:
        volumes, machines = catalogue(), machine_types()
    kind = _only_entry(labels.get(VOLUME_TYPE, ""), volumes)
    machine = _only_entry(labels.get(FLAVOR, ""), machines)
    limits = None
    if kind:
        with suppress(InputError):  # The type needs a size, or provisioned performance
            volume = VolumeOfType(type=kind, size_bytes=size_bytes)
            known_limits(volume, writes=True)
            limits = declared_limits(volume)
        if limits and limits.wanted and size_bytes is None:
            limits = None
    used = [name for name, known in ((VOLUME_TYPE, limits), (FLAVOR, machine)) if known]
    if not used:
        return None
    origin = f"label{'s' if len(used) > 1 else ''} {' and '.join(used)} of the host"
    return (limits or Limits()).model_copy(update={"machine": machine, "origin": origin})


def _only_entry(name: str, known: Iterable[str]) -> str:
    """Return the only entry of a catalogue with a name; empty for none."""
    found = [entry for entry in known if name and name in {entry, entry.partition("/")[2]}]
    return found[0] if len(found) == 1 else ""


def _parse_iops(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > _MAX_DIGITS:
        raise InputError(f"{text!r} is not a number of IOPS")
    return int(text)
