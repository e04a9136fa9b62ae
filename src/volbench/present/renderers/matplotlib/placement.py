"""Placement of a figure's parts: everything is measured once and put where nothing overlaps.

matplotlib's constrained layout solves the same problem anew with every drawing, which takes most
of the time of a chart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from volbench.present.plots.description import Plot, Series, data_marks
from volbench.present.plots.marks import Areas, Bars, Lines, Points, ReferenceLine, series_of
from volbench.present.renderers.matplotlib.look import MARKERS, Looks, locator

_EDGE_IN = 0.12
_GAP_IN = 0.14
_MIN_STRETCH = 0.6  # Flatter panels have labels over each other; the picture is higher instead
_MIN_DATA_IN = 0.9  # Width of a column of panels; the picture is wider instead
_LABEL_IN = 0.16  # Height of a label, from the left edge of the margin to its foot
MAX_ENTRIES = 28  # Maximum number of legend entries; the rest is counted
_MAX_ABREAST = 6
_NARROWER = 0.97  # Share of its estimated width below which a panel is measured again
ALONE = "alone"  # Mark of a heading that may reach over the other panels of its row


@dataclass(frozen=True)
class _Margins:
    """Margins around the axes of a panel, in inches."""

    left: float
    right: float
    bottom: float
    top: float


def place(
    figure: Figure,
    plot: Plot,
    axes: Sequence[Axes],
    looks: Looks,
    *,
    heading: tuple[Artist, Artist],
    note: Artist,
) -> None:
    """Give the figure its height, and title, answer, legends, panels and caption their places."""
    title, answer = heading
    margins = _margins(figure, plot, axes)
    title_in, answer_in, note_in = (_size_in(figure, text)[1] for text in (title, answer, note))
    answer_in += _GAP_IN / 2 if plot.answer else 0.0
    legend = legend_above(figure, plot, looks) if plot.has_legend else None
    legend_in = below_in = 0.0
    if legend is not None:
        width_in, legend_in = _size_in(figure, legend)
        is_low = legend_in <= title_in + _GAP_IN / 2 or not plot.answer
        if is_low and width_in + _size_in(figure, title)[0] + 4 * _EDGE_IN < plot.width_in:
            legend_in = max(0.0, legend_in - title_in)
        else:
            legend_in += _GAP_IN / 2
            below_in = answer_in
    above_in = _EDGE_IN + title_in + answer_in + legend_in + _GAP_IN
    plot = _wide_enough(plot, margins)
    tops, height_in = _rows(plot, margins, above_in=above_in)
    if plot.height_in:
        room_in = sum(plot.heights) + plot.height_in - height_in - note_in - _EDGE_IN
        factor = max(_MIN_STRETCH, room_in / sum(plot.heights))
        plot = replace(plot, heights=tuple(factor * height for height in plot.heights))
        tops, height_in = _rows(plot, margins, above_in=above_in)
    height_in += note_in + _EDGE_IN
    figure.set_size_inches(plot.width_in, height_in)
    _set_positions(plot, axes, margins, tops, height_in)
    _align_labels(plot, axes, margins)
    title.set(x=_EDGE_IN / plot.width_in, y=1 - _EDGE_IN / height_in)
    answer.set(
        x=_EDGE_IN / plot.width_in,
        y=1 - (above_in - _GAP_IN - legend_in - answer_in + _GAP_IN / 2) / height_in,
    )
    note.set(x=_EDGE_IN / plot.width_in, y=_EDGE_IN / height_in)
    if legend is not None:
        top_in = _EDGE_IN + title_in + below_in + legend_in - _size_in(figure, legend)[1]
        legend.set_bbox_to_anchor((1 - _EDGE_IN / plot.width_in, 1 - top_in / height_in))


def _wide_enough(plot: Plot, margins: Sequence[_Margins]) -> Plot:
    """Return a plot that is as wide as its panels, their labels and legends need."""
    lefts, widths = _columns(plot, margins)
    last = [
        m.right
        for p, m in zip(plot.panels, margins, strict=True)
        if p.column + p.columns == len(plot.widths)
    ]
    needed = lefts[-1] + widths[-1] + max(last, default=0.0) + _EDGE_IN
    return replace(plot, width_in=max(plot.width_in, needed))


def _margins(figure: Figure, plot: Plot, axes: Sequence[Axes]) -> list[_Margins]:
    """Measure all panels; those that will be narrower again, since their texts reach further."""
    margins = [_measured(figure, panel_axes) for panel_axes in axes]
    _, widths = _columns(plot, margins)
    for place, (panel, own) in enumerate(zip(plot.panels, axes, strict=True)):
        box, width = own.get_position(), widths[panel.column] / plot.width_in
        if panel.columns == 1 and width < _NARROWER * box.width:
            own.set_position((box.x0, box.y0, width, box.height))
            margins[place] = _measured(figure, own)
    return margins


def _measured(figure: Figure, axes: Axes) -> _Margins:
    renderer = _renderer(figure)
    headings = [text for text in axes.texts if text.get_gid() == ALONE]
    texts: list[Artist] = [text for text in axes.texts if text not in headings]
    texts += [*axes.tables, *axes.child_axes]
    box = axes.get_tightbbox(renderer, bbox_extra_artists=texts)
    inner = axes.get_window_extent(renderer)
    above = [heading.get_window_extent(renderer) for heading in headings]
    if box is None:
        return _Margins(0, 0, 0, 0)
    dpi = figure.dpi
    return _Margins(
        # Letters of a table are wider at a higher resolution, by up to a twelfth
        left=max(0.0, inner.x0 - box.x0) / dpi * (1.0 if axes.axison else 1.08),
        right=max(0.0, box.x1 - inner.x1) / dpi,
        bottom=max(0.0, inner.y0 - box.y0) / dpi,
        top=max(0.0, *(part.y1 - inner.y1 for part in [box, *above])) / dpi,
    )


def _rows(plot: Plot, margins: Sequence[_Margins], *, above_in: float) -> tuple[list[float], float]:
    """Return the distance of each row's axes from the top, and that of the end of the last."""
    tops: list[float] = []
    at = above_in
    for row, height in enumerate(plot.heights):
        in_row = [(p, m) for p, m in zip(plot.panels, margins, strict=True) if p.row == row]
        tops.append(at + max(m.top for _, m in in_row))
        at = tops[-1] + max(height + m.bottom for _, m in in_row) + _GAP_IN
    return tops, at


