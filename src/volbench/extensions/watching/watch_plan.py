"""Plan of a watched campaign: a run for each disk of each host."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from volbench import __version__
from volbench.engine.guard.volume_targets import pin_of, volume_facts
from volbench.engine.hosts.connected_host import Clock, ConnectedHost, on_every_host
from volbench.engine.hosts.described_volumes import look_at
from volbench.engine.hosts.host_facts import probe_host, survey_machine
from volbench.errors import InputError
from volbench.execute.agent.files import read_files
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.protocol import Executor
from volbench.model.campaign.planned_run import Campaign, Run, Section, Volume, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.store.archive import Archive, Provenance
from volbench.store.journal import utc_now

JOB = "watch"
# Devices that are no disks of their own: in memory, on files, on other devices, or removable
_NO_DISKS = re.compile(r"(loop|ram|zram|dm-|md|sr|fd|drbd)\d*$|dm-|md")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class WatchedDisk:
    """A disk of a host that is watched."""

    volume: Volume
    facts: VolumeFacts

    @property
    def devices(self) -> tuple[str, ...]:
        """Kernel names of the disk and of the disks below it."""
        return (self.facts.device, *self.facts.backing)


@dataclass(frozen=True)
class WatchedHost:
    """A host, its disks, and the offset of its clock from the controller's."""

    host: ConnectedHost
    facts: HostFacts
    disks: tuple[WatchedDisk, ...]
    clock: Clock


def find_disks(
    hosts: Sequence[ConnectedHost], targets: Sequence[str], *, is_named: bool = False
) -> list[WatchedHost]:
    """Return the disks of targets, else of the volumes if hosts are named with them, else all."""

    def find(host: ConnectedHost) -> WatchedHost:
        survey, clock = survey_machine(host.executor)
        own = targets or (is_named and [*host.host.volumes.values()])
        disks = _watched_disks(host, own or _disks_of(host.executor))
        return WatchedHost(host, probe_host(host.executor, survey=survey), disks, clock or Clock())

    return on_every_host(hosts, find)


def _disks_of(executor: Executor) -> list[str]:
    """Return the nodes of all disks with a capacity, partitions and layers left out."""
    (text,) = executor.ask(read_files, ["/proc/diskstats"])
    names = [fields[2] for line in (text or "").splitlines() if len(fields := line.split()) > 2]
    folders = [f"/sys/class/block/{name.replace('/', '!')}" for name in names]
    facts = executor.ask(
        read_files, [f"{folder}/{fact}" for folder in folders for fact in ("size", "partition")]
    )
    found = [
        f"/dev/{name}"
        for name, size, partition in zip(names, facts[::2], facts[1::2], strict=True)
        if partition is None and (size or "0").strip() != "0" and not _NO_DISKS.match(name)
    ]
    if not found:
        raise InputError(
            f"{executor.host} has no disk of its own to watch",
            hint="name a device or a path: volbench watch --on /dev/loop0",
        )
    return found


def _watched_disks(host: ConnectedHost, targets: Sequence[str]) -> tuple[WatchedDisk, ...]:
    paths = list(dict.fromkeys(str(PurePosixPath(target)) for target in targets))
    if host.executor.is_remote and (bad := [path for path in paths if not path.startswith("/")]):
        raise InputError(
            f"{bad[0]} is relative, but {host.name} is another machine", hint="name absolute paths"
        )
    paths = [path if path.startswith("/") else str(Path(path).absolute()) for path in paths]
    seen = look_at(host.executor, [VolumeQuestion(path) for path in paths]).volumes
    disks: dict[str, WatchedDisk] = {}
    for path in paths:
        described = seen[path]
        if described.is_device:
            volume = Volume(
                role="disk", kind=VolumeKind.DEVICE, target=path, pin=pin_of(path, described)
            )
        elif described.stat is not None and described.stat.kind in {"file", "directory"}:
            volume = Volume(role="disk", kind=VolumeKind(described.stat.kind), target=path)
        else:
            raise InputError(
                f"{path} does not exist on {host.name}", hint="lsblk lists the devices"
            )
        facts = volume_facts(volume, seen)
        if not facts.device:
            raise InputError(
                f"{path} on {host.name} is not on a block device ({facts.filesystem or 'unknown'})",
                hint="name a device, or a path on a local file system: lsblk, findmnt",
            )
        if facts.device not in disks:
            name = _UNFIT.sub("-", facts.device)
            named = {"role": name}
            disks[facts.device] = WatchedDisk(
                volume.model_copy(update=named), facts.model_copy(update=named)
            )
    return tuple(disks.values())


def plan_watch(
    hosts: Sequence[WatchedHost], *, name: str, interval_s: float, command: tuple[str, ...]
) -> Archive:
    """Return the plan of a watched campaign."""
    several = len(hosts) > 1
    runs = [
        Run(
            id=f"{number:03}-{JOB}-r1-{_UNFIT.sub('-', at.host.name) + '-' if several else ''}"
            f"{disk.volume.role}",
            profile=JOB,
            job=JOB,
            volume=disk.volume,
            tool=Tool.WATCH,
            host=at.host.name,
            sections=(Section(name=JOB),),
            sample_s=interval_s,
            device_sample_s=interval_s,
            step=1,
            note="watched: the load was not generated by volbench",
        )
        for number, (at, disk) in enumerate(
            ((at, disk) for at in hosts for disk in at.disks), start=1
        )
    ]
    campaign = Campaign(
        name=name,
        created_utc=utc_now(),
        runs=tuple(runs),
        seed=0,
        command=command,
        hosts=tuple(at.host.host for at in hosts)
        if several or hosts[0].host.executor.is_remote
        else (),
    )
    provenance = Provenance(
        volbench_version=__version__,
        python_version=platform.python_version(),
        hosts=tuple(at.facts for at in hosts),
        volumes=tuple(disk.facts for at in hosts for disk in at.disks),
    )
    return Archive(campaign=campaign, provenance=provenance)
