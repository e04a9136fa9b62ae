"""Verb audit: whether volumes deliver what their provider promises."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.api.measured_workloads import profile_on, volumes_on
from volbench.cli.configuration import say_what_is_configured
from volbench.cli.help_pages import VerbCommand
from volbench.cli.hosts import POLICY, HostSelection, on_hosts
from volbench.cli.measure import parse_scratch_size
from volbench.cli.options import (
    KEEP_FILES,
    LIMITS_FROM,
    SETTINGS,
    Quantity,
    campaigns_argument,
    completed_by,
    examples,
    flag,
    given_option,
    on_option,
    option_group,
    schema_option,
)
from volbench.cli.output import TableOutput, default_campaign_folder, table_options, typed_command
from volbench.cli.results import write_answer
from volbench.cli.start import StartOptions, carry_out, start_options
from volbench.errors import FindingsError, InputError, UndecidedError
from volbench.present.formatting import printable
from volbench.units import format_duration, parse_duration

if TYPE_CHECKING:
    from volbench.api.campaign_drive import StartPolicy
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.model.campaign.planned_run import Campaign
    from volbench.model.profile.profile_model import Job, Profile

# Pattern, block size, queue depths, and share of the time of all runs. Of several depths, a deeper
# one is tried while it gains; two are repeated, so that the last one shows no gain.
# Noticed by: tests/cli/test_audit.py
_WORKLOADS: tuple[tuple[str, str, tuple[int, ...], float], ...] = (
    ("rand", "4k", (1,), 0.1),
    ("rand", "4k", (16, 64, 256, 1024), 0.5),
    ("", "1m", (4, 16, 64, 256), 0.4),
)
_REPEATS = 3  # For an interval; at three times, so that other load on the volume differs
_MIN_AUDIT_S = 60.0  # So that each run of a deep queue lasts 3 s or more
_ROLE = "data"
_LIMITS = "volbench.plan.profile.limit_sources"  # loaded when used


def _parse_audit_s(content: str) -> float:
    seconds = parse_duration(content)
    if seconds < _MIN_AUDIT_S:
        raise InputError(
            f"{content} is too short for an audit", hint="measure for a minute or more: --for 10m"
        )
    return seconds


@dataclass(frozen=True)
class _Promised:
    """Promise, time and workloads of an audit."""

    volume_type: str  # empty where numbers, an inventory or a storage class say it
    audit_s: float  # of all runs on a target
    has_writes: bool
    scratch_size: str  # empty for 1 GiB, or the whole of a device
    metadata_endpoint: str  # empty to ask no metadata service
    settings: tuple[str, ...]


_PROMISED = option_group(
    "promised",
    _Promised,
    click.option(
        "--type",
        "volume_type",
        default="",
        metavar="TYPE",
        shell_complete=completed_by(f"{_LIMITS}:type_names"),
        help="Volume type that is promised, such as azure/P15 or 'aws/gp3 size=500g iops=6000'; or"
        " declare numbers: --set limits.iops=3000. Default: limits of the inventory, or of the"
        " storage class.",
    ),
    click.option(
        "--for",
        "audit_s",
        type=Quantity("TIME", _parse_audit_s),
        default="10m",
        show_default=True,
        help="Time of all runs on each target.",
    ),
    flag("--write", "Measure writes too. On a device they destroy all data.", "has_writes"),
    click.option(
        "--scratch-size",
        default="",
        type=Quantity("SIZE", parse_scratch_size),
        metavar="SIZE",
        help="Size of the scratch file, or of the part of a device.  [default: 1g, or the whole "
        "device]",
    ),
    LIMITS_FROM,
    SETTINGS,
)


@click.command(
    "audit",
    cls=VerbCommand,
    epilog=examples(
        "volbench audit --on /dev/sdb --type azure/P15",
        "volbench audit --on /mnt/data --type 'aws/gp3 size=500g iops=6000' --for 1h",
        "volbench audit --on /mnt/data --set limits.iops=3000 --write",
        "volbench audit --on 'vm[1-8]:/dev/sdb' --type azure/P15",
        "volbench audit --inventory fleet.yaml",
        "volbench audit --k8s --storage-class premium-v2 --claim-size 250Gi",
        "volbench audit results/audit",
        "volbench audit --list",
    ),
)
@campaigns_argument(required=False)
@click.option(
    "--list",
    "listed",
    is_flag=False,
    flag_value="",
    metavar="[TYPE]",
    shell_complete=completed_by(f"{_LIMITS}:type_names"),
    help="Show the limits of TYPE, such as azure/P15 or 'aws/gp3 size=500g'; without a value, all "
    "volume and machine types.",
)
@schema_option("a file of volume types", f"{_LIMITS}:types_schema")
@on_option(
    "Directory, device, file or NBD URI to measure, instead of campaigns in DIR. With an inventory:"
    " one target, the same on each host."
)
@_PROMISED
@start_options("audit", execution=(KEEP_FILES,))
@on_hosts
@POLICY
@table_options(has_output=False, has_events=True)
def audit(
    campaigns: tuple[str | Path, ...],
    listed: str | None,
    targets: tuple[str, ...],
    *,
    promised: _Promised,
    start: StartOptions,
    where: HostSelection,
    policy: StartPolicy,
    table_output: TableOutput,
) -> None:
    """Measure whether volumes deliver the limits that are promised: IOPS, bandwidth, for how long.

    Reads only, unless --write is given. With --inventory, the volumes of its hosts are measured at
    the same time, and with --k8s those of new pods. With DIR, campaigns that exist are judged:
    their direct runs of one direction with several I/Os in flight. Exits with 10 if a volume falls
    short of a limit, and with 11 if that is undecided.
    """
    if listed is not None:
        from volbench.plan.profile.limit_sources import list_types

        list_types(listed, table_output)
        return
    placement = start.added.placement
    where, own_targets = where.on(targets, placement)
    is_new = bool(targets or where.inventory or placement)
    if bool(campaigns) == is_new:
        raise InputError(
            "campaigns cannot be combined with --on, --inventory or --k8s"
            if campaigns
            else "name campaigns, or volumes with --on",
            hint="volbench audit --on /dev/sdb --type azure/P15, or volbench audit results/audit",
        )
    folders: Sequence[str | Path] = campaigns
    if campaigns:
        _refuse_options_of_measuring()
    else:
        say_what_is_configured()
        with ExitStack() as stack:
            hosts: Sequence[ConnectedHost] = ()
            if placement is None:
                hosts = stack.enter_context(where.connected())
                roles, directories = volumes_on(hosts, own_targets)
            else:
                roles = {_ROLE: _ROLE}
                directories = {*roles} if placement.has_directories else set()
            request = _request(roles, directories, promised, start)
            start = replace(start, execution=policy.waiting(start.execution))
            terms = replace(request.terms, policy=policy.policy, quorum=policy.quorum)
            request = replace(request, terms=terms)
            if not own_targets:
                request = replace(request, targets={})
            if placement is not None and start.dry_run:
                placement.show_plan(request, table_output)
                return
            if placement is not None:
                made = placement.hosts(request, yes=start.yes, stays=False)
                request, hosts = stack.enter_context(made)
                start = replace(start, yes=True)  # it was asked before the hosts were made
            ended = carry_out(
                hosts,
                request,
                start=start,
                table_output=table_output,
                host_keys=where.host_keys,
                has_answer=not table_output.is_for_people,
                warnings_of=_unpromised,
            )
        if ended is None:
            return
        folders = (ended.layout.root,)
    _show(folders, table_output)


def _request(
    roles: dict[str, str], directories: Collection[str], promised: _Promised, start: StartOptions
) -> CampaignRequest:
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.model.campaign.planned_run import AUDIT
    from volbench.plan.expansion.expand import Terms

    profile = profile_on(
        roles,
        _audit_jobs(promised.audit_s, has_writes=promised.has_writes),
        document={
            "name": AUDIT,
            "order": "listed",  # From the shallowest queue on
            "repeat": _REPEATS,
            **({"limits": promised.volume_type} if promised.volume_type else {}),
        },
        size=promised.scratch_size,
        settings=promised.settings,
        directories=directories,
        typed={"limits": "--type", "size": "--scratch-size"},
    )
    _refuse_short_runs(profile)
    return CampaignRequest(
        profiles=(profile,),
        targets=roles,
        into=start.output or default_campaign_folder("audit"),
        metadata_endpoint=promised.metadata_endpoint,
        terms=Terms(
            ladders=_ladders(profile.jobs),
            consent=start.consent,
            command=typed_command(tuple(roles.values()), start.output),
        ),
    )


def _refuse_short_runs(profile: Profile) -> None:
    """Refuse what leaves no interval of a run after its first, in which the queue fills."""
    if not profile.sample_s:
        raise InputError(
            "sample=0 records no series, by which an audit judges", hint="leave out --set sample=0"
        )
    judged = {name for ladder in _ladders(profile.jobs) for name in ladder}
    for job in profile.jobs:
        runtime_s = parse_duration(job.options.get("runtime") or "0")
        if job.name in judged and 0 < runtime_s < 2 * profile.sample_s:
            raise InputError(
                f"{job.name} is too short for an audit: the first interval of"
                f" {format_duration(profile.sample_s)}, in which the queue fills, is left out, and"
                f" a run of {format_duration(runtime_s)} has no second one",
                hint="use --for instead of --set runtime; runs of 10 s or more can be judged",
            )


def _unpromised(plan: Campaign) -> Iterator[str]:
    from volbench.analyse.frames.workload_words import first_names
    from volbench.model.campaign.host import LOCAL

    volumes = dict.fromkeys(
        run.volume.target if run.host == LOCAL else f"{run.host} {run.volume.target}"
        for run in plan.runs
        if run.limits.iops is None and run.limits.bandwidth_bytes_per_s is None
    )
    if volumes:
        yield (
            f"no limit of {printable(first_names(volumes, 5))} is known, so there will be rates but"
            " no verdict. Declare what is promised: --type PROVIDER/TYPE (volbench audit --list"
            " shows them), --set limits.iops=NUMBER --set limits.bandwidth=RATE, or limits in the"
            " inventory"
        )


def _refuse_options_of_measuring() -> None:
    names = ("volume_type", "audit_s", "has_writes", "scratch_size", "settings")
    if option := given_option(*names):
        raise InputError(
            f"{option} has no effect on campaigns that exist: they are judged by the limits of"
            " their profiles and inventories",
            hint="leave it out, or measure anew with --on",
        )


def _audit_jobs(audit_s: float, *, has_writes: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield name and options of each workload; the time is that of all runs.

    All depths of a workload are measured once at most, and two of them in the other repeats.
    """
    directions = ("read", "write") if has_writes else ("read",)
    for direction, (prefix, block, depths, share) in product(directions, _WORKLOADS):
        runs = len(depths) + (_REPEATS - 1) * min(2, len(depths))
        runtime_s = round(audit_s * share / (runs * len(directions)))
        for depth in depths:
            yield (
                f"{prefix}{direction}-{block}-qd{depth}",
                {
                    "rw": f"{prefix}{direction}",
                    "bs": block,
                    "iodepth": str(depth),
                    "runtime": f"{max(2, runtime_s)}s",
                },
            )


