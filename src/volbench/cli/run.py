"""Verbs run and warmup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.api.run_profiles import json_outputs, load_texts
from volbench.cli.check import refuse_unmet
from volbench.cli.configuration import say_what_is_configured, targets_are_given
from volbench.cli.fio_verb import SECTION, FioVerb
from volbench.cli.help_pages import VerbCommand
from volbench.cli.hosts import POLICY, HostSelection, on_hosts, on_named_hosts
from volbench.cli.options import (
    A_PROFILE,
    ALLOW_EXEC,
    DETACH,
    EXPECT,
    KEEP_FILES,
    ROLE,
    SETTINGS,
    Quantity,
    examples,
    given_option,
    on_option,
    parse_several_targets,
    parse_targets,
)
from volbench.cli.output import TableOutput, default_campaign_folder, table_options, typed_command
from volbench.cli.profiles import texts_of
from volbench.cli.results import reported_errors, say_closing
from volbench.cli.start import StartOptions, carry_out, start_options
from volbench.errors import InputError, quoted
from volbench.store.atomic_files import check_output, write_output
from volbench.store.layout import FIO_OUTPUT, Layout
from volbench.units import parse_size

if TYPE_CHECKING:
    from volbench.api.campaign_drive import StartPolicy
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.execute.protocol import Executor
    from volbench.model.profile.profile_model import Job


def _client_counts(text: str) -> tuple[int, ...]:
    parts = text.split(",") if text else []
    counts = tuple(int(part) for part in parts if part.isdecimal())
    if len(counts) < len(parts) or len(set(counts)) < len(counts) or 0 in counts:
        raise InputError(
            f"{text!r} must be different numbers of clients from 1 on", hint="write it like 1,2,4,8"
        )
    return counts


@click.command(
    "run",
    cls=FioVerb,
    epilog=examples(
        "volbench run quick --on /mnt/data",
        "volbench run aks-disk --on data=/mnt/data --on os=$HOME --set runtime=2s",
        "volbench run iodepth-sweep --on /dev/sdb --allow-destroy /dev/sdb",
        "volbench run database.fio --on /mnt/data --runtime 30s --section all",
        "volbench run -- fio --name=reads --rw=randread --size=1g --directory=/mnt",
        "volbench run aks-disk --on 'root@vm[1-8]:/mnt/data'",
        "volbench run nightly.yaml --on /mnt/data --repeat 5 --baseline results/good",
        "volbench run aks-disk --inventory fleet.yaml --limit fast",
        "volbench run aks-disk --k8s --storage-class managed-csi --claim-size 250Gi",
    ),
)
@click.argument("profiles", nargs=-1, metavar="PROFILE...", shell_complete=A_PROFILE)
@click.option(
    "--like",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Repeat the campaign in DIR: profiles, seed, order, repeats and --client-counts. Targets, "
    "hosts and overwrite permissions are not copied.",
)
@on_option(
    "Device, file, directory or NBD URI of a role; without a role: data. Several of one role are "
    "compared: each job runs on each of them in turn, in blocks. Hosts are named as for scp "
    "(vm1:/data, 'vm[01-30]:/data') and run together.",
    metavar="[ROLE=][[USER@]HOST:]TARGET",
)
@start_options("run", DETACH, ALLOW_EXEC, execution=(KEEP_FILES,))
@SETTINGS
@SECTION
@click.option(
    "--repeat", type=click.IntRange(1, 10_000), metavar="N", help="Run the measured jobs N times."
)
@click.option(
    "--client-counts",
    type=Quantity("LIST", _client_counts),
    default="",
    metavar="N,N...",
    help="Run each measured job with these numbers of clients in turn, such as 1,2,4,8. Clients "
    "are hosts, pods (--replicas) or processes (--set clients=8). Default: all of them.",
)
@click.option(
    "--on-error",
    type=click.Choice(["continue", "stop"]),
    default="continue",
    show_default=True,
    help="After a failed run: continue with the next, or stop.",
)
@EXPECT
@on_hosts
@POLICY
@table_options(has_output=False, has_events=True)
def run(
    profiles: tuple[str, ...],
    like: Path | None,
    targets: tuple[str, ...],
    settings: tuple[str, ...],
    sections: tuple[str, ...],
    repeat: int | None,
    client_counts: tuple[int, ...],
    on_error: str,
    expectations: tuple[str, ...],
    *,
    start: StartOptions,
    where: HostSelection,
    policy: StartPolicy,
    table_output: TableOutput,
) -> None:
    """Run PROFILEs (bundled names, YAML files or fio job files), or a command of fio after --.

    Results go into a campaign folder. Any option of fio, such as --iodepth 16 or --runtime 5s,
    overrides that of each job; after -- it means what it means to fio.
    """
    from volbench.api.expectations import with_expected
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.execute.local import LocalExecutor
    from volbench.model.campaign.planned_run import OnError
    from volbench.model.frames.expectation import parse_expectation
    from volbench.plan.expansion.expand import Terms
    from volbench.plan.expansion.target_arms import arms_of_targets, on_each_target

    say_what_is_configured()
    executor, allow_exec, placement = LocalExecutor(), start.allow_exec, start.added.placement
    copies = json_outputs(executor, profiles)
    for path in copies:
        check_output(path)
    sources = texts_of(
        executor,
        profiles,
        like=like,
        allow_exec=allow_exec,
        sections=sections,
        is_placed=bool(placement or targets) and not any(map(ROLE.match, targets)),
    )
    loaded = load_texts(executor, sources, settings=settings, allow_exec=allow_exec)
    loaded = with_expected(loaded, [*map(parse_expectation, expectations)])
    start = replace(start, execution=policy.waiting(start.execution))
    names = "+".join(profile.name for profile in loaded)
    where, own_targets = where.on(targets, placement)
    named = parse_several_targets(own_targets)
    arms = arms_of_targets(named)
    request = CampaignRequest(
        profiles=tuple(on_each_target(profile, arms) for profile in loaded),
        targets=_targets(named, arms),
        into=start.output or default_campaign_folder(names),
        terms=Terms(
            repeat=repeat,
            client_counts=client_counts,
            on_error=OnError(on_error),
            consent=start.consent,
            command=typed_command((*profiles, like or ""), start.output),
            policy=policy.policy,
            quorum=policy.quorum,
        ),
    )
    if targets_are_given(click.get_current_context()):
        _check_roles(request)
    if like is not None:
        request = as_before(request, like)
    with ExitStack() as stack:
        if placement is None:
            hosts = stack.enter_context(where.connected())
        elif start.dry_run:
            placement.show_plan(request, table_output)
            return
        else:
            made = placement.hosts(request, yes=start.yes, stays=start.detach)
            request, hosts = stack.enter_context(made)
            start = replace(start, yes=True)  # it was asked before the hosts were made
        ended = carry_out(
            hosts, request, start=start, table_output=table_output, host_keys=where.host_keys
        )
    if like is not None and not (start.dry_run or start.detach):
        click.echo(
            f"compare with: volbench compare {quoted(like)} {quoted(request.into)}", err=True
        )
    if ended is not None:
        say_closing(ended.layout, table_output)
        for path in copies:
            _copy_result(ended.layout, path)
        with reported_errors(table_output):
            refuse_unmet(ended.verdicts, [ended.layout.root])
            start.added.judged(ended.layout, start, where.host_keys, table_output)


def _copy_result(layout: Layout, path: Path) -> None:
    found = sorted(layout.root.glob(f"runs/*/{FIO_OUTPUT}"))
    if len(found) == 1:
        write_output(path, found[0].read_bytes())
        click.echo(f"written: {path}", err=True)
    else:
        words = f"{path} is not written: fio's results are in {quoted(layout.root)}/runs"
        click.echo(f"note: {words}", err=True)


def _targets(
    named: Mapping[str, Sequence[str]], arms: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    roles = {role: list(arms[role].values()) if role in arms else [role] for role in named}
    return {
        own: target
        for role, targets in named.items()
        for own, target in zip(roles[role], targets, strict=True)
    }


def _check_roles(request: CampaignRequest) -> None:
    """Refuse a target that no job would use: its role is misspelt, or of another profile."""
    from volbench.errors import InputError
    from volbench.model.document.located_errors import suggestion

    used = sorted(set().union(*(profile.roles for profile in request.profiles)))
    for role, target in request.targets.items():
        if role not in used:
            lacking = [wanted for wanted in used if wanted not in request.targets]
            hint = f"did you mean --on {lacking[0]}={target}?" if len(lacking) == 1 else ""
            raise InputError(
                f"--on {role}={target}: no job uses the role {role!r}",
                hint=hint or suggestion(role, used),
            )


def as_before(request: CampaignRequest, like: Path) -> CampaignRequest:
    """Return a request with seeds, repeats and numbers of clients of another campaign.

    Those that the request has itself stay.
    """
    from volbench.model.client_counts import split_count
    from volbench.store.archive import read_campaign

    plan = read_campaign(like)[1].campaign
    before = {run.profile: 0 for run in plan.runs}
    for run in plan.runs:
        before[run.profile] = max(before[run.profile], run.repeat)
    repeats = {
        before[profile.name]
        for profile in request.profiles
        if profile.rounds is None
        and profile.repeats.until is None
        and before.get(profile.name) not in {None, profile.repeats.times}
    }
    names = dict.fromkeys(run.id.partition(f"-r{run.repeat}-")[2] for run in plan.runs)
    jobs = {job.name for profile in request.profiles for job in profile.jobs}
    own = [split_count(run.job) for run in plan.runs if run.job not in jobs and run.repeat == 1]
    terms = replace(
        request.terms,
        client_counts=request.terms.client_counts
        or tuple(dict.fromkeys(count for _, count in own if count)),
        seed=plan.seed if request.terms.seed is None else request.terms.seed,
        repeat=max(repeats, default=None) if request.terms.repeat is None else request.terms.repeat,
        clients_before=tuple(name for name in names if name),
    )
    return replace(request, terms=terms)


@click.command(
    "warmup",
    cls=VerbCommand,
    epilog=examples(
        "volbench warmup --on /dev/sdb --allow-destroy /dev/sdb",
        "volbench warmup --on root@vm1:/dev/sdb --mode read",
    ),
)
@on_option("Device, file or NBD URI.", is_required=True)
@click.option(
    "--mode",
    type=click.Choice(["write", "read", "read-written", "write-read", "random", "sprandom"]),
    default="write-read",
    show_default=True,
    help="Write all of it, read all of it or what is used (a volume restored from a snapshot), or "
    "write and read; or write in random order (an SSD).",
)
@click.option(
    "--numjobs",
    "jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Jobs that share each extent [32; 1 for read-written and random].",
)
@click.option(
    "--iodepth",
    type=click.IntRange(1, 65536),
    metavar="N",
    help="I/Os in flight for each job [32]; the most of read-written [256].",
)
@click.option(
    "--bs", "bs_bytes", type=Quantity("SIZE", parse_size), help="Block size [1m, 4k for random]."
)
@click.option(
    "--extents",
    type=click.IntRange(0, 1000),
    metavar="N",
    default=0,
    help="Approximate number of parts into which the volume is divided. Default: by its size.",
)
@click.option(
    "--size",
    "size_bytes",
    type=Quantity("SIZE", parse_size),
    help="Volume size, if it cannot be detected, or size of the part to warm up.",
)
@start_options("warmup")
@on_named_hosts
@table_options(has_output=False, has_events=True)
def warmup(
    targets: tuple[str, ...],
    mode: str,
    jobs: int | None,
    iodepth: int | None,
    bs_bytes: int | None,
    extents: int,
    *,
    size_bytes: int | None,
    start: StartOptions,
    where: HostSelection,
    table_output: TableOutput,
) -> None:
    """Touch every block of a volume exactly once, and verify it."""
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.model.campaign.planned_run import OnError
    from volbench.model.profile.profile_model import Job, Phase, Profile
    from volbench.model.profile.profile_settings import Warming, WarmingMode
    from volbench.plan.expansion.expand import Terms

    unused = given_option("jobs", "extents")
    if unused and mode in {"random", "sprandom", "read-written"}:
        raise InputError(f"--mode {mode} does not use {unused}", hint="leave it out")
    given = {"bs": bs_bytes, "iodepth": iodepth, "numjobs": jobs, "size": size_bytes}
    options = {name: str(value) for name, value in given.items() if value is not None}
    where, own_targets = where.on(targets)
    named, command = parse_targets(own_targets), typed_command((), start.output)
    with where.connected() as hosts:
        warming = Warming(mode=WarmingMode(mode), extents=extents)
        job = Job(name="fill", phase=Phase.WARMUP, options=options, warming=warming)
        request = CampaignRequest(
            profiles=(Profile(name="warmup", jobs=(job,)),),
            targets=named,
            into=start.output or default_campaign_folder("warmup"),
            terms=Terms(on_error=OnError.STOP, consent=start.consent, command=command),
        )
        for host in hosts:
            _check(host.executor, job, request.targets_of(host.host).get(job.role, ""))
        carry_out(
            hosts,
            request,
            start=start,
            table_output=table_output,
            host_keys=where.host_keys,
            has_answer=table_output.is_for_people,
        )


def _check(executor: Executor, job: Job, target: str) -> None:
    """Refuse invalid warm-up jobs, and files that volbench would create and then remove."""
    from volbench.engine.guard.volume_targets import find_volume
    from volbench.engine.hosts.described_volumes import look_at_volume
    from volbench.execute.agent.volumes import VolumeQuestion
    from volbench.model.campaign.planned_run import VolumeKind
    from volbench.plan.profile.profile_document import warming_conflict

    for conflict in warming_conflict(job):
        raise InputError(conflict.message, hint=conflict.hint)
    volume = find_volume(executor, role=job.role, target=target)
    if volume.kind is VolumeKind.DIRECTORY or (
        volume.kind is VolumeKind.FILE
        and look_at_volume(executor, VolumeQuestion(volume.target)).stat is None
    ):
        raise InputError(
            f"{target} is not an existing device, file or NBD URI",
            hint="name a device, or create the file first with truncate -s 10g",
        )
