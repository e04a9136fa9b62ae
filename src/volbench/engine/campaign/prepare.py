"""From a request to a checked plan: volumes found, Runs expanded, guard passed, nothing touched."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from volbench import __version__
from volbench.engine.conditioning.warmup_preparation import sizes_of
from volbench.engine.guard.preflight import check_campaign
from volbench.engine.hosts.connected_host import (
    ConnectedHost,
    found_or_error,
    of_each,
    raise_together,
)
from volbench.engine.hosts.install_fio import with_fio
from volbench.engine.hosts.machine import Machine
from volbench.engine.hosts.volume_probe import find_volume, probe_host, probe_volume
from volbench.engine.sampling.clock_offset import Clock, read_clock
from volbench.errors import RefusedError, VolbenchError
from volbench.model.campaign.host import Host, HostKind, Policy
from volbench.model.campaign.planned_run import Absent, Campaign, OnError
from volbench.model.campaign.target import Volume
from volbench.model.profile.profile_model import Profile, Tool
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.plan.expansion.estimate import Estimate, estimate
from volbench.plan.expansion.expand import Terms
from volbench.plan.expansion.multi_client import Client, clients_of, expand_clients
from volbench.plan.profile.load_profile import dump_profile
from volbench.store.archive import Archive, Provenance
from volbench.store.journal import utc_now


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        profiles: in the order they run, overrides applied.
        targets: role to device, file, directory or NBD uri; before those of a host.
        into: the campaign folder to make.
        repeat: None to take each profile's own.
        seed: None to take the profile's, or to draw one.
        on_error: go on or stop after a failed Run.
        allow_destroy: devices and files that may be overwritten.
        command: the command line, for the record.
        policy: how many hosts must do a Run for its totals to count.
        quorum: that number when the policy is ``quorum``.
        install_fio: install it where it is missing.
    """

    profiles: tuple[Profile, ...]
    targets: Mapping[str, str]
    into: Path
    repeat: int | None = None
    seed: int | None = None
    on_error: OnError = OnError.CONTINUE
    allow_destroy: tuple[str, ...] = ()
    command: tuple[str, ...] = field(default=())
    policy: Policy = Policy.ALL
    quorum: int = 0
    install_fio: bool = False

    @property
    def needs_fio(self) -> bool:
        """Whether any Run, or a probe before them, is made with fio."""
        return any(
            profile.cold_probe or any(job.tool is Tool.FIO for job in profile.jobs)
            for profile in self.profiles
        )

    @property
    def clients(self) -> int:
        """How many processes work side by side, over all hosts."""
        return max(profile.clients for profile in self.profiles)


@dataclass(frozen=True)
class Prepared:
    """A checked plan.

    Attributes:
        archive: what campaign.json will hold.
        machines: that it runs on, ready.
        estimate: time and bytes.
    """

    archive: Archive
    machines: tuple[Machine, ...]
    estimate: Estimate

    @property
    def campaign(self) -> Campaign:
        """The plan."""
        return self.archive.campaign


@dataclass(frozen=True)
class _Found:
    """What a look at one host gave."""

    machine: Machine
    host: HostFacts
    volumes: Mapping[str, Volume]
    facts: tuple[VolumeFacts, ...]
    sizes_bytes: Mapping[str, int]


