"""Layout of the device view: runs on the shared axis, and the quantities of its panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.bottleneck.use_method import fio_end_s, use_rows
from volbench.analyse.frames.job_frames import is_watched, measured, of_measured
from volbench.analyse.frames.workload_words import workload_text
from volbench.present.formatting import Row, number, records, text
from volbench.present.plots.description import Axis, Scale, short_time
from volbench.present.plots.kinds import Frames

_NAMED = ("rw", "block_bytes", "iodepth", "numjobs")  # What a run is named by
GAP = 0.012  # Space between runs, as a share of their total length
_MIN_WIDTH = 0.4  # Minimum width of a run, as a share of the longest run's
# Maximum number of tick labels over the whole width, and the share of each
_TICKS, _TICK_SHARE = 12, 0.022
_ROUND_S = (0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 86400)
# Ratio to the device's rate above which fio's rate is cut off: the device is the subject
_TOWERING = 2.0
_SPREAD = 8.0  # Ratio from which a linear axis would hide small values
_FEW = 32.0  # Queue depth up to which each doubling has a tick
_FAR = 4.0  # Ratio of limit to data above which the limit is outside the axis


@dataclass(frozen=True)
class Span:
    """A run as drawn."""

    label: str  # its job, with the options that differ from other runs
    shape: str  # pattern, block size, queue depth and start
    use: Row  # row of the run in the USE table
    own: pd.DataFrame  # samples of the volume's device since the I/O began, in order
    backing: pd.DataFrame | None  # rates of the backing disks, added; None when they are the same
    # the tool's own rates by ``t_s``, reads and writes added; None without a series
    fio: pd.DataFrame | None
    fio_end_s: float  # end of the tool's I/O; NaN if unknown

    @property
    def length_s(self) -> float:
        """Sampled time in seconds."""
        return float(self.own["t_s"].max())


@dataclass(frozen=True)
class Place:
    """Position of a run on the shared axis, in units of the axis."""

    span: Span
    left: float
    per_s: float

    def at(self, seconds: float) -> float:
        """Return the position of a time in the run."""
        return self.left + seconds * self.per_s

    @property
    def right(self) -> float:
        """Position of its end."""
        return self.at(self.span.length_s)

    @property
    def fio_end(self) -> float:
        """Position of the tool's end; the end of the run if unknown."""
        end = self.span.fio_end_s
        return self.right if math.isnan(end) else min(self.right, self.at(end))

    def ticks(self, *, share: float) -> list[tuple[float, str]]:
        """Return tick positions with their times, as many as fit."""
        length = self.span.length_s
        most = max(3, round(share * _TICKS))
        step = next((step for step in _ROUND_S if length / step <= most), length)
        times = [step * count for count in range(int(length / step) + 1)]
        fitting = [time for time in times if (1 - time / length) * share >= _TICK_SHARE]
        return [(self.at(time), short_time(time)) for time in fitting]


def uses_of(frames: Frames, samples: pd.DataFrame) -> list[Row]:
    """Return rows of the USE table of the measured runs with samples, each with its label."""
    summary = measured(frames["summary"])
    is_repeated = bool((summary["repeat"] > 1).any())
    uses = use_rows(summary, samples)
    return [
        row | {"label": text(row, "label") + f" #{number(row, 'repeat'):.0f}" * is_repeated}
        for row in records(uses)
    ]


def spans_of(frames: Frames, samples: pd.DataFrame, uses: Sequence[Row]) -> list[Span]:
    """Return runs with samples, in the order of `uses`."""
    wanted = {text(row, "run") for row in uses}
    sampled, series, results = (
        dict(iter(frame[frame["run"].isin(wanted)].groupby("run", sort=False)))
        for frame in (samples, frames["series"], measured(frames["summary"]))
    )
    spans = []
    for row in uses:
        run = text(row, "run")
        moving = results[run][results[run]["direction"] != "sync"]
        starts = results[run]["started_utc"].dropna()
        clock = f", from {str(starts.iloc[0])[11:19]} UTC" if len(starts) else ""
        shapes = [workload_text({n: r[n] for n in _NAMED if r[n]}) for r in records(moving)]
        spans.append(
            Span(
                label=text(row, "label"),
                shape=f"{'; '.join(dict.fromkeys(shapes))}{clock}",
                use=row,
                own=sampled[run][sampled[run]["level"] == "volume"],
                backing=_backing(sampled[run]),
                fio=None if is_watched(results[run]).all() else _fio(series.get(run)),
                fio_end_s=fio_end_s(results[run]),
            )
        )
    return spans


