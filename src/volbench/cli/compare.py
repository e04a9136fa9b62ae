"""Verbs compare and trend."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.additions import Additions, additions
from volbench.cli.help_pages import VerbCommand
from volbench.cli.options import (
    JUNIT,
    WHERE,
    Quantity,
    campaigns_argument,
    examples,
    flag,
    names_option,
    option_group,
    split_names,
)
from volbench.cli.output import ChartFile, TableOutput, binary_output, chart_options, table_options
from volbench.cli.verb_groups import with_paths
from volbench.errors import ComparisonError, InputError, RegressionError, UndecidedError
from volbench.units import counted_noun, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volbench.analyse.compare.comparison import Comparison, Question
    from volbench.analyse.compare.comparison_result import Compared
    from volbench.analyse.compare.workload_trends import Trend, TrendQuestion


# Regression that --baseline accepts by default. A trade-off: smaller changes rarely matter.
# Noticed by: tests/cli/test_compare.py::test_a_regression_exits_with_10
TOLERANCE = 0.05


def _question(
    *,
    allowed: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - the others are passed on by the names that they have there
) -> Question:
    from volbench.analyse.compare.comparison import Question

    names = tuple(name for text in allowed for name in split_names(text))
    return Question(allowed=names, **options)


def parse_share(text: str) -> float:
    """Return 0.05 of ``5``, ``5%`` or ``5 %``."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < 100:
        raise InputError(
            f"{text!r} must be a percentage from 0 to below 100", hint="write it like 5%"
        )
    return value / 100


@click.command(
    "compare",
    cls=VerbCommand,
    epilog=examples(
        "volbench compare before after",
        "volbench compare old.json new.json",
        "volbench compare before after --metric iops,p99 --baseline",
        "volbench compare results --between volume_type --chart forest.svg",
    ),
)
@campaigns_argument("BASE [CANDIDATE]...")
@option_group(
    "question",
    _question,
    names_option(
        "--metric",
        "metrics",
        metavar="NAME,...",
        text="Metrics to compare: iops, steady_iops, bw, p99, lat_mean and similar."
        "  [default: iops,p99]",
    ),
    names_option("--by", "by", text="Compare each value of these columns separately."),
    click.option(
        "--between",
        default="",
        metavar="COLUMN",
        help="Compare the values of a column, such as volume_type, within all folders.",
    ),
    click.option(
        "--base", default="", metavar="VALUE", help="The value of --between that is the base."
    ),
    click.option(
        "--tolerance",
        type=Quantity("PERCENT", parse_share),
        help="Largest acceptable change.  [default with --baseline: 5%]",
    ),
    click.option(
        "--allow-different",
        "allowed",
        multiple=True,
        metavar="NAME,...",
        help="Compare even if this differs, such as kernel; the output says so.",
    ),
    flag("--keep-invalid", "Include runs that are marked invalid."),
)
@WHERE
@flag(
    "--baseline",
    "Exit with 10 on a significant regression beyond --tolerance, with 11 if none could have been"
    " detected.",
)
@additions("compare")
@table_options()
@chart_options("the ratios with their intervals")
def compare(
    campaigns: tuple[str | Path, ...],
    *,
    question: Question,
    where: str,
    baseline: bool,
    added: Additions,
    table_output: TableOutput,
    picture: ChartFile,
) -> None:
    """Compare each CANDIDATE with BASE: campaign folders, folders of campaigns, or results of fio.

    The unit of analysis is the repeat, or the volume where there are several; never a single second
    of a run.
    Campaigns that are not comparable are refused with exit code 8. Methods: volbench help
    statistics.
    """
    from volbench.present.plots.charts.comparison_charts import forest_plot
    from volbench.present.tables.compare_table import comparison_table, facts_table

    if baseline and question.tolerance is None:
        question = replace(question, tolerance=TOLERANCE)
    comparison = compared(campaigns, question, where, table_output)
    comparison = added.confirmed(comparison, campaigns, question, where, table_output)
    comparability = comparison.comparability
    table = comparison_table(comparison, is_brief=table_output.is_brief)
    table_output.write(table, *([facts_table(comparability)] if comparability.facts else []))
    if table_output.format == "csv":
        for note in (*table.notes, *comparability.remarks):
            click.echo(note, err=True)
    if picture.chart:
        picture.write(forest_plot(comparison), comparison_table(comparison))
    if baseline:
        fail_on_regression(comparison)


