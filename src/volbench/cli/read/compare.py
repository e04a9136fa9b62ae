"""volbench compare: is it faster, by how much, and could a difference have been seen?"""

from __future__ import annotations

from pathlib import Path

import click

from volbench.analyse.compare.repeat_statistics import CONFIDENCE
from volbench.cli.options import WHERE
from volbench.cli.read.compare_steps import (
    draw_comparison,
    fail_on_regression,
    print_comparison,
    question,
)
from volbench.cli.read.table_charts import chart_options
from volbench.compare_campaigns import compare_folders
from volbench.present.tables.compare_table import FORMATS


@click.command("compare")
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="BASE [CANDIDATE]...",
)
@click.option(
    "--metric",
    "metrics",
    metavar="NAME,...",
    help="What is compared: iops, steady_iops, bw, p99, lat_mean and their kin."
    "  [default: iops,p99]",
)
@click.option("--by", default="", metavar="COLUMN,...", help="Keep these apart, beside the job.")
@click.option(
    "--between",
    default="",
    metavar="COLUMN",
    help="Compare the values of a column, such as volume_type, within all folders.",
)
@click.option("--base", default="", metavar="VALUE", help="Of --between: what is compared with.")
@WHERE
@click.option(
    "--baseline",
    is_flag=True,
    help="Exit with 10 when a regression beyond --tolerance is shown.",
)
@click.option(
    "--tolerance",
    metavar="PERCENT",
    help="A change that nobody minds.  [default with --baseline: 5%]",
)
@click.option(
    "--confidence",
    default=f"{100 * CONFIDENCE:g}",
    show_default=True,
    metavar="PERCENT",
    help="Of all verdicts together.",
)
@click.option(
    "--allow-different",
    "allowed",
    multiple=True,
    metavar="NAME,...",
    help="Compare although this differs, such as kernel; the output says so.",
)
@click.option("--keep-invalid", is_flag=True, help="Take Runs that a rule called invalid.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="Of what is printed.",
)
@chart_options("the ratios with their intervals")
def command(
    folders: tuple[Path, ...],
    *,
    where: str,
    baseline: bool,
    form: str,
    **asked: object,
) -> None:
    """Compare each CANDIDATE with BASE: campaign folders, or folders of campaigns.

    Repeats are the unit, on several volumes the volumes are; never seconds of a Run. What differs
    in something that matters is refused with exit code 8. Methods: docs/explanation/statistics.md.
    """
    wanted = question(asked, is_baseline=baseline)
    comparison = compare_folders(folders, wanted, where=where)
    print_comparison(comparison, form=form)
    if asked["chart"]:
        draw_comparison(
            comparison, str(asked["chart"]), title=str(asked["title"]), theme=str(asked["theme"])
        )
    if baseline:
        fail_on_regression(comparison)
