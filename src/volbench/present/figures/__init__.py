"""Charts as figures: kinds that have a description are drawn from it, the others as before."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from volbench.errors import InputError
from volbench.model.frames.columns import FRAMES, ON_DEMAND
from volbench.present.figures.arrange import arrange, by_columns
from volbench.present.figures.chart import Chart
from volbench.present.figures.compose import draw_panels, join_numbers
from volbench.present.figures.kinds import DEFAULT_CHARTS, KINDS
from volbench.present.figures.mixes import mixes_charts
from volbench.present.figures.rounds import rounds_charts
from volbench.present.figures.traced import traced
from volbench.present.figures.warmup import warmup_chart
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers
from volbench.present.plots.kind import Kind, Options
from volbench.present.renderers.matplotlib import draw
from volbench.present.style import styled
from volbench.present.themes import apply_theme

__all__ = [
    "DEFAULT_CHARTS",
    "KINDS",
    "Chart",
    "applicable",
    "chart_numbers",
    "describe",
    "draw_chart",
]

_DEFAULTS = Options()


def draw_chart(
    kind: str | Kind,
    frames: Mapping[str, pd.DataFrame],
    *,
    title: str | None = None,
    by: Sequence[str] = (),
    theme: str = "light",
    options: Options = _DEFAULTS,
) -> Figure:
    """Draw one chart of a campaign, or of several.

    Args:
        kind: a name in `KINDS`, or a kind of one's own.
        frames: the campaign's frames by name, with the columns of the contract.
        title: instead of the chart's own.
        by: one or two columns or labels: the first is told apart in colour, and what is equal in
            it is pooled; the second makes a panel for each of its values.
        theme: ``light``, ``dark`` or ``print``.
        options: for the kinds that take some.

    Returns:
        A new Figure, labelled with its kind.

    Raises:
        InputError: there is no such kind, column or theme, or the campaign has nothing for it.
    """
    chart, panels = _ready(kind, frames, by=by, options=options)
    if isinstance(chart, Kind):
        return draw(build_plot(chart, frames, title=title, by=by, options=options), theme=theme)
    shown = chart.title if title is None else title
    with styled():
        if len(panels) == 1:
            figure = chart.draw(
                panels[0][1], ", ".join(part for part in (shown, panels[0][0]) if part)
            )
        else:
            figure = draw_panels(chart, panels, shown)
        apply_theme(figure, theme)
    figure.set_label(chart.name)
    return figure


def chart_numbers(
    kind: str | Kind,
    frames: Mapping[str, pd.DataFrame],
    *,
    by: Sequence[str] = (),
    options: Options = _DEFAULTS,
) -> pd.DataFrame:
    """Return the numbers that a chart draws, in base units: a row for each mark.

    Raises:
        InputError: as `draw_chart`.
    """
    chart, panels = _ready(kind, frames, by=by, options=options)
    if isinstance(chart, Kind):
        return numbers(build_plot(chart, frames, by=by, options=options))
    if chart.numbers is None:
        return traced(draw_chart(kind, frames, by=by, options=options))
    parts = [(name, chart.numbers(part)) for name, part in panels if not chart.lack(part)]
    return join_numbers(parts)


def applicable(
    frames: Mapping[str, pd.DataFrame], *, among: Sequence[str] = DEFAULT_CHARTS
) -> tuple[str, ...]:
    """Return the kinds that the frames have something for.

    Args:
        frames: the campaign's frames by name.
        among: names of kinds; those of a report unless told otherwise.
    """
    [(_, complete)] = arrange(_complete(frames), ())
    return tuple(name for name in among if not _missing(KINDS[name], complete))


def describe(kind: str, frames: Mapping[str, pd.DataFrame]) -> str:
    """Return the main numbers of a chart in one plain sentence, for people who can't see it.

    Raises:
        InputError: there is no such kind, or the campaign has nothing for it.
    """
    chart, [(_, complete)] = _ready(kind, frames)
    return chart.describe(complete)


def _missing(chart: Kind | Chart, frames: Mapping[str, pd.DataFrame]) -> str:
    return chart.missing(frames) if isinstance(chart, Kind) else chart.lack(frames)


def _with_options(chart: Kind | Chart, options: Options) -> Kind | Chart:
    """Return the chart with options, for the kinds that are made with them."""
    if isinstance(chart, Kind) or options is _DEFAULTS:
        return chart
    warmup = warmup_chart(
        size_bytes=options.volume_bytes,
        price_per_hour=options.price_per_hour,
        currency=options.currency,
    )
    made = (warmup, *rounds_charts(options.rounds), *mixes_charts(options.rounds))
    return next((own for own in made if own.name == chart.name), chart)


def _ready(
    kind: str | Kind,
    frames: Mapping[str, pd.DataFrame],
    *,
    by: Sequence[str] = (),
    options: Options = _DEFAULTS,
) -> tuple[Kind | Chart, list[tuple[str, dict[str, pd.DataFrame]]]]:
    """Return the chart and the frames of each panel, once it is known that they go together."""
    if isinstance(kind, str) and kind not in KINDS:
        close = difflib.get_close_matches(kind, KINDS, n=1)
        raise InputError(
            f"there is no chart {kind!r}",
            hint=f"did you mean {close[0]}?" if close else f"choose one of {', '.join(KINDS)}",
        )
    complete = _complete(frames)
    wanted = _with_options(KINDS[kind], options) if isinstance(kind, str) else kind
    panels = arrange(complete, by_columns(complete["summary"], by))
    if not panels or all(_missing(wanted, part) for _, part in panels):
        reason = _missing(wanted, panels[0][1] if panels else complete)
        others = ", ".join(name for name, own in KINDS.items() if not _missing(own, complete))
        raise InputError(
            f"the chart {wanted.name} can't be drawn: {reason}",
            hint=f"charts that can be drawn: {others}" if others else "run the campaign first",
        )
    return wanted, panels


def _complete(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return every frame of the contract; one that was not given has its columns and no rows."""
    empty = {
        name: pd.DataFrame(columns=[column.name for column in columns])
        for name, columns in {**FRAMES, **ON_DEMAND}.items()
    }
    return {**empty, **frames}