def compared(
    campaigns: Sequence[str | Path], question: Question, where: str, table_output: TableOutput
) -> Comparison:
    """Compare campaigns; of those that cannot be, print in what they differ."""
    from volbench.analyse.compare.comparability import IncomparableError
    from volbench.api.compare_campaigns import compare_folders
    from volbench.present.tables.compare_table import facts_table

    try:
        return compare_folders(campaigns, question, where=where)
    except IncomparableError as error:
        table_output.write(facts_table(error.comparability))
        names = ", ".join(error.comparability.refused)
        raise ComparisonError(
            f"refused: the results differ in facts that matter ({names})", hint=error.hint
        ) from error


def fail_on_regression(comparison: Comparison) -> None:
    """Fail on a regression, or where none could be seen; print what cannot be ruled out."""
    from volbench.analyse.compare.comparison_result import (
        Regression,
        Verdict,
        size_words,
        together,
    )

    tolerance = percent(max([row.tolerance or 0 for row in comparison.rows], default=0))
    beyond = f"a regression beyond {tolerance} %"
    unsure = [row for row in comparison.rows if row.regression is Regression.UNDECIDED]
    for row in unsure:
        if row.verdict is Verdict.TOO_FEW and not row.is_alarm:
            continue  # what looks no worse is part of the count below
        why = row.words if row.shortage else f"it may be worse by {size_words(_worst_change(row))}"
        click.echo(f"not ruled out: {beyond} of {_comparison_label(row)}: {why}", err=True)
    significant = [row for row in comparison.rows if row.regression is Regression.SHOWN]
    regressions = [f"{_comparison_label(row)}: {row.words}" for row in significant] or [
        every.sentence
        for every in together(comparison.rows, confidence=comparison.confidence)
        if every.is_regression
    ]
    if regressions:
        source = click.get_current_context().get_parameter_source("confirm")  # None in run
        is_first = source is click.core.ParameterSource.DEFAULT
        raise RegressionError(
            f"regression beyond {tolerance} %: {'; '.join(regressions)}",
            hint="measure again to be sure (--confirm); " * is_first + "compare has --tolerance",
        )
    blind = [row for row in unsure if row.is_blind]
    if blind:
        raise UndecidedError(
            f"undecided: {len(blind)} of {counted_noun(len(comparison.rows), 'comparison')} could"
            f" not have shown a regression well beyond {tolerance} %: {_detectable_changes(blind)}",
            hint="add repeats (--repeat) or lengthen the runs; volbench compare has --tolerance",
        )


def _detectable_changes(rows: list[Compared]) -> str:
    from volbench.analyse.compare.comparison_result import size_words

    sizes = [row.detectable for row in rows if not math.isnan(row.detectable)]
    if not sizes:
        return rows[0].shortage
    few = f", {len(rows) - len(sizes)} have too few repeats" if len(sizes) < len(rows) else ""
    ends = dict.fromkeys(size_words(end) for end in (min(sizes), max(sizes)))
    return f"the minimum detectable is {' to '.join(ends)}{few}"


def _worst_change(row: Compared) -> float:
    interval = row.interval
    if interval is None:
        return math.nan
    return 1 - interval.low if row.measure.more_is_better else interval.high - 1


def _comparison_label(row: Compared) -> str:
    from volbench.present.tables.compare_table import measure_name

    by = "".join(f", {value}" for value in row.by.values())
    return f"{row.label}{by} {measure_name(row.measure)} in {row.candidate}"


