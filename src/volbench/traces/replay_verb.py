"""Verbs replay and fidelity."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.configuration import say_what_is_configured
from volbench.cli.execution import StartOptions, carry_out, start_options
from volbench.cli.measure import profile_on, roles_of, size_option
from volbench.cli.options import DETACH, KEEP_FILES, SETTINGS, examples
from volbench.cli.output import (
    TableOutput,
    default_campaign_folder,
    recorded_command,
    table_options,
)
from volbench.cli.verb_groups import VerbCommand
from volbench.errors import FindingsError, InputError
from volbench.units import counted_noun, format_duration, parse_size

if TYPE_CHECKING:
    from volbench.model.profile.profile_model import Profile
    from volbench.present.tables.table import Table
    from volbench.store.layout import Layout
    from volbench.traces.fidelity import Measure
    from volbench.traces.replay_plan import Load, Target

# Bounds of --speed, so that times stay numbers. Noticed by: tests/traces/test_replay.py
_MIN_SPEED, _MAX_SPEED = 0.01, 1000


@click.command(
    "replay",
    cls=VerbCommand,
    epilog=examples(
        "volbench replay night/trace.parquet --on /mnt/data",
        "volbench replay trace.parquet --on /dev/sdb --allow-destroy /dev/sdb",
        "volbench replay trace.parquet --on /mnt/data --speed 2",
    ),
)
@click.argument("trace", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--on",
    "target",
    required=True,
    metavar="TARGET",
    help="Directory, device or file. A device is overwritten.",
)
@click.option(
    "--speed",
    type=click.FloatRange(_MIN_SPEED, _MAX_SPEED),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Speed of the replay; 2 halves the time between I/Os.",
)
@click.option(
    "--fit",
    type=click.Choice(["refuse", "scale", "wrap"]),
    default="refuse",
    show_default=True,
    help="If the trace extends beyond the end of the target: refuse the replay, scale all offsets "
    "down, or wrap around to the start.",
)
@size_option(
    "Part of the target to use, from its start.  [default: as much as the trace needs, or the "
    "whole device or existing file]"
)
@start_options(DETACH, execution=(KEEP_FILES,))
@SETTINGS
@table_options(has_output=False, has_events=True)
def replay(
    trace: Path,
    target: str,
    speed: float,
    fit: str,
    size: str,
    *,
    start: StartOptions,
    settings: tuple[str, ...],
    table_output: TableOutput,
) -> None:
    """Replay TRACE on a volume with its original timing, and measure the fidelity of the replay.

    TRACE is a trace file, or the folder of a watch with --trace. In a directory, a file as large as
    the trace needs is written first. Each I/O is logged, and the fidelity table compares the log
    with the recording.
    """
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.engine.hosts.connected_host import this_machine
    from volbench.model.campaign.planned_run import ReplayedLoad
    from volbench.plan.expansion.expand import Terms
    from volbench.traces.replay_plan import Fit, file_bytes, lane_count, lead_s, load_trace
    from volbench.traces.trace_file import find_trace

    say_what_is_configured()
    path, roles = find_trace(trace), roles_of((target,))
    place = _target(target, size)
    load = load_trace(path, place, speed=speed, fit=Fit(fit))
    into = (start.output or default_campaign_folder("replay")).absolute()
    lanes = lane_count(load)
    _say_what_is_replayed(load, lanes)
    # Blocks that were never written would be read without accessing the storage.
    filled = () if place.discards else roles
    size_bytes = file_bytes(load, place)
    profile = _profile(roles, lanes, size_bytes, settings, filled=filled)
    request = CampaignRequest(
        profiles=(profile,),
        targets=roles,
        into=into,
        terms=Terms(consent=start.consent, command=recorded_command((trace, target), start.output)),
        replayed=ReplayedLoad(
            duration_s=load.duration_s + lead_s(load, lanes), write_bytes=load.write_bytes
        ),
    )
    ended = carry_out(
        [this_machine()],
        request,
        start=start,
        table_output=table_output,
        add_files=partial(_write_files, path=path, load=load, lanes=lanes),
        has_answer=not table_output.is_for_people,
    )
    if ended is not None:
        table_output.write(_fidelity_table([ended.layout.root], None))


def _target(target: str, size: str) -> Target:
    from volbench.engine.guard.volume_targets import find_volume, probe_volume
    from volbench.execute.local import LocalExecutor
    from volbench.model.campaign.planned_run import VolumeKind
    from volbench.traces.replay_plan import Target

    executor = LocalExecutor()
    volume = find_volume(executor, role="data", target=target)
    facts = probe_volume(executor, volume)
    block = facts.logical_block_bytes or Target(None).block_bytes
    wanted = int(parse_size(size)) if size else None
    match volume.kind:
        case VolumeKind.DEVICE:
            return Target(wanted or facts.size_bytes, block, discards=True)
        case VolumeKind.FILE if Path(target).exists():
            return Target(wanted or Path(target).stat().st_size, block)
        case VolumeKind.DIRECTORY | VolumeKind.FILE:
            return Target(wanted, block)
        case _:
            raise InputError(
                f"a trace cannot be replayed on {target}",
                hint="name a directory, a device or a file",
            )


def _say_what_is_replayed(load: Load, lanes: int) -> None:
    duration = format_duration(load.duration_s)
    jobs = counted_noun(lanes, "parallel job")
    words = f"{counted_noun(len(load.rows), 'I/O')} in {duration}, replayed by {jobs}"
    click.echo(f"Trace: {words}", err=True)
    if load.left_out:
        discards = counted_noun(load.left_out, "discard")
        click.echo(f"note: {discards} skipped: only a device supports them", err=True)


def _profile(
    roles: dict[str, str],
    lanes: int,
    size_bytes: int,
    settings: Sequence[str],
    *,
    filled: Collection[str],
) -> Profile:
    from volbench.model.profile.option_policy import REPLAYED_LOGS
    from volbench.traces.replay_plan import FILE_NAME, log_names

    logs = [f"{REPLAYED_LOGS}/{name}" for name in log_names(lanes)]
    options = {"ioengine": "psync", "read_iolog": ":".join(logs), "numjobs": str(lanes)}
    return profile_on(
        roles,
        [("replay", options)],
        document={"name": "replay", "defaults": {"time_based": None}},
        size=str(size_bytes),
        settings=settings,
        scratch_name=FILE_NAME,
        filled=filled,
        allow_exec=True,
    )


def _write_files(layout: Layout, *, path: Path, load: Load, lanes: int) -> None:
    """Write the fitted trace and fio's logs into a campaign folder."""
    from volbench.store.atomic_files import write_atomic
    from volbench.traces.replay_plan import FOLDER, log_names, render_logs
    from volbench.traces.trace_file import FILE_NAME, TraceWriter, read_facts

    folder = layout.root / FOLDER
    folder.mkdir()
    for name, text in zip(log_names(lanes), render_logs(load, lanes), strict=True):
        write_atomic(folder / name, text, durable=False)
    writer = TraceWriter(folder / FILE_NAME)
    writer.add(load.rows)
    writer.close(read_facts(path))


