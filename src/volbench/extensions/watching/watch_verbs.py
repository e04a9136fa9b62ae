"""Verb watch: disks of hosts under any load, and marks on their time axis."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.additions import Additions, additions
from volbench.cli.help_pages import VerbCommand
from volbench.cli.hosts import HostSelection, on_hosts
from volbench.cli.options import NEW_CAMPAIGN, Quantity, examples, on_option
from volbench.cli.output import TableOutput, default_campaign_folder, table_options, typed_command
from volbench.cli.verb_groups import name_campaign
from volbench.errors import InputError, quoted
from volbench.units import counted_noun, parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volbench.extensions.watching.watch_plan import WatchedHost
    from volbench.model.campaign.event import Listener
    from volbench.model.campaign.planned_run import Campaign
    from volbench.store.layout import Layout

# Shortest and longest time between samples: the kernel counts time in milliseconds, and the device
# frame is of intervals within which a load can be recognised. Noticed by:
# tests/extensions/watching/test_watch.py
_MIN_INTERVAL_S, _MAX_INTERVAL_S = 0.1, 60.0


def _interval(text: str) -> float:
    seconds = parse_duration(text)
    if not _MIN_INTERVAL_S <= seconds <= _MAX_INTERVAL_S:
        raise InputError(f"{text} is not between 100ms and 1m", hint="write it like 1s")
    return seconds


@click.command(
    "watch",
    cls=VerbCommand,
    epilog=examples(
        "volbench watch",
        "volbench watch --on /dev/sdb --on /var/lib/libvirt --for 10m",
        "volbench watch --inventory fleet.yaml --every 10s -o night",
        'volbench watch --mark "backup begins" night',
    ),
)
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@on_option("Device, or path on a disk. Default: all disks.")
@click.option(
    "--for",
    "for_s",
    type=Quantity("TIME", parse_duration),
    metavar="TIME",
    help="Stop after this time. Default: until Ctrl-C.",
)
@click.option(
    "--every",
    "interval_s",
    type=Quantity("TIME", _interval),
    default="1s",
    show_default=True,
    help="Time between samples, 100ms to 1m.",
)
@click.option(
    "--mark",
    metavar="TEXT",
    help="Only mark an event on the time axis of the running watch in DIR; without DIR, of all "
    "running watches of this user.",
)
@NEW_CAMPAIGN
@additions("watch")
@on_hosts
@table_options(has_output=False)
def watch(
    folders: tuple[str, ...],
    targets: tuple[str, ...],
    for_s: float | None,
    interval_s: float,
    mark: str | None,
    output: Path | None,
    *,
    added: Additions,
    where: HostSelection,
    table_output: TableOutput,
) -> None:
    """Record the activity of disks under any load, as a campaign, until Ctrl-C.

    Without --on, all disks are watched: those of this machine, or of each host of an inventory.
    volbench reads the kernel's counters only, and never writes to the disks. As root,
    the processes with the most I/O are recorded too.
    """
    from volbench.extensions.watching.watch_plan import find_disks, plan_watch
    from volbench.store.archive import create_campaign

    if mark is not None:
        _mark(mark, folders)
        return
    if folders:
        hint = f"to watch it: --on {quoted(folders[0])}"
        raise InputError(f"{folders[0]} is only a place for a mark", hint=hint)
    where, own_targets = where.on(targets)
    with where.connected() as connected:
        hosts = find_disks(connected, own_targets, is_named=bool(where.named))
        folder = output or default_campaign_folder("watch")
        archive = plan_watch(
            hosts,
            name=folder.resolve().name,
            interval_s=interval_s,
            command=typed_command(targets, output),
        )
        with added.served() as listeners_of:
            layout = create_campaign(folder, archive)
            name_campaign(layout.root)
            _carry_out(layout, archive.campaign, hosts, listeners=listeners_of(layout), for_s=for_s)
    _show(layout, table_output)


def _mark(text: str, folders: Sequence[str]) -> None:
    """Mark an event in the watches of some folders, or in all running watches."""
    from volbench.extensions.watching.user_marks import add_mark, running_watches

    wanted = {Path(folder).resolve() for folder in folders}
    layouts = [
        layout for layout in running_watches() if not wanted or layout.root.resolve() in wanted
    ]
    add_mark(text, layouts)
    for layout in layouts:
        click.echo(f"marked in {layout.root}", err=True)


def _carry_out(
    layout: Layout,
    campaign: Campaign,
    hosts: Sequence[WatchedHost],
    *,
    listeners: Sequence[Listener],
    for_s: float | None,
) -> None:
    from volbench.engine.run.stop_request import stop_on_signals
    from volbench.extensions.watching.live_table import LiveTable
    from volbench.extensions.watching.watch_loop import Watch
    from volbench.store.archive import hold_campaign
    from volbench.store.consent import hold_copies
    from volbench.store.journal import Journal
    from volbench.store.log_files import record_files

    disks = counted_noun(sum(len(host.disks) for host in hosts), "disk")
    names = f"{disks} of {counted_noun(len(hosts), 'host')}"
    words = f"Watching {names}; results go to {layout.root}. Press Ctrl-C to stop."
    with (
        hold_campaign(layout),
        hold_copies(layout, campaign.key),
        Journal(layout.journal) as journal,
        stop_on_signals() as stop,
    ):
        record_files(journal, layout, [layout.campaign])
        click.echo(words, err=True)
        table = LiveTable(sys.stderr)
        Watch(
            layout, campaign, hosts, show=table, say=table.say, listeners=listeners, stop=stop
        ).run(journal, for_s)


def _show(layout: Layout, table_output: TableOutput) -> None:
    from volbench.api.many_campaigns import open_campaign
    from volbench.api.one_campaign import campaign_data
    from volbench.cli.results import show_results
    from volbench.extensions.watching.watch_loop import check_recorded
    from volbench.extensions.watching.watch_summary import summary_lines

    show_results(layout, table_output)
    for line in summary_lines(open_campaign(layout.root)):
        table_output.note(line)
    click.echo(f"campaign folder: {layout.root}", err=True)
    check_recorded(layout, campaign_data(layout.root).campaign)
