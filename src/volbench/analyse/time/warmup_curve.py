"""Warm-up curve of each volume.

A first pass over fresh blocks climbs from a cold level to a plateau; a second pass with the same
settings shows the warm level. The penalty is 1 - cold / warm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from volbench.analyse.frames.resample import Floats, median
from volbench.analyse.frames.run_view import is_partial
from volbench.model.results.finding import Cause

_SAME = ("rw", "block_bytes", "iodepth", "numjobs", "direction", "direct", "ioengine")
# Share of the plateau that counts as nearly warm.
# Noticed by: test_warmup_curve.py::test_a_simulated_climb_is_recovered
_NEAR_WARM = 0.9
# Relative distance of a plateau from a declared limit: the spread of a throttle.
# Noticed by: test_warmup_curve.py::test_a_limit_hides_the_end_of_the_climb
_MAX_LIMIT_DISTANCE = 0.03
# Penalty from which a first pass without a second one counts as a climb.
# Noticed by: test_warmup_curve.py::test_a_filled_volume_has_no_warm_up_curve
_MIN_CLIMB = 0.15
# Penalty up to which fresh blocks cost nothing worth a word.
# Noticed by: test_warmup_curve.py::test_a_penalty_needs_the_verdict_that_blocks_got_warm
_MAX_NO_PENALTY = 0.1
# Intervals of a pass that has a curve.
# Noticed by: test_warmup_curve.py::test_intervals_without_all_jobs_are_left_out
_MIN_POINTS = 6
# Distance of two intervals, over the usual one, from which others are missing between them.
# Noticed by: test_warmup_curve.py::test_intervals_without_all_jobs_are_left_out
_MIN_GAP = 1.5
# I/Os of a point of the start, so that one late I/O does not bend it.
# Noticed by: test_warmup_curve.py::test_a_simulated_climb_is_recovered
_MIN_POINT_IOS = 8


@dataclass(frozen=True)
class Pass:
    """One run over a volume, interval by interval."""

    run: str  # its id
    t_s: Floats  # end of each interval, since its I/O began
    iops: Floats  # of each interval
    lat_s: Floats  # mean latency of each interval; NaN for none
    # intervals without a rate, because not all of its parallel jobs ran through them
    left_out: int = 0


@dataclass(frozen=True)
class Curve:
    """How a volume warmed up."""

    host: str  # where
    volume: str  # its target
    direction: str  # ``read`` or ``write``
    first: Pass  # the pass over fresh blocks
    second: Pass | None  # the same again on warm blocks; None when it was not run
    cold_iops: float  # level at the first touch, carried back to the very start
    plateau_iops: float  # level at the end of the first pass
    warm_iops: float  # median of the second pass, else the plateau
    penalty: float  # 1 - cold / warm; negative when fresh blocks were faster
    # until the first pass reached 90 % of the plateau, or of the warm level when it never got
    # steady; None when it did not reach that
    to_90_s: float | None
    to_steady_s: float | None  # until it stayed within 10 % of the plateau; None when it never did
    limit_iops: float  # declared; NaN without
    at_limit: bool  # whether the plateau is within 3 % of it
    is_fresh: bool = True  # whether the volume is known to have been fresh


@dataclass(frozen=True)
class Fill:
    """A pass of a warm-up over a whole volume, extent after extent."""

    host: str  # where
    volume: str  # its target
    job: str  # name of the job
    direction: str  # ``read`` or ``write``
    runs: tuple[str, ...]  # its runs, one an extent, in order
    moved_bytes: float  # written or read
    seconds: float  # that this took, without pauses between extents
    slowest_bytes_per_s: float  # of the extents
    fastest_bytes_per_s: float  # of the extents

    @property
    def bytes_per_s(self) -> float:
        """Mean rate of the pass."""
        return self.moved_bytes / self.seconds if self.seconds else math.nan


def curves(
    summary: pd.DataFrame, series: pd.DataFrame, verdicts: pd.DataFrame | None = None
) -> tuple[Curve, ...]:
    """Return a curve for each volume that was fresh, and each direction of its first run.

    The first pass is the very first run on the volume, if it was measured. The second pass is the
    next run there with the same pattern, block size, depth and engine. A first pass without a
    second one counts only when it climbed: any run is the first on some volume.

    Args:
        verdicts: of the runs; a penalty for fresh blocks is then only where they say that blocks
            got warm. Whether the volume of an imported result was fresh is not known: a run that
            climbed and a later one with equal options are drawn as before and after.
    """
    done = (summary["status"] == "finished").fillna(value=False)
    rows = summary[done & summary["direction"].isin(["read", "write"])]
    curves_by_volume: list[Curve] = []
    for _, mine in rows.groupby(["host", "volume"], sort=False):
        first_run = mine.iloc[0]["run"]
        for _, same in mine.groupby("direction", sort=False):
            row = same.iloc[0]
            is_imported = not pd.isna(row.get("import_folder"))
            if is_imported and not (row["run"] == first_run and _has_warmed(verdicts, row)):
                curves_by_volume += _before_and_after(same, series)
                continue
            if row["run"] != first_run or row["phase"] != "measured":
                continue
            first, second = _passes(same, series)
            if first is not None:
                curve = _curve(row, first, second)
                if curve.penalty > _MAX_NO_PENALTY and not _has_warmed(verdicts, row):
                    continue
                if second is not None or curve.penalty > _MIN_CLIMB:
                    curves_by_volume.append(curve)
    return tuple(curves_by_volume)


def _before_and_after(rows: pd.DataFrame, series: pd.DataFrame) -> Iterator[Curve]:
    """Yield a curve for each workload whose first run climbed, and which was run again."""
    for _, like in rows.groupby([*_SAME], sort=False, dropna=False):
        first, second = _passes(like, series)
        if first is not None and second is not None:
            row = like.iloc[0]
            curve = _curve(row, first, second)
            if curve.penalty > _MIN_CLIMB and curve.to_90_s:
                yield replace(curve, is_fresh=False)


def _has_warmed(verdicts: pd.DataFrame | None, row: pd.Series) -> bool:
    """Return whether blocks got warm by the verdict of a run's direction; true without any."""
    if verdicts is None:
        return True
    mine = verdicts[(verdicts["run"] == row["run"]) & (verdicts["direction"] == row["direction"])]
    return any(Cause.WARMING.value in str(causes).split(", ") for causes in mine["causes"])


