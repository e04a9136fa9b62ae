"""Checks before a stored plan is resumed on this machine and its hosts.

A campaign folder may come from another machine. Its plan names devices and files by path, with the
consent to overwrite them: on this machine the same paths are different devices and files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from volbench.engine.campaign.prepare import ready_host
from volbench.engine.guard.device_guard import check_content
from volbench.engine.guard.volume_targets import find_device, probe_volume
from volbench.engine.hosts.connected_host import ConnectedHost, raise_all
from volbench.engine.hosts.host_facts import machine_of, options_on, survey_machine
from volbench.errors import (
    ArchiveError,
    AuthError,
    HostKeyError,
    InputError,
    RefusedError,
    TransportError,
    quoted,
)
from volbench.execute.agent.facts import Survey
from volbench.execute.scheduler import on_each
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.campaign.host import LOCAL, Host, Inventory, Policy
from volbench.model.campaign.planned_run import Campaign, Consent, DevicePin, Run, RunState, Volume
from volbench.model.profile.fio_options import OptionTable
from volbench.model.profile.option_policy import check_option
from volbench.plan.inventory.host_names import select
from volbench.store.archive import Archive, hold_campaign
from volbench.store.consent import Seal
from volbench.store.journal import Journal, read_history
from volbench.store.layout import Layout
from volbench.units import counted_noun


@dataclass(frozen=True)
class Reached:
    """Reachable and unreachable hosts of a campaign."""

    hosts: tuple[ConnectedHost, ...]  # ready to continue
    absent: Mapping[str, TransportError]  # name of each unreachable host to its error

    def may_go_on(self, campaign: Campaign) -> bool:
        """Return whether the policy allows a campaign to continue without the absent hosts."""
        if not self.absent:
            return True
        names = {host.name for host in self.hosts}
        clients = len({(run.host, run.client) for run in campaign.runs if run.host in names})
        match campaign.policy:
            case Policy.ALL:
                return False
            case Policy.QUORUM:
                return clients >= campaign.quorum
            case Policy.BEST_EFFORT:
                return clients > 0

    def needing(self, hosts: Collection[str]) -> Reached:
        """Return the same without the absent hosts that are not needed."""
        return replace(self, absent={key: self.absent[key] for key in self.absent if key in hosts})

    def raise_absent(self, campaign: Campaign, states: Mapping[str, RunState]) -> None:
        """Raise an error with the absent hosts and their numbers of pending runs."""
        if not self.absent:
            return
        left = Counter(
            run.host for run in campaign.runs if not states.get(run.id, RunState.PLANNED).is_settled
        )
        listed = [
            f"{error.message} ({counted_noun(left[name], 'run')} left there)"
            if left[name]
            else error.message
            for name, error in self.absent.items()
        ]
        # A host that refused the login, or was refused itself, is there: it need not be given up.
        there = [
            error for error in self.absent.values() if isinstance(error, HostKeyError | AuthError)
        ]
        gone = [name for name, error in self.absent.items() if error not in there]
        hints = [there[0].hint] if there else []
        if self.hosts:
            hints.append(
                "active runs on the other hosts are completed; continue without it: --policy"
                " best-effort"
            )
        if gone:
            hints.append(
                f"if {gone[0]} is gone for good, give it up: "
                f"volbench resume DIR --without {quoted(gone[0])}"
            )
        raise TransportError("; ".join(listed), hint="; or ".join(hints))


def hosts_to_reach(
    campaign: Campaign,
    states: Mapping[str, RunState],
    limits: Sequence[str],
    *,
    used: Collection[str] = (),
) -> tuple[Host, ...]:
    """Return the hosts that a command needs; of those that were given up, the ones in `used`."""
    hosts = select(Inventory(hosts=campaign.hosts), limits).hosts
    runs: dict[str, list[RunState]] = {}
    for run in campaign.runs:
        runs.setdefault(run.host, []).append(states.get(run.id, RunState.PLANNED))

    def is_given_up(name: str) -> bool:
        states = runs.get(name, [])
        return RunState.LOST in states and all(state.is_settled for state in states)

    return tuple(host for host in hosts if host.name in used or not is_given_up(host.name))


def resume_on(hosts: Sequence[ConnectedHost], archive: Archive, *, allow_exec: bool) -> Reached:
    """Prepare the reachable hosts of a campaign for a resume."""
    plan = archive.campaign
    planned = {facts.host: facts.machine for facts in archive.provenance.hosts}

    def ready(host: ConnectedHost) -> ConnectedHost:
        survey, clock = survey_machine(host.executor)
        if planned.get(host.name) != machine_of(survey):
            raise _wrong_machine(host)
        _check_clones(host, survey, archive)
        readied = ready_host(host, survey, clock)
        table = options_on(host.executor)
        for run in plan.runs:
            if run.host == host.name:
                _check_options(run, table, allow_exec=allow_exec)
        return readied

    results = on_each(hosts, ready)
    raise_all(hosts, [None if isinstance(result, TransportError) else result for result in results])
    return Reached(
        tuple(result for result in results if isinstance(result, ConnectedHost)),
        {
            host.name: result
            for host, result in zip(hosts, results, strict=True)
            if isinstance(result, TransportError)
        },
    )


def _check_clones(host: ConnectedHost, survey: Survey, archive: Archive) -> None:
    """Check that no clone of a host, which is a host of the plan too, answers in its place."""
    facts = {each.host: each for each in archive.provenance.hosts}
    own = facts.pop(host.name)
    clones = [other for other in facts.values() if other.machine == own.machine]
    runs = archive.campaign.runs if clones else ()
    volumes = {run.volume.target: run.volume for run in runs if run.host == host.name}
    serials = (probe_volume(host.executor, volume).serial for volume in volumes.values())
    foreign = {survey.boot_id, *serials} - {"", *own.marks}
    if other := next((other for other in clones if foreign.intersection(other.marks)), None):
        raise RefusedError(
            f"{host.name} is the machine, or has the disk, that was {other.host} when this "
            "campaign was planned: the two are clones of one image",
            hint="give each its address or disk again, and repeat the command; or leave what is "
            "finished, and clean up: volbench hosts --clean --inventory FILE",
        )


def allow_anew(
    hosts: Sequence[ConnectedHost],
    layout: Layout,
    campaign: Campaign,
    *,
    consent: Consent,
    seal: Seal,
) -> Campaign:
    """Return the plan with the device identities that the user has accepted since planning."""
    devices = {
        (target if run.host == LOCAL else f"{run.host}:{target}"): part
        for run in campaign.runs
        for part in run.parts
        if part.volume.pin is not None
        for target in (part.volume.target,)
    }
    if unknown := [name for name in consent.allow_destroy if name not in devices]:
        raise InputError(
            f"the plan has no device {unknown[0]}",
            hint=f"its devices are: {', '.join(devices) or 'none'}; plan a new campaign for others",
        )
    executors = {host.name: host.executor for host in hosts}
    if absent := [name for name in consent.allow_destroy if devices[name].host not in executors]:
        raise InputError(
            f"{absent[0]} cannot be examined: its host is left out or unreachable",
            hint="name only devices of hosts that take part",
        )
    with hold_campaign(layout), Journal(layout.journal, seal) as journal:
        for run in (devices[name] for name in consent.allow_destroy):
            executor, target = executors[run.host], run.volume.target
            device, content = find_device(executor, target)
            pin = _same_size(run, device)
            check_content(target, content, may_wipe=consent.wipe_signatures)
            journal.write(
                "pin", host=run.host, target=run.volume.target, pin=pin.model_dump(mode="json")
            )
        history = read_history(layout.journal)
    return campaign.model_copy(
        update={"runs": tuple(_repinned(run, history.pins) for run in campaign.runs)}
    )


def _same_size(run: Run, pin: DevicePin) -> DevicePin:
    if run.volume.pin is None or run.volume.pin.size_bytes != pin.size_bytes:
        raise RefusedError(
            f"{run.volume.target} differs in size from the planned device",
            hint="plan a new campaign: volbench run",
        )
    return pin


def _repinned(run: Run, pins: Mapping[str, Mapping[str, DevicePin]]) -> Run:
    known = pins.get(run.host, {})

    def repinned(volume: Volume) -> Volume:
        changes = {
            "pin": known.get(volume.target, volume.pin),
            "parts": tuple(map(repinned, volume.parts)),
        }
        return volume.model_copy(update=changes)

    return run.model_copy(update={"volume": repinned(run.volume)}) if known else run


def _wrong_machine(host: ConnectedHost) -> RefusedError:
    if host.name == LOCAL:
        return RefusedError(
            "this campaign was planned on another machine, with other devices and files",
            hint="resume it there, or run the profile here: volbench run",
        )
    return RefusedError(
        f"{host.name} is not the machine on which this campaign was planned",
        hint="its devices and files differ; plan a new campaign: volbench run",
    )


def _check_options(run: Run, table: OptionTable, *, allow_exec: bool) -> None:
    for section in run.sections:
        for name, value in run.effective(section).items():
            try:
                known = table if table.find(name) else shipped_table()
                check_option(known, name, value, allow_exec=allow_exec)
            except InputError as error:
                raise ArchiveError(
                    f"the plan of run {run.id} cannot be used: {error.message}", hint=error.hint
                ) from error