def samples_of(frames: Frames) -> pd.DataFrame:
    """Return the samples of measured runs since the start of their I/O, in order of time."""
    samples = of_measured(frames["device"], measured(frames["summary"]))
    return samples[samples["t_s"] > 0].sort_values("t_s", ignore_index=True)


def lay_out(spans: Sequence[Span]) -> list[Place]:
    """Return the positions of consecutive runs, to scale unless a run would become invisible."""
    longest = max(span.length_s for span in spans)
    widths = [max(span.length_s, _MIN_WIDTH * longest) for span in spans]
    gap = GAP * sum(widths)
    places, left = [], 0.0
    for span, width in zip(spans, widths, strict=True):
        places.append(Place(span, left, width / span.length_s))
        left += width + gap
    return places


def _fio(series: pd.DataFrame | None) -> pd.DataFrame | None:
    if series is None:
        return None
    lines = series[["group", "direction"]].drop_duplicates().shape[0]
    rates = series.groupby("t_s")[["iops", "bw_bytes_per_s"]].sum(min_count=lines)
    return rates.reset_index()


def _backing(rows: pd.DataFrame) -> pd.DataFrame | None:
    moved = rows[["read_bw_bytes_per_s", "write_bw_bytes_per_s"]].sum(axis=1) * rows["interval_s"]
    upper, below = (float(moved[rows["level"] == level].sum()) for level in ("volume", "backing"))
    disks = rows[rows["level"] == "backing"]
    if disks.empty or abs(below - upper) <= 0.1 * upper:
        return None
    times = disks.assign(
        iops=disks["read_iops"] + disks["write_iops"],
        bw_bytes_per_s=disks["read_bw_bytes_per_s"] + disks["write_bw_bytes_per_s"],
    ).groupby("t_s")
    rates = times[["interval_s", "active_percent"]].max()
    return rates.join(times[["iops", "bw_bytes_per_s"]].sum(min_count=1)).reset_index()


