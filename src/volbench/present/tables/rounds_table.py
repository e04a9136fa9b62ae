"""Tables of rounds: how steady state was determined, and the results over its window.

SNIA's Performance Test Specification asks for both, the second by read/write mix and block size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from volbench.analyse.time.round_convergence import (
    CRITERION,
    MOST_RANGE,
    MOST_SLOPE,
    Determination,
    Variable,
    determination,
    window_matrix,
)
from volbench.model.profile.profile_settings import Metric, Rounds
from volbench.present.formatting import MISSING, records
from volbench.present.tables.table import Table, text_table
from volbench.units import format_count, format_latency, format_rate, format_size

if TYPE_CHECKING:
    import pandas as pd

_FORMATS: Mapping[Metric, tuple[str, Callable[[float], str]]] = {
    Metric.IOPS: ("IOPS", format_count),
    Metric.BW: ("bandwidth", format_rate),
    Metric.LAT_MEAN: ("mean latency", format_latency),
}


@dataclass(frozen=True)
class RoundsOf:
    """The rounds of one profile in one campaign.

    Attributes:
        campaign: its name.
        profile: its name.
        found: the determination.
        matrices: what each job did over the window, for each metric that is tracked.
    """

    campaign: str
    profile: str
    found: Determination
    matrices: Mapping[Metric, pd.DataFrame]

    @classmethod
    def of(cls, campaign: str, summary: pd.DataFrame, profile: str, *, rounds: Rounds) -> RoundsOf:
        """Judge the rounds of a profile.

        Args:
            campaign: name to show.
            summary: the summary frame of that campaign alone.
            profile: its name.
            rounds: as it said.
        """
        found = determination(summary, rounds, profile=profile)
        metrics = dict.fromkeys(track.metric for track in rounds.track)
        matrices = {
            metric: window_matrix(summary, found, profile=profile, metric=metric)
            for metric in metrics
        }
        return cls(campaign, profile, found, matrices)

    @property
    def tables(self) -> list[Table[Any]]:
        """The determination, and a matrix for each metric where there is a window."""
        matrices = [
            _matrix_table(self, metric, matrix)
            for metric, matrix in self.matrices.items()
            if not matrix.empty
        ]
        return [_determination_table(self), *matrices]

    @property
    def record(self) -> dict[str, object]:
        """All of it for a script; what is not known is None."""
        found = self.found
        return {
            "campaign": self.campaign,
            "profile": self.profile,
            "criterion": CRITERION,
            "steady": found.is_steady,
            "at_round": found.at_round,
            "rounds": found.rounds,
            "most": found.most,
            "window": found.window,
            "variables": [_variable_record(variable) for variable in found.variables],
            "matrices": {metric.value: records(matrix) for metric, matrix in self.matrices.items()},
        }


def _variable_record(variable: Variable) -> dict[str, object]:
    judged = variable.judged
    return {
        "track": variable.track.name,
        "by_round": [_known(value) for value in variable.by_round],
        "mean": _known(judged.mean),
        "range_ratio": _known(judged.range_ratio),
        "slope_ratio": _known(judged.slope_ratio),
        "slope_per_round": _known(variable.slope),
        "steady": judged.steady,
    }


def _known(value: float) -> float | None:
    """Return a number that JSON has; None for others."""
    return value if math.isfinite(value) else None


def _determination_table(rounds: RoundsOf) -> Table[Any]:
    """Return a row for each tracking variable: its window, mean, range, slope and verdict."""
    found = rounds.found
    first, last = found.window or (1, found.rounds)
    in_window = [f"round {number}" for number in range(first, last + 1)]
    rows = [_determination_cells(variable, first, last) for variable in found.variables]
    return text_table(
        "rounds",
        rows,
        identity="tracked",
        priorities={"mean": 2, **dict.fromkeys(in_window, 3)},
        right=[heading for row in rows[:1] for heading in row if heading not in _WORDS],
        notes=[f"{rounds.profile}: {found.words}"],
    )


_WORDS = {"tracked", "verdict"}


def _determination_cells(variable: Variable, first: int, last: int) -> dict[str, str]:
    _, written = _FORMATS[variable.track.metric]
    judged = variable.judged
    verdict = "passes" if judged.steady else "does not pass"
    rounds = enumerate(variable.by_round[first - 1 : last], start=first)
    return {
        "tracked": variable.track.name,
        **{f"round {number}": _value(value, written) for number, value in rounds},
        "mean": _value(judged.mean, written),
        f"range (max {MOST_RANGE:.0%})": _value(judged.range_ratio, "{:.1%}".format),
        f"slope (max {MOST_SLOPE:.0%})": _value(judged.slope_ratio, "{:.1%}".format),
        "verdict": verdict if math.isfinite(judged.range_ratio) else "too few rounds",
    }


def _value(value: float, written: Callable[[float], str]) -> str:
    return written(value) if math.isfinite(value) else MISSING


def _matrix_table(rounds: RoundsOf, metric: Metric, matrix: pd.DataFrame) -> Table[Any]:
    """Return read/write mixes by block sizes; other jobs have a row of their own."""
    name, written = _FORMATS[metric]
    rows = records(matrix)
    first, last = rounds.found.window or (0, 0)
    which = "the steady window" if rounds.found.is_steady else "the last rounds, not steady"
    note = f"{rounds.profile}: {name}, mean over rounds {first} to {last}, {which}"
    cells = {(row["mix"], row["block_bytes"]): row for row in rows}
    blocks = list(dict.fromkeys(row["block_bytes"] for row in rows))
    mixes = list(dict.fromkeys(row["mix"] for row in rows))
    is_grid = len(cells) == len(rows) and len(mixes) > 1 and None not in blocks and "" not in mixes
    if not is_grid:
        lines = [{"job": str(row["job"]), name: _mean(row, written)} for row in rows]
        return text_table("matrix", lines, identity="job", right=[name], notes=[note])
    sizes = {block: format_size(int(str(block))) for block in blocks}
    lines = [
        {"reads/writes": str(mix)}
        | {sizes[block]: _mean(cells.get((mix, block)), written) for block in blocks}
        for mix in mixes
    ]
    return text_table(
        "matrix", lines, identity="reads/writes", right=[*sizes.values()], notes=[note]
    )


def _mean(row: Mapping[str, object] | None, written: Callable[[float], str]) -> str:
    mean = None if row is None else row["mean"]
    return written(mean) if isinstance(mean, float) else MISSING


def rounds_tables(found: Sequence[RoundsOf]) -> list[Table[Any]]:
    """Return the tables of all profiles; JSON of the first holds the records of all."""
    first, *others = (table for rounds in found for table in rounds.tables)
    return [replace(first, document=[rounds.record for rounds in found]), *others]


def all_rounds(
    campaigns: Mapping[str, tuple[Mapping[str, Rounds], pd.DataFrame]],
) -> Sequence[RoundsOf]:
    """Return the rounds of every profile that has them.

    Args:
        campaigns: name to what its plan says of rounds, by profile, and its summary frame.
    """
    return [
        RoundsOf.of(name, summary, profile, rounds=rounds)
        for name, (planned, summary) in campaigns.items()
        for profile, rounds in planned.items()
    ]
