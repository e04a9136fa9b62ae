"""Runs beside each other: samples of each Run enter, its place on a shared axis leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.device.use_method import fio_end_s, use_rows
from volbench.analyse.frames.job_frames import measured, of_measured
from volbench.present.figures.chart import Frames, shape
from volbench.present.formatting import Row, number, records, text
from volbench.units import format_duration

GAP = 0.012
"""Space between Runs, as a share of all of them."""
_NARROWEST = 0.4
"""A Run takes at least this share of the place of the longest."""
_TICKS, _TICK_SHARE = 12, 0.022
"""So many names of times fit over the whole width, and so much of it each one takes."""
_ROUND_S = (0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 86400)


@dataclass(frozen=True)
class Span:
    """One Run as it is drawn.

    Attributes:
        label: its job, with what tells it from others.
        did: pattern, block size and depth.
        use: its row of the USE table.
        own: samples of the volume's device since the I/O began, in order.
        backing: rates of the backing disks, added; None when they did the same.
        fio: the tool's own rates by ``t_s``, reads and writes added; None without a series.
        fio_end_s: when the tool's I/O ended; NaN when it told nothing.
    """

    label: str
    did: str
    use: Row
    own: pd.DataFrame
    backing: pd.DataFrame | None
    fio: pd.DataFrame | None
    fio_end_s: float

    @property
    def length_s(self) -> float:
        """How long it was watched."""
        return float(self.own["t_s"].max())


@dataclass(frozen=True)
class Place:
    """Where a Run stands on the shared axis, in units of its own."""

    span: Span
    left: float
    per_s: float

    def at(self, seconds: float) -> float:
        """Return the place of an instant of the Run."""
        return self.left + seconds * self.per_s

    @property
    def right(self) -> float:
        """The place of its end."""
        return self.at(self.span.length_s)

    @property
    def tail(self) -> float:
        """The place at which the tool ended; its own end when that is not known."""
        end = self.span.fio_end_s
        return self.right if math.isnan(end) else min(self.right, self.at(end))

    def ticks(self, *, share: float) -> list[tuple[float, str]]:
        """Return places with their time, as many as there is room for.

        Args:
            share: of the whole width that the Run has.
        """
        length = self.span.length_s
        most = max(2, round(share * _TICKS))
        step = next((one for one in _ROUND_S if length / one <= most), length)
        times = [step * count for count in range(int(length / step) + 1)]
        fitting = [one for one in times if (1 - one / length) * share >= _TICK_SHARE]
        return [(self.at(one), _time(one)) for one in fitting]


def uses_of(frames: Frames) -> list[Row]:
    """Return rows of the USE table of the measured Runs that were watched, each with its label."""
    summary = measured(frames["summary"])
    several = bool((summary["repeat"] > 1).any())
    return [
        row | {"label": text(row, "label") + f" #{number(row, 'repeat'):.0f}" * several}
        for row in records(use_rows(summary, _watched(frames)))
    ]


def spans_of(frames: Frames, uses: Sequence[Row] | None = None) -> list[Span]:
    """Return Runs that were watched, in the order of the summary.

    Args:
        frames: summary, series and device.
        uses: of `uses_of`, the Runs that are wanted; all of them when None.
    """
    uses = uses_of(frames) if uses is None else uses
    wanted = {text(row, "run") for row in uses}
    watched, series, results = (
        dict(iter(frame[frame["run"].isin(wanted)].groupby("run", sort=False)))
        for frame in (_watched(frames), frames["series"], measured(frames["summary"]))
    )
    spans = []
    for row in uses:
        run = text(row, "run")
        moving = results[run][results[run]["direction"] != "sync"]
        told = [one | {"direction": ""} for one in records(moving)]
        spans.append(
            Span(
                label=text(row, "label"),
                did="; ".join(dict.fromkeys(shape(one) for one in told)),
                use=row,
                own=watched[run][watched[run]["level"] == "volume"],
                backing=_backing(watched[run]),
                fio=_fio(series.get(run)),
                fio_end_s=fio_end_s(results[run]),
            )
        )
    return spans


def _watched(frames: Frames) -> pd.DataFrame:
    """Return the samples beside measured Runs since their I/O began, in order of time."""
    samples = of_measured(frames["device"], measured(frames["summary"]))
    return samples[samples["t_s"] > 0].sort_values("t_s", ignore_index=True)


def lay_out(spans: Sequence[Span]) -> list[Place]:
    """Return Runs one after another, in one scale unless one would be too narrow to be seen."""
    longest = max(span.length_s for span in spans)
    widths = [max(span.length_s, _NARROWEST * longest) for span in spans]
    gap = GAP * sum(widths)
    places, left = [], 0.0
    for span, width in zip(spans, widths, strict=True):
        places.append(Place(span, left, width / span.length_s))
        left += width + gap
    return places


def _fio(series: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the tool's rates, added where every section and direction has told."""
    if series is None:
        return None
    lines = series[["group", "direction"]].drop_duplicates().shape[0]
    rates = series.groupby("t_s")[["iops", "bw_bytes_per_s"]].sum(min_count=lines)
    return rates.reset_index()


def _backing(rows: pd.DataFrame) -> pd.DataFrame | None:
    """Return rates of the backing disk, when they moved a tenth more or less than the volume."""
    moved = rows[["read_bw_bytes_per_s", "write_bw_bytes_per_s"]].sum(axis=1) * rows["interval_s"]
    own, below = (float(moved[rows["level"] == one].sum()) for one in ("volume", "backing"))
    disks = rows[rows["level"] == "backing"]
    if disks.empty or abs(below - own) <= 0.1 * own:
        return None
    times = disks.assign(
        iops=disks["read_iops"] + disks["write_iops"],
        bw_bytes_per_s=disks["read_bw_bytes_per_s"] + disks["write_bw_bytes_per_s"],
    ).groupby("t_s")
    rates = times[["interval_s", "active_percent"]].max()
    return rates.join(times[["iops", "bw_bytes_per_s"]].sum(min_count=1)).reset_index()


def _time(seconds: float) -> str:
    """Return a time short enough for a tick: ``5m`` for ``5m 00s``."""
    return format_duration(seconds).replace("m 00s", "m").replace("h 00m", "h")
