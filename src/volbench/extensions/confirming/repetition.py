"""Repetition of some workloads of a stored campaign, in a folder that no trend reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from volbench.api.run_profiles import load_texts
from volbench.cli.hosts import connect
from volbench.cli.output import TableOutput, typed_command
from volbench.cli.run import as_before
from volbench.cli.start import StartOptions, carry_out
from volbench.engine.campaign.prepare import CampaignRequest
from volbench.errors import InputError, quoted
from volbench.execute.connect import HostKeyPolicy
from volbench.execute.local import LocalExecutor
from volbench.extensions.confirming.host_speed import CONFIRMED
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, RunState
from volbench.model.client_counts import split_count
from volbench.model.profile.profile_model import Phase, Profile
from volbench.plan.expansion.expand import Terms
from volbench.store.consent import read_own_campaign
from volbench.store.journal import read_history
from volbench.store.layout import Layout

# Repeats of a workload: the median of three outlives one bad moment.
# Noticed by: test_confirm.py::test_an_alarm_is_confirmed_by_a_repetition
REPEATS = 3


def repeat_campaign(
    folder: Path, jobs: set[str], *, start: StartOptions, keys: HostKeyPolicy, output: TableOutput
) -> Path:
    """Measure jobs of a campaign again, unless that was done before; return the folder."""
    for number in count(1):
        name = f"{folder.resolve().name}-again{number}"
        into = folder.resolve().parent / CONFIRMED / name
        if not Layout(into).campaign.exists():
            break
        if _has_all(into, jobs):
            return into
    request, hosts = _request(folder, jobs, into, start)
    start = replace(start, output=into)
    with connect(hosts, keys) as connected:
        carry_out(
            connected, request, start=start, table_output=output, host_keys=keys, has_answer=True
        )
    return into


def _has_all(into: Path, jobs: set[str]) -> bool:
    """Return whether a repetition has the jobs; refuse one that was interrupted."""
    layout, archive, _ = read_own_campaign(into)
    states = read_history(layout.journal).states
    if any(not states.get(run.id, RunState.PLANNED).is_settled for run in archive.campaign.runs):
        raise InputError(
            f"the repetition in {into} is not finished",
            hint=f"volbench resume {quoted(into)}, or remove that folder",
        )
    return jobs <= {run.job for run in archive.campaign.runs}


def _request(
    folder: Path, jobs: set[str], into: Path, start: StartOptions
) -> tuple[CampaignRequest, Sequence[Host]]:
    _, archive, _ = read_own_campaign(folder)
    plan = archive.campaign
    if any(host.connection for host in plan.hosts):
        raise InputError(
            f"{folder} ran in pods, whose volumes may be gone",
            hint="leave out --confirm, and measure again with volbench run --like",
        )
    if not archive.profiles:
        raise InputError(
            f"{folder} has no profile: its runs were imported or watched",
            hint="leave out --confirm",
        )
    texts = [(text, f"{folder} {name}") for name, text in archive.profiles.items()]
    loaded = load_texts(LocalExecutor(), texts, settings=(), allow_exec=start.allow_exec)
    hosts = _hosts_of(plan)
    request = CampaignRequest(
        profiles=loaded,
        targets={} if hosts else {run.volume.role: run.volume.target for run in plan.runs},
        into=into,
        terms=Terms(
            consent=start.consent,
            command=typed_command((), None),
            policy=plan.policy,
            quorum=plan.quorum,
        ),
    )
    request = as_before(request, folder)
    profiles = tuple(filter(None, (_only(profile, jobs) for profile in loaded)))
    is_counted = all(profile.rounds is None for profile in profiles) and not plan.repeats
    is_counted &= not any(job.within for profile in profiles for job in profile.jobs)
    repeat = REPEATS if is_counted else None
    return replace(request, profiles=profiles, terms=replace(request.terms, repeat=repeat)), hosts


def _only(profile: Profile, names: set[str]) -> Profile | None:
    """Return a profile with some measured jobs, and what prepares their volumes."""
    wanted = {split_count(name)[0] for name in names} | names
    measured = [job for job in profile.jobs if job.name in wanted]
    roles = {job.role for job in measured}
    jobs = tuple(
        job
        for job in profile.jobs
        if job in measured or (job.phase is not Phase.MEASURED and job.role in roles)
    )
    return profile.model_copy(update={"jobs": jobs, "expect": {}}) if measured else None


def _hosts_of(plan: Campaign) -> list[Host]:
    """Return the hosts of a plan with the targets that they had; none for this machine."""
    targets: dict[str, dict[str, str]] = {}
    for run in plan.runs:
        targets.setdefault(run.host, {})[run.volume.role] = run.volume.target
    return [
        host.model_copy(update={"volumes": {**host.volumes, **targets.get(host.name, {})}})
        for host in plan.hosts
    ]
