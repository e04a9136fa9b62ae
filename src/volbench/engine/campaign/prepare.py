"""Preparation of a campaign: turns a request into a checked plan without touching any volume."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from volbench import __version__
from volbench.engine.campaign.replayed_logs import with_planned_logs
from volbench.engine.conditioning.volume_warmup import bases_of
from volbench.engine.guard.preflight import check_campaign
from volbench.engine.guard.run_guard import OPTION_CONSENT
from volbench.engine.guard.volume_targets import examine_targets, is_nbd_uri
from volbench.engine.hosts.cloud_limits import cloud_limits
from volbench.engine.hosts.connected_host import Clock, ConnectedHost, raise_all
from volbench.engine.hosts.host_facts import find_fio, probe_host, survey_machine
from volbench.errors import InputError, NoSpaceError, RefusedError, VolbenchError
from volbench.execute.agent.facts import Survey
from volbench.execute.scheduler import on_each
from volbench.model.campaign.host import Host, Policy
from volbench.model.campaign.planned_run import Absent, Campaign, FileIdentity, Volume
from volbench.model.campaign.run_secrets import conceal
from volbench.model.campaign.target_paths import paths_of
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import Limits
from volbench.model.profile.secret_values import (
    mask_text,
    merge_secrets,
    split_secret,
    target_variable,
)
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.plan.expansion.estimate import Estimate, estimate
from volbench.plan.expansion.expand import Terms
from volbench.plan.expansion.extents import Basis
from volbench.plan.expansion.multi_client import Client, clients_of, expand_clients
from volbench.plan.profile.limit_sources import label_limits
from volbench.plan.profile.load_profile import dump_profile
from volbench.store.archive import Archive, Provenance
from volbench.store.journal import utc_now
from volbench.units import counted_noun

_DEVICES = Path("/dev")


@dataclass(frozen=True)
class CampaignRequest:
    """Campaign as requested by the user: what to run, where, and on which terms."""

    profiles: tuple[Profile, ...]  # in execution order, with settings applied
    # role to device, file, directory or NBD URI; they override those of a host
    targets: Mapping[str, str]
    into: Path  # the campaign folder to create
    terms: Terms = field(default_factory=Terms)  # as given by the user
    # address of the metadata service that is asked for limits; empty to ask none
    metadata_endpoint: str = ""

    @property
    def clients(self) -> int:
        """Number of parallel processes over all hosts."""
        return max(profile.clients for profile in self.profiles)

    def clients_on(self, hosts: int) -> int:
        """Return the number of parallel processes over some hosts."""
        return max(self.clients, hosts * max(profile.lanes for profile in self.profiles))

    @property
    def recorded_terms(self) -> Terms:
        """Terms of the expansion, without passwords, named after the folder."""
        terms = self.terms
        allowed = tuple(map(mask_text, terms.consent.allow_destroy))
        return replace(
            terms,
            name=self.into.absolute().name,
            created_utc=utc_now(),
            consent=terms.consent.model_copy(update={"allow_destroy": allowed}),
            command=tuple(map(mask_text, terms.command)),
        )

    def secrets_of(self, host: Host) -> Iterator[tuple[str, str]]:
        """Yield variable and value of the passwords in the targets of a host."""
        for role, target in self.targets_of(host).items():
            variable = target_variable(host.name, role, is_local=host.is_local)
            yield variable, split_secret("", target)[1]

    def targets_of(self, host: Host) -> dict[str, str]:
        """Return the target of each role used by a job.

        The command line takes precedence over the host, and that over the profile.
        """
        used = set().union(*(profile.roles for profile in self.profiles))
        profiles = {
            role: target for profile in self.profiles for role, target in profile.volumes.items()
        }
        named = {**profiles, **host.volumes, **self.targets}
        return {role: target for role, target in named.items() if role in used}


@dataclass(frozen=True)
class Prepared:
    """A checked plan."""

    archive: Archive  # the content of campaign.json
    hosts: tuple[ConnectedHost, ...]  # ready hosts of the plan
    estimate: Estimate  # estimated time and bytes
    # passwords and keys that the user gave, by environment variable; in no file
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    # logs that runs replay, by the SHA-256 of each
    inputs: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def campaign(self) -> Campaign:
        """The plan."""
        return self.archive.campaign


@dataclass(frozen=True)
class _ProbedHost:
    """A ready host with its probed facts."""

    host: ConnectedHost
    facts: HostFacts
    volumes: Mapping[str, Volume]
    volume_facts: tuple[VolumeFacts, ...]
    bases: Mapping[str, Basis]


_Results = Sequence[_ProbedHost | VolbenchError]


def prepare(
    hosts: Sequence[ConnectedHost],
    request: CampaignRequest,
    *,
    full: Mapping[str, VolbenchError] | None = None,
) -> Prepared:
    """Plan and check a campaign without touching volumes; `full` has hosts without room for it."""
    _check_permissions(hosts, request)
    full = full or {}
    results = on_each(hosts, lambda host: full.get(host.name) or _probe(host, request))
    probed = {result.host.name: result for result in results if isinstance(result, _ProbedHost)}
    planned = clients_of(
        [
            Client(result.host.host, 0, result.volumes, result.bases)
            if isinstance(result, _ProbedHost)
            else Client(host.host, 0, {})
            for host, result in zip(hosts, results, strict=True)
        ],
        request.clients_on(len(hosts)),
    )
    clients = [client for client in planned if client.host.name in probed]
    if request.terms.policy is Policy.QUORUM and request.terms.quorum > len(planned):
        raise InputError(
            f"quorum:{request.terms.quorum} of {counted_noun(len(planned), 'client')}",
            hint=f"require at most quorum:{len(planned)}",
        )
    if not _may_start_partially(request, results, clients=len(clients)):
        raise_all(hosts, results)
    campaign = expand_clients(request.profiles, clients, request.recorded_terms)
    runs, inputs = with_planned_logs(campaign.runs)
    changes = {"absent": _absent(hosts, results, planned), "runs": runs}
    campaign = campaign.model_copy(update=changes)
    campaign, secrets = conceal(campaign)
    in_targets = (pair for host in hosts for pair in request.secrets_of(host.host))
    secrets = merge_secrets([*secrets.items(), *in_targets])
    ready = [result.host for result in probed.values()]
    folder = str(request.into.absolute())
    place = next(path for path in (request.into, *request.into.absolute().parents) if path.exists())
    if place.resolve().is_relative_to(_DEVICES) and place.stat().st_dev == _DEVICES.stat().st_dev:
        raise RefusedError(f"{folder} is in memory, among devices", hint="choose another --output")

    def check(host: ConnectedHost) -> dict[str, FileIdentity]:
        return check_campaign(host, campaign, facts=probed[host.name].facts, campaign_dir=folder)

    checks = dict(zip([host.name for host in ready], on_each(ready, check), strict=True))
    failed = {name: error for name, error in checks.items() if isinstance(error, VolbenchError)}
    are_full = all(isinstance(error, NoSpaceError) for error in failed.values())
    if failed and are_full and request.terms.policy is not Policy.ALL:
        return prepare(hosts, request, full={**full, **failed})
    raise_all(ready, [*checks.values()])
    files = {name: found for name, found in checks.items() if isinstance(found, dict) and found}
    archive = Archive(
        campaign=campaign.model_copy(update={"files": files}),
        provenance=_provenance(list(probed.values())),
        profiles={profile.name: mask_text(dump_profile(profile)) for profile in request.profiles},
    )
    return Prepared(archive, tuple(ready), estimate(campaign), secrets, inputs)


def _check_permissions(hosts: Sequence[ConnectedHost], request: CampaignRequest) -> None:
    """Check that each path that may be overwritten is a target, or is in one."""
    targets = {
        path if is_nbd_uri(path) else str(Path(path).absolute())
        for host in hosts
        for target in request.targets_of(host.host).values()
        for path in paths_of(target)
    }
    for entry in request.terms.consent.allow_destroy:
        if entry.startswith(OPTION_CONSENT):
            continue
        named = (host.host.name for host in hosts if entry.startswith(f"{host.host.name}:"))
        path = entry.removeprefix(f"{next(named, '')}:")
        if path not in targets and not any(path.startswith(f"{name}/") for name in targets):
            raise InputError(
                f"--allow-destroy {mask_text(entry)} is not a target of this campaign",
                hint=f"its targets are: {', '.join(map(mask_text, sorted(targets)))}",
            )


def _provenance(probed: Sequence[_ProbedHost]) -> Provenance:
    return Provenance(
        volbench_version=__version__,
        python_version=platform.python_version(),
        hosts=tuple(result.facts for result in probed),
        volumes=tuple(facts for result in probed for facts in result.volume_facts),
    )


def _may_start_partially(request: CampaignRequest, results: _Results, *, clients: int) -> bool:
    """Return whether the policy lets a campaign start without the failed hosts.

    A refusal always stops it: the user must examine the data at risk on that host. A full volume
    puts none at risk.
    """
    refused = (result for result in results if isinstance(result, RefusedError))
    if not all(isinstance(result, NoSpaceError) for result in refused):
        return False
    match request.terms.policy:
        case Policy.ALL:
            return False
        case Policy.QUORUM:
            return clients >= request.terms.quorum
        case Policy.BEST_EFFORT:
            return clients > 0


def _absent(
    hosts: Sequence[ConnectedHost], results: _Results, planned: Sequence[Client]
) -> tuple[Absent, ...]:
    """Return the failed hosts, each with its number of planned clients."""
    clients = Counter(client.host.name for client in planned)
    return tuple(
        Absent(host=host.name, reason=result.message, clients=clients[host.name])
        for host, result in zip(hosts, results, strict=True)
        if isinstance(result, VolbenchError)
    )


def _probe(host: ConnectedHost, request: CampaignRequest) -> _ProbedHost:
    executor = host.executor
    survey, clock = survey_machine(executor)
    ready = ready_host(host, survey, clock)
    allowed = request.terms.consent.allow_destroy
    new = {*host.host.allow_destroy, *(path.removeprefix(f"{host.name}:") for path in allowed)}
    examined = examine_targets(executor, request.targets_of(host.host), new=new)
    volumes = {role: volume for role, (volume, _) in examined.items()}
    found = _labelled(host, volumes)
    if request.metadata_endpoint:
        facts = [each for _, each in examined.values()]
        found |= cloud_limits(executor, request.metadata_endpoint, facts)
    marks = {survey.boot_id, *(each.serial for _, each in examined.values())} - {""}
    known = {**host.host.facts, "marks": tuple(sorted(marks))}
    own = host.host.limits
    limits = own if "*" in own else {**found, **own}
    ready = replace(ready, host=ready.host.model_copy(update={"limits": limits}))
    return _ProbedHost(
        host=ready,
        facts=probe_host(executor, survey=survey).model_copy(update=known),
        volumes=volumes,
        volume_facts=tuple(facts for _, facts in examined.values()),
        bases=bases_of(executor, request.profiles, volumes),
    )


def _labelled(host: ConnectedHost, volumes: Mapping[str, Volume]) -> dict[str, Limits]:
    """Return role to the limits that labels of a host name; none where it has several volumes."""
    if len(volumes) != 1 or not host.host.labels:
        return {}
    ((role, volume),) = volumes.items()
    limits = label_limits(host.host.labels, size_bytes=volume.size_bytes)
    return {role: limits} if limits else {}


def ready_host(host: ConnectedHost, survey: Survey, clock: Clock | None) -> ConnectedHost:
    """Return a surveyed host with its fio and its clock offset."""
    fio = find_fio(host.executor, survey)
    if host.host.is_local:
        clock = Clock(lead_s=None if clock is None else clock.lead_s)
    clock = clock or Clock(bound_s=float("inf"))
    return replace(host, fio=fio.path, fio_version=fio.version, clock=clock)
