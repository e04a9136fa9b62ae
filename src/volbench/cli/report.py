"""volbench report: everything about a campaign in one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.api import open_campaign
from volbench.cli.content import report_content
from volbench.cli.options import CAMPAIGN
from volbench.cli.outputs import binary_output
from volbench.present.report import render_report


@click.command("report")
@CAMPAIGN
@click.option(
    "--into",
    metavar="FILE",
    help="HTML file; - is standard output. Default: report/index.html in the campaign folder.",
)
@click.option("--title", help="Title of the page.")
def command(campaign: Path, into: str | None, title: str | None) -> None:
    """Write the report of the campaign in DIR: one HTML file that needs no network."""
    opened = open_campaign(campaign)
    page = render_report(report_content(opened, title=title))
    if into is None:
        opened.report_folder.mkdir(exist_ok=True)
        into = str(opened.report_folder)
    with binary_output(into, default_name="index.html") as sink:
        sink.write(page.encode())
