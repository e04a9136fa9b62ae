"""What `volbench compare` does between reading its options and exiting."""

from __future__ import annotations

import math
from collections.abc import Mapping

import click

from volbench.analyse.compare.comparison import Comparison, Question
from volbench.analyse.compare.comparison_result import Compared, Regression, percent
from volbench.cli.read.table_charts import write_picture
from volbench.errors import InputError, RegressionError
from volbench.present.tables.compare_table import (
    comparison_csv,
    comparison_json,
    comparison_markdown,
    comparison_table,
    measure_name,
    notes,
)
from volbench.present.tables.result_tables import show_table

_TOLERANCE = 0.05


def question(asked: Mapping[str, object], *, is_baseline: bool) -> Question:
    """Return what is asked, from the options as they were typed.

    Raises:
        InputError: a percentage can't be read, or no metric is named.
    """
    tolerance = asked["tolerance"]
    told = None if tolerance is None else _share(str(tolerance), "--tolerance", least=0)
    metrics = _names(str(asked["metrics"] or ""))
    if asked["metrics"] and not metrics:
        raise InputError("--metric names nothing", hint="write it like --metric iops,p99")
    allowed = asked["allowed"]
    names = allowed if isinstance(allowed, tuple) else ()
    return Question(
        metrics=metrics,
        by=_names(str(asked["by"])),
        between=str(asked["between"]),
        base=str(asked["base"]),
        confidence=_share(str(asked["confidence"]), "--confidence", least=50),
        tolerance=_TOLERANCE if told is None and is_baseline else told,
        allowed=tuple(one for text in names for one in _names(text)),
        keep_invalid=bool(asked["keep_invalid"]),
    )


def print_comparison(comparison: Comparison, *, form: str) -> None:
    """Print a comparison as asked."""
    if form == "table":
        show_table(comparison_table(comparison))
    else:
        write = {"csv": comparison_csv, "json": comparison_json, "markdown": comparison_markdown}
        click.echo(write[form](comparison), nl=False)
    if form == "csv":
        for remark in (*notes(comparison), *comparison.remarks):
            click.echo(remark, err=True)


def draw_comparison(comparison: Comparison, chart: str, *, title: str, theme: str) -> None:
    """Write the chart of a comparison, and its numbers beside it.

    Raises:
        InputError: a file can't be written.
    """
    from volbench.present.plots.compare.forest import forest_plot  # noqa: PLC0415 - pandas is slow to import

    plot = forest_plot(comparison, title=title)
    write_picture(plot, chart, theme=theme, numbers=comparison_csv(comparison))


def fail_on_regression(comparison: Comparison) -> None:
    """Tell what could not be ruled out, and fail on what is shown.

    Raises:
        RegressionError: a candidate is worse than its base by more than the tolerance.
    """
    tolerance = percent(next(one.tolerance or 0 for one in comparison.rows))
    unsure = [one for one in comparison.rows if one.regression is Regression.UNDECIDED]
    for one in unsure:
        why = one.shortage or f"it may be worse by {percent(_worst(one))} %"
        click.echo(
            f"not ruled out: a regression beyond {tolerance} % of {_named(one)}: {why}", err=True
        )
    shown = [one for one in comparison.rows if one.regression is Regression.SHOWN]
    if shown:
        named = "; ".join(f"{_named(one)}: {one.words}" for one in shown)
        raise RegressionError(
            f"regression beyond {tolerance} %: {named}",
            hint="measure again to be sure; --tolerance says what is acceptable",
            context={"regressions": len(shown), "undecided": len(unsure)},
        )


def _worst(one: Compared) -> float:
    interval = one.interval
    if interval is None:
        return math.nan
    return 1 - interval.low if one.measure.more_is_better else interval.high - 1


def _named(one: Compared) -> str:
    by = "".join(f", {value}" for value in one.by.values())
    return f"{one.label} {one.direction}{by} {measure_name(one.measure)} in {one.candidate}"


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
            f"{name} {text!r} is no percentage from {least:g} to below 100",
            hint="write it like 5%" if not least else "write it like 95%",
        )
    return value / 100
