"""Survey of hosts: facts, clock and volumes of each host, or the reason of its failure.

Each host rehearses a run, and its volumes are checked as for one that reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from volbench.engine.guard.preflight import guard_run
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.hosts.device_lock import device_holder
from volbench.engine.hosts.host_facts import probe_host
from volbench.engine.hosts.rehearsal import rehearse
from volbench.engine.hosts.volume_probe import find_volume, probe_volume
from volbench.engine.sampling.clock_offset import Clock, read_clock
from volbench.errors import RefusedError, VolbenchError
from volbench.execute.parallel import on_each
from volbench.model.campaign.planned_run import Campaign, Run, Section, Volume, VolumeKind
from volbench.model.results.provenance import HostFacts, VolumeFacts

_READ = {"rw": "read", "bs": "4096", "size": "4096"}


@dataclass(frozen=True)
class HostSurvey:
    """Survey result of one host."""

    name: str  # name of the host
    problem: str = ""  # reason why it cannot take part; empty if it can
    hint: str = ""  # remedy for the problem
    host: HostFacts | None = None  # facts; None if it did not answer
    clock: Clock | None = None  # offset from the controller's clock; None if it cannot be read
    boot_id: str = ""  # boot id, equal for two names of one machine
    volumes: dict[str, VolumeFacts] = field(default_factory=dict)  # role to facts
    # role to the reason why its volume cannot be used
    volume_problems: dict[str, str] = field(default_factory=dict)


def survey(hosts: Sequence[ConnectedHost]) -> list[HostSurvey]:
    """Survey hosts in parallel; a host that does not answer does not delay the others."""
    return [
        HostSurvey(name=host.name, problem=result.message, hint=result.hint)
        if isinstance(result, VolbenchError)
        else result
        for host, result in zip(hosts, on_each(hosts, _survey_host), strict=True)
    ]


def _survey_host(host: ConnectedHost) -> HostSurvey:
    executor = host.executor
    volumes: dict[str, VolumeFacts] = {}
    problems: dict[str, str] = {}
    facts = probe_host(executor)
    for role, target in host.host.volumes.items():
        try:
            volume = find_volume(executor, role=role, target=target)
            volumes[role] = probe_volume(executor, volume)
            _check_volume(host, volume, volumes[role])
        except VolbenchError as error:
            if error.transient:
                raise
            problems[role] = error.message
    clock = read_clock(executor)
    problem, hint = "", ""
    try:
        rehearse(host, clock=clock or Clock())
    except VolbenchError as error:
        if error.transient:
            raise
        problem, hint = error.message, error.hint
    return HostSurvey(
        name=host.name,
        problem=problem,
        hint=hint,
        host=facts,
        clock=clock,
        boot_id=(executor.read_text("/proc/sys/kernel/random/boot_id") or "").strip(),
        volumes=volumes,
        volume_problems=problems,
    )


def _check_volume(host: ConnectedHost, volume: Volume, facts: VolumeFacts) -> None:
    """Check a volume as for runs that only read; whether a run may write depends on its profile."""
    number = None if facts.major is None or facts.minor is None else (facts.major, facts.minor)
    if volume.kind is VolumeKind.DEVICE and number:
        if holder := device_holder(host.executor, number):
            raise RefusedError(f"{volume.target} is used by another campaign ({holder})")
        return
    run = Run(
        id="probe",
        profile="probe",
        job="probe",
        volume=volume,
        host=host.name,
        sections=(Section(name="probe", options=_READ),),
    )
    plan = Campaign(name="probe", created_utc="", runs=(run,), seed=0, hosts=(host.host,))
    guard_run(
        host.executor, run, campaign=plan, campaign_dir="/nonexistent", ours=lambda _path: False
    )


def shared_machines(surveyed: Sequence[HostSurvey]) -> list[tuple[str, ...]]:
    """Return groups of host names that share a machine, by its boot id."""
    return _groups((host.boot_id, host.name) for host in surveyed)


def shared_volumes(surveyed: Sequence[HostSurvey]) -> list[tuple[str, ...]]:
    """Return groups of volumes, as ``host:target``, that share a disk, by its serial number."""
    return _groups(
        (facts.serial, f"{host.name}:{facts.target}")
        for host in surveyed
        for facts in host.volumes.values()
    )


def _groups(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for key, name in pairs:
        if key:
            found.setdefault(key, []).append(name)
    return [tuple(names) for names in found.values() if len(set(names)) > 1]