@click.command(
    "trend",
    cls=VerbCommand,
    epilog=examples(
        "volbench trend nightly",
        "volbench trend nightly --chart trend.png --where 'rw==randread'",
        "volbench trend nightly --junit trend.xml",
        "volbench trend nightly --where 'started_utc>=2026-02-10'",
    ),
)
@campaigns_argument()
@option_group(
    "question",
    "volbench.analyse.compare.workload_trends:TrendQuestion",
    names_option(
        "--metric",
        "metrics",
        metavar="NAME,...",
        text="Metrics to follow: iops, bw, p99, lat_mean and similar.  [default: iops,p99]",
    ),
    names_option("--by", "by", text="Follow each value of these columns separately."),
    click.option(
        "--reference",
        type=click.IntRange(min=4),
        metavar="N",
        help="Campaigns of the reference period, from the first on.  [default: half of them, 8 to "
        "50; of fewer than 9, all but the last]",
    ),
    click.option(
        "--tolerance",
        type=Quantity("PERCENT", parse_share),
        default="5%",
        show_default=True,
        help="Largest acceptable change for the worse.",
    ),
    names_option(
        "--allow-different",
        "allowed",
        metavar="NAME,...",
        text="Options of the jobs that may differ, such as rate_iops; the output says so.",
    ),
    click.option(
        "--keep-invalid",
        is_flag=True,
        help="Include runs that are marked invalid, or that the host disturbed.",
    ),
)
@WHERE
@click.option(
    "--undecided",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="What workloads with too few campaigns are: an error (exit code 11), or skipped.",
)
@JUNIT
@additions("trend")
@table_options()
@chart_options("each workload over the campaigns")
def trend(
    campaigns: tuple[str | Path, ...],
    *,
    question: TrendQuestion,
    where: str,
    undecided: str,
    junit: str | None,
    added: Additions,
    table_output: TableOutput,
    picture: ChartFile,
) -> None:
    """Follow each workload over the campaigns in DIR..., such as a folder of nightly ones.

    Exits with 10 on a regression: the level dropped by more than the tolerance and stayed, or the
    last campaign is beyond its control limits; with 11 where there are too few campaigns to say.
    Jobs whose options changed are refused, as by `volbench compare`. Methods: volbench help trends.
    """
    from volbench.api.compare_campaigns import dataset_trends
    from volbench.api.many_campaigns import open_campaigns
    from volbench.present.tables.compare_table import trends_table

    dataset = open_campaigns(*campaigns, where=where)
    trends = dataset_trends(dataset, question)
    trends = added.confirmed(trends, dataset, question, where, table_output)
    said = tuple(with_paths(remark, campaigns) for remark in trends.remarks)
    table, fails_undecided = trends_table(replace(trends, remarks=said)), undecided == "fail"
    if junit is not None:
        from volbench.present.tables.junit_report import junit_of_trends

        with binary_output(junit, default_name="trend.xml") as sink:
            sink.write(junit_of_trends(trends, fails_undecided=fails_undecided))
    if junit != "-":
        table_output.write(table)
    if table_output.format == "csv":
        for note in table.notes:
            click.echo(note, err=True)
    if picture.chart:
        from volbench.present.plots.charts.comparison_charts import trend_plot

        picture.write(trend_plot(trends), table)
    bad = [trend for trend in trends.rows if trend.is_alarm]
    if bad:
        raise RegressionError(
            "; ".join(map(_trend_sentence, bad)),
            hint="measure again to be sure (--confirm); after an intended change, begin at it with"
            " --where 'started_utc>=DATE'",
        )
    if trends.undecided and fails_undecided:
        raise UndecidedError(
            f"undecided: {len(trends.undecided)} of {counted_noun(len(trends.rows), 'trend')} have"
            f" too few campaigns to say: {_trend_sentence(trends.undecided[0])}",
            hint="measure more campaigns, or begin at a change with --where 'started_utc>=DATE';"
            " --undecided skip accepts it until then",
        )


def _trend_sentence(trend: Trend) -> str:
    from volbench.present.tables.compare_table import measure_name, trend_words

    return f"{trend.name} {measure_name(trend.measure)}: {trend_words(trend)}"
