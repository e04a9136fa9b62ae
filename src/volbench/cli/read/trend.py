"""volbench trend: each workload over campaigns, with control limits and change points."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import CAMPAIGNS, WHERE, Quantity, examples, names_option, option_group
from volbench.cli.output import ChartFile, TableOutput, chart_options, table_options
from volbench.cli.read.compare import parse_share
from volbench.errors import RegressionError

if TYPE_CHECKING:
    from volbench.analyse.compare.trend_result import Trends
    from volbench.analyse.compare.workload_trends import TrendQuestion


def _question(**options: object) -> TrendQuestion:
    from volbench.analyse.compare.workload_trends import TrendQuestion

    return TrendQuestion(**options)  # type: ignore[arg-type]  # the options below, by name


@click.command(
    "trend",
    epilog=examples(
        "volbench trend nightly",
        "volbench trend nightly --chart trend.png --where 'rw==randread'",
        "volbench trend nightly --where 'started_utc>=2026-03-04'",
    ),
)
@CAMPAIGNS
@option_group(
    "question",
    _question,
    names_option(
        "--metric",
        "metrics",
        metavar="NAME,...",
        text="Metrics to follow: iops, bw, p99, lat_mean and similar.  [default: iops,p99]",
    ),
    names_option("--by", "by", text="Follow each value of these columns by itself."),
    click.option(
        "--reference",
        type=click.IntRange(min=8),
        metavar="N",
        help="Campaigns of the reference period, from the first on.  [default: half of them, 8 to "
        "50]",
    ),
    click.option(
        "--tolerance",
        type=Quantity("PERCENT", partial(parse_share, least=0)),
        default="5%",
        show_default=True,
        help="Largest change for the worse that is acceptable.",
    ),
    names_option(
        "--allow-different",
        "allowed",
        metavar="NAME,...",
        text="Options of the jobs that may differ, such as rate_iops; the output says so.",
    ),
    click.option("--keep-invalid", is_flag=True, help="Include runs that are marked invalid."),
)
@WHERE
@table_options()
@chart_options("each workload over the campaigns")
def command(
    campaigns: tuple[str | Path, ...],
    *,
    question: TrendQuestion,
    where: str,
    shown: TableOutput,
    picture: ChartFile,
) -> None:
    """Follow each workload over the campaigns in DIR..., such as a folder of nightly ones.

    Exits with 10 on a regression: the level dropped by more than the tolerance and stayed, or the
    last campaign is beyond its control limits. An option of the jobs that changed is refused, as by
    `volbench compare`. Methods: docs/explanation/statistics.md.
    """
    from volbench.compare_campaigns import trend_folders
    from volbench.present.tables.compare_table import trends_table

    trends = trend_folders(campaigns, question, where=where)
    table = trends_table(trends)
    shown.write(table)
    if shown.format == "csv":
        for note in table.notes:
            click.echo(note, err=True)
    if picture.chart:
        from volbench.present.plots.compare.trend_lines import trend_plot

        picture.write(trend_plot(trends, title=picture.title), table)
    _fail_on_regression(trends)


def _fail_on_regression(trends: Trends) -> None:
    """Fail if a workload got worse."""
    from volbench.present.tables.compare_table import measure_name, trend_words

    bad = [trend for trend in trends.rows if trend.state.is_bad]
    if bad:
        named = "; ".join(
            f"{trend.label} {trend.direction} {measure_name(trend.measure)}: {trend_words(trend)}"
            for trend in bad
        )
        raise RegressionError(
            named,
            hint="measure again to be sure; where a change is meant, start behind it with --where"
            " 'started_utc>=DATE'",
        )