def fills(summary: pd.DataFrame) -> tuple[Fill, ...]:
    """Return each pass of a preparing job over its volume, in the order of the plan."""
    done = summary["phase"].isin(["warmup", "precondition"]) & (summary["status"] == "finished")
    rows = summary[done.fillna(value=False) & summary["direction"].isin(["read", "write"])]
    fills_by_volume = []
    keys = ["host", "volume", "job", "repeat", "direction"]
    for (host, volume, job, _, direction), mine in rows.groupby(keys, sort=False):
        rates = mine["bw_bytes_per_s"].astype(float)
        fills_by_volume.append(
            Fill(
                host=str(host),
                volume=str(volume),
                job=str(job),
                direction=str(direction),
                runs=tuple(str(run) for run in mine["run"].unique()),
                moved_bytes=float(mine["io_bytes"].sum()),
                seconds=float(mine["runtime_s"].sum()),
                slowest_bytes_per_s=float(rates.min()),
                fastest_bytes_per_s=float(rates.max()),
            )
        )
    return tuple(fills_by_volume)


def _passes(rows: pd.DataFrame, series: pd.DataFrame) -> tuple[Pass | None, Pass | None]:
    """Return the first run, and the next measured one that is like it; None where too short."""
    passes: list[Pass | None] = []
    settings: list[object] = []
    for _, row in rows[rows["phase"] == "measured"].drop_duplicates("run").iterrows():
        like = [None if pd.isna(row[name]) else row[name] for name in _SAME]
        if passes and like != settings:
            continue
        settings = like
        whole_pass = _pass_of_run(series, run=str(row["run"]), direction=str(row["direction"]))
        passes.append(whole_pass if len(whole_pass.t_s) >= _MIN_POINTS else None)
    return (passes[0] if passes else None), (passes[1] if len(passes) > 1 else None)


def _pass_of_run(series: pd.DataFrame, *, run: str, direction: str) -> Pass:
    mine = series[(series["run"] == run) & (series["direction"] == direction)]
    mine = mine.dropna(subset=["iops"])
    whole = mine[~is_partial(mine)]
    groups = whole.assign(time=whole["lat_mean_s"] * whole["iops"]).groupby("t_s")
    added = groups[["iops", "time"]].sum(min_count=1)
    added = added[groups.size() == mine["group"].nunique(dropna=False)]
    iops = added["iops"].to_numpy(dtype=float)
    time_s = added["time"].to_numpy(dtype=float)
    busy = iops > 0
    lat_s = np.divide(time_s, iops, out=np.full(len(iops), np.nan), where=busy)
    left_out = mine["t_s"].nunique() - len(added)
    return Pass(run, added.index.to_numpy(dtype=float), iops, lat_s, left_out)


