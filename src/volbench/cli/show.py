"""volbench show: the results of a campaign in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.analyse.use import use_rows
from volbench.api import CampaignData, open_campaign
from volbench.cli.options import CAMPAIGN
from volbench.cli.outputs import binary_output
from volbench.errors import InputError
from volbench.present.cells import records
from volbench.present.export import export_frame
from volbench.present.findings_table import doubt_marks
from volbench.present.tables import show_table, states_table, summary_table
from volbench.present.totals_table import totals_table
from volbench.present.use_table import use_table

if TYPE_CHECKING:
    import pandas as pd


@click.command("show")
@CAMPAIGN
@click.option("--json", "as_json", is_flag=True, help="Print JSON records instead of a table.")
@click.option("--runs", "by_run", is_flag=True, help="Every Run with its state and why.")
@click.option("--use", "use", is_flag=True, help="What the device did: the USE table.")
def command(campaign: Path, *, as_json: bool, by_run: bool, use: bool) -> None:
    """Show the results of the campaign in DIR, with the state of every Run that has no result."""
    opened = open_campaign(campaign)
    if use:
        _show_use(opened, as_json=as_json)
        return
    if as_json:
        _print_json(opened.summary(), name="summary")
        return
    if by_run:
        show_table(states_table(opened.runs))
        return
    doubts = doubt_marks(records(opened.findings()))
    show_table(summary_table(opened.summary(), states=opened.runs, doubts=doubts))
    totals = records(opened.totals())
    if totals:
        show_table(totals_table(totals))


def _show_use(opened: CampaignData, *, as_json: bool) -> None:
    """Print utilization, saturation and errors of the device beside each Run."""
    frame = use_rows(opened.summary(), opened.device(), opened.verdicts())
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
