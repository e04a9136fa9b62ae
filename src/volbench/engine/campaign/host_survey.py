"""Survey of hosts: facts, clock and volumes of each host, or the reason of its failure.

Each host rehearses a run, and its volumes are checked as for one that reads them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from volbench.engine.guard.preflight import RunGuard
from volbench.engine.guard.run_guard import RESULT_BYTES, check_room
from volbench.engine.guard.volume_targets import examine_targets
from volbench.engine.hosts.connected_host import Clock, ConnectedHost
from volbench.engine.hosts.device_lock import device_holder
from volbench.engine.hosts.host_facts import find_fio, probe_host, survey_machine
from volbench.engine.run.barrier import Barrier
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.run_once import Attempt, execute_run
from volbench.engine.run.start_gate import Gate
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import FioError, RefusedError, VolbenchError
from volbench.execute.agent.facts import Survey
from volbench.execute.local import probe_folder
from volbench.execute.scheduler import on_each
from volbench.model.campaign.planned_run import Campaign, Run, RunState, Section, Volume, VolumeKind
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.store.layout import RunFolder

_READ = {"rw": "read", "bs": "4096", "size": "4096"}

_DEADLINE_S = 60.0
_SAMPLE_S = 1.0
_OPTIONS = {"ioengine": "null", "rw": "read", "bs": "4096", "size": "1048576"}


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
    machine, clock = survey_machine(executor)
    for role, target in host.host.volumes.items():
        try:
            volume, volumes[role] = examine_targets(executor, {role: target})[role]
            _check_volume(host, volume, volumes[role])
        except VolbenchError as error:
            if error.transient:
                raise
            problems[role] = error.message
    problem, hint = "", ""
    try:
        rehearse(host, machine, clock)
    except VolbenchError as error:
        if error.transient:
            raise
        problem, hint = error.message, error.hint
    return HostSurvey(
        name=host.name,
        problem=problem,
        hint=hint,
        host=probe_host(executor, survey=machine),
        clock=clock,
        boot_id=machine.boot_id,
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
    guard = RunGuard(host.executor, plan, "/nonexistent")
    guard.check(run, guard.look([run]), ours=lambda _path: False)


def shared_machines(surveyed: Sequence[HostSurvey]) -> list[tuple[str, ...]]:
    """Return groups of host names that share a machine, by its boot id."""
    return _groups_of_several((host.boot_id, host.name) for host in surveyed)


def shared_volumes(surveyed: Sequence[HostSurvey]) -> list[tuple[str, ...]]:
    """Return groups of volumes, as ``host:target``, that share a disk, by its serial number."""
    return _groups_of_several(
        (facts.serial, f"{host.name}:{facts.target}")
        for host in surveyed
        for facts in host.volumes.values()
    )


def _groups_of_several(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    names_by_key: dict[str, list[str]] = {}
    for key, name in pairs:
        if key:
            names_by_key.setdefault(key, []).append(name)
    return [tuple(names) for names in names_by_key.values() if len(set(names)) > 1]


def rehearse(host: ConnectedHost, machine: Survey, clock: Clock | None) -> None:
    """Execute a run without I/O on a host as a campaign would, and remove its files."""
    fio = find_fio(host.executor, machine)
    ready = replace(host, fio=fio.path, fio_version=fio.version, clock=clock or Clock())
    run = Run(
        id="rehearsal",
        profile="probe",
        job="rehearsal",
        volume=Volume(role="none", kind=VolumeKind.DIRECTORY, target="/nonexistent"),
        host=host.name,
        sections=(Section(name="rehearsal", options=_OPTIONS),),
        sample_s=0,
        device_sample_s=_SAMPLE_S,
    )
    with probe_folder() as here:
        name = f"rehearsal-{secrets.token_hex(4)}"
        directory = RunDirectory(host.executor, RunFolder(here), name=name)
        try:
            check_room(host.executor, directory.path, needed_bytes=RESULT_BYTES)
            _execute(ready, run, directory)
        finally:
            directory.remove()


def _execute(host: ConnectedHost, run: Run, directory: RunDirectory) -> None:
    gate = Gate(Barrier([run], quorum=1), run.id, host.clock, patience_s=_DEADLINE_S)
    attempt = Attempt(
        host,
        run,
        directory,
        deadline_s=_DEADLINE_S,
        listener=lambda _event: None,
        stop=StopRequest(),
        gate=gate,
        is_temporary=host.executor.is_remote,
    )
    outcome = execute_run(attempt)
    if outcome.state is not RunState.FINISHED:
        raise FioError(
            f"a run without I/O fails on this host: {outcome.reason}",
            hint=f"try there as that user{', with sudo' if host.host.sudo else ''}: {host.fio} "
            "--name=x --ioengine=null --rw=read --bs=4k --size=1m",
        )
