"""Verbs replay and fidelity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.configuration import say_what_is_configured
from volbench.cli.execution import StartOptions, carry_out, start_options
from volbench.cli.hosts import HostSelection, on_hosts
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
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.extensions.traces.fidelity import Measure
    from volbench.extensions.traces.replay_plan import Fit, Load, Target
    from volbench.model.campaign.planned_run import ReplayedLoad, VolumeKind
    from volbench.model.profile.profile_model import Profile
    from volbench.present.tables.table import Table
    from volbench.store.layout import Layout

# Bounds of --speed, so that times stay numbers. Noticed by: tests/extensions/traces/test_replay.py
_MIN_SPEED, _MAX_SPEED = 0.01, 1000


@click.command(
    "replay",
    cls=VerbCommand,
    epilog=examples(
        "volbench replay night/trace.parquet --on /mnt/data",
        "volbench replay trace.parquet --on /dev/sdb --allow-destroy /dev/sdb",
        "volbench replay trace.parquet --on /mnt/data --speed 2",
        "volbench replay night --inventory fleet.yaml",
    ),
)
@click.argument("trace", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--on",
    "target",
    metavar="TARGET",
    help="Directory, device or file. A device is overwritten. Default: the volume data of each "
    "host of the inventory.",
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
@click.option(
    "--map",
    "pairs",
    multiple=True,
    metavar="RECORDED=HOST",
    help="Replay the recording of the host RECORDED on HOST of the inventory. Default: on the host "
    "of the same name.",
)
@start_options("replay", DETACH, execution=(KEEP_FILES,))
@SETTINGS
@on_hosts
@table_options(has_output=False, has_events=True)
def replay(
    trace: Path,
    target: str | None,
    speed: float,
    fit: str,
    size: str,
    pairs: tuple[str, ...],
    *,
    start: StartOptions,
    settings: tuple[str, ...],
    where: HostSelection,
    table_output: TableOutput,
) -> None:
    """Replay TRACE on a volume with its original timing, and measure the fidelity of the replay.

    TRACE is a trace file, or the folder of a watch with --trace. In a directory, a file as large as
    the trace needs is written first. Each I/O is logged, and the fidelity table compares the log
    with the recording.

    With an inventory, all hosts replay TRACE at the same time. If it is the folder of a watch of
    several hosts, each host replays its own recording.
    """
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.extensions.traces.replay_plan import Fit
    from volbench.plan.expansion.expand import Terms

    if target is None and where.inventory is None:
        raise InputError("no target is named", hint="add --on TARGET, or --inventory FILE")
    say_what_is_configured()
    roles = {} if target is None else roles_of((target,))
    into = (start.output or default_campaign_folder("replay")).absolute()
    with where.connected() as hosts:
        loads, kind = _loads(
            hosts,
            _traces_of(trace, [host.name for host in hosts], pairs),
            target,
            size,
            speed=speed,
            fit=Fit(fit),
        )
        _say_what_is_replayed(loads, kind)
        request = CampaignRequest(
            profiles=(_profile(list(loads.values()), kind, settings),),
            targets=roles,
            into=into,
            terms=Terms(
                consent=start.consent, command=recorded_command((trace, target or ""), start.output)
            ),
            replayed={host: planned.load for host, planned in loads.items()},
        )
        ended = carry_out(
            hosts,
            request,
            start=start,
            table_output=table_output,
            host_keys=where.host_keys,
            add_files=partial(_write_files, loads=loads),
            has_answer=not table_output.is_for_people,
        )
    if ended is not None:
        table_output.write(_fidelity_table([ended.layout.root], None))


@dataclass(frozen=True)
class _PlannedLoad:
    """Load of one or several hosts, with its logs."""

    trace: Path
    rows: Load
    load: ReplayedLoad
    texts: tuple[str, ...]  # of its logs


def _loads(
    hosts: Sequence[ConnectedHost],
    paths: Sequence[Path],
    target: str | None,
    size: str,
    *,
    speed: float,
    fit: Fit,
) -> tuple[dict[str, _PlannedLoad], VolumeKind]:
    """Return the load of each host, planned once for hosts with equal volumes, and their kind."""
    from volbench.engine.hosts.connected_host import on_every_host
    from volbench.extensions.traces.replay_plan import common_begin_ns, load_trace

    found = on_every_host(hosts, lambda host: _target(host, target, size))
    kinds = sorted({kind for _, kind in found})
    if len(kinds) > 1:
        raise InputError(
            f"the volumes of the hosts differ: {' and '.join(kinds)}",
            hint="replay on hosts of one kind at a time: add --limit HOST",
        )
    own = list(dict.fromkeys(paths))
    begins = dict(zip(own, common_begin_ns(own) if len(own) > 1 else [None], strict=True))
    if len(own) > 1 and None in begins.values():
        click.echo("note: a trace has no date, so each begins with its first I/O", err=True)
    keys = [(path, place) for path, (place, _) in zip(paths, found, strict=True)]
    different = list(dict.fromkeys(keys))
    planned = {}
    for number, (path, place) in enumerate(different, 1):
        rows = load_trace(path, place, speed=speed, fit=fit, begin_ns=begins[path])
        planned[path, place] = _planned(path, rows, place, number if len(different) > 1 else 0)
    return {host.name: planned[key] for host, key in zip(hosts, keys, strict=True)}, kinds[0]


def _traces_of(trace: Path, hosts: Sequence[str], pairs: Sequence[str]) -> list[Path]:
    """Return the trace of each host: the one that was named, or the host's own in a folder.

    Args:
        pairs: of ``--map``.
    """
    from volbench.extensions.traces.trace_file import (
        find_trace,
        parts_of,
        recording_folder,
        trace_path,
    )

    names = {host: recorded for recorded, _, host in (pair.partition("=") for pair in pairs)}
    if unknown := sorted(names.keys() - set(hosts)):
        raise InputError(
            f"--map names the host {unknown[0]!r}, which is not selected",
            hint="write --map RECORDED=HOST with a host of the inventory",
        )
    folders = {host: trace / recording_folder(names.get(host, host)) for host in hosts}
    found = trace.glob(recording_folder("*")) if trace.is_dir() else ()
    recorded = {path for path in found if trace_path(path).exists() or parts_of(path)}
    if not recorded and not pairs:
        return [find_trace(trace)] * len(hosts)
    if not recorded:
        raise InputError(
            f"{trace} has no recordings of several hosts",
            hint="leave out --map: all hosts replay the same trace",
        )
    if lacking := [host for host, folder in folders.items() if folder not in recorded]:
        present = ", ".join(sorted(path.name for path in recorded))
        raise InputError(
            f"{trace} has no recording of {names.get(lacking[0], lacking[0])}; it has {present}",
            hint=f"name the recording for this host: --map RECORDED={lacking[0]}; or replay one of "
            "them on all hosts by its path, or select hosts with --limit",
        )
    return [find_trace(folder) for folder in folders.values()]


def _planned(path: Path, rows: Load, place: Target, number: int) -> _PlannedLoad:
    """Return a load with its logs, in a folder of its own if it has a number."""
    from volbench.extensions.traces.replay_plan import (
        FOLDER,
        file_bytes,
        lane_count,
        lead_s,
        log_names,
        render_logs,
    )
    from volbench.model.campaign.planned_run import ReplayedLoad

    lanes = lane_count(rows)
    texts = tuple(render_logs(rows, lanes))
    folder = f"{FOLDER}/{number}" if number else FOLDER
    load = ReplayedLoad(
        duration_s=rows.duration_s + lead_s(rows, lanes),
        write_bytes=rows.write_bytes,
        size_bytes=file_bytes(rows, place),
        logs=tuple(f"{folder}/{name}" for name in log_names(lanes)),
        sha256=ReplayedLoad.digest(texts),
    )
    return _PlannedLoad(path, rows, load, texts)


def _target(host: ConnectedHost, target: str | None, size: str) -> tuple[Target, VolumeKind]:
    """Return the volume of a host, and its kind."""
    from volbench.engine.guard.volume_targets import examine_targets
    from volbench.engine.hosts.described_volumes import VolumeQuestion, look_at_volume
    from volbench.extensions.traces.replay_plan import Target
    from volbench.model.campaign.planned_run import VolumeKind

    path = target or host.host.volumes.get("data")
    if path is None:
        raise InputError(
            f"{host.name} has no volume for the role 'data'",
            hint="add --on TARGET, or the volume to the host in the inventory",
        )
    volume, facts = examine_targets(host.executor, {"data": path})["data"]
    block = facts.logical_block_bytes or Target(None).block_bytes
    wanted = int(parse_size(size)) if size else None
    match volume.kind:
        case VolumeKind.DEVICE:
            return Target(wanted or facts.size_bytes, block, discards=True), volume.kind
        case VolumeKind.DIRECTORY | VolumeKind.FILE:
            seen = look_at_volume(host.executor, VolumeQuestion(volume.target)).stat
            is_file = seen is not None and seen.kind == "file"
            return Target(
                wanted or (seen.size_bytes if seen and is_file else None), block
            ), volume.kind
        case _:
            raise InputError(
                f"a trace cannot be replayed on {path}",
                hint="name a directory, a device or a file",
            )


def _say_what_is_replayed(loads: Mapping[str, _PlannedLoad], kind: VolumeKind) -> None:
    from volbench.model.campaign.planned_run import VolumeKind

    hosts: dict[str, list[str]] = {}
    for host, planned in loads.items():
        hosts.setdefault(planned.load.logs[0], []).append(host)
    for names in hosts.values():
        planned = loads[names[0]]
        duration = format_duration(planned.rows.duration_s)
        jobs = counted_noun(len(planned.texts), "parallel job")
        words = f"{counted_noun(len(planned.rows.rows), 'I/O')} in {duration}, replayed by {jobs}"
        where = f" on {', '.join(names)}" if len(loads) > 1 else ""
        click.echo(f"Trace: {words}{where}", err=True)
        if planned.rows.left_out:
            discards = counted_noun(planned.rows.left_out, "discard")
            click.echo(f"note: {discards} skipped: only a device supports them", err=True)
    if kind is VolumeKind.DEVICE and any(planned.rows.has_reads for planned in loads.values()):
        click.echo(
            "note: reads of blocks that were never written do not access the storage; if the device"
            " has such blocks, write all of them first: volbench warmup",
            err=True,
        )


def _profile(loads: Sequence[_PlannedLoad], kind: VolumeKind, settings: Sequence[str]) -> Profile:
    """Return the profile of the smallest load; `prepare` gives each host its own logs and size."""
    from volbench.extensions.traces.replay_plan import FILE_NAME
    from volbench.model.campaign.planned_run import VolumeKind
    from volbench.model.profile.option_policy import REPLAYED_FROM

    load = min((each.load for each in loads), key=attrgetter("size_bytes"))
    logs = ":".join(f"{REPLAYED_FROM}{log}" for log in load.logs)
    options = {"ioengine": "psync", "read_iolog": logs, "numjobs": str(len(load.logs))}
    return profile_on(
        {"data": ""},
        [("replay", options)],
        document={"name": "replay", "defaults": {"time_based": None}},
        size=str(load.size_bytes),
        settings=settings,
        directories={"data"} if kind is VolumeKind.DIRECTORY else (),
        scratch_name=FILE_NAME,
        # Blocks that were never written would be read without accessing the storage.
        filled=() if kind is VolumeKind.DEVICE else ("data",),
        allow_exec=True,
    )


def _write_files(layout: Layout, *, loads: Mapping[str, _PlannedLoad]) -> None:
    """Write the fitted traces and fio's logs into a campaign folder."""
    from volbench.extensions.traces.trace_file import TraceWriter, read_facts
    from volbench.store.atomic_files import write_atomic
    from volbench.store.consent import seal_of
    from volbench.store.journal import Journal
    from volbench.store.layout import TRACE
    from volbench.store.log_files import record_files

    written: list[Path] = []
    for planned in {each.load.logs: each for each in loads.values()}.values():
        folder = layout.root / Path(planned.load.logs[0]).parent
        folder.mkdir(parents=True)
        for name, text in zip(planned.load.logs, planned.texts, strict=True):
            write_atomic(layout.root / name, text, durable=False)
        writer = TraceWriter(folder / TRACE)
        writer.add(planned.rows.rows)
        writer.close(read_facts(planned.trace))
        written += [*(layout.root / name for name in planned.load.logs), folder / TRACE]
    with Journal(layout.journal, seal_of(layout)) as journal:
        record_files(journal, layout, written)


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
    from volbench.extensions.traces.fidelity import change_of
    from volbench.extensions.traces.fidelity import fidelity as measures_of
    from volbench.extensions.traces.trace_file import find_trace
    from volbench.present.formatting import MISSING
    from volbench.present.tables.table import IDENTITY, Column, Table
    from volbench.store.archive import read_campaign

    rows: list[Measure] = []
    names: dict[str, Path] = {}
    for root in campaigns:
        layout, archive = read_campaign(root)
        recording = None if trace is None else find_trace(trace)
        measures = measures_of(layout, archive.campaign, trace=recording)
        is_new = names.setdefault(archive.campaign.name, root) == root
        name = archive.campaign.name if is_new else str(root)
        rows += [replace(row, campaign=name) for row in measures]
    hosts = {(row.campaign, row.host) for row in rows}
    runs = {(row.campaign, row.host, row.run) for row in rows}
    several = {
        "campaign": len(campaigns) > 1,
        "host": len({host for _, host in hosts}) > 1,
        "run": len(runs) > len(hosts),
    }
    identity = [name for name, is_needed in several.items() if is_needed]

    def limit(row: Measure) -> str:
        if row.limit is None:
            return MISSING
        return row.show(row.limit) if row.name.startswith("lag") else f"{100 * row.limit:g} %"

    def verdict(row: Measure) -> str:
        return {None: MISSING, True: "yes", False: "no"}[row.is_met]

    def is_explained(row: Measure) -> bool:
        return bool(row.reason) and (row.is_met is False or row.limit is None)

    def of(first: Measure, *others: Measure) -> str:
        place = [str(getattr(first, name)) for name in identity]
        return ", ".join([*place, first.name, *(row.name for row in others)])

    def shown(row: Measure, value: float) -> str:
        return row.show(value) if value == value else MISSING  # noqa: PLR0124 - NaN alone differs

    explained: dict[tuple[object, ...], list[Measure]] = {}  # the rows of a place and reason
    for row in filter(is_explained, rows):
        key = (*(getattr(row, name) for name in identity), row.reason)
        explained.setdefault(key, []).append(row)

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
            "host": row.host,
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
        notes=[f"{of(*same)}: {reason}." for (*_, reason), same in explained.items()],
    )
