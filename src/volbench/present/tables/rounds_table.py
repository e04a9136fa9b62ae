"""Tables of rounds: determination of steady state, and results over its window.

SNIA's Performance Test Specification asks for both, the second by read/write mix and block size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from volbench.analyse.time.steady_state import (
    CRITERION,
    MAX_RANGE,
    MAX_SLOPE,
    Determination,
    Variable,
    determination,
    window_matrix,
)
from volbench.model.profile.profile_settings import Metric, Rounds
from volbench.present.formatting import MISSING, records
from volbench.present.tables.table import Table, text_table
from volbench.units import format_count, format_latency, format_percent, format_rate, format_size

if TYPE_CHECKING:
    import pandas as pd

_FORMATS: Mapping[Metric, tuple[str, Callable[[float], str]]] = {
    Metric.IOPS: ("IOPS", format_count),
    Metric.BW: ("bandwidth", format_rate),
    Metric.LAT_MEAN: ("mean latency", format_latency),
}
_WORDS = {"tracked", "verdict"}


def rounds_tables(
    campaigns: Mapping[str, tuple[Mapping[str, Rounds], pd.DataFrame]],
) -> list[Table[Any]]:
    """Return the determination of each profile with rounds, and a matrix for each metric.

    JSON of the first table holds the records of all.
    """
    tables: list[Table[Any]] = []
    document = []
    for campaign, (planned, summary) in campaigns.items():
        for profile, rounds in planned.items():
            determined = determination(summary, rounds, profile=profile)
            matrices = {
                metric: window_matrix(summary, determined, profile=profile, metric=metric)
                for metric in dict.fromkeys(track.metric for track in rounds.track)
            }
            document.append(_record(determined, matrices, campaign=campaign, profile=profile))
            tables.append(_determination_table(determined, profile))
            tables += [
                _matrix_table(determined, matrix, metric=metric, profile=profile)
                for metric, matrix in matrices.items()
                if not matrix.empty
            ]
    return [replace(tables[0], document=document), *tables[1:]] if tables else []


def _record(
    determined: Determination,
    matrices: Mapping[Metric, pd.DataFrame],
    *,
    campaign: str,
    profile: str,
) -> dict[str, object]:
    return {
        "campaign": campaign,
        "profile": profile,
        "criterion": CRITERION,
        "steady": determined.is_steady,
        "at_round": determined.at_round,
        "rounds": determined.rounds,
        "max_rounds": determined.max_rounds,
        "window": determined.window,
        "variables": [_variable_record(variable) for variable in determined.variables],
        "matrices": {metric.value: records(matrix) for metric, matrix in matrices.items()},
    }


def _variable_record(variable: Variable) -> dict[str, object]:
    judged = variable.judged
    return {
        "track": variable.track.name,
        "by_round": list(variable.by_round),
        "mean": judged.mean,
        "range_ratio": judged.range_ratio,
        "slope_ratio": judged.slope_ratio,
        "slope_per_round": variable.slope,
        "steady": judged.steady,
    }


def _determination_table(determined: Determination, profile: str) -> Table[Any]:
    first, last = determined.window or (1, determined.rounds)
    in_window = [f"round {number}" for number in range(first, last + 1)]
    rows = [_determination_cells(variable, first, last) for variable in determined.variables]
    return text_table(
        "rounds",
        rows,
        identity="tracked",
        priorities={"mean": 2, **dict.fromkeys(in_window, 3)},
        right=[heading for row in rows[:1] for heading in row if heading not in _WORDS],
        notes=[f"{profile}: {determined.words}"],
    )


def _determination_cells(variable: Variable, first: int, last: int) -> dict[str, str]:
    _, written = _FORMATS[variable.track.metric]
    judged = variable.judged
    verdict = "passes" if judged.steady else "does not pass"
    rounds = enumerate(variable.by_round[first - 1 : last], start=first)
    return {
        "tracked": variable.track.name,
        **{f"round {number}": _value(value, written) for number, value in rounds},
        "mean": _value(judged.mean, written),
        f"range (max {format_percent(MAX_RANGE)})": format_percent(judged.range_ratio),
        f"slope (max {format_percent(MAX_SLOPE)})": format_percent(judged.slope_ratio),
        "verdict": verdict if math.isfinite(judged.range_ratio) else "too few rounds",
    }


def _value(value: float, written: Callable[[float], str]) -> str:
    return written(value) if math.isfinite(value) else MISSING


def _matrix_table(
    determined: Determination, matrix: pd.DataFrame, *, metric: Metric, profile: str
) -> Table[Any]:
    name, written = _FORMATS[metric]
    rows = records(matrix)
    first, last = determined.window or (0, 0)
    which = "the steady window" if determined.is_steady else "the last rounds, not steady"
    note = f"{profile}: {name}, mean over rounds {first} to {last}, {which}"
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
