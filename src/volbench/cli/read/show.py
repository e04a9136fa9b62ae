"""volbench show: the results of campaigns in the terminal, or the campaigns themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.analyse.device.use_method import use_rows
from volbench.api import RunNote
from volbench.cli.options import CAMPAIGNS, WHERE
from volbench.cli.outputs import binary_output
from volbench.dataset import Dataset, open_campaigns
from volbench.errors import InputError
from volbench.present.export.frame_export import export_frame
from volbench.present.formatting import records
from volbench.present.tables.aggregate_table import aggregate_table
from volbench.present.tables.campaigns_table import campaign_records, campaigns_table
from volbench.present.tables.findings_table import doubt_marks
from volbench.present.tables.result_tables import show_table, states_table, summary_table
from volbench.present.tables.rounds_table import all_rounds
from volbench.present.tables.use_table import use_table
from volbench.present.terminal.import_notice import came_from

if TYPE_CHECKING:
    import pandas as pd


@click.command("show")
@CAMPAIGNS
@click.option("--json", "as_json", is_flag=True, help="Print JSON records instead of a table.")
@click.option("--runs", "by_run", is_flag=True, help="Every Run with its state and why.")
@click.option("--use", "use", is_flag=True, help="What the device did: the USE table.")
@click.option(
    "--rounds", "rounds", is_flag=True, help="How steady state was determined, round by round."
)
@WHERE
@click.option(
    "--all",
    "by_campaign",
    is_flag=True,
    help="A line for each campaign: what it is and how far it came.",
)
def command(
    campaigns: Sequence[Path],
    *,
    where: str,
    as_json: bool,
    by_run: bool,
    use: bool,
    rounds: bool,
    by_campaign: bool,
) -> None:
    """Show the results of the campaigns in DIR, and the state of every Run without a result."""
    if where and (by_campaign or rounds):
        raise InputError(
            "--where chooses Runs, and --all and --rounds tell of whole campaigns",
            hint="leave one of them out",
        )
    opened = open_campaigns(*campaigns, where=where)
    if by_campaign:
        _show_campaigns(opened, as_json=as_json)
    elif rounds:
        _show_rounds(opened, as_json=as_json)
    elif use:
        _show_use(opened, as_json=as_json)
    elif as_json:
        _print_json(opened.summary(), name="summary")
    elif by_run:
        show_table(states_table(_chosen(opened)))
    else:
        _show_results(opened)


def _show_results(opened: Dataset) -> None:
    doubts = doubt_marks(records(opened.frame("findings")))
    show_table(summary_table(opened.summary(), states=_chosen(opened), doubts=doubts))
    aggregate = records(opened.frame("aggregate"))
    if aggregate:
        show_table(aggregate_table(aggregate))
    for data in opened.names.values():
        if words := came_from(data.campaign):
            click.echo(words, err=True)


def _chosen(opened: Dataset) -> dict[str, RunNote]:
    """Return the state of each Run that the condition leaves in."""
    if not opened.where:
        return opened.runs
    runs = set(opened.summary()["run"])
    return {run: note for run, note in opened.runs.items() if run in runs}


def _show_campaigns(opened: Dataset, *, as_json: bool) -> None:
    found = campaign_records(opened.names)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        show_table(campaigns_table(found))


def _show_rounds(opened: Dataset, *, as_json: bool) -> None:
    """Print the determination of steady state, and what was measured over its window."""
    found = all_rounds(
        {name: (one.campaign.rounds, one.summary()) for name, one in opened.names.items()}
    )
    if not found:
        raise InputError(
            "no profile of this campaign goes on in rounds",
            hint="add rounds to the profile, or take one that has them, such as cloud-lite",
        )
    if as_json:
        click.echo(json.dumps([one.record for one in found], indent=2, ensure_ascii=False))
        return
    for table in (table for one in found for table in one.tables):
        show_table(table)


def _show_use(opened: Dataset, *, as_json: bool) -> None:
    """Print utilization, saturation and errors of the device beside each Run."""
    frames = (opened.frame(name) for name in ("summary", "device", "verdicts"))
    frame = use_rows(*frames)
    if as_json:
        _print_json(frame, name="use")
    elif frame.empty:
        raise InputError(
            "nobody sampled the host's counters in this campaign",
            hint="volbench run samples them beside each Run; see its first lines for why not",
        )
    else:
        show_table(use_table(records(frame)))


def _print_json(frame: pd.DataFrame, *, name: str) -> None:
    with binary_output("-", default_name=f"{name}.json") as sink:
        export_frame(frame, frame_name=name, format="json", into=sink)
