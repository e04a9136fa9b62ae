"""volbench show: the results of a campaign in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.api import open_campaign
from volbench.cli.options import CAMPAIGN
from volbench.cli.outputs import binary_output
from volbench.present.cells import records
from volbench.present.export import export_frame
from volbench.present.findings_table import doubt_marks
from volbench.present.tables import show_table, states_table, summary_table


@click.command("show")
@CAMPAIGN
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON records.")
@click.option("--runs", "by_run", is_flag=True, help="Every Run with its state and why.")
def command(campaign: Path, *, as_json: bool, by_run: bool) -> None:
    """Show the results of the campaign in DIR, with the state of every Run that has no result."""
    opened = open_campaign(campaign)
    if as_json:
        with binary_output("-", default_name="summary.json") as sink:
            export_frame(opened.summary(), frame_name="summary", format="json", into=sink)
        return
    if by_run:
        show_table(states_table(opened.runs))
        return
    doubts = doubt_marks(records(opened.findings()))
    show_table(summary_table(opened.summary(), states=opened.runs, doubts=doubts))
