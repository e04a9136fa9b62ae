"""Charts: the frames of a campaign enter, a matplotlib Figure leaves; nothing is saved here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd
from matplotlib.figure import Figure

from volbench.errors import InputError
from volbench.model.columns import FRAMES
from volbench.present.figures.bars import BANDWIDTH, IOPS
from volbench.present.figures.chart import Chart
from volbench.present.figures.device import DEVICE
from volbench.present.figures.distribution import DISTRIBUTION
from volbench.present.figures.heatmap import HEATMAP
from volbench.present.figures.latency import LATENCY
from volbench.present.figures.series import SERIES
from volbench.present.figures.storm import STORM
from volbench.present.figures.sweep import SWEEP
from volbench.present.figures.warmup import WARMUP, warmup_chart
from volbench.present.style import styled

__all__ = ["KINDS", "Chart", "applicable", "describe", "draw_chart", "warmup_chart"]

KINDS: Mapping[str, Chart] = MappingProxyType(
    {
        chart.name: chart
        for chart in (
            IOPS,
            BANDWIDTH,
            LATENCY,
            DISTRIBUTION,
            SWEEP,
            HEATMAP,
            SERIES,
            DEVICE,
            WARMUP,
            STORM,
        )
    }
)
"""Every kind of chart by name, in the order of a report."""


def draw_chart(
    kind: str | Chart, frames: Mapping[str, pd.DataFrame], *, title: str | None = None
) -> Figure:
    """Draw one chart of a campaign.

    Args:
        kind: a name in `KINDS`, or a Chart made with terms, such as by `warmup_chart`.
        frames: the campaign's frames by name, with the columns of the contract.
        title: instead of the chart's own.

    Returns:
        A new Figure, labelled with its kind; write it with `volbench.present.figures.save.save`.

    Raises:
        InputError: there is no such kind, or the campaign has nothing for it.
    """
    chart, told = _ready(kind, frames)
    with styled():
        figure = chart.draw(told, chart.title if title is None else title)
    figure.set_label(chart.name)
    return figure


def applicable(frames: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    """Return the kinds that the frames have something for."""
    told = _complete(frames)
    return tuple(name for name, chart in KINDS.items() if not chart.lack(told))


def describe(kind: str, frames: Mapping[str, pd.DataFrame]) -> str:
    """Return the main numbers of a chart in one plain sentence, for people who can't see it.

    Raises:
        InputError: there is no such kind, or the campaign has nothing for it.
    """
    chart, told = _ready(kind, frames)
    return chart.describe(told)


def _ready(
    kind: str | Chart, frames: Mapping[str, pd.DataFrame]
) -> tuple[Chart, dict[str, pd.DataFrame]]:
    """Return the chart and complete frames, once it is known that they go together."""
    if isinstance(kind, str) and kind not in KINDS:
        close = difflib.get_close_matches(kind, KINDS, n=1)
        raise InputError(
            f"there is no chart {kind!r}",
            hint=f"did you mean {close[0]}?" if close else f"choose one of {', '.join(KINDS)}",
        )
    told = _complete(frames)
    wanted = KINDS[kind] if isinstance(kind, str) else kind
    if reason := wanted.lack(told):
        others = ", ".join(name for name, chart in KINDS.items() if not chart.lack(told))
        raise InputError(
            f"the chart {wanted.name} can't be drawn: {reason}",
            hint=f"charts that can be drawn: {others}" if others else "run the campaign first",
        )
    return wanted, told


def _complete(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return every frame of the contract; one that was not given has its columns and no rows."""
    empty = {
        name: pd.DataFrame(columns=[column.name for column in columns])
        for name, columns in FRAMES.items()
    }
    return {**empty, **frames}
