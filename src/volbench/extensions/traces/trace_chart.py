"""Chart of a trace: offsets over time, rates of arrival, and sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from volbench.errors import InputError
from volbench.extensions.traces.trace_file import Kind
from volbench.extensions.traces.trace_frames import BANDS, TraceSummary
from volbench.present.formatting import printable
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.metrics import only_last_named, time_axis
from volbench.units import format_size

_MAX_DEVICES = 3  # that an A4 page has room for, the busiest
_MAP_IN, _RATE_IN, _SIZE_IN = 2.4, 1.3, 1.3
_MAX_SIZES = 16
_SINCE = "Time since the start of the recording"
_MIN_SHARE = 0.001  # of the I/Os, below which the bar of a size cannot be seen
# In the order of `Kind`
_LOOKS = (
    Series("read", "reads", "read"),
    Series("write", "writes", "write"),
    Series("discard", "discards", "trim"),
)


def trace_plot(summary: TraceSummary, *, title: str = "") -> Plot:
    """Return the chart: for each device a heat map and rates over time; below them, the sizes.

    Raises:
        InputError: all I/Os have the same time.
    """
    if math.isnan(summary.rated_s):
        raise InputError(
            "all I/Os of the trace have the same time: there is no chart over time",
            hint="leave out --chart; the tables have sizes and offsets",
        )
    looks = _LOOKS if summary.has_discards else _LOOKS[: Kind.DISCARD]
    order = sorted(summary.devices, key=lambda name: -summary.devices[name].bands.sum())
    shown = order[:_MAX_DEVICES]
    over_time = [
        panel for name in shown for panel in (_map(summary, name), _rates(summary, name, looks))
    ]
    panels = [*only_last_named(over_time), _sizes(summary, looks)]
    heights = [*(_MAP_IN, _RATE_IN) * len(shown), _SIZE_IN]
    fewer = f"{len(shown)} of {len(order)} devices, the busiest" if len(order) > len(shown) else ""
    return replace(
        Plot(
            panels=tuple(replace(panel, row=row) for row, panel in enumerate(panels)),
            heights=tuple(heights),
            width_in=10,
            series=looks,
            caption=tuple(filter(None, ("Darker: more I/Os, on a logarithmic scale", fewer))),
        ),
        name="trace",
        title=title or "I/Os of a trace",
        description=_sentence(summary),
    )


def _sentence(summary: TraceSummary) -> str:
    count = sum(int(str(row["ios"])) for row in summary.rows("load"))
    return f"Offsets, rates and sizes of {count} I/Os in {summary.duration_s:.1f} s."


def _map(summary: TraceSummary, name: str) -> Panel:
    counts = summary.devices[name].bands
    width, height = summary.step_s, summary.end_of(name) / BANDS
    bands, steps = np.nonzero(counts)
    cells = pd.DataFrame(
        {
            "from_s": steps * width,
            "to_s": (steps + 1) * width,
            "from_bytes": bands * height,
            "to_bytes": (bands + 1) * height,
            "ios": counts[bands, steps],
        }
    )
    most = max(float(counts.max()), 2.0)
    drawn = marks.Cells(
        cells,
        x="from_s",
        x_end="to_s",
        y="from_bytes",
        y_end="to_bytes",
        value="ios",
        limits=(most**-0.5, most),  # a single I/O is a third of the way to the darkest
    )
    return Panel(
        x=time_axis(summary.duration_s, label=_SINCE),
        y=Axis("Offset", "bytes", limits=(0.0, float(summary.end_of(name)))),
        marks=(drawn,),
        title=printable(name),
    )


def _rates(summary: TraceSummary, name: str, looks: Sequence[Series]) -> Panel:
    device = summary.devices[name]
    frames = [
        pd.DataFrame(
            {
                "kind": look.key,
                "t_s": np.arange(len(device.ios[kind])) * summary.step_s,
                "iops": device.ios[kind] / summary.step_s,
            }
        )
        for kind, look in enumerate(looks)
    ]
    top = max(float(frame["iops"].max()) for frame in frames)
    return Panel(
        x=time_axis(summary.duration_s, label=_SINCE),
        y=Axis("IOPS", "count", limits=(0.0, 1.05 * top or 1.0)),
        marks=tuple(
            marks.Lines(frame, x="t_s", y="iops", step="post", width=1.0, series=look.key)
            for frame, look in zip(frames, looks, strict=True)
        ),
    )


def _sizes(summary: TraceSummary, looks: Sequence[Series]) -> Panel:
    totals: dict[int, list[int]] = {}
    for device in summary.devices.values():
        for (kind, size), count in device.sizes.items():
            if kind != Kind.FLUSH:
                totals.setdefault(size, [0] * len(looks))[kind] += count
    whole = max(sum(map(sum, totals.values())), 1)
    seen = [size for size, counts in totals.items() if sum(counts) >= _MIN_SHARE * whole]
    frequent = sorted(sorted(seen, key=lambda size: -sum(totals[size]))[:_MAX_SIZES])
    width = 0.8 / len(looks)
    rows = [
        {
            "kind": look.key,
            "size_bytes": size,
            "ios": totals[size][kind],
            "share": totals[size][kind] / whole,
            "_at": place + (kind - (len(looks) - 1) / 2) * width,
        }
        for place, size in enumerate(frequent)
        for kind, look in enumerate(looks)
    ]
    columns = ["kind", "size_bytes", "ios", "share", "_at"]
    bars = marks.Bars(
        pd.DataFrame(rows, columns=columns),
        value="share",
        at="_at",
        by="kind",
        thickness=0.95 * width,
        is_horizontal=False,
    )
    names = tuple(format_size(size) for size in frequent)
    return Panel(
        x=Axis("Size of an I/O", scale="category", categories=names),
        y=Axis("Share of the I/Os", "share"),
        marks=(bars,),
    )
