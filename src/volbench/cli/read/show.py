"""volbench show: the results of campaigns in the terminal, or the campaigns themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import CAMPAIGNS, WHERE, flag
from volbench.cli.output import TableOutput, table_options
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.dataset import Dataset
    from volbench.present.terminal.campaign_text import RunNote


@click.command("show")
@CAMPAIGNS
@flag("--each", "Every result; without it more than 60 are shown by group.")
@flag("--runs", "Every run with its state and the reason.", "by_run")
@flag("--use", "The USE table of devices: utilization, saturation, errors.")
@flag("--rounds", "Determination of steady state, by round.")
@flag("--all", "A row for each campaign, with its progress.", "by_campaign")
@WHERE
@table_options()
def command(
    campaigns: Sequence[str | Path],
    *,
    where: str,
    each: bool,
    by_run: bool,
    use: bool,
    rounds: bool,
    by_campaign: bool,
    shown: TableOutput,
) -> None:
    """Show the results of the campaigns in DIR, and the state of runs without a result."""
    if where and (by_campaign or rounds):
        raise InputError(
            "--where selects runs, but --all and --rounds show whole campaigns",
            hint="leave one of them out",
        )
    from volbench.dataset import open_campaigns

    opened = open_campaigns(*campaigns, where=where)
    if by_campaign:
        _show_campaigns(opened, shown)
    elif rounds:
        _show_rounds(opened, shown)
    elif use:
        _show_use(opened, shown)
    elif by_run:
        _show_states(opened, shown)
    else:
        _show_results(opened, shown, each=each)


def _show_results(opened: Dataset, shown: TableOutput, *, each: bool) -> None:
    from volbench.present.tables.results_table import result_tables
    from volbench.present.terminal.campaign_text import came_from

    shown.write(*result_tables(opened, _selected(opened), is_brief=shown.is_brief and not each))
    if shown.format in {"json", "csv"}:
        return
    for data in opened.names.values():
        if notice := came_from(data.campaign):
            click.echo(notice, err=True)


def _selected(opened: Dataset) -> dict[str, RunNote]:
    if not opened.where:
        return opened.runs
    runs = set(opened.summary()["run"])
    return {run: note for run, note in opened.runs.items() if run in runs}


def _show_states(opened: Dataset, shown: TableOutput) -> None:
    from volbench.present.tables.results_table import states_table

    shown.write(states_table(_selected(opened)))


def _show_campaigns(opened: Dataset, shown: TableOutput) -> None:
    from volbench.present.tables.campaigns_table import campaign_record, campaigns_table

    records = [
        campaign_record(name, data.address, data.campaign, data.runs)
        for name, data in opened.names.items()
    ]
    shown.write(campaigns_table(records))


def _show_rounds(opened: Dataset, shown: TableOutput) -> None:
    """Print the determination of steady state, and the results over its window."""
    from volbench.present.tables.rounds_table import rounds_tables

    tables = rounds_tables(
        {name: (data.campaign.rounds, data.summary()) for name, data in opened.names.items()}
    )
    if not tables:
        raise InputError(
            "no profile of this campaign has rounds",
            hint="add rounds to the profile, or use a profile that has them, such as cloud-lite",
        )
    shown.write(*tables)


def _show_use(opened: Dataset, shown: TableOutput) -> None:
    """Print utilization, saturation and errors of the device beside each run."""
    from volbench.analyse.device.use_method import use_rows
    from volbench.present.formatting import records
    from volbench.present.tables.use_table import use_table

    summary, device, verdicts = (opened.frame(n) for n in ("summary", "device", "verdicts"))
    rows = records(use_rows(summary, device, verdicts))
    if not rows and shown.format not in {"json", "csv"}:
        raise InputError(
            "this campaign has no samples of device counters",
            hint="volbench run samples them during each run; its first lines say why it did not",
        )
    shown.write(use_table(rows))
