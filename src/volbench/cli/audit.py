"""Verb audit: whether volumes deliver what their provider promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import click
from click.core import ParameterSource

from volbench.cli.configuration import say_what_is_configured
from volbench.cli.execution import StartOptions, carry_out, start_options
from volbench.cli.measure import SIZE, profile_on, roles_of
from volbench.cli.options import (
    KEEP_FILES,
    SETTINGS,
    VOLUME_TYPES,
    Quantity,
    campaigns_argument,
    examples,
    flag,
)
from volbench.cli.output import (
    TableOutput,
    default_campaign_folder,
    recorded_command,
    table_options,
)
from volbench.cli.verb_groups import VerbCommand
from volbench.errors import FindingsError, InputError, UndecidedError
from volbench.units import parse_duration

# Share of the time for each workload: pattern, block size and queue depth. Two deep queues show
# that a deeper one gains nothing, and a short run at a low depth where the limit begins.
# Noticed by: tests/cli/test_audit.py
_WORKLOADS = (
    ("rand", "4k", 1, 0.1),
    ("rand", "4k", 16, 0.1),
    ("rand", "4k", 64, 0.2),
    ("rand", "4k", 256, 0.2),
    ("", "1m", 4, 0.1),
    ("", "1m", 16, 0.15),
    ("", "1m", 64, 0.15),
)
_REPEATS = 3  # For an interval; at three times, so that other load on the volume differs
_MIN_AUDIT_S = 60.0  # So that each run of a deep queue lasts 3 s


def _parse_audit_s(content: str) -> float:
    """Return seconds of an audit."""
    seconds = parse_duration(content)
    if seconds < _MIN_AUDIT_S:
        raise InputError(
            f"{content} is too short for an audit", hint="take a minute or more: --for 10m"
        )
    return seconds


@click.command(
    "audit",
    cls=VerbCommand,
    epilog=examples(
        "volbench audit --on /dev/sdb --type azure/P15",
        "volbench audit --on /mnt/data --type 'aws/gp3 size=500g iops=6000' --for 1h",
        "volbench audit --on /mnt/data --set limits.iops=3000 --write",
        "volbench audit results/audit",
    ),
)
@campaigns_argument(required=False)
@click.option(
    "--on",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="Directory, device, file or NBD URI to measure, instead of campaigns in DIR.",
)
@click.option(
    "--type",
    "volume_type",
    default="",
    metavar="TYPE",
    help="Volume type that is promised, such as azure/P15 or 'aws/gp3 size=500g iops=6000'; or"
    " declare numbers: --set limits.iops=3000.",
)
@click.option(
    "--for",
    "audit_s",
    type=Quantity("TIME", _parse_audit_s),
    default="10m",
    show_default=True,
    help="Time of all runs on each target.",
)
@flag("--write", "Measure writes too. On a device they destroy all data.", "has_writes")
@SIZE
@start_options(execution=(KEEP_FILES,))
@SETTINGS
@VOLUME_TYPES
@table_options(has_output=False, has_events=True)
def audit(
    campaigns: tuple[str | Path, ...],
    targets: tuple[str, ...],
    volume_type: str,
    audit_s: float,
    size: str,
    settings: tuple[str, ...],
    *,
    has_writes: bool,
    start: StartOptions,
    table_output: TableOutput,
) -> None:
    """Measure whether volumes deliver the limits that are promised: IOPS, bandwidth, for how long.

    Reads only, unless --write is given. With DIR instead of --on, campaigns that exist are judged:
    their direct runs of one direction with several I/Os in flight. Exits with 10 if a volume falls
    short of a limit, and with 11 if that is undecided.
    """
    if bool(campaigns) == bool(targets):
        raise InputError(
            "name campaigns, or volumes with --on"
            if not targets
            else "campaigns and --on exclude each other",
            hint="volbench audit --on /dev/sdb --type azure/P15, or volbench audit results/audit",
        )
    folders: Sequence[str | Path] = campaigns
    if campaigns:
        _refuse_options_of_measuring()
    else:
        from volbench.engine.campaign.prepare import CampaignRequest
        from volbench.engine.hosts.connected_host import this_machine
        from volbench.plan.expansion.expand import Terms

        roles = roles_of(targets)
        say_what_is_configured()
        profile = profile_on(
            roles,
            _jobs(audit_s, has_writes=has_writes),
            document={
                "name": "audit",
                "repeat": _REPEATS,
                **({"limits": volume_type} if volume_type else {}),
            },
            size=size,
            settings=settings,
        )
        request = CampaignRequest(
            profiles=(profile,),
            targets=roles,
            into=start.output or default_campaign_folder("audit"),
            terms=Terms(consent=start.consent, command=recorded_command(targets, start.output)),
        )
        ended = carry_out([this_machine()], request, start=start, table_output=table_output)
        if ended is None:
            return
        folders = (ended.layout.root,)
    _show(folders, table_output)


def _refuse_options_of_measuring() -> None:
    """Refuse options that change nothing about campaigns that exist."""
    context = click.get_current_context()
    flags = {
        "volume_type": "--type",
        "audit_s": "--for",
        "has_writes": "--write",
        "size": "--size",
        "settings": "--set",
    }
    for name, text in flags.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(
                f"{text} has no effect on campaigns that exist: they are judged by the limits of"
                " their profiles and inventories",
                hint="leave it out, or measure anew with --on",
            )


def _jobs(audit_s: float, *, has_writes: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield name and options of each workload; the time is that of all repeats."""
    directions = ("read", "write") if has_writes else ("read",)
    for direction, (prefix, block, depth, share) in product(directions, _WORKLOADS):
        runtime_s = round(audit_s * share / (_REPEATS * len(directions)))
        yield (
            f"{prefix}{direction}-{block}-qd{depth}",
            {
                "rw": f"{prefix}{direction}",
                "bs": block,
                "iodepth": str(depth),
                "runtime": f"{max(2, runtime_s)}s",
            },
        )


def _show(folders: Sequence[str | Path], table_output: TableOutput) -> None:
    """Print the page, and raise what the exit code says."""
    from volbench.analyse.compare.promised_limits import Outcome, deliveries, latencies
    from volbench.api.many_campaigns import open_campaigns
    from volbench.present.tables.audit_table import audit_notes, audit_table

    dataset = open_campaigns(*folders)
    plans = {name: note.run for name, note in dataset.runs.items() if note.run is not None}
    found = deliveries(dataset.frame, plans)
    table_output.write(audit_table(found))
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
