"""Steady state over rounds, as the SNIA Performance Test Specification defines it.

PTS 2.0.2, 2.1.24: over a window of five rounds the range of the tracking variable is at most 20 %
of its mean, and the line fitted to it changes by at most 10 % of the mean within the window. The
rule was made for drives in a laboratory. On clouds it rejects volumes that are steady but noisy
and accepts slow declines: volbench reports it, never alone. It is the criterion alone: a run is
certified by nothing that volbench does. The repeat of a run is its round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.analyse.frames.resample import Floats, interval_of
from volbench.model.profile.profile_settings import Metric, Rounds, Track

# Added to every determination
CRITERION = "according to SNIA PTS 2.0.2's criterion; not a certified run"

_NAN = float("nan")


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
        return float(sum(part.iops for part in known))
    if metric is Metric.BW:
        return float(sum(part.bw_bytes_per_s for part in known))
    moved = [part for part in known if part.total_ios]
    total = sum(part.total_ios for part in moved)
    return sum(part.lat_mean_s * part.total_ios for part in moved) / total if total else _NAN


def determine(values: Mapping[Track, Sequence[float]], *, max_rounds: int) -> Determination:
    """Judge tracking variables, round by round from the first on.

    Args:
        values: of each variable, NaN where a round has none; shorter ones lack their last rounds.
    """
    rounds = max((len(own) for own in values.values()), default=0)
    padded = {
        track: (*map(float, own), *[_NAN] * (rounds - len(own))) for track, own in values.items()
    }
    at_round = next(
        (
            end
            for end in range(ROUNDS, rounds + 1)
            if all(judge_snia(own[end - ROUNDS : end]).steady for own in padded.values())
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
            Variable(track, own, judge_snia(own[:last]), _slope(own[:last]))
            for track, own in padded.items()
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
        track: _values(rows[rows["job"] == track.job], track.metric) for track in rounds.track
    }
    return determine(values, max_rounds=rounds.max_rounds)


def window_matrix(
    summary: pd.DataFrame, found: Determination, *, profile: str, metric: Metric = Metric.IOPS
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
    first, last = found.window or (1, 0)
    rows = rows[rows["repeat"].between(first, last)]
    cells = [_cell(str(job), own, metric) for job, own in rows.groupby("job", sort=False)]
    columns = ["job", "mix", "read_percent", "block_bytes", "mean", "min", "max", "rounds"]
    frame = pd.DataFrame(cells, columns=columns)
    frame = frame.astype({"read_percent": "Int64", "block_bytes": "Int64", "rounds": "int64"})
    by = ["read_percent", "block_bytes"]
    return frame.sort_values(by, ascending=False, kind="stable", ignore_index=True)


def _values(rows: pd.DataFrame, metric: Metric) -> list[float]:
    """Return a metric of one job, round by round."""
    last = 0 if rows.empty else int(rows["repeat"].max())
    return [
        combined(_parts(rows[rows["repeat"] == number]), metric) for number in range(1, last + 1)
    ]


def _parts(rows: pd.DataFrame) -> list[Part]:
    columns = ["iops", "bw_bytes_per_s", "lat_mean_s", "total_ios"]
    values = rows[columns].astype("float64").fillna({"total_ios": 0.0})
    return [Part(*map(float, row)) for row in values.to_numpy()]


def _cell(job: str, rows: pd.DataFrame, metric: Metric) -> dict[str, object]:
    values = np.array([combined(_parts(own), metric) for _, own in rows.groupby("repeat")])
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
    """Return the share of reads that was asked for; None where jobs of several mixes are in it."""
    shares = rows["rwmixread"].dropna().unique()
    if len(shares):
        return int(shares[0]) if len(shares) == 1 else None
    directions = set(rows["direction"])
    return {frozenset({"read"}): 100, frozenset({"write"}): 0}.get(frozenset(directions))


def _slope(values: Sequence[float]) -> float:
    """Return the least-squares slope over the last five values, a round."""
    if len(values) < ROUNDS:
        return _NAN
    window = values[-ROUNDS:]
    return (2 * (window[4] - window[0]) + window[3] - window[1]) / 10


ROUNDS = 5
MOST_RANGE = 0.20
MOST_SLOPE = 0.10
WANTED_ROUNDS = 25  # The specification ends after 25 rounds; a series is cut into at most as many


@dataclass(frozen=True)
class Snia:
    """The judgement."""

    steady: bool  # whether the last five rounds pass
    round_s: float  # length of a round; 0 when rounds were given as such
    values: tuple[float, ...]  # of the last five rounds, or of fewer when there are no five
    mean: float  # of them
    range_ratio: float  # (maximum - minimum) / mean; NaN with fewer than five
    slope_ratio: float  # change of the fitted line over the window, of the mean; NaN with fewer
    at_round: int | None  # number, from 1, of the first round that ended a window that passed


def judge_snia(rounds: Sequence[float], *, round_s: float = 0.0) -> Snia:
    """Judge rounds of a tracking variable, exactly as the specification says."""
    passed = next(
        (
            end
            for end in range(ROUNDS, len(rounds) + 1)
            if _passes(*_ratios(rounds[end - ROUNDS : end]))
        ),
        None,
    )
    window = rounds[-ROUNDS:]
    whole = len(window) == ROUNDS
    range_ratio, slope_ratio = _ratios(window) if whole else (float("nan"), float("nan"))
    return Snia(
        steady=whole and _passes(range_ratio, slope_ratio),
        round_s=round_s,
        values=tuple(float(value) for value in window),
        mean=float(np.mean(window)) if len(window) else float("nan"),
        range_ratio=range_ratio,
        slope_ratio=slope_ratio,
        at_round=passed,
    )


def snia_rounds(t_s: Floats, values: Floats, *, round_s: float | None = None) -> Snia:
    """Cut a series into rounds of equal length, the mean of each being its value, and judge them.

    Args:
        round_s: length of a round; None for 60 s, or less so that there are five at least.
    """
    sample_s = interval_of(t_s)
    wanted = 60.0 if round_s is None else round_s
    if round_s is None:
        wanted = max(min(wanted, len(values) * sample_s / ROUNDS), sample_s)
        wanted = max(wanted, len(values) * sample_s / WANTED_ROUNDS)
    size = max(1, int(wanted / sample_s + 1e-9))
    count = len(values) // size
    means = values[len(values) - count * size :].reshape(count, size).mean(axis=1)
    return judge_snia([float(mean) for mean in means], round_s=size * sample_s)


def _ratios(window: Sequence[float]) -> tuple[float, float]:
    mean = float(np.mean(window))
    if mean == 0:
        return float("inf"), float("inf")
    # Least squares over five even steps, in closed form: exact at the bound, unlike a solver.
    slope = (2 * (window[4] - window[0]) + window[3] - window[1]) / 10
    return (max(window) - min(window)) / mean, abs(slope) * (ROUNDS - 1) / mean


def _passes(range_ratio: float, slope_ratio: float) -> bool:
    return range_ratio <= MOST_RANGE and slope_ratio <= MOST_SLOPE