def _ladders(jobs: Sequence[Job]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the jobs that differ in their queue depth only, ascending."""
    from volbench.model.profile.profile_model import Phase

    ladders: dict[tuple[object, ...], list[str]] = {}
    for job in jobs:
        depth = int(job.options.get("iodepth") or 1)
        if job.phase is Phase.MEASURED and depth > 1:
            key = (job.role, job.options.get("rw"), job.options.get("bs"))
            ladders.setdefault(key, []).append(job.name)
    return tuple(map(tuple, ladders.values()))


def _show(folders: Sequence[str | Path], table_output: TableOutput) -> None:
    from volbench.analyse.compare.promised_limits import Outcome, latencies
    from volbench.api.many_campaigns import deliveries_of, open_campaigns
    from volbench.present.tables.audit_table import audit_notes, audit_table

    dataset = open_campaigns(*folders)
    found = deliveries_of(dataset)
    write_answer(audit_table(found), table_output)
    for line in audit_notes(found, latencies(dataset.frame)):
        table_output.note(line)
    outcomes = [delivery.outcome for delivery in found]
    if short := outcomes.count(Outcome.FALLS_SHORT):
        raise FindingsError(
            f"{short} of {len(found)} limits not delivered", hint="the verdict says by how much"
        )
    if undecided := outcomes.count(Outcome.UNDECIDED):
        raise UndecidedError(
            f"{undecided} of {len(found)} limits undecided", hint="the reason says what is missing"
        )
