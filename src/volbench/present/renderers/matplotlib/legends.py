"""Legends of a plot: which series have an entry, and how it looks."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from volbench.present.plots.description import Panel, Plot, Series, data_marks
from volbench.present.plots.marks import Areas, Bars, Lines, Mark, Points, series_of
from volbench.present.renderers.matplotlib.look import MARKERS, Looks

MOST_ENTRIES = 20
"""Entries of a legend beyond which the rest is counted."""
_MOST_ABREAST = 6


def legend_above(figure: Figure, plot: Plot, looks: Looks) -> Legend | None:
    """Return the legend of the whole figure in as few lines as its width allows."""
    handles = _handles(plot, plot.series, looks)
    if not handles:
        return None
    for columns in range(min(len(handles), _MOST_ABREAST), 0, -1):
        legend = figure.legend(
            handles=handles, loc="upper right", ncols=columns, borderaxespad=0, borderpad=0
        )
        width = legend.get_window_extent(figure.canvas.get_renderer()).width  # type: ignore[attr-defined]  # of FigureCanvasAgg
        if columns == 1 or width < 0.95 * figure.bbox.width:
            break
        legend.remove()
    return legend


def legend_beside(
    axes: Axes, plot: Plot, panel: Panel, looks: Looks, *, offset_in: float
) -> Legend | None:
    """Return a legend at the right of a panel: of its own series, or of the whole plot."""
    series = _shown_in(plot, panel) if panel.legend else plot.series
    handles = _handles(plot, series, looks)
    if not handles:
        return None
    figure = axes.get_figure(root=True)
    shift = ScaledTranslation(offset_in, 0, figure.dpi_scale_trans)  # type: ignore[union-attr]  # they stand in one
    return axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1, 1),
        bbox_transform=axes.transAxes + shift,
        borderaxespad=0,
        borderpad=0,
    )


def legend_inside(axes: Axes, plot: Plot, panel: Panel, looks: Looks) -> None:
    """Explain the series of a panel in its upper right corner."""
    if handles := _handles(plot, _shown_in(plot, panel), looks):
        axes.legend(handles=handles, loc="upper right", ncols=2, fontsize=7.5)


def _shown_in(plot: Plot, panel: Panel) -> list[Series]:
    keys = {key for mark in panel.marks if isinstance(mark, Mark) for key in _keys(mark)}
    return [series for series in plot.series if series.key in keys]


def _handles(plot: Plot, series: Sequence[Series], looks: Looks) -> list[Artist]:
    """Return an entry for each label; what has no room is counted."""
    kinds = _mark_types(plot)
    entries = {entry.label: entry for entry in reversed(series) if entry.label}
    handles = [_handle(own, kinds.get(own.key), looks) for own in reversed(entries.values())]
    if len(handles) <= MOST_ENTRIES:
        return handles
    more = Patch(color="none", label=f"and {len(handles) - MOST_ENTRIES} more")
    return [*handles[:MOST_ENTRIES], more]


def _handle(series: Series, mark: type | None, looks: Looks) -> Artist:
    if mark in {Bars, Areas} or (mark is None and not series.marker):
        return Patch(label=series.label, **looks.filled(series.key))
    marker = MARKERS[series.marker]
    if mark is Lines:
        look = looks.line(series.key)
        return Line2D([], [], marker=marker, markersize=5, label=series.label, **look)
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=marker or "o",
        markersize=6,
        color=looks.colour(series.key),
        label=series.label,
    )


def _mark_types(plot: Plot) -> dict[str, type]:
    """Return the type of mark that shows each series; lines come first, then areas."""
    found: dict[str, type] = {}
    for wanted in (Lines, Bars, Areas, Points):
        for mark in data_marks(plot):
            if isinstance(mark, wanted):
                for key in _keys(mark):
                    found.setdefault(key, wanted)
    return found


def _keys(mark: Mark) -> list[str]:
    return [key for key, _ in series_of(mark)]
