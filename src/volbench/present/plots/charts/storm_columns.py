"""Boot storms: IOPS of all clients on one clock, a column for each storm.

A column holds reads and writes stacked, then a strip for each client; all columns have the same
scales. It is the chart of "IOPS in a Windows boot storm" (Curtis Collicutt).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from textwrap import fill

import numpy as np
import pandas as pd

from volbench.analyse.frames.resample import Floats
from volbench.analyse.time.boot_storm import (
    INTERVAL_S,
    SETTLED,
    Storm,
    StormClient,
    storm_steps,
    storms,
)
from volbench.present.factor_words import listed
from volbench.present.formatting import printable
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.event_lines import event_lines
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.labels import brief, wrap_name
from volbench.present.plots.metrics import IOPS, time_axis
from volbench.present.plots.selection import not_shown
from volbench.units import counted_noun, format_count, format_duration

_MAX_STORMS = 3  # Storms in one chart
_WIDTHS_IN = {1: 10.0, 2: 12.0, 3: 15.0}
_LETTERS = 48  # Letters that fit beside each other over a column
_BOLD_LETTERS = 24  # Likewise of a heading, beside long names of clients
_SLOWEST = "those with the most clients, then the lowest IOPS"
_STACK_IN = 2.6
_STRIP_IN, _STRIPS_MIN_IN, _STRIPS_MAX_IN = 0.13, 1.0, 6.0
_NAME_LETTERS = 24  # Letters of the name of a client beside its strip
_NAMED = 50  # Strips up to which each has its name
# Ratio of device to clients up to which the device is drawn; beyond it a text gives its rate
_DEVICE_ROOM = 1.3
_SERIES = (
    Series("read", "reads", "read"),
    Series("write", "writes", "write"),
    Series("device", "the device itself", "ink"),
    Series("start", "a client starts", "ink", "tick"),
    Series("settled", "finished booting", "ink", "circle"),
)
_SIMULTANEOUS_S = 1.0  # Starts closer than a sample are one. Noticed by: test_fleet.py


@dataclass(frozen=True)
class _Storms:
    """Data of the chart."""

    shown: Sequence[Storm]  # the storms with most clients, then with least IOPS
    more: int  # number of the others


def read(frames: Frames, _: Options) -> _Storms | str:
    """Return the storms of the campaigns."""
    count = len(storm_steps(frames))
    if not count:
        return "no job ran on several clients at once with a series (try --set clients=5)"
    return _Storms(storms(frames, limit=_MAX_STORMS), more=max(0, count - _MAX_STORMS))


def build(storms: _Storms) -> Plot:
    """Draw a column for each storm: stacked on top, clients below."""
    drawn = storms.shown
    strips_in = _STRIP_IN * max(len(storm.clients) for storm in drawn)
    columns = [_storm_panels(storm, drawn) for storm in drawn]
    used = {
        "start": not all(storm.is_watched for storm in drawn),
        "device": any(storm.device for storm in drawn),
        "settled": any(client.settles_early for storm in drawn for client in storm.clients),
    }
    peaks = listed([format_count(storm.peak_iops) for storm in drawn])
    return Plot(
        panels=tuple(
            replace(panel, row=row, column=column)
            for column, panels in enumerate(columns)
            for row, panel in enumerate(panels)
        ),
        heights=(_STACK_IN, min(max(strips_in, _STRIPS_MIN_IN), _STRIPS_MAX_IN)),
        widths=(1.0,) * len(drawn),
        width_in=_WIDTHS_IN[len(drawn)],
        title="" if used["start"] else "Watched disks on one clock",
        answer=f"{len(drawn)} storms with peaks of {peaks} IOPS." if len(drawn) > 1 else "",
        series=tuple(series for series in _SERIES if used.get(series.key, True)),
        caption=_notes(storms),
    )


def _notes(storms: _Storms) -> tuple[str, ...]:
    missing_count = sum(len(storm.without_series) for storm in storms.shown)
    settles_early = any(each.settles_early for storm in storms.shown for each in storm.clients)
    has_idle = any(
        client.start_s >= storm.edges_s[1] or client.end_s <= storm.edges_s[-2]
        for storm in storms.shown
        for client in storm.clients
    )
    missing = (
        f"{missing_count} client{'s' if missing_count > 1 else ''} without a series, not drawn"
    )
    share = f"below {100 * SETTLED:g} % of the client's own busiest interval"
    last_s = {float(storm.edges_s[-1] - storm.edges_s[-2]) for storm in storms.shown}
    odd = " and ".join(f"{width:.2g} s" for width in sorted(last_s) if width != INTERVAL_S)
    return (
        f"Means of {INTERVAL_S:g} s" + (f", the last of {odd}" if odd else ""),
        "Grey: the client did not run" if has_idle else "",
        f"Finished booting: {share}" if settles_early else "",
        missing if missing_count else "",
        not_shown(len(storms.shown), len(storms.shown) + storms.more, "storms", _SLOWEST),
    )


def _top(clients: Floats, device: Floats) -> float:
    """Return the top of a scale: the clients decide it, the device a little."""
    most = float(clients.max())
    return min(max(most, float(np.nanmax(np.append(device, 0.0)))), _DEVICE_ROOM * most)


def _device(storm: Storm) -> Floats:
    return storm.device_read_iops + storm.device_write_iops


def _storm_panels(storm: Storm, drawn: Sequence[Storm]) -> list[Panel]:
    total = max(_top(other.iops, _device(other)) for other in drawn)
    busiest = max(float(client.iops.max()) for other in drawn for client in other.clients)
    is_first, is_last = storm is drawn[0], storm is drawn[-1]
    x, data = time_axis(float(storm.edges_s[-1]), label=""), _intervals(storm)
    return [
        Panel(
            x=x,
            y=IOPS.axis(1.18 * total, label=f"IOPS, all {_members(storm)}s" * is_first),
            marks=tuple(_stack(storm, data, top=1.18 * total)),
            heading=wrap_name(printable(f"{storm.campaign}, {storm.job}"), columns=_BOLD_LETTERS),
            title=headline(storm, letters=_LETTERS) if len(drawn) > 1 else "",
        ),
        Panel(
            x=replace(x, label=f"Time since the first {_members(storm)}'s first I/O"),
            y=_clients_axis(storm, label=f"{_members(storm).capitalize()}s" * is_first),
            marks=tuple(_strips(storm, busiest=busiest, has_bar=is_last)),
            background="quiet",
        ),
    ]


def _intervals(storm: Storm) -> pd.DataFrame:
    columns = {
        "read_iops": storm.read_iops,
        "write_iops": storm.write_iops,
        "device_read_iops": storm.device_read_iops,
        "device_write_iops": storm.device_write_iops,
    }
    rows = pd.DataFrame({name: np.append(v, v[-1:]) for name, v in columns.items()})
    return rows.assign(
        campaign=storm.campaign,
        job=storm.job,
        t_s=storm.edges_s,
        _zero=0.0,
        _sum=rows["read_iops"] + rows["write_iops"],
        _device=rows["device_read_iops"] + rows["device_write_iops"],
    )


def _stack(storm: Storm, data: pd.DataFrame, *, top: float) -> list[marks.AnyMark]:
    parts: list[marks.AnyMark] = [
        marks.Areas(data, x="t_s", low="_zero", high="read_iops", step="post", series="read"),
        marks.Areas(data, x="t_s", low="read_iops", high="_sum", step="post", series="write"),
    ]
    if storm.device:
        line = data.assign(_device=data["_device"].clip(upper=top))
        parts.append(
            marks.Lines(line, x="t_s", y="_device", step="post", width=0.9, series="device")
        )
        most = float(np.nanmax(np.append(_device(storm), 0.0)))
        if most > top:
            beyond = marks.text_at(0, 1, f"device up to {format_count(most)}")
            corner = marks.Texts(beyond, x_in="panel", y_in="panel", offset_pt=(4, -2))
            parts.append(replace(corner, valign="top", is_boxed=True))
    if not storm.is_watched:
        started = [client.start_s for client in storm.clients]
        starts = pd.DataFrame({"_x": started, "_y": 0.0})
        parts.append(marks.Points(starts, size=6, series="start"))
    parts += [*_last_start(storm), *_peak(storm)]
    if 0 < storm.limit_iops <= top:
        name = f"limit: {format_count(storm.limit_iops)}"
        parts.append(marks.ReferenceLine(storm.limit_iops, "y", name=name))
    return parts


def _last_start(storm: Storm) -> list[marks.AnyMark]:
    noted = pd.DataFrame(storm.notes, columns=["t_s", "name"])
    notes = event_lines(noted, end_s=float(storm.edges_s[-1]), is_named=True)
    if storm.is_watched:
        return [*notes]
    line = marks.ReferenceLine(storm.last_start_s, "x", series="muted", dash="dotted", width=0.9)
    is_late = storm.last_start_s > 0.85 * float(storm.edges_s[-1])
    name = marks.Texts(
        marks.text_at(storm.last_start_s, 1, "last start"),
        y_in="panel",
        offset_pt=(-3 if is_late else 3, -2),
        align="right" if is_late else "left",
        valign="top",
        series="muted",
    )
    return [*notes, line, name]


def _peak(storm: Storm) -> list[marks.AnyMark]:
    is_late = storm.peak_s > 0.6 * float(storm.edges_s[-1])
    at = marks.text_at(storm.peak_s, storm.peak_iops, f"peak {format_count(storm.peak_iops)}")
    return [
        marks.Texts(
            at,
            offset_pt=(-14 if is_late else 14, 12),
            align="right" if is_late else "left",
            valign="bottom",
            size=9,
            is_bold=True,
            is_boxed=True,
            has_leader=True,
        ),
        marks.Points(at[["_x", "_y"]], size=4),
    ]


def _strips(storm: Storm, *, busiest: float, has_bar: bool) -> list[marks.AnyMark]:
    count = len(storm.clients)
    cells = pd.concat(
        [_strip(storm, client, row) for row, client in enumerate(storm.clients)], ignore_index=True
    )
    rows = np.arange(count, dtype=float)
    starts = pd.DataFrame(
        {
            "_at": [client.start_s for client in storm.clients],
            "_low": rows - 0.5,
            "_high": rows + 0.5,
        }
    )
    parts: list[marks.AnyMark] = [
        marks.Cells(
            cells,
            x="from_s",
            x_end="t_s",
            y="_low",
            y_end="_high",
            value="iops",
            ramp="purple",
            scale="linear",
            limits=(0.0, busiest or 1.0),
            bar="IOPS each" * has_bar,
        ),
        *(
            marks.ReferenceLine(row - 0.5, "y", series="paper", dash="solid", width=0.7)
            for row in rows[1:]
        ),
        marks.Whiskers(starts, at="_at", along="y", has_caps=False),
    ]
    early = [(c.settled_s, row) for row, c in enumerate(storm.clients) if c.settles_early]
    if early:
        settled = pd.DataFrame(early, columns=["_x", "_y"])
        parts.append(marks.Points(settled, size=2.5, series="settled"))
    return parts


def _clients_axis(storm: Storm, *, label: str) -> Axis:
    count = len(storm.clients)
    step = 1 if count <= _NAMED else -(-count // _NAMED)
    names = [printable(client.name) for client in storm.clients[::step]]
    return Axis(
        label,
        scale="category",
        limits=(-0.5, count - 0.5),
        ticks=tuple(float(row) for row in range(0, count, step)),
        categories=brief(names, most=_NAME_LETTERS),
        inverted=True,
    )


def _strip(storm: Storm, client: StormClient, row: int) -> pd.DataFrame:
    is_idle = (storm.edges_s[1:] <= client.start_s) | (storm.edges_s[:-1] >= client.end_s)
    return pd.DataFrame(
        {
            "campaign": storm.campaign,
            "run": client.run,
            "client": client.name,
            "from_s": storm.edges_s[:-1],
            "t_s": storm.edges_s[1:],
            "iops": np.where(is_idle, np.nan, client.iops),
            "_low": row - 0.5,
            "_high": row + 0.5,
        }
    )


def describe(storms: _Storms) -> str:
    """Return peak, its time, and busy time of clients, one sentence for each storm shown."""
    if len(storms.shown) == 1:
        return sentence(storms.shown[0])
    return " ".join(f"{printable(storm.campaign)}: {sentence(storm)}" for storm in storms.shown)


STORM = Kind(
    name="storm",
    title="Boot storm, all clients on one clock",
    frame_names=("summary", "series", "device", "marks"),
    help="IOPS of all clients over time, stacked and per client, with each start and the peak.",
    needs="a job that several clients ran side by side",
    read=read,
    build=build,
    describe=describe,
    concludes=True,
)


def headline(storm: Storm, *, letters: int) -> str:
    """Return the numbers of a storm in lines of at most so many letters."""
    return "\n".join(fill(line, letters) for line in _facts(storm))


def sentence(storm: Storm) -> str:
    """Return the numbers of a storm in a sentence."""
    return f"{'; '.join(_facts(storm))}."


def _facts(storm: Storm) -> list[str]:
    if storm.is_watched:
        return [_watched_words(storm)]
    busy = _range_text([client.busy_s for client in storm.clients])
    known, missing = len(storm.clients), len(storm.without_series)
    clients = f"{known} of {known + missing} clients" if missing else counted_noun(known, "client")
    facts = [
        f"{clients}, {_pace_text(storm)}; max {storm.most_at_once} at once",
        f"peak {format_count(storm.peak_iops)} IOPS {_when(storm)}",
        _later(storm),
        f"a client finishes booting after {busy}",
    ]
    return [*filter(None, facts)]


def _watched_words(storm: Storm) -> str:
    at = format_duration(round(storm.peak_s))
    peak = f"peak {format_count(storm.peak_iops)} IOPS at {at}"
    disks = counted_noun(len(storm.clients), "disk")
    return f"{disks}; {peak}, mean {format_count(storm.mean_iops)}"


def _members(storm: Storm) -> str:
    return "disk" if storm.is_watched else "client"


def _is_at_once(storm: Storm) -> bool:
    return storm.last_start_s - storm.clients[0].start_s < _SIMULTANEOUS_S


def _pace_text(storm: Storm) -> str:
    starts = [client.start_s for client in storm.clients]
    if _is_at_once(storm):
        return "started at once"
    return f"started {format_duration(float(np.median(np.diff(starts))))} apart"


def _when(storm: Storm) -> str:
    gaps = [round(edge - storm.last_start_s) for edge in storm.peak_span_s]
    if gaps[0] <= 0 <= gaps[1]:
        return "at the last start"
    after = "after" if gaps[0] > 0 else "before"
    near, far = sorted(map(abs, gaps))
    return f"{format_duration(near)} to {format_duration(far)} {after} the last start"


def _later(storm: Storm) -> str:
    if math.isnan(share := storm.later_share) or _is_at_once(storm):
        return ""
    return f"{100 * share:.0f} % of all I/Os after the last start"


def _range_text(times: Sequence[float]) -> str:
    low, high = min(times), max(times)
    if format_duration(low) == format_duration(high):
        return format_duration(high)
    middle = format_duration(float(median(times)))
    return f"{middle} ({format_duration(low)} to {format_duration(high)})"
