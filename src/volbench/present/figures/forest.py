"""Forest plot of a comparison: verdicts enter, a row a cell with its ratio and interval leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Compared, Verdict
from volbench.present.figures.chart import new_figure, rows_height_in, wrap_name
from volbench.present.formatting import printable
from volbench.present.style import BLACK, GREY, PALE, styled
from volbench.present.tables.compare_table import measure_name, notes
from volbench.present.themes import apply_theme

_COLOURS = {
    Verdict.FASTER: "#0072B2",
    Verdict.SLOWER: "#D55E00",
    Verdict.SAME: "#009E73",
    Verdict.NOT_SHOWN: GREY,
}
_WORDS = {
    Verdict.FASTER: "faster",
    Verdict.SLOWER: "slower",
    Verdict.SAME: "same within the tolerance",
    Verdict.NOT_SHOWN: "no difference shown",
}
_MARKERS = {Verdict.SAME: "s", Verdict.NOT_SHOWN: "o"}
"""Of verdicts without a side; the others point to theirs."""
_MOST_PANELS = 3
_NARROWEST = math.log(1.05)
"""What a panel shows at least, so that noise does not look like a difference."""
_WIDE = math.log(3)
"""From which span on even steps would crowd at one end of a logarithmic axis."""


def forest_figure(comparison: Comparison, *, title: str = "", theme: str = "light") -> Figure:
    """Draw the ratio of each comparison with its interval; 1 is the base.

    Args:
        comparison: at least one row.
        title: instead of one made of the names.
        theme: ``light``, ``dark`` or ``print``.

    Returns:
        A panel for each metric, side by side up to three; a row for each cell and candidate.
    """
    with styled():
        figure = _draw(comparison, title or _title(comparison.rows))
        apply_theme(figure, theme)
    figure.set_label("compare")
    return figure


def _draw(comparison: Comparison, title: str) -> Figure:
    metrics = list(dict.fromkeys(measure_name(one.measure) for one in comparison.rows))
    names = list(dict.fromkeys(_name(one, comparison.rows) for one in comparison.rows))
    wide = min(len(metrics), _MOST_PANELS)
    deep = math.ceil(len(metrics) / wide)
    height = rows_height_in([wrap_name(name) for name in names])
    note = " ".join([*notes(comparison)[1:3], *(f"{one}." for one in comparison.remarks[:3])])
    figure = new_figure(title=title, note=note, height_in=1.9 + deep * (0.9 + height))
    panels = figure.subplots(deep, wide, squeeze=False, sharey=True).ravel()
    for place, axes in enumerate(panels):
        if place >= len(metrics):
            axes.set_visible(False)
            continue
        rows = [one for one in comparison.rows if measure_name(one.measure) == metrics[place]]
        _panel(axes, rows, {name: at for at, name in enumerate(names)}, comparison.rows)
        axes.set_title(metrics[place])
    panels[0].set_yticks(range(len(names)), [wrap_name(printable(name)) for name in names])
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    _legend(figure, comparison.rows)
    return figure


def _panel(
    axes: Axes, rows: Sequence[Compared], places: dict[str, int], every: Sequence[Compared]
) -> None:
    axes.set_xscale("log")
    _limit(axes, rows)
    tolerance = rows[0].tolerance
    if tolerance is not None:
        axes.axvspan(1 - tolerance, 1 + tolerance, color=PALE, alpha=0.5, linewidth=0, zorder=0)
    axes.axvline(1, color=BLACK, linewidth=0.9, zorder=1)
    for one in rows:
        _draw_row(axes, one, places[_name(one, every)])
    better = "right" if rows[0].measure.more_is_better else "left"
    axes.set_xlabel(f"times the base; better is to the {better}")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _draw_row(axes: Axes, one: Compared, place: int) -> None:
    interval = one.interval
    if interval is None:
        style = {"ha": "center", "va": "center", "fontstyle": "italic", "color": GREY}
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(1, place, one.shortage, bbox=box, **style)  # type: ignore[arg-type]  # texts only
        return
    colour = _COLOURS[one.verdict]
    axes.plot([interval.low, interval.high], [place, place], color=colour, linewidth=2.2, zorder=2)
    axes.plot(interval.estimate, place, marker=_marker(one), color=colour, markersize=7, zorder=3)
    text = "" if one.verdict is Verdict.NOT_SHOWN else _times(interval.estimate)
    axes.annotate(
        text,
        (interval.estimate, place),
        xytext=(0, 6),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=colour,
    )


def _marker(one: Compared) -> str:
    """Return a marker that points to where the estimate lies, for grey printers too."""
    if one.verdict in _MARKERS:
        return _MARKERS[one.verdict]
    interval = one.interval
    return ">" if interval is not None and interval.estimate > 1 else "<"


def _limit(axes: Axes, rows: Sequence[Compared]) -> None:
    """Show every interval and 1, with ticks at round ratios."""
    ends = [end for one in rows if (seen := one.interval) for end in (seen.low, seen.high)]
    tolerance = rows[0].tolerance or 0
    low = min([math.log(end) for end in ends] + [-_NARROWEST, math.log(1 - tolerance)])
    high = max([math.log(end) for end in ends] + [_NARROWEST, math.log(1 + tolerance)])
    margin = 0.08 * (high - low)
    axes.set_xlim(math.exp(low - margin), math.exp(high + margin))
    axes.xaxis.set_major_locator(FixedLocator(_ticks(low - margin, high + margin)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))


def _ticks(low: float, high: float) -> list[float]:
    """Return up to seven round ratios between two logarithms, 1 among them."""
    for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if high - low < _WIDE else ():
        ticks = [1 + step * place for place in range(-199, 2000)]
        shown = [tick for tick in ticks if tick > 0 and low <= math.log(tick) <= high]
        if len(shown) <= 6:
            return shown
    powers = [m * 10.0**exponent for exponent in range(-6, 7) for m in (1, 2, 5)]
    shown = [tick for tick in powers if low <= math.log(tick) <= high]
    return shown if len(shown) <= 7 else [tick for tick in shown if f"{tick:e}"[0] == "1"]


def _times(ratio: float) -> str:
    return f"{ratio:.3g}x"


def _name(one: Compared, rows: Sequence[Compared]) -> str:
    parts = [one.label, one.direction, *one.by.values()]
    if len({other.candidate for other in rows}) > 1:
        parts.append(f"({one.candidate})")
    return " ".join(parts)


def _title(rows: Sequence[Compared]) -> str:
    candidates = list(dict.fromkeys(one.candidate for one in rows))
    names = candidates[0] if len(candidates) == 1 else f"{len(candidates)} candidates"
    return f"{names} against {rows[0].base}"


def _legend(figure: Figure, rows: Sequence[Compared]) -> None:
    found = [kind for kind in _WORDS if any(one.verdict is kind for one in rows)]
    handles = [
        Line2D(
            [], [], color=_COLOURS[kind], marker=_MARKERS.get(kind, ""), linewidth=2.2, markersize=6
        )
        for kind in found
    ]
    if handles:
        figure.legend(
            handles, [_WORDS[kind] for kind in found], loc="outside upper right", ncols=len(found)
        )
