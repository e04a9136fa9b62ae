"""Interactive charts of a campaign: frames enter, plots for each kind of chart leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from volbench.present.report.plotbars import latency_plot, rates_plot
from volbench.present.report.plotdevice import device_plots
from volbench.present.report.plotlines import distribution_plot, series_plots, sweep_plot
from volbench.present.report.plots import Plot

Frames = Mapping[str, pd.DataFrame]

LIVE: Mapping[str, Callable[[str, str, Frames], Sequence[Plot]]] = {
    "iops": lambda title, words, frames: [rates_plot("iops", title, words, frames)],
    "bandwidth": lambda title, words, frames: [rates_plot("bandwidth", title, words, frames)],
    "latency": lambda title, words, frames: [latency_plot(title, words, frames)],
    "distribution": lambda title, words, frames: [distribution_plot(title, words, frames)],
    "sweep": lambda title, words, frames: [sweep_plot(title, words, frames)],
    "series": lambda title, _, frames: series_plots(title, frames),
    "device": lambda title, _, frames: device_plots(title, frames),
}
"""Kinds of chart that can be zoomed into; the others are pictures."""


def live_plots(kind: str, title: str, description: str, *, frames: Frames) -> Sequence[Plot]:
    """Return the interactive charts of a kind that the frames have something for; may be none.

    Args:
        kind: a name of `volbench.present.figures.KINDS` that is applicable to the frames.
        title: of the chart.
        description: its main numbers in a sentence.
        frames: of one campaign.
    """
    make = LIVE.get(kind)
    return make(title, description, frames) if make else ()