def prepare(stations: Sequence[ConnectedHost], request: Request) -> Prepared:
    """Plan a campaign and check that it can run, without touching anything.

    Args:
        stations: the hosts, connected; `station.this_machine` alone for none but this one.
        request: what the user asked for.

    Raises:
        InputError: a volume is missing, or a job can't run here.
        FioError: fio is missing, too old, or rejects a job.
        RefusedError: a Run would destroy data without leave.
        TransportError: a host does not answer.
    """
    looked = found_or_error(stations, _looker(request))
    asked = [
        Client(station.host, 0, one.volumes, one.sizes_bytes)
        if isinstance(one, _Found)
        else Client(station.host, 0, {})
        for station, one in zip(stations, looked, strict=True)
    ]
    found = [one for one in looked if isinstance(one, _Found)]
    here = {one.machine.host for one in found}
    shared_out = clients_of(asked, request.clients)
    clients = [client for client in shared_out if client.host.name in here]
    if not _may_lack(request, looked, clients=len(clients)):
        raise_together(stations, looked)
    terms = Terms(
        name=request.into.absolute().name,
        created_utc=utc_now(),
        seed=request.seed,
        repeat=request.repeat,
        on_error=request.on_error,
        allow_destroy=request.allow_destroy,
        command=request.command,
    )
    campaign = expand_clients(
        request.profiles, clients, terms, policy=request.policy, quorum=request.quorum
    )
    campaign = campaign.model_copy(update={"absent": _absent(stations, looked, shared_out)})
    known = {one.machine.host: one for one in found}

    def check(station: ConnectedHost) -> None:
        one = known[station.host.name]
        folder = str(request.into.absolute())
        check_campaign(one.machine, campaign, host=one.host, campaign_dir=folder)

    of_each([station for station in stations if station.name in here], check)
    provenance = Provenance(
        volbench_version=__version__,
        python_version=platform.python_version(),
        hosts=tuple(one.host for one in found),
        volumes=tuple(facts for one in found for facts in one.facts),
    )
    profiles = {profile.name: dump_profile(profile) for profile in request.profiles}
    archive = Archive(campaign=campaign, provenance=provenance, profiles=profiles)
    return Prepared(archive, tuple(one.machine for one in found), estimate(campaign))


def _may_lack(request: Request, looked: Sequence[_Found | VolbenchError], *, clients: int) -> bool:
    """Tell whether the policy lets a campaign start with the clients that can take part.

    A refusal is never passed over: somebody has to look at what is in danger there.
    """
    if any(isinstance(one, RefusedError) for one in looked):
        return False
    match request.policy:
        case Policy.ALL:
            return False
        case Policy.QUORUM:
            return clients >= request.quorum
        case Policy.BEST_EFFORT:
            return clients > 0


def _absent(
    stations: Sequence[ConnectedHost],
    looked: Sequence[_Found | VolbenchError],
    shared_out: Sequence[Client],
) -> tuple[Absent, ...]:
    """Return the hosts that can't take part, and how many clients each would have had."""
    clients = Counter(client.host.name for client in shared_out)
    return tuple(
        Absent(host=station.name, reason=one.message, clients=clients[station.name])
        for station, one in zip(stations, looked, strict=True)
        if isinstance(one, VolbenchError)
    )


def _looker(request: Request) -> Callable[[ConnectedHost], _Found]:
    """Return what finds out about a host what the plan needs."""

    def look(station: ConnectedHost) -> _Found:
        executor = station.executor
        fio = with_fio(executor, may_install=request.install_fio) if request.needs_fio else ""
        volumes = {
            role: find_volume(executor, role=role, target=target)
            for role, target in _targets(request, station.host).items()
        }
        return _Found(
            machine=machine_at(station, fio=fio),
            host=probe_host(executor),
            volumes=volumes,
            facts=tuple(probe_volume(executor, volume) for volume in volumes.values()),
            sizes_bytes=sizes_of(executor, request.profiles, volumes),
        )

    return look


def machine_at(station: ConnectedHost, *, fio: str) -> Machine:
    """Return a machine that is ready to run, its clock compared with the controller's.

    Raises:
        TransportError: it does not answer.
    """
    clock = Clock() if station.host.kind is HostKind.LOCAL else read_clock(station.executor)
    return Machine(station.executor, fio, clock or Clock(bound_s=float("inf")))


def _targets(request: Request, host: Host) -> dict[str, str]:
    """Return the target of each role that a job uses.

    The command line's holds before the host's, and that before the profile's.
    """
    used = {job.role for profile in request.profiles for job in profile.jobs}
    own = {role: target for profile in request.profiles for role, target in profile.volumes.items()}
    named = {**own, **host.volumes, **request.targets}
    return {role: target for role, target in named.items() if role in used}
