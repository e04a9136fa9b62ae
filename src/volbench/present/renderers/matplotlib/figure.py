"""Figure of a plot description: panels, names of limits, legends, title and caption."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, BinaryIO

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from volbench.errors import InputError, VolbenchError
from volbench.present.formatting import printable
from volbench.present.plots.colour_themes import theme_of
from volbench.present.plots.description import Panel, Plot
from volbench.present.plots.labels import moved_apart
from volbench.present.plots.marks import ReferenceLine
from volbench.present.renderers import PICTURE_FORMATS
from volbench.present.renderers.matplotlib.draw_marks import draw_mark
from volbench.present.renderers.matplotlib.look import (
    Looks,
    looks_of,
    points,
    set_scales,
    styled,
    without_letters,
)
from volbench.present.renderers.matplotlib.placement import ALONE, place

_BOXES = "Boxes are characters that no font here has: install Noto Sans CJK, or use --format html"
_MARGINS_IN = 1.6  # Estimated width of labels in a column, before they are measured
_CROWDED = 0.2  # Share of the axis below which the names of two lines would touch
_LINE_IN = 0.17
_MIN_TITLE, _LETTER_IN = 24, 0.065  # Characters of a title that have one line; width of one
_METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "volbench"},
    "png": {"Software": "volbench"},
    "pdf": {"CreationDate": None, "Creator": "volbench", "Producer": "volbench"},
}
_FONT = "'DejaVu Sans'"
_UNIT = re.compile(r"(?<=\d) (?=%|IOPS|[kMGT]?B/s|[numµ]?s\b)")  # Space before a unit
_REFERENCE = re.compile(r'(\bid="|href="#|url\(#)')


def draw(plot: Plot, *, theme: str = "light", font_size: float | None = None) -> Figure:
    """Draw a plot description.

    Args:
        theme: ``light``, ``dark`` or ``print``.
        font_size: of most letters, in points; None for 9.
    """
    chosen = theme_of(theme)
    looks = looks_of(plot, chosen)
    font_size = font_size or 9.0
    with styled(chosen, font_size=font_size):
        figure = Figure(figsize=(plot.width_in, sum(plot.heights) + 2))
        FigureCanvasAgg(figure)
        axes = [_draw_panel(figure, plot, panel, looks) for panel in plot.panels]
        title = figure.suptitle(
            _wrapped(plot.title, int(plot.width_in * 90 / font_size)),
            ha="left",
            va="top",
            fontsize=points(12),
            fontweight="bold",
        )
        answer = figure.text(
            0,
            1,
            _wrapped(plot.answer, int(plot.width_in * 112 / font_size)),
            va="top",
            fontsize=points(9),
        )
        boxes = _BOXES if without_letters("".join(_words(plot, axes))) else ""
        caption = ". ".join(part.rstrip(".") for part in (*plot.caption, boxes) if part)
        note = figure.text(
            0,
            0,
            _wrapped(caption and f"{caption}.", int(plot.width_in * 126 / font_size)),
            va="bottom",
            fontsize=points(8),
            color=chosen.colours["muted"],
        )
        place(figure, plot, axes, looks, heading=(title, answer), note=note)
    figure.set_label(plot.name)
    return figure


def _words(plot: Plot, axes: Sequence[Axes]) -> Iterator[str]:
    """Yield the texts of a plot; asking matplotlib for them makes every tick of each axis."""
    yield from (plot.title, plot.answer, *plot.caption, *(series.label for series in plot.series))
    for panel, panel_axes in zip(plot.panels, axes, strict=True):
        yield panel.title
        yield from (text.get_text() for text in panel_axes.texts)
        for axis in (panel.x, panel.y, panel.z or panel.x):
            yield from (axis.label, *axis.categories)


def _wrapped(text: str, columns: int) -> str:
    """Return a text on lines that keep numbers beside their units."""
    return fill(_UNIT.sub("\xa0", printable(text)), columns).replace("\xa0", " ")


def _draw_panel(figure: Figure, plot: Plot, panel: Panel, looks: Looks) -> Axes:
    """Draw a panel in about its final size, so that its labels can be measured."""
    column_in = plot.width_in * plot.widths[panel.column] / sum(plot.widths)
    width_in = max(column_in * panel.columns - _MARGINS_IN, 0.5 * column_in)
    height_in = plot.heights[panel.row]
    size = (width_in / plot.width_in, height_in / float(figure.get_size_inches()[1]))
    axes: Axes = figure.add_axes((0.1, 0.1, *size), projection="3d" if panel.z else None)
    if panel.z:
        for upright in (axes.xaxis, axes.yaxis, axes.zaxis):  # type: ignore[attr-defined]  # of Axes3D
            upright.set_pane_color(looks.theme.colours["quiet"])  # type: ignore[union-attr]  # same
    set_scales(axes, panel, width_in=width_in, height_in=height_in)
    if panel.background:
        _draw_background(axes, panel, looks)
    for mark in panel.marks:
        draw_mark(axes, mark, looks)
    _keep_scales(axes, panel)
    _name_lines(axes, panel, looks)
    if plot.shared_y and panel.column > 0 and panel.z is None:
        axes.tick_params(axis="y", labelleft=False)
    _write_title(axes, plot, panel, width_in=width_in)
    return axes


def _draw_background(axes: Axes, panel: Panel, looks: Looks) -> None:
    colours = looks.theme.colours
    axes.set_facecolor(colours["quiet"])
    if panel.background == "hatched":
        axes.patch.set(hatch="////", edgecolor=colours["hatch"])


def _keep_scales(axes: Axes, panel: Panel) -> None:
    for way, axis in (("x", panel.x), ("y", panel.y)):
        if axis.limits is not None:
            ends = axis.limits[::-1] if axis.inverted else axis.limits
            getattr(axes, f"set_{way}lim")(*ends)


def _write_title(axes: Axes, plot: Plot, panel: Panel, *, width_in: float) -> None:
    """Write heading and title, as wide as the panel; the heading is bold, over the title."""
    room = max(_MIN_TITLE, int(width_in / _LETTER_IN))
    wrapped = (fill(each, room, break_long_words=False) for each in panel.title.splitlines())
    title = "\n".join(wrapped) if len(plot.widths) > 1 and not panel.z else panel.title
    lines = title.count("\n") + 1 if title else 0
    # A given height spares matplotlib from looking, with each drawing, for ticks above the panel
    axes.set_title(printable(title), fontsize=points(9), y=1.0)
    if panel.heading:
        axes.annotate(
            printable(panel.heading),
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 6 + 12 * lines),
            textcoords="offset points",
            va="bottom",
            fontsize=points(9.5),
            fontweight="bold",
            gid=ALONE * (sum(p.row == panel.row and p.heading > "" for p in plot.panels) == 1),
        )


def _name_lines(axes: Axes, panel: Panel, looks: Looks) -> None:
    """Write the names of reference lines: above the panel, or at its right."""
    named = [mark for mark in panel.marks if isinstance(mark, ReferenceLine) and mark.name]
    _name_at_right(axes, [mark for mark in named if mark.axis == "y"], looks)
    level, last = 0, 2.0
    for mark in sorted((m for m in named if m.axis == "x"), key=lambda m: -m.value):
        at = axes.transAxes.inverted().transform(axes.transData.transform((mark.value, 0)))[0]
        share = min(at, 1.0)
        level = level + 1 if last - share < _CROWDED else 0
        last = share
        axes.annotate(
            f"{mark.name} (above)" if mark.is_beyond else mark.name,
            (share, 1),
            xycoords="axes fraction",
            xytext=(0, 72 * (0.05 + _LINE_IN * level)),
            textcoords="offset points",
            ha="right" if share > 1 - _CROWDED else "left",
            va="bottom",
            fontsize=points(8.5),
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": 0,
                "relpos": (1.0 if share > 1 - _CROWDED else 0.0, 0),
                "color": looks.colour("ink"),
            },
        )


def _name_at_right(axes: Axes, lines: Sequence[ReferenceLine], looks: Looks) -> None:
    """Write names beside the ends of their lines, as far from each other as letters need."""
    names = [
        axes.annotate(
            mark.name.replace(": ", "\n") + ("\n(above)" if mark.is_beyond else ""),
            (1, 1 if mark.is_beyond else mark.value),
            xycoords="axes fraction" if mark.is_beyond else axes.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="top" if mark.is_beyond else "center",
            fontsize=points(7.5),
            annotation_clip=False,
            color=looks.colour(mark.series),
        )
        for mark in lines
    ]
    boxes = [name.get_window_extent() for name in names]
    middles = [(box.y0 + box.y1) / 2 for box in boxes]
    apart = moved_apart(middles, [box.height for box in boxes])
    for name, middle, moved in zip(names, middles, apart, strict=True):
        name.set_position((4, 72 * (moved - middle) / axes.figure.dpi))


def save(
    figure: Figure,
    path: Path | BinaryIO,
    *,
    format: str,  # noqa: A002 - the word matplotlib and the command line use
    dpi: float | None = None,
) -> None:
    """Write a figure to a path or to an open binary file; `dpi` is None for 150."""
    if format not in PICTURE_FORMATS:
        raise InputError(
            f"a chart cannot be written as {format!r}",
            hint=f"choose one of {', '.join(PICTURE_FORMATS)}",
        )
    # Level 1 is as small as 6; the writers of other formats refuse the argument
    packing: dict[str, Any] = {"pil_kwargs": {"compress_level": 1}} if format == "png" else {}
    try:
        with styled():
            figure.savefig(path, format=format, metadata=_METADATA[format], dpi=dpi, **packing)
    except OSError as error:
        raise VolbenchError(
            f"the chart cannot be written: {error.strerror or error}",
            hint="check that the folder exists, permissions and free space",
        ) from error


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG element that can be embedded beside others.

    The ids inside begin with the figure's label, so that those of two charts never collide. Letters
    stay text, a third of the size of their outlines.
    """
    sink = io.BytesIO()
    with styled():
        mpl.rcParams["svg.fonttype"] = "none"
        figure.savefig(sink, format="svg", metadata=_METADATA["svg"])
    text = sink.getvalue().decode("utf-8").replace(_FONT, f"{_FONT}, Verdana, sans-serif")
    prefix = re.sub(r"\W", "-", str(figure.get_label()) or "chart")
    return _REFERENCE.sub(rf"\g<1>{prefix}-", text[text.index("<svg") :]).strip()
