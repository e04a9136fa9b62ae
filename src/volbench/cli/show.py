"""Verb show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.options import CAMPAIGNS, WHERE, examples, flag, names_option
from volbench.cli.output import TableOutput, table_options
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset
    from volbench.model.campaign.planned_run import RunNote
    from volbench.present.tables.table import Table


@click.command(
    "show",
    epilog=examples(
        "volbench show results",
        "volbench show results --use",
        "volbench show results --by bs,iodepth --where 'rw==randread'",
    ),
)
@CAMPAIGNS
@flag("--runs", "Show every run with its own numbers, its state and the reason.", "by_run")
@flag("--design", "Show what varies, what is constant, what is repeated, and what is missing.")
@flag("--use", "Show the USE table of devices: utilization, saturation, errors.")
@flag("--processes", "Show the processes with the most I/O on the hosts of a watch.")
@flag("--rounds", "Show how steady state was determined, round by round.")
@names_option("--by", "by", text="One row for results that are equal in these columns.")
@WHERE
@table_options(has_order=True)
def show(
    campaigns: Sequence[str | Path],
    *,
    where: str,
    by_run: bool,
    design: bool,
    use: bool,
    processes: bool,
    rounds: bool,
    by: tuple[str, ...],
    table_output: TableOutput,
) -> None:
    """Show the results of the campaigns in DIR, and the state of runs without a result.

    DIR is a campaign folder, a folder of campaigns, or results of fio: a file, a folder, or -.
    """
    if where and rounds:
        raise InputError(
            "--where selects runs, but --rounds shows whole campaigns", hint="use only one of them"
        )
    from volbench.api.many_campaigns import open_campaigns

    opened = open_campaigns(*campaigns, where=where)
    if rounds:
        _show_rounds(opened, table_output)
    elif use:
        _show_use(opened, table_output)
    elif processes:
        from volbench.present.tables.processes_table import processes_table

        table_output.write(processes_table(opened.frame("processes")))
    elif by_run:
        from volbench.present.tables.results_table import runs_table

        table_output.write(runs_table(opened, _selected(opened)))
    elif design:
        from volbench.present.tables.design_table import design_table

        table_output.write(design_table(opened.design))
    else:
        _show_results(opened, table_output, by=by)


def _show_results(opened: Dataset, table_output: TableOutput, *, by: Sequence[str]) -> None:
    from volbench.present.tables.results_table import result_tables
    from volbench.present.terminal.campaign_text import came_from

    is_brief = table_output.is_brief
    tables = result_tables(opened, _selected(opened), is_brief=is_brief, by=by)
    table_output.write(*tables, lead=[] if by else list(_answers(opened, is_brief=is_brief)))
    if table_output.format in {"json", "csv"}:
        return
    for sentence in opened.sentences:
        table_output.note(sentence)
    for data in opened.names.values():
        if not data.is_cached and (notice := came_from(data.campaign)):
            click.echo(notice, err=True)
        if data.campaign.design:
            click.echo(f"{data.campaign.design}: volbench compare pairs them", err=True)
        for words in data.imprecise:
            click.echo(f"warning: {words}", err=True)


def _answers(opened: Dataset, *, is_brief: bool) -> Iterator[Table[Any]]:
    from volbench.api.many_campaigns import states_expectations

    if states_expectations(opened):
        from volbench.present.tables.expectations_table import expectations_table

        yield expectations_table(opened.expect(), is_brief=is_brief)


def _selected(opened: Dataset) -> dict[str, RunNote]:
    if not opened.where:
        return opened.runs
    runs = set(opened.summary()["run"])
    return {run: note for run, note in opened.runs.items() if run in runs}


def _show_rounds(opened: Dataset, table_output: TableOutput) -> None:
    from volbench.present.tables.rounds_table import rounds_tables

    tables = rounds_tables(
        {name: (data.campaign.rounds, data.summary()) for name, data in opened.names.items()}
    )
    if not tables:
        raise InputError(
            "no profile of this campaign has rounds",
            hint="add rounds to the profile, or use a profile that has them, such as cloud-lite",
        )
    table_output.write(*tables)


def _show_use(opened: Dataset, table_output: TableOutput) -> None:
    from volbench.analyse.bottleneck.use_method import use_rows
    from volbench.present.formatting import records
    from volbench.present.tables.use_table import use_table

    summary, device, verdicts = (opened.frame(n) for n in ("summary", "device", "verdicts"))
    rows = records(use_rows(summary, device, verdicts))
    if not rows and table_output.format not in {"json", "csv"}:
        raise InputError(
            "this campaign has no samples of device counters",
            hint="volbench run samples them; the first lines of its output say why it did not",
        )
    table_output.write(use_table(rows))