def _set_positions(
    plot: Plot,
    axes: Sequence[Axes],
    margins: Sequence[_Margins],
    tops: Sequence[float],
    height_in: float,
) -> None:
    lefts, widths = _columns(plot, margins)
    for panel, panel_axes in zip(plot.panels, axes, strict=True):
        last = panel.column + panel.columns - 1
        left, right = lefts[panel.column], lefts[last] + widths[last]
        height = plot.heights[panel.row]
        panel_axes.set_position(
            (
                left / plot.width_in,
                1 - (tops[panel.row] + height) / height_in,
                (right - left) / plot.width_in,
                height / height_in,
            )
        )
        if panel.x.scale != "category" and panel.z is None and panel_axes.axison:
            panel_axes.xaxis.set_major_locator(locator(panel.x, "x", right - left))


def _align_labels(plot: Plot, axes: Sequence[Axes], margins: Sequence[_Margins]) -> None:
    """Put the labels of upright axes that stand above each other on one line."""
    for column in range(len(plot.widths)):
        labelled = [
            n
            for n, panel in enumerate(plot.panels)
            if panel.column == column and panel.y.label and axes[n].name == "rectilinear"
        ]
        widest = max((margins[n].left for n in labelled), default=0.0)
        for n in labelled:
            width_in = axes[n].get_position().width * plot.width_in
            lines = axes[n].yaxis.get_label_text().count("\n") + 1
            axes[n].yaxis.set_label_coords(-(widest - lines * _LABEL_IN) / width_in, 0.5)


