"""volbench report: everything about campaigns in one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import CAMPAIGNS, output_option
from volbench.cli.output import binary_output, report_folder
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.dataset import Dataset


@click.command("report")
@CAMPAIGNS
@output_option(
    metavar="FILE",
    help="HTML file; - is standard output. Default: report/index.html in the campaign folder. "
    "Needed for several campaigns.",
)
@click.option("--title", help="Title of the page.")
@click.option(
    "--chart",
    "charts",
    multiple=True,
    metavar="KIND",
    help="A chart beside the usual ones, such as violin; volbench plot --list lists them.",
)
def command(
    campaigns: tuple[str | Path, ...],
    output: str | None,
    title: str | None,
    charts: tuple[str, ...],
) -> None:
    """Write the report of the campaigns in DIR: one HTML file that needs no network.

    DIR is a campaign folder, or a folder with campaigns at any depth; several are shown side by
    side, and each by itself.
    """
    from volbench.dataset import open_campaigns

    dataset = open_campaigns(*campaigns)
    place = output or _default_place(dataset)
    page = _page(dataset, title=title, charts=charts)
    with binary_output(place, default_name="index.html") as sink:
        sink.write(page.encode())


def _page(dataset: Dataset, *, title: str | None, charts: Sequence[str]) -> str:
    """Return the page of one campaign, or of several."""
    from volbench.cli.read.report_content import multi_campaign_content, report_content
    from volbench.present.report import render_report, render_reports

    if len(dataset.names) == 1:
        (opened,) = dataset.names.values()
        return render_report(report_content(opened, title=title, charts=charts))
    contents = [
        report_content(opened, title=name, charts=charts) for name, opened in dataset.names.items()
    ]
    shown = title or f"{len(contents)} campaigns side by side"
    return render_reports(contents, title=shown, together=multi_campaign_content(dataset))


def _default_place(dataset: Dataset) -> str:
    """Return the report folder of the only campaign.

    Raises:
        InputError: there are several, and none of their folders is the place for all.
    """
    if len(dataset.names) > 1:
        raise InputError(
            f"{len(dataset.names)} campaigns are given, and no file for their report",
            hint="name it with --output, such as --output comparison.html",
        )
    return str(report_folder(dataset))
