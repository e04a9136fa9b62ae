"""The one look of all charts: nothing enters, colours, settings and tick formats leave.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any of the
common colour deficiencies can tell apart; yellow is left out because it fades on white.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from volbench.units import format_count, format_latency, format_rate

BLACK, GREY, PALE = "#222222", "#666666", "#dddddd"
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
"""Colours of lines that have no meaning of their own."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Beside the colour, so that a chart survives a grey printer."""
DIRECTIONS = {
    "read": "#0072B2",
    "write": "#D55E00",
    "trim": "#009E73",
    "sync": "#CC79A7",
    "mixed": "#222222",
}

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # travels with matplotlib, so charts are equal everywhere
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.labelcolor": BLACK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.4,
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "text.parse_math": False,  # a dollar in a job's name is a dollar
    "svg.fonttype": "path",  # a reader's machine may lack the font
    "svg.hashsalt": "volbench",  # equal charts give equal files
    "pdf.fonttype": 42,
}


@contextmanager
def styled() -> Iterator[None]:
    """Set the style for what is drawn or saved inside, and nothing outside."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def count_axis(axis: Axis) -> None:
    """Format a linear axis from zero as ``500``, ``1.5k``, ``2M``."""
    _linear(axis, format_count)


def rate_axis(axis: Axis) -> None:
    """Format a linear axis from zero as ``125 MB/s``."""
    _linear(axis, format_rate)


def linear_latency_axis(axis: Axis) -> None:
    """Format a linear axis from zero as ``2.5 ms``."""
    _linear(axis, format_latency)


def log_latency_axis(axis: Axis, *, low_s: float, high_s: float) -> None:
    """Format a logarithmic axis as ``100 us``, ``1 ms``, ``10 s``.

    Args:
        axis: of an axes whose scale is already logarithmic.
        low_s: least value on it; decides how many ticks are named.
        high_s: greatest value on it.
    """
    span = high_s / low_s
    named = (1.0, 2.0, 5.0) if span < 30 else (1.0, 3.0) if span < 3e3 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=named, numticks=15))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_latency(value)))


def _linear(axis: Axis, format_value: Callable[[float], str]) -> None:
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value)))
