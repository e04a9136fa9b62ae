"""Steps of `volbench compare`: read options, print, draw, fail on a regression."""

from __future__ import annotations

import math
from collections.abc import Mapping

import click

from volbench.analyse.compare.comparison import Comparison, Question
from volbench.analyse.compare.comparison_result import Compared, Regression, percent
from volbench.cli.table_charts import write_picture
from volbench.cli.table_output import TableOutput
from volbench.errors import InputError, RegressionError
from volbench.present.tables.compare_table import (
    comparison_table,
    measure_name,
    notes,
)
from volbench.present.tables.render_table import csv_text

_TOLERANCE = 0.05


def question(options: Mapping[str, object], *, is_baseline: bool) -> Question:
    """Return the question that the options of the command ask.

    Raises:
        InputError: a percentage can't be read, or no metric is named.
    """
    tolerance = options["tolerance"]
    accepted = None if tolerance is None else _share(str(tolerance), "--tolerance", least=0)
    metrics = _names(str(options["metrics"] or ""))
    if options["metrics"] and not metrics:
        raise InputError("--metric names nothing", hint="write it like --metric iops,p99")
    allowed = options["allowed"]
    names = allowed if isinstance(allowed, tuple) else ()
    return Question(
        metrics=metrics,
        by=_names(str(options["by"])),
        between=str(options["between"]),
        base=str(options["base"]),
        confidence=_share(str(options["confidence"]), "--confidence", least=50),
        tolerance=_TOLERANCE if accepted is None and is_baseline else accepted,
        allowed=tuple(name for text in names for name in _names(text)),
        keep_invalid=bool(options["keep_invalid"]),
    )


def print_comparison(comparison: Comparison, shown: TableOutput) -> None:
    """Print a comparison; with CSV, which has no place for them, the remarks go to stderr."""
    shown.write(comparison_table(comparison))
    if shown.format == "csv":
        for remark in (*notes(comparison), *comparison.remarks):
            click.echo(remark, err=True)


def draw_comparison(comparison: Comparison, chart: str, *, title: str, theme: str) -> None:
    """Write the chart of a comparison, and its numbers beside it.

    Raises:
        InputError: a file can't be written.
    """
    from volbench.present.plots.compare.forest import forest_plot

    plot = forest_plot(comparison, title=title)
    write_picture(
        plot, chart, theme=theme, numbers=csv_text(comparison_table(comparison).records())
    )


def fail_on_regression(comparison: Comparison) -> None:
    """Print which regressions cannot be ruled out, and fail on significant ones.

    Raises:
        RegressionError: a candidate is worse than its base by more than the tolerance.
    """
    tolerance = percent(next(row.tolerance or 0 for row in comparison.rows))
    unsure = [row for row in comparison.rows if row.regression is Regression.UNDECIDED]
    for row in unsure:
        why = row.shortage or f"it may be worse by {percent(_worst(row))} %"
        click.echo(
            f"not ruled out: a regression beyond {tolerance} % of {_named(row)}: {why}", err=True
        )
    significant = [row for row in comparison.rows if row.regression is Regression.SHOWN]
    if significant:
        named = "; ".join(f"{_named(row)}: {row.words}" for row in significant)
        raise RegressionError(
            f"regression beyond {tolerance} %: {named}",
            hint="measure again to be sure; --tolerance says what is acceptable",
            context={"regressions": len(significant), "undecided": len(unsure)},
        )


def _worst(row: Compared) -> float:
    interval = row.interval
    if interval is None:
        return math.nan
    return 1 - interval.low if row.measure.more_is_better else interval.high - 1


def _named(row: Compared) -> str:
    by = "".join(f", {value}" for value in row.by.values())
    return f"{row.label} {row.direction}{by} {measure_name(row.measure)} in {row.candidate}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _share(text: str, name: str, *, least: float) -> float:
    """Return 0.05 of ``5``, ``5%`` or ``5 %``."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not least <= value < 100:
        raise InputError(
            f"{name} {text!r} must be a percentage from {least:g} to below 100",
            hint="write it like 5%" if not least else "write it like 95%",
        )
    return value / 100