def _curve(row: pd.Series, first: Pass, second: Pass | None) -> Curve:
    plateau = plateau_of(first.iops)
    cold = cold_level(first.t_s, first.iops, plateau=plateau)
    warm = plateau if second is None else median(second.iops)
    limit = float(row["limit_iops"])
    steady_s = time_to_steady(first.t_s, first.iops, plateau=plateau)
    reference = warm if steady_s is None else plateau
    near_s = time_to_level(first.t_s, first.iops, level=_NEAR_WARM * reference)
    if steady_s and near_s:
        steady_s = max(steady_s, near_s)  # 90 % are reached within an interval, not at its start
    return Curve(
        host=str(row["host"]),
        volume=str(row["volume"]),
        direction=str(row["direction"]),
        first=first,
        second=second,
        cold_iops=cold,
        plateau_iops=plateau,
        warm_iops=warm,
        penalty=1 - cold / warm if warm else math.nan,
        to_90_s=near_s,
        to_steady_s=steady_s,
        limit_iops=limit,
        at_limit=bool(abs(plateau / limit - 1) <= _MAX_LIMIT_DISTANCE) if limit else False,
    )


def plateau_of(iops: Floats) -> float:
    """Return the level at the end: the median of the last fifth, of 5 intervals at least."""
    return median(iops[-max(5, len(iops) // 5) :])


def cold_level(t_s: Floats, iops: Floats, *, plateau: float) -> float:
    """Return the IOPS of the very first touch.

    While blocks get warm, the mean time of an I/O falls with the I/Os done. A line through the
    times of the first part, carried back to no I/O at all, gives the cold level; the first interval
    alone would be too high, for blocks get warm within it.
    """
    done, each_s = _time_of_each(t_s, iops)
    if len(done) < 3:
        return float(iops[:_MIN_POINTS].mean())
    early = median(1 / each_s[:3])
    if early >= _NEAR_WARM * plateau:
        return early
    rising = each_s > (each_s[0] + 1 / plateau) / 2
    count = max(3, int(np.argmin(rising)) if not rising.all() else len(rising))
    slope, start_s = np.polyfit(done[:count], each_s[:count], 1)
    if slope >= 0 or start_s <= 0:
        return early
    return float(np.clip(1 / start_s, 0.5 / each_s[0], early))


def _time_of_each(t_s: Floats, iops: Floats) -> tuple[Floats, Floats]:
    """Return, for stretches of enough I/Os, the I/Os done by their middle and seconds per I/O."""
    widths_s = _widths_s(t_s)
    done, each_s = [], []
    total = ios = seconds = 0.0
    for width, count in zip(widths_s, iops * widths_s, strict=True):
        ios, seconds = ios + count, seconds + width
        if ios >= _MIN_POINT_IOS:
            done.append(total + ios / 2)
            each_s.append(seconds / ios)
            total, ios, seconds = total + ios, 0.0, 0.0
    return np.array(done), np.array(each_s)


def _widths_s(t_s: Floats) -> Floats:
    """Return the lengths of intervals, of which some may have been left out."""
    steps_s = np.diff(t_s, prepend=0.0)
    usual_s = median(steps_s) if len(steps_s) else 0.0
    widths_s: Floats = np.where(steps_s > _MIN_GAP * usual_s, usual_s, steps_s)
    return widths_s


def time_to_level(t_s: Floats, iops: Floats, *, level: float) -> float | None:
    """Return when the rise reached a level for good, in seconds since I/O began; None for never.

    The noise is taken out by the best fit that never falls (isotonic regression), so that neither a
    lucky interval nor a dip decides.
    """
    fitted = _never_falling(iops)
    middles = t_s - _widths_s(t_s) / 2
    index = int(np.argmax(fitted >= level))
    if fitted[index] < level:
        return None
    if index == 0:
        return 0.0
    low, high = fitted[index - 1], fitted[index]
    share = (level - low) / (high - low)
    return float(middles[index - 1] + share * (middles[index] - middles[index - 1]))


def _never_falling(values: Floats) -> Floats:
    """Return the best fit in least squares that never falls (isotonic regression).

    Pool-adjacent-violators: a value below the mean of the pool before it joins that pool (Best and
    Chakravarti, Mathematical Programming 47, 1990). Importing scipy.optimize for it takes longer
    than judging a hundred runs.
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            mean = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            size += sizes.pop()
            means.pop()
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def time_to_steady(
    t_s: Floats, iops: Floats, *, plateau: float, within: float = 0.1
) -> float | None:
    """Return since when the running median stays near the plateau; None when only at the end."""
    width = max(3, len(iops) // 50) | 1
    smooth = pd.Series(iops).rolling(width, center=True, min_periods=1).median().to_numpy()
    away = np.flatnonzero(np.abs(smooth - plateau) > within * plateau)
    if not len(away):
        return 0.0
    since = int(away[-1]) + 1
    if since > len(t_s) - max(5, len(t_s) // 10):
        return None
    return float(t_s[since - 1])
