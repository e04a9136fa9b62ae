"""Steady state of a series, and of rounds by the criterion of SNIA.

A series is steady when it is shown to be flat, not merely when no test finds a change: the upper
95 % bound of the drift over the window must stay within 10 % of the median, without any jump.

SNIA's Performance Test Specification (PTS 2.0.2, 2.1.24) asks that over a window of five rounds the
range of the tracking variable is at most 20 % of its mean, and that the fitted line changes by at
most 10 % of the mean within the window. The repeat of a run is its round. The rule was made for
drives in a laboratory: on clouds it rejects volumes that are steady but noisy and accepts slow
declines, and volbench certifies no run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.analyse.frames.resample import Floats, interval_of, median
from volbench.analyse.time.change_points import (
    Change,
    block_length_s,
    block_medians,
    find_changes,
    inflation_of,
)
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.model.results.steadiness import State

# Upper 95 % bound of the drift over the window: as much as SNIA PTS 2.0.2 allows the fitted line.
# Noticed by: test_steady_state.py::test_a_decline_is_not_steady
MAX_DRIFT = 0.10
# Blocks of a window: with fewer, the interval of Theil and Sen spans all slopes.
# Noticed by: test_steady_state.py::test_short_data_give_no_verdict
MIN_BLOCKS = 8
# Factor from a 95 % interval to one that a steady series leaves out in 1 of 200 runs.
# Noticed by: test_steady_state.py::test_a_decline_is_reported_with_its_size
_SURE = 2.8 / 1.959963984540054
_NORMAL_95 = 1.959963984540054  # Quantile 0.975 of the normal distribution
# Theil-Sen compares all pairs: a thousand blocks are half a million. Noticed by: test_segments.py
_MAX_BLOCKS = 1000
# Added to every determination
CRITERION = "according to SNIA PTS 2.0.2's criterion; not a certified run"
_NAN = float("nan")
# Rounds of the window (SNIA PTS 2.0.2, 2.1.24).
# Noticed by: test_snia.py::test_fewer_than_five_rounds_have_no_window
ROUNDS = 5
# Range of the tracking variable over its mean (SNIA PTS 2.0.2, 2.1.24).
# Noticed by: test_snia.py::test_range_and_slope_are_within_limits
MAX_RANGE = 0.20
# Change of the fitted line over the window, over the mean (SNIA PTS 2.0.2, 2.1.24).
# Noticed by: test_snia.py::test_range_and_slope_are_within_limits
MAX_SLOPE = 0.10


@dataclass(frozen=True)
class Steadiness:
    """A verdict and the numbers it rests on."""

    # steady; drifting: it moves evenly; stepped: it jumped; noisy: too restless to say; too-short:
    # fewer than 8 blocks
    state: State
    from_s: float  # begin of the window
    to_s: float  # end of the window
    block_s: float  # length of the blocks
    blocks: int  # how many
    median: float  # of the blocks
    spread: float  # 1.4826 times the median absolute deviation of the blocks, over the median
    drift: float  # Theil-Sen slope times the window, over the median
    drift_bound: float  # the larger of the ends of its 95 % interval, without sign
    changes: tuple[Change, ...] = ()  # jumps in the window


def judge_steady(t_s: Floats, values: Floats, *, block_s: float | None = None) -> Steadiness:
    """Judge a window.

    Args:
        block_s: length of the blocks; None for 30 s, or less where that gives fewer than 40.
    """
    if not len(values):
        nan = float("nan")
        return Steadiness(State.TOO_SHORT, 0.0, 0.0, 0.0, 0, nan, nan, nan, nan)
    length_s = max(
        block_length_s(t_s, block_s), math.ceil(len(t_s) / _MAX_BLOCKS) * interval_of(t_s)
    )
    blocks = block_medians(t_s, values, block_s=length_s)
    usual = median(blocks if len(blocks) else values)
    drift, bound, sign = _drift(blocks, usual)
    changes = find_changes(t_s, values, block_s=length_s)
    deviation = 1.4826 * median(np.abs(blocks - usual)) if len(blocks) else 0.0
    return Steadiness(
        state=_state(len(blocks), drift=drift, bound=bound, has_sign=sign, changes=changes),
        from_s=float(t_s[0]) - interval_of(t_s),
        to_s=float(t_s[-1]),
        block_s=length_s,
        blocks=len(blocks),
        median=usual,
        spread=deviation / usual if usual else float("nan"),
        drift=drift,
        drift_bound=bound,
        changes=changes,
    )


def judge_last(
    t_s: Floats, values: Floats, *, window_s: float, block_s: float | None = None
) -> Steadiness:
    """Judge the last seconds of a series, as `judge_steady` does."""
    last = t_s > (t_s[-1] - window_s if len(t_s) else 0.0)
    return judge_steady(t_s[last], values[last], block_s=block_s)


def steady_end(t_s: Floats, values: Floats, judged: Steadiness) -> Steadiness | None:
    """Return the steady stretch at the end of a series; None where there is none.

    It is the whole of a steady series, and else what came after the last jump, if that is steady
    for at least 8 blocks as long as those of the whole. A burst, a climb or a dip that ended in a
    jump is no part of it.
    """
    if judged.state is State.STEADY:
        return judged
    if not judged.changes:
        return None
    tail = judge_last(
        t_s, values, window_s=judged.to_s - judged.changes[-1].t_s, block_s=judged.block_s
    )
    return tail if tail.state is State.STEADY else None


def _drift(blocks: Floats, usual: float) -> tuple[float, float, bool]:
    """Return drift over the window, its 95 % bound, and whether its 99.5 % interval leaves out 0.

    The interval of Theil and Sen is widened by the autocorrelation of the blocks.
    """
    if len(blocks) < 2 or not usual:
        return float("nan"), float("inf"), False
    slope, low, high = theil_sen(blocks)
    level = median(blocks) - slope * (len(blocks) - 1) / 2
    residuals = blocks - level - slope * np.arange(len(blocks))
    scale = 1.4826 * median(np.abs(residuals))
    wider = inflation_of(residuals / scale) if scale else 1.0
    low, high = slope - wider * (slope - low), slope + wider * (high - slope)
    window = len(blocks) / usual
    ends = slope - _SURE * (slope - low), slope + _SURE * (high - slope)
    return slope * window, max(abs(low), abs(high)) * window, ends[0] * ends[1] > 0


def theil_sen(values: Floats) -> tuple[float, float, float]:
    """Return the median slope of all pairs of values and the ends of its 95 % interval (Sen 1968).

    Ties make the interval narrower, as in Sen's equation 2.6.
    """
    first, second = np.triu_indices(len(values), k=1)
    slopes = np.sort((values[second] - values[first]) / (second - first))
    ties = np.unique(values, return_counts=True)[1].astype(float)
    count = float(len(values))
    variance = count * (count - 1) * (2 * count + 5)
    variance -= float((ties * (ties - 1) * (2 * ties + 5)).sum())
    reach = _NORMAL_95 * math.sqrt(variance / 18)
    upper = min(round((len(slopes) + reach) / 2), len(slopes) - 1)
    lower = max(round((len(slopes) - reach) / 2) - 1, 0)
    return median(slopes), float(slopes[lower]), float(slopes[upper])


def _state(
    blocks: int, *, drift: float, bound: float, has_sign: bool, changes: tuple[Change, ...]
) -> State:
    if blocks < MIN_BLOCKS:
        return State.TOO_SHORT
    if changes:
        return State.STEPPED
    if bound <= MAX_DRIFT:
        return State.STEADY
    return State.DRIFTING if has_sign and abs(drift) > MAX_DRIFT / 2 else State.NOISY


@dataclass(frozen=True)
class Part:
    """Result of one direction of a tracked job."""

    iops: float  # a second
    bw_bytes_per_s: float  # bytes a second
    lat_mean_s: float  # mean total latency
    total_ios: float  # that it is the mean of


@dataclass(frozen=True)
class Variable:
    """A tracking variable over the rounds."""

    track: Track  # job and metric
    # values from the first round on, in I/Os a second, bytes a second or seconds; NaN where a round
    # has none
    by_round: tuple[float, ...]
    judged: Snia  # of the window
    # change a round of the line fitted to the window; it goes through the mean at the window's
    # middle. NaN without five rounds.
    slope: float


@dataclass(frozen=True)
class Determination:
    """Whether, and when, all tracking variables became steady."""

    rounds: int  # that were measured, whole or in part
    max_rounds: int  # that were planned
    # the first round that ended a window in which all variables pass; None for none
    at_round: int | None
    # first and last round judged: the steady window, else the last five rounds; None with fewer
    # than five
    window: tuple[int, int] | None
    variables: tuple[Variable, ...]  # in the order of the profile

    @property
    def is_steady(self) -> bool:
        """Whether steady state was achieved."""
        return self.at_round is not None

    @property
    def is_over(self) -> bool:
        """Whether no round is needed any more."""
        return self.is_steady or self.rounds >= self.max_rounds

    @property
    def words(self) -> str:
        """The outcome in a sentence."""
        if self.at_round is not None:
            return f"steady state at round {self.at_round}, {CRITERION}"
        if self.rounds >= self.max_rounds:
            return f"steady state not achieved in {self.rounds} rounds, {CRITERION}"
        return f"not steady after {self.rounds} of at most {self.max_rounds} rounds, {CRITERION}"


def combined(parts: Iterable[Part], metric: Metric) -> float:
    """Return a metric over all directions of a job; NaN for none.

    Rates are added. The latency is that of all I/Os: each direction weighs by its count.
    """
    known = list(parts)
    if not known:
        return _NAN
    if metric is Metric.IOPS:
        return float(sum(rates.iops for rates in known))
    if metric is Metric.BW:
        return float(sum(rates.bw_bytes_per_s for rates in known))
    moved = [rates for rates in known if rates.total_ios]
    total = sum(rates.total_ios for rates in moved)
    return sum(rates.lat_mean_s * rates.total_ios for rates in moved) / total if total else _NAN


def determine(values: Mapping[Track, Sequence[float]], *, max_rounds: int) -> Determination:
    """Judge tracking variables, round by round from the first on.

    Args:
        values: of each variable, NaN where a round has none; shorter ones lack their last rounds.
    """
    rounds = max((len(rates) for rates in values.values()), default=0)
    padded = {
        track: (*map(float, rates), *[_NAN] * (rounds - len(rates)))
        for track, rates in values.items()
    }
    at_round = next(
        (
            end
            for end in range(ROUNDS, rounds + 1)
            if all(judge_snia(rates[end - ROUNDS : end]).steady for rates in padded.values())
        ),
        None,
    )
    last = at_round or rounds
    window = (last - ROUNDS + 1, last) if last >= ROUNDS else None
    return Determination(
        rounds=rounds,
        max_rounds=max_rounds,
        at_round=at_round,
        window=window,
        variables=tuple(
            Variable(track, rates, judge_snia(rates[:last]), _slope(rates[:last]))
            for track, rates in padded.items()
        ),
    )


def determination(summary: pd.DataFrame, rounds: Rounds, *, profile: str) -> Determination:
    """Judge the rounds of a profile.

    Args:
        rounds: as the profile said; ``campaign.rounds[profile]``.
    """
    rows = measured(summary)
    rows = rows[(rows["profile"] == profile) & (rows["direction"] != "sync")]
    values = {
        track: _metric_by_round(rows[rows["job"] == track.job], track.metric)
        for track in rounds.track
    }
    return determine(values, max_rounds=rounds.max_rounds)


def window_matrix(
    summary: pd.DataFrame, determined: Determination, *, profile: str, metric: Metric = Metric.IOPS
) -> pd.DataFrame:
    """Return the results of each job over the window, as in SNIA's tables.

    Returns:
        A row for each job, most reads first and then large blocks first: ``job``, ``mix`` (such
        as ``65/35``, reads before writes), ``read_percent`` and ``block_bytes`` (nullable ints),
        ``mean``, ``min`` and ``max`` (float: 1/s, bytes/s or s) and ``rounds`` (int: how
        many of the window's have it). Empty without a window.
    """
    rows = measured(summary)
    rows = rows[(rows["profile"] == profile) & (rows["direction"] != "sync")]
    first, last = determined.window or (1, 0)
    rows = rows[rows["repeat"].between(first, last)]
    cells = [
        _window_row(str(job), job_rows, metric) for job, job_rows in rows.groupby("job", sort=False)
    ]
    columns = ["job", "mix", "read_percent", "block_bytes", "mean", "min", "max", "rounds"]
    frame = pd.DataFrame(cells, columns=columns)
    frame = frame.astype({"read_percent": "Int64", "block_bytes": "Int64", "rounds": "int64"})
    by = ["read_percent", "block_bytes"]
    return frame.sort_values(by, ascending=False, kind="stable", ignore_index=True)


def _metric_by_round(rows: pd.DataFrame, metric: Metric) -> list[float]:
    last = 0 if rows.empty else int(rows["repeat"].max())
    return [
        combined(_directions_of_round(rows[rows["repeat"] == number]), metric)
        for number in range(1, last + 1)
    ]


def _directions_of_round(rows: pd.DataFrame) -> list[Part]:
    columns = ["iops", "bw_bytes_per_s", "lat_mean_s", "total_ios"]
    values = rows[columns].astype("float64").fillna({"total_ios": 0.0})
    return [Part(*map(float, row)) for row in values.to_numpy()]


def _window_row(job: str, rows: pd.DataFrame, metric: Metric) -> dict[str, object]:
    values = np.array(
        [
            combined(_directions_of_round(round_rows), metric)
            for _, round_rows in rows.groupby("repeat")
        ]
    )
    known = values[~np.isnan(values)]
    share = _read_percent(rows)
    blocks = rows["block_bytes"].dropna().unique()
    return {
        "job": job,
        "mix": "" if share is None else f"{share}/{100 - share}",
        "read_percent": share,
        "block_bytes": int(blocks[0]) if len(blocks) == 1 else None,
        "mean": float(known.mean()) if len(known) else _NAN,
        "min": float(known.min()) if len(known) else _NAN,
        "max": float(known.max()) if len(known) else _NAN,
        "rounds": len(known),
    }


def _read_percent(rows: pd.DataFrame) -> int | None:
    shares = rows["rwmixread"].dropna().unique()
    if len(shares):
        return int(shares[0]) if len(shares) == 1 else None
    directions = set(rows["direction"])
    return {frozenset({"read"}): 100, frozenset({"write"}): 0}.get(frozenset(directions))


def _slope(values: Sequence[float]) -> float:
    if len(values) < ROUNDS:
        return _NAN
    window = values[-ROUNDS:]
    return (2 * (window[4] - window[0]) + window[3] - window[1]) / 10


@dataclass(frozen=True)
class Snia:
    """The judgement."""

    steady: bool  # whether the last five rounds pass
    values: tuple[float, ...]  # of the last five rounds, or of fewer when there are no five
    mean: float  # of them
    range_ratio: float  # (maximum - minimum) / mean; NaN with fewer than five
    slope_ratio: float  # change of the fitted line over the window, of the mean; NaN with fewer


def judge_snia(rounds: Sequence[float]) -> Snia:
    """Judge rounds of a tracking variable, exactly as the specification says."""
    window = rounds[-ROUNDS:]
    is_whole = len(window) == ROUNDS
    range_ratio, slope_ratio = _ratios(window) if is_whole else (_NAN, _NAN)
    return Snia(
        steady=range_ratio <= MAX_RANGE and slope_ratio <= MAX_SLOPE,
        values=tuple(float(value) for value in window),
        mean=float(np.mean(window)) if len(window) else _NAN,
        range_ratio=range_ratio,
        slope_ratio=slope_ratio,
    )


def _ratios(window: Sequence[float]) -> tuple[float, float]:
    mean = float(np.mean(window))
    if mean == 0:
        return float("inf"), float("inf")
    # Least squares over five even steps, in closed form: exact at the bound, unlike a solver.
    slope = (2 * (window[4] - window[0]) + window[3] - window[1]) / 10
    return (max(window) - min(window)) / mean, abs(slope) * (ROUNDS - 1) / mean
