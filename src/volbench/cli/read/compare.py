"""volbench compare: is it faster, by how much, and could a difference have been seen?"""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import WHERE
from volbench.cli.table_charts import chart_options
from volbench.cli.table_output import TableOutput, table_options


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
    help="Metrics to compare: iops, steady_iops, bw, p99, lat_mean and similar."
    "  [default: iops,p99]",
)
@click.option(
    "--by", default="", metavar="COLUMN,...", help="Compare each value of these columns by itself."
)
@click.option(
    "--between",
    default="",
    metavar="COLUMN",
    help="Compare the values of a column, such as volume_type, within all folders.",
)
@click.option(
    "--base", default="", metavar="VALUE", help="The value of --between that is the base."
)
@WHERE
@click.option(
    "--baseline",
    is_flag=True,
    help="Exit with 10 on a significant regression beyond --tolerance.",
)
@click.option(
    "--tolerance",
    metavar="PERCENT",
    help="Largest change that is acceptable.  [default with --baseline: 5%]",
)
@click.option(
    "--confidence",
    default="95",
    show_default=True,
    metavar="PERCENT",
    help="Family-wise confidence of all verdicts.",
)
@click.option(
    "--allow-different",
    "allowed",
    multiple=True,
    metavar="NAME,...",
    help="Compare even if this differs, such as kernel; the output says so.",
)
@click.option("--keep-invalid", is_flag=True, help="Include runs that are marked invalid.")
@table_options()
@chart_options("the ratios with their intervals")
def command(
    folders: tuple[Path, ...],
    *,
    where: str,
    baseline: bool,
    shown: TableOutput,
    **options: object,
) -> None:
    """Compare each CANDIDATE with BASE: campaign folders, or folders of campaigns.

    The unit of analysis is the repeat, or the volume where there are several; never the second.
    Campaigns that are not comparable are refused with exit code 8. Methods:
    docs/explanation/statistics.md.
    """
    from volbench.cli.read.compare_steps import (
        draw_comparison,
        fail_on_regression,
        print_comparison,
        question,
    )
    from volbench.compare_campaigns import compare_folders

    wanted = question(options, is_baseline=baseline)
    comparison = compare_folders(folders, wanted, where=where)
    print_comparison(comparison, shown)
    if options["chart"]:
        draw_comparison(
            comparison,
            str(options["chart"]),
            title=str(options["title"]),
            theme=str(options["theme"]),
        )
    if baseline:
        fail_on_regression(comparison)
