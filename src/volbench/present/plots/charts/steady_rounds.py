"""Rounds until steady: convergence, measurement window, and means over read/write mixes.

They are the plots that SNIA's Performance Test Specification asks for: every cell over the rounds,
and the tracking variables within the window with their mean, a band of 10 % around it and the line
that fits them best. The repeat of a run is its round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.analyse.time.steady_state import (
    MAX_RANGE,
    MAX_SLOPE,
    Determination,
    Variable,
    determination,
    window_matrix,
)
from volbench.model.profile.profile_settings import Metric
from volbench.present.formatting import printable
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.metrics import BANDWIDTH, IOPS, MEAN_LATENCY, shared_tops
from volbench.present.plots.metrics import Metric as Quantity
from volbench.present.plots.selection import not_shown
from volbench.units import counted_noun, format_percent, format_size

QUANTITIES: Mapping[Metric, Quantity] = {
    Metric.IOPS: IOPS,
    Metric.BW: BANDWIDTH,
    Metric.LAT_MEAN: MEAN_LATENCY,
}
_MAX_VARIABLES = 6
_BAND = 0.10  # Around the mean, as SNIA's PTS 2.0.2 draws it. Noticed by: test_conditioning.py
_PANEL_IN = 1.8
_CRITERION = (
    f"Steady: a range of at most {format_percent(MAX_RANGE)} of the mean, and a slope of at most"
    f" {format_percent(MAX_SLOPE)}"
)


@dataclass(frozen=True)
class JudgedRounds:
    """The rounds of one profile with their determination."""

    determination: Determination  # the determination of the tracking variables
    jobs: int  # of each round
    names: Mapping[str, str]  # job to its mix and block size, such as ``65/35 4k``
    hosts: int  # number of hosts whose rates are added up

    @property
    def sums(self) -> str:
        """Return the sentence that says what is added up; empty for one host."""
        return f"Rates are sums over {self.hosts} hosts" if self.hosts > 1 else ""

    @property
    def outcome(self) -> str:
        """Return the outcome as a sentence."""
        return self.determination.words[:1].upper() + self.determination.words[1:]


def judge_rounds(frames: Frames, options: Options) -> JudgedRounds | str:
    """Judge the rounds of the profile that asks for them; repeats are none."""
    rows = measured(frames["summary"])
    rows = rows[(rows["direction"] != "sync") & rows["profile"].isin(options.rounds)]
    if reason := _missing_rounds(rows):
        return reason
    profile = str(rows["profile"].iloc[0])
    jobs = [str(job) for job in rows["job"].unique()]
    count = int(rows["repeat"].max())
    determined = determination(rows, options.rounds[profile], profile=profile)
    whole = determined if determined.window else replace(determined, window=(1, count))
    matrix = window_matrix(rows, whole, profile=profile)
    names = _names_of_jobs(matrix)
    return JudgedRounds(determined, len(jobs), names, len(rows["host"].unique()))


def _missing_rounds(rows: pd.DataFrame) -> str:
    if rows.empty:
        return "no rounds: no profile has them; add rounds to it, or use one such as cloud-lite"
    for column in ("campaign", "profile"):
        if len(rows[column].unique()) > 1:
            return f"several {column}s: choose one with --where '{column}==...'"
    if rows["iops"].isna().all():
        return "no IOPS: not reported by any run"
    if int(rows["repeat"].max()) < 2:
        return "no second round yet"
    hosts = rows.groupby(["job", "repeat"])["host"].agg(frozenset)
    if hosts.groupby(level="job").nunique().gt(1).any():
        return "not every host has every round, so sums differ: choose one with --where 'host==...'"
    return ""


def _names_of_jobs(matrix: pd.DataFrame) -> dict[str, str]:
    """Return block size and mix of each job, or its name where these do not tell it apart."""
    known = matrix[(matrix["mix"] != "") & matrix["block_bytes"].notna()]
    names = {
        str(job): f"{format_size(float(size))}, {str(mix).partition('/')[0]} % reads"
        for job, size, mix in zip(known["job"], known["block_bytes"], known["mix"], strict=True)
    }
    return names if len({*names.values()}) == matrix["job"].nunique() else {}


def _rounds_axis(judged: JudgedRounds) -> Axis:
    rounds = judged.determination.rounds
    step = -(-rounds // 12)
    ticks = tuple(float(number) for number in range(1, rounds + 1, step))
    return Axis("Round", "count", limits=(0.6, rounds + 0.4), ticks=ticks)


def build_window(judged: JudgedRounds) -> Plot:
    """Draw each tracking variable with mean, band and fitted line."""
    variables = judged.determination.variables
    drawn = variables[:_MAX_VARIABLES]
    fewer = not_shown(len(drawn), len(variables), "variables")
    rows = [_variable_rows(variable, judged) for variable in drawn]
    tops = shared_tops(
        [variable.track.metric for variable in drawn], [float(r["value"].max()) for r in rows]
    )
    panels = [
        _variable_panel(variable, each, judged, top)
        for variable, each, top in zip(drawn, rows, tops, strict=True)
    ]
    return replace(
        grid(panels, height_in=_PANEL_IN, abreast=2),
        answer=f"{printable(judged.outcome)}.",
        width_in=11,
        series=(
            Series("rounds", "rounds", "muted", "circle"),
            Series("mean", "mean of the window", "palette-0", dash="dashed"),
            Series("fit", "linear fit", "palette-1"),
            Series("window", "window", "palette-0", "circle"),
        ),
        caption=(
            "Band: 10 % around the window's mean. Line: least squares",
            _CRITERION,
            judged.sums,
            fewer,
        ),
        rows=pd.concat(rows, ignore_index=True),
    )


def _variable_panel(
    variable: Variable, rows: pd.DataFrame, judged: JudgedRounds, top: float
) -> Panel:
    """Draw one variable over all rounds; the window is marked."""
    quantity = QUANTITIES[variable.track.metric]
    inside = rows[rows["in_window"]]
    parts = (
        marks.Areas(inside, x="round", alpha=0.3, series="palette-5"),
        marks.Lines(rows, x="round", y="value", width=0.9, series="rounds"),
        marks.Lines(inside, x="round", y="mean", series="mean"),
        marks.Lines(inside, x="round", y="fit", series="fit"),
        marks.Points(inside, x="round", y="value", size=6, series="window"),
    )
    name = judged.names.get(variable.track.job, variable.track.job)
    return Panel(
        x=_rounds_axis(judged),
        y=quantity.axis(1.2 * top),
        marks=parts,
        title=f"{printable(name)}\n{_numbers_of(variable)}",
    )


def _variable_rows(variable: Variable, judged: JudgedRounds) -> pd.DataFrame:
    """Return the rounds of a tracking variable with the window's mean, band and fitted line."""
    window, mean = judged.determination.window, variable.judged.mean
    rounds = pd.Series(range(1, len(variable.by_round) + 1), dtype="int64")
    inside = rounds.between(*window) if window else rounds < 0
    middle = sum(window) / 2 if window else math.nan
    return pd.DataFrame(
        {
            "job": variable.track.job,
            "metric": variable.track.metric.value,
            "round": rounds,
            "value": list(variable.by_round),
            "in_window": inside,
            "mean": pd.Series(mean, index=rounds.index).where(inside),
            "fit": (mean + variable.slope * (rounds - middle)).where(inside),
            "range_ratio": variable.judged.range_ratio,
            "slope_ratio": variable.judged.slope_ratio,
            "passes": variable.judged.steady,
            "_low": mean * (1 - _BAND),
            "_high": mean * (1 + _BAND),
        }
    )


def _numbers_of(variable: Variable) -> str:
    judged = variable.judged
    mean = QUANTITIES[variable.track.metric].text(judged.mean)
    spread, slope = format_percent(judged.range_ratio), format_percent(judged.slope_ratio)
    falls = "-" if variable.slope < 0 and judged.slope_ratio else ""
    return f"mean {mean}, range {spread}, slope {falls}{slope}"


def describe(judged: JudgedRounds) -> str:
    """Return the determination in one sentence."""
    first = judged.determination.variables[0]
    mean = QUANTITIES[first.track.metric].text(first.judged.mean)
    return (
        f"{counted_noun(judged.determination.rounds, 'round')} of"
        f" {counted_noun(judged.jobs, 'job')}: {judged.determination.words}; "
        f"{first.track.job} has a mean of {mean} over the last rounds judged."
    )


ROUNDS_CHART = Kind(
    name="rounds",
    title="Rounds until steady",
    help="The tracking variables over the rounds with mean, band and fitted line of the window.",
    needs="a profile with rounds",
    read=judge_rounds,
    build=build_window,
    describe=describe,
    concludes=True,
)