@dataclass(frozen=True)
class Quantity:
    """One panel of the device view."""

    name: str  # of the axis
    columns: tuple[tuple[str, str], ...]  # of the device frame, with the key of each one's series
    format: str  # name in `FORMATS`
    is_by_direction: bool = True  # columns are reads and writes, so that one of zeros is left out
    overlay: str = ""  # column of fio's series, and of the backing disk, that is drawn over it
    limit: str = ""  # column of the USE table with the declared limit
    logarithm: int = 0  # base of the axis when values differ much; 0 for none
    is_share: bool = False  # the axis is a share of 100 %

    def shown(self, place: Place) -> list[tuple[str, str]]:
        """Return the columns with something to draw for a run."""
        samples = place.span.own
        known = [(name, key) for name, key in self.columns if samples[name].notna().any()]
        if not self.is_by_direction:
            return known
        return [(name, key) for name, key in known if samples[name].max() > 0] or known[:1]

    def sampled(self, places: Sequence[Place]) -> list[float]:
        """Return every value that the host reported."""
        parts = [place.span.own[name].dropna() for place in places for name, _ in self.columns]
        return [float(value) for part in parts for value in part]

    def by_fio(self, place: Place) -> list[float]:
        """Return the tool's own rates; of a run too short for a series, its mean."""
        rates, use = place.span.fio, place.span.use
        if rates is not None and self.overlay in rates:
            return [float(value) for value in rates[self.overlay].dropna()]
        moved, runtime_s = number(use, "tool_bytes"), number(use, "runtime_s")
        if self.overlay == "bw_bytes_per_s" and moved > 0 and runtime_s > 0:
            return [moved / runtime_s]
        return []

    def limits(self, places: Sequence[Place]) -> list[float]:
        """Return the declared limit of each run that has one."""
        if not self.limit:
            return []
        values = [number(place.span.use, self.limit) for place in places]
        return [value for value in values if not math.isnan(value)]

    def axis(self, places: Sequence[Place]) -> Axis | None:
        """Return the axis, logarithmic where values differ much; None without data."""
        by_fio = [value for place in places for value in self.by_fio(place)]
        values = self.sampled(places) or by_fio
        if not values:
            return None
        if self.is_share:
            return Axis(self.name, self.format, limits=(0.0, 108.0), ticks=(0.0, 50.0, 100.0))
        positive = [value for value in values if value > 0]
        low, high = min(positive, default=1.0), max(positive, default=1.0)
        if self.logarithm == 1 and high > _SPREAD * low:
            ticks = (0.0, *_powers(2 if high <= _FEW else 4, 1, high))
            return Axis(f"{self.name} (log)", self.format, "symlog", (0.0, 1.5 * high), ticks)
        if self.logarithm > 1 and high / low > _SPREAD:
            ticks = _powers(4, 1024, high) if self.logarithm == 2 else ()
            scale: Scale = "log2" if self.logarithm == 2 else "log"
            return Axis(f"{self.name} (log)", self.format, scale, (low / 1.6, high * 1.6), ticks)
        top = self._top(places, by_fio)
        step = 2.0 ** math.floor(math.log2(top / 2))
        ticks = tuple(step * n for n in range(int(top / step) + 1)) if self.logarithm == 2 else ()
        return Axis(self.name, self.format, limits=(0.0, top), ticks=ticks)

    def _top(self, places: Sequence[Place], by_fio: Sequence[float]) -> float:
        top = max(self.sampled(places), default=0.0) or max(by_fio, default=0.0)
        top = max([top, *(limit for limit in self.limits(places) if limit <= _FAR * top)])
        fitting = [value for value in by_fio if value <= _TOWERING * top]
        room = 1.12 if len(fitting) == len(by_fio) else 1.4  # for the text with the others
        return room * max([top, *fitting]) or 1.0


def _powers(base: int, first: int, end: float) -> tuple[float, ...]:
    count = max(1, math.ceil(math.log(end / first, base)) + 1)
    powers = tuple(float(first) * base**exponent for exponent in range(count))
    return powers[:: 1 + count // 6]


def _by_direction(column: str) -> tuple[tuple[str, str], ...]:
    return ((f"write_{column}", "write"), (f"read_{column}", "read"))


# From top to bottom
QUANTITIES = (
    Quantity(
        "Bandwidth",
        _by_direction("bw_bytes_per_s"),
        "rate",
        overlay="bw_bytes_per_s",
        limit="limit_bw_bytes_per_s",
    ),
    Quantity("IOPS", _by_direction("iops"), "count", overlay="iops", limit="limit_iops"),
    Quantity(
        "Active time",
        (("active_percent", "active"),),
        "percent",
        is_by_direction=False,
        overlay="active_percent",
        is_share=True,
    ),
    Quantity(
        "CPU",
        (("cpu_busy_percent", "busy"), ("iowait_percent", "iowait"), ("steal_percent", "steal")),
        "percent",
        is_by_direction=False,
        is_share=True,
    ),
    Quantity("Latency", _by_direction("lat_s"), "latency", logarithm=10),
    Quantity("Request size", _by_direction("request_bytes"), "size", logarithm=2),
    Quantity(
        "Dirty pages",
        (("dirty_bytes", "dirty"), ("writeback_bytes", "writeback")),
        "bytes",
        is_by_direction=False,
    ),
    Quantity(
        "Queue depth", (("queue_depth", "queue"),), "count", is_by_direction=False, logarithm=1
    ),
)
