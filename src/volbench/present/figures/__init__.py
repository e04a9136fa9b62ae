"""Charts: the frames of a campaign enter, a matplotlib Figure leaves; nothing is saved here."""

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
    "mixes_charts",
    "rounds_charts",
    "warmup_chart",
]


def draw_chart(
    kind: str | Chart,
    frames: Mapping[str, pd.DataFrame],
    *,
    title: str | None = None,
    by: Sequence[str] = (),
    theme: str = "light",
) -> Figure:
    """Draw one chart of a campaign, or of several.

    Args:
        kind: a name in `KINDS`, or a Chart made with terms, such as by `warmup_chart`.
        frames: the campaign's frames by name, with the columns of the contract.
        title: instead of the chart's own.
        by: one or two columns or labels: the first is told apart in colour, and what is equal in
            it is pooled; the second makes a panel for each of its values.
        theme: ``light``, ``dark`` or ``print``.

    Returns:
        A new Figure, labelled with its kind; write it with `volbench.present.figures.save.save`.

    Raises:
        InputError: there is no such kind, column or theme, or the campaign has nothing for it.
    """
    chart, panels = _ready(kind, frames, by=by)
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
    kind: str | Chart, frames: Mapping[str, pd.DataFrame], *, by: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the numbers that a chart draws, in base units.

    Args:
        kind: as for `draw_chart`.
        frames: as for `draw_chart`.
        by: as for `draw_chart`.

    Returns:
        A row for each mark: the columns are the chart's own. Charts that keep no table of their
        own give the points of their lines and bars, as ``traced`` reads them.

    Raises:
        InputError: as `draw_chart`.
    """
    chart, panels = _ready(kind, frames, by=by)
    if chart.numbers is None:
        return traced(draw_chart(chart, frames, by=by))
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
    [(_, told)] = arrange(_complete(frames), ())
    return tuple(name for name in among if not KINDS[name].lack(told))


def describe(kind: str, frames: Mapping[str, pd.DataFrame]) -> str:
    """Return the main numbers of a chart in one plain sentence, for people who can't see it.

    Raises:
        InputError: there is no such kind, or the campaign has nothing for it.
    """
    chart, [(_, told)] = _ready(kind, frames)
    return chart.describe(told)


def _ready(
    kind: str | Chart, frames: Mapping[str, pd.DataFrame], *, by: Sequence[str] = ()
) -> tuple[Chart, list[tuple[str, dict[str, pd.DataFrame]]]]:
    """Return the chart and the frames of each panel, once it is known that they go together."""
    if isinstance(kind, str) and kind not in KINDS:
        close = difflib.get_close_matches(kind, KINDS, n=1)
        raise InputError(
            f"there is no chart {kind!r}",
            hint=f"did you mean {close[0]}?" if close else f"choose one of {', '.join(KINDS)}",
        )
    told = _complete(frames)
    wanted = KINDS[kind] if isinstance(kind, str) else kind
    panels = arrange(told, by_columns(told["summary"], by))
    if not panels or all(wanted.lack(part) for _, part in panels):
        reason = wanted.lack(panels[0][1] if panels else told)
        others = ", ".join(name for name, chart in KINDS.items() if not chart.lack(told))
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