def _columns(plot: Plot, margins: Sequence[_Margins]) -> tuple[list[float], list[float]]:
    pairs = list(zip(plot.panels, margins, strict=True))
    count = len(plot.widths)
    left = [max((m.left for p, m in pairs if p.column == n), default=0.0) for n in range(count)]
    right = [
        max((m.right for p, m in pairs if p.column + p.columns - 1 == n), default=0.0)
        for n in range(count)
    ]
    taken = sum(left) + sum(right) + 2 * _EDGE_IN + 2 * _GAP_IN * (count - 1)
    free = max(plot.width_in - taken, _MIN_DATA_IN * count)
    widths = [free * share / sum(plot.widths) for share in plot.widths]
    lefts: list[float] = []
    at = _EDGE_IN
    for own_left, width, own_right in zip(left, widths, right, strict=True):
        lefts.append(at + own_left)
        at += own_left + width + own_right + 2 * _GAP_IN
    return lefts, widths


def _size_in(figure: Figure, artist: Artist) -> tuple[float, float]:
    box = artist.get_window_extent(_renderer(figure))
    return float(box.width) / figure.dpi, float(box.height) / figure.dpi


def _renderer(figure: Figure) -> RendererAgg:
    renderer: RendererAgg = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # of FigureCanvasAgg
    return renderer


def legend_above(figure: Figure, plot: Plot, looks: Looks) -> Legend | None:
    """Return the legend of the whole figure in as few lines as its width allows."""
    handles = _handles(plot, plot.series, looks)
    if not handles:
        return None
    for columns in range(min(len(handles), _MAX_ABREAST), 0, -1):
        legend = figure.legend(
            handles=handles, loc="upper right", ncols=columns, borderaxespad=0, borderpad=0
        )
        width = legend.get_window_extent(figure.canvas.get_renderer()).width  # type: ignore[attr-defined]  # of FigureCanvasAgg
        if columns == 1 or width < 0.95 * figure.bbox.width:
            break
        legend.remove()
    return legend


def _handles(plot: Plot, series: Sequence[Series], looks: Looks) -> list[Artist]:
    """Return an entry for each label; entries without room are counted."""
    kinds = _mark_types(plot)
    entries = {entry.label: entry for entry in reversed(series) if entry.label}
    handles = [_handle(own, kinds.get(own.key), looks) for own in reversed(entries.values())]
    if len(handles) <= MAX_ENTRIES:
        return handles
    more = Patch(color="none", label=f"and {len(handles) - MAX_ENTRIES} more")
    return [*handles[:MAX_ENTRIES], more]


def _handle(series: Series, mark: type | None, looks: Looks) -> Artist:
    if mark in {Bars, Areas} or (mark is None and not series.marker):
        return Patch(label=series.label, **looks.filled(series.key))
    marker = MARKERS[series.marker]
    if mark is Lines:
        look = looks.line(series.key)
        return Line2D([], [], marker=marker, markersize=5, label=series.label, **look)
    look = {"linestyle": "none", "color": looks.colour(series.key)}
    return Line2D([], [], marker=marker or "o", markersize=6, label=series.label, **look)


def _mark_types(plot: Plot) -> dict[str, type]:
    """Return the type of mark that shows each series; lines come first, then areas."""
    types: dict[str, type] = {}
    for wanted in (Lines, Bars, Areas, Points):
        for mark in data_marks(plot):
            if isinstance(mark, wanted):
                for key, _ in series_of(mark):
                    types.setdefault(key, wanted)
    for panel in plot.panels:
        lines = (mark.series for mark in panel.marks if isinstance(mark, ReferenceLine))
        types |= dict.fromkeys(lines, Lines)
    return types
