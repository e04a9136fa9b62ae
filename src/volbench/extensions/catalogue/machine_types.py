"""Limits of machine types: what all volumes of a machine are allowed together."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from volbench.extensions.catalogue.volume_type import TypeSource
from volbench.extensions.catalogue.volume_types import Count, Day, Name, entry_of, yaml_files
from volbench.model.document.document_model import Document, Duration, Rate
from volbench.model.document.located_errors import Fault, reject
from volbench.model.document.yaml_text import read_document
from volbench.model.profile.profile_settings import Limits
from volbench.plan.bundled_files import bundled_folder, read_text

FOLDER = "machine-types"  # Name of the folders with files of machine types


class MachineType(Document):
    """Limits of a machine type, without host caching unless a key says otherwise."""

    iops: Count | None = Field(default=None, description="I/Os per second, sustained.")
    bandwidth_bytes_per_s: Rate | None = Field(
        default=None, alias="bandwidth", description="Bytes per second, sustained."
    )
    burst_iops: Count | None = Field(default=None, description="While credits last.")
    burst_bandwidth_bytes_per_s: Rate | None = Field(
        default=None, alias="burst_bandwidth", description="While credits last."
    )
    burst_s: Duration | None = Field(
        default=None, alias="burst_duration", description="Duration of a burst."
    )
    cached_iops: Count | None = Field(default=None, description="With host caching.")
    cached_bandwidth_bytes_per_s: Rate | None = Field(
        default=None, alias="cached_bandwidth", description="With host caching."
    )
    source: TypeSource | None = Field(default=None, description="Page that documents the limits.")


class MachinesFile(Document):
    """Machine types of one provider."""

    provider: Name = Field(description="First part of each name.", examples=["azure"])
    checked: Day = Field(description="Date of the last check.")
    source: TypeSource = Field(description="Default for types without a source.")
    machines: dict[Name, MachineType] = Field(description="Types by name.")

    @model_validator(mode="after")
    def _has_limits(self) -> Self:
        for name, machine in self.machines.items():
            if machine.iops is None and machine.bandwidth_bytes_per_s is None:
                hint = "add iops or bandwidth"
                reject(Fault("has no limit", hint, at=("machines", name), on_key=True))
        return self


def machine_types() -> dict[str, MachineType]:
    """Return the machine types by name: bundled ones, then those in ./machine-types."""
    found: dict[str, MachineType] = {}
    for path in (*yaml_files(bundled_folder(FOLDER)), *yaml_files(Path(FOLDER))):
        found |= parse_machines(read_text(path, what="file of machine types"), path=str(path))
    return found


@cache  # a campaign asks for each of its hosts
def parse_machines(text: str, *, path: str) -> dict[str, MachineType]:
    """Return the machine types in a text, by name such as ``azure/Standard_B2s``."""
    what, needs = "a file of machine types", "a provider and machines"
    file = read_document(text, MachinesFile, path=path, what=what, needs=needs)
    return {f"{file.provider}/{name}": machine for name, machine in file.machines.items()}


def find_machine(name: str) -> MachineType:
    """Return a machine type by name."""
    return entry_of(name, machine_types(), kind="machine type")


def within_machine(limits: Limits) -> Limits:
    """Return the limits of a volume on its machine, of which the lower one applies."""
    machine = find_machine(limits.machine)
    changes: dict[str, object] = {}
    bound = []
    for key, bucket in (("iops", "burst_ios"), ("bandwidth_bytes_per_s", "burst_bytes")):
        own, of_machine = getattr(limits, key), getattr(machine, key)
        own_burst, burst = (getattr(each, f"burst_{key}") for each in (limits, machine))
        if of_machine is None:
            continue
        changes[f"machine_{key}"] = of_machine
        base = of_machine if own is None else min(own, of_machine)
        peaks = [rate for rate in (own_burst or own, burst or of_machine) if rate is not None]
        changes |= {key: base, f"burst_{key}": None, bucket: None}
        if (peak := min(peaks)) > base:
            changes[f"burst_{key}"] = peak
            if base == own:  # the credits of the volume run out, at the rate that is left
                changes[bucket] = getattr(limits, bucket)
            elif machine.burst_s is not None:
                changes[bucket] = (peak - base) * machine.burst_s
        if base != own:
            bound.append(key)
    return limits.model_copy(update={**changes, "machine_limits": tuple(bound)})
