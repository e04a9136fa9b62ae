"""The device's own view: samples beside each Run enter, panels over one time axis leave.

The panels are those of "Disk performance on Azure Kubernetes Service" (Øvrevåge, 2019). Runs stand
one after another; each has a scale of its own where they differ much in length, as its ticks tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from volbench.analyse.frames.job_frames import of_measured
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    wrap_name,
)
from volbench.present.figures.devicepanels import (
    BACKING_STYLE,
    FIO_STYLE,
    PANELS,
    READ,
    WRITE,
    draw_panel,
)
from volbench.present.figures.devicespans import Place, Span, lay_out, spans_of, uses_of
from volbench.present.formatting import Row, number, printable, text
from volbench.present.style import GREY
from volbench.units import format_count, format_duration, format_rate

SHADE = "#eeeeee"
WIDTH_IN, NARROW_IN = 13.0, 10.0
PANEL_IN = 1.02
ABREAST = 9
"""Runs beside each other; more go into a further block below."""
COLUMNS = 118
"""Letters that fit beside each other over a block."""
MOST = 36
"""Runs in one chart: beyond that it would be too tall to be looked at."""


def draw(frames: Frames, title: str) -> Figure:
    """Draw eight panels over the Runs; more Runs than fit go into a block below."""
    found = uses_of(frames)
    spans = spans_of(frames, found[:MOST])
    blocks = [spans[at : at + ABREAST] for at in range(0, len(spans), ABREAST)]
    figure = new_figure(
        title=title,
        note=caption(frames["summary"], *_notes(found)),
        height_in=1.0 + len(blocks) * (len(PANELS) * PANEL_IN + 0.9),
        width_in=WIDTH_IN if len(blocks[0]) > 2 else NARROW_IN,
    )
    grid = list(figure.subplots(len(blocks) * len(PANELS), 1, squeeze=False)[:, 0])
    for number_of_block, block in enumerate(blocks):
        first = number_of_block * len(PANELS)
        _draw_block(grid[first : first + len(PANELS)], block)
    figure.align_ylabels(grid)
    figure.legend(
        handles=_handles(spans), loc="upper right", bbox_to_anchor=(0.99, 1), ncols=6, fontsize=8.5
    )
    return figure


def _notes(found: Sequence[Row]) -> list[str]:
    """Return what must be known to read the panels."""
    devices = dict.fromkeys(text(use, "device") for use in found)
    named = ", ".join(name for name in devices if name)
    notes = [f"Device {named}" if named else "No block device: the host's own numbers alone"]
    notes.append("CPU waiting and dirty pages are the host's")
    if len(found) > MOST:
        notes.append(f"{len(found) - MOST} further Runs are not shown")
    return notes


def _handles(spans: Sequence[Span]) -> list[Line2D | Patch]:
    """Return the entries of the legend that the chart has a use for."""
    handles: list[Line2D | Patch] = []
    for direction, colour in (("read", READ), ("write", WRITE)):
        if any(number(span.use, f"{direction}_iops") > 0 for span in spans):
            handles.append(Line2D([], [], color=colour, label=f"device: {direction}s"))
    if any(span.fio is not None for span in spans):
        handles.append(Line2D([], [], **FIO_STYLE, label="fio: reads and writes"))
    if any(span.backing is not None for span in spans):
        handles.append(Line2D([], [], **BACKING_STYLE, label="backing disk"))
    if any(span.fio_end_s < span.length_s for span in spans):
        handles.append(Patch(color=SHADE, label="after fio ended"))
    return handles


def _draw_block(panels: Sequence[Axes], block: Sequence[Span]) -> None:
    """Draw Runs abreast: names on top, times below the last panel."""
    places = lay_out(block)
    end = places[-1].right
    for axes, panel in zip(panels, PANELS, strict=True):
        draw_panel(axes, panel, places)
        axes.set_xlim(0, end)
        axes.grid(visible=False, axis="x")
        axes.set_xticks([])
        for place in places:
            axes.axvspan(place.tail, place.right, color=SHADE, linewidth=0, zorder=0)
        for before, after in pairwise(places):
            axes.axvspan(before.right, after.left, color="white", zorder=1)
            axes.axvline((before.right + after.left) / 2, color=GREY, linewidth=0.6)
    _name_runs(panels[0], places)
    ticks = [
        tick for place in places for tick in place.ticks(share=(place.right - place.left) / end)
    ]
    panels[-1].set_xticks([at for at, _ in ticks], [name for _, name in ticks], fontsize=7.5)
    panels[-1].set_xlabel("Time since each Run's I/O began")


def _name_runs(axes: Axes, places: Sequence[Place]) -> None:
    """Write the name of each Run above its band, and beneath it what it did."""
    total = places[-1].right
    texts = []
    for place in places:
        columns = max(9, int((place.right - place.left) / total * COLUMNS))
        name = wrap_name(printable(place.span.label), columns=columns)
        texts.append((place.left, name, fill(printable(place.span.did), columns + 2)))
    lines = max(did.count("\n") + 1 for _, _, did in texts)
    for left, name, did in texts:
        for words, up_pt, words_style in (
            (name, 8 + 10 * lines, _NAME),
            (did, 5 + 10 * lines, _DID),
        ):
            axes.annotate(
                words,
                (left, 1),
                xycoords=axes.get_xaxis_transform(),
                xytext=(0, up_pt),
                textcoords="offset points",
                **words_style,
            )


_NAME: Mapping[str, Any] = {"fontsize": 9, "fontweight": "bold", "va": "bottom"}
_DID: Mapping[str, Any] = {"fontsize": 7.5, "color": GREY, "va": "top"}


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    samples = of_measured(frames["device"], frames["summary"])
    if (samples["t_s"] > 0).any():
        return ""
    return "nobody sampled the host's counters beside a Run"


def describe(frames: Frames) -> str:
    """Return the extremes of what the device did in one sentence."""
    uses = uses_of(frames)
    sentence = f"What the device did beside {len(uses)} Run{'s' * (len(uses) != 1)}"
    parts = []
    for names, format_value, unit in (
        (("read_iops", "write_iops"), format_count, " IOPS"),
        (("read_bw_bytes_per_s", "write_bw_bytes_per_s"), format_rate, ""),
    ):
        rates = [sum(number(use, name) for name in names) for use in uses]
        known = [rate for rate in rates if not math.isnan(rate)]
        if known:
            low, high = format_value(min(known)), format_value(max(known))
            parts.append(f"{low} to {high}{unit}" if low != high else f"{low}{unit}")
    tails = [use for use in uses if number(use, "tail_s") > 0]
    if parts:
        sentence += ": on average " + " and ".join(parts)
    if tails:
        longest = max(tails, key=lambda use: number(use, "tail_s"))
        lasted = format_duration(number(longest, "tail_s"))
        sentence += (
            f"; after fio ended, writing went on for up to {lasted} ({text(longest, 'label')})"
        )
    return sentence + "."


DEVICE = Chart(
    name="device",
    title="What the device did",
    frame_names=("summary", "series", "device"),
    draw=draw,
    help="Bandwidth, IOPS, active time, iowait, latency, request size, dirty pages and queue of"
    " the volume's device over time, with fio's own view and declared limits.",
    lack=lack,
    describe=describe,
    needs="a block device, or a host that tells its counters",
)