@click.command(
    "fidelity",
    epilog=examples(
        "volbench fidelity volbench-results/replay-20261126-101500",
        "volbench fidelity results --trace trace.parquet",
    ),
)
@click.argument(
    "campaigns",
    nargs=-1,
    required=True,
    metavar="DIR...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--trace",
    type=click.Path(exists=True, path_type=Path),
    metavar="TRACE",
    help="Trace to compare with; needed for profiles with read_iolog. Default: the replayed trace.",
)
@click.option("--strict", is_flag=True, help="Exit with 10 if a measure exceeds its limit.")
@table_options()
def fidelity(
    campaigns: tuple[Path, ...], trace: Path | None, *, strict: bool, table_output: TableOutput
) -> None:
    """Compare replays with their recording: requests, timing, utilization, latency."""
    table = _fidelity_table(campaigns, trace)
    table_output.write(table)
    missed = [each.name for each in table.rows if each.is_met is False]
    if strict and missed:
        raise FindingsError(
            f"the replay exceeds the limits of fidelity: {', '.join(missed)}",
            hint="the reasons are below the table, and in volbench check",
        )


def _fidelity_table(campaigns: Sequence[Path], trace: Path | None) -> Table[Measure]:
    from volbench.present.formatting import MISSING
    from volbench.present.tables.table import IDENTITY, Column, Table
    from volbench.store.archive import read_campaign
    from volbench.traces.fidelity import change_of
    from volbench.traces.fidelity import fidelity as measures_of
    from volbench.traces.trace_file import find_trace

    rows: list[Measure] = []
    names: dict[str, Path] = {}
    for root in campaigns:
        layout, archive = read_campaign(root)
        recording = None if trace is None else find_trace(trace)
        measures = measures_of(layout, archive.campaign, trace=recording)
        is_new = names.setdefault(archive.campaign.name, root) == root
        name = archive.campaign.name if is_new else str(root)
        rows += [replace(row, campaign=name) for row in measures]
    runs = {(row.campaign, row.run) for row in rows}
    identity = ["campaign"] * (len(campaigns) > 1) + ["run"] * (len(runs) > len(campaigns))

    def limit(row: Measure) -> str:
        if row.limit is None:
            return MISSING
        return row.show(row.limit) if row.name.startswith("lag") else f"{100 * row.limit:g} %"

    def verdict(row: Measure) -> str:
        return {None: MISSING, True: "yes", False: "no"}[row.is_met]

    def is_explained(row: Measure) -> bool:
        return bool(row.reason) and (row.is_met is False or row.limit is None)

    def of(row: Measure) -> str:
        return "".join(f"{getattr(row, name)}, " for name in identity)

    def shown(row: Measure, value: float) -> str:
        return row.show(value) if value == value else MISSING  # noqa: PLR0124 - NaN alone differs

    return Table(
        "fidelity",
        [
            *(Column(name, attrgetter(name), priority=IDENTITY) for name in identity),
            Column("measure", lambda row: row.name, priority=IDENTITY),
            Column("recorded", lambda row: shown(row, row.recorded), is_right=True),
            Column("replayed", lambda row: shown(row, row.replayed), is_right=True),
            Column("difference", change_of, is_right=True),
            Column("limit", limit, is_right=True),
            Column("met", verdict),
        ],
        rows,
        record=lambda row: {
            "campaign": row.campaign,
            "run": row.run,
            "measure": row.name,
            "recorded": row.recorded if row.recorded == row.recorded else None,
            "replayed": row.replayed if row.replayed == row.replayed else None,
            "difference": row.difference if row.difference == row.difference else None,
            "limit": row.limit,
            "met": row.is_met,
            "reason": row.reason if is_explained(row) else "",
        },
        title="Fidelity of the replay",
        notes=[f"{of(row)}{row.name}: {row.reason}." for row in rows if is_explained(row)],
    )
