"""Parts of a chart where there are more than can be looked at: a stated choice, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import COLOUR, measured
from volbench.model.results.finding import Severity
from volbench.present.formatting import records
from volbench.present.plots.description import Axis, Series
from volbench.present.plots.kinds import Frames
from volbench.present.tables.summary_table import lower_bound
from volbench.units import counted_noun

Part = TypeVar("Part")
REST = "rest"  # Key of the series that shows what has no line of its own
NOT_SHOWN = "Showing "  # Beginning of the sentence about what is left out
_WORKLOAD = ["job", "group", "direction"]


def invalid_in(findings: pd.DataFrame) -> pd.Series[str]:
    """Return the runs whose result a finding calls invalid."""
    return findings.loc[findings["severity"] == Severity.INVALID.value, "run"]


def valid_frames(frames: Frames) -> Frames:
    """Return frames without the runs that have an invalid result; themselves if none has."""
    findings = frames.get("findings")
    if findings is None or findings.empty:
        return frames
    invalid = invalid_in(findings)
    if not frames["summary"]["run"].isin(invalid).any():
        return frames
    return {
        name: frame[~frame["run"].isin(invalid)].reset_index(drop=True) if "run" in frame else frame
        for name, frame in frames.items()
    }


def not_shown(drawn: int, total: int, what: str, criterion: str) -> str:
    """Return the sentence of a caption that says what is shown, and of how many; "" for all.

    Args:
        criterion: by which they are chosen, such as ``those with the slowest p99``.
    """
    if drawn >= total:
        return ""
    rest = total - drawn
    return f"{NOT_SHOWN}{drawn} of {total:,} {what}, {criterion}: --where shows the other {rest}"


def in_last_bin(summary: pd.DataFrame, statistics: Iterable[str]) -> str:
    """Return the sentence about percentiles without a value, in fio's last bin; "" for none.

    Args:
        statistics: that the chart shows, such as ``p99``.
    """
    found = [
        {lower_bound(row, name) for name in statistics} - {""}
        for row in records(measured(summary).dropna(subset=["impossible"]))
    ]
    results = [bounds for bounds in found if bounds]
    if not results:
        return ""
    count = counted_noun(len(results), "result")
    return f"No exact value to draw: percentiles in fio's last bin ({min(results[0])}) of {count}"


def largest(
    rows: pd.DataFrame, column: str, *, most: int, what: str, criterion: str
) -> tuple[pd.DataFrame, str]:
    """Return the rows with the largest values, in their order, and a sentence about the others.

    Rows that differ in colour alone stay together: who compares two volumes sees both.

    Args:
        column: numeric; unknown values are the smallest.
        criterion: meaning of the largest, such as ``those with the highest IOPS``.
    """
    if len(rows) <= most:
        return rows, ""
    numbered = workloads(rows)
    tops = rows.groupby(numbered)[column].max().sort_values(ascending=False, kind="stable")
    fits = numbered.value_counts().loc[tops.index].cumsum() <= most
    kept = rows[numbered.isin([tops.index[0], *fits.index[fits]])].reset_index(drop=True)
    return kept, not_shown(len(kept), len(rows), what, criterion)


def worst(
    parts: Sequence[Part], badness: Iterable[float], *, most: int, what: str, criterion: str
) -> tuple[list[Part], str]:
    """Return the worst parts of a chart, in their order, and a sentence about the others.

    Args:
        badness: of each part; unknown values are the least.
        most: parts that a chart can show.
        what: the parts are, in the plural.
        criterion: by which they are chosen, such as ``those with the slowest p99``.
    """
    rows = pd.DataFrame({"place": range(len(parts)), "badness": list(badness)})
    kept, fewer = largest(rows, "badness", most=most, what=what, criterion=criterion)
    return [parts[index] for index in kept["place"]], fewer


def workloads(rows: pd.DataFrame) -> pd.Series[int]:
    """Return a number for each row: rows that differ in colour alone share it."""
    if COLOUR not in rows:
        return pd.Series(range(len(rows)), index=rows.index)
    return rows.groupby(_WORKLOAD, sort=False, dropna=False).ngroup()


def unsteadiness(rows: pd.DataFrame, key: str) -> pd.DataFrame:
    """Return how much the rate varies within the runs of each job.

    Args:
        rows: intervals with ``run``, ``direction`` and ``iops``.

    Returns:
        A row for each job in the order of appearance: the key, ``spread`` (largest standard
        deviation within a run, as a share of its mean) and the columns that name its workload.
    """
    rates = rows.groupby([key, "run", "direction"], sort=False)["iops"]
    spreads = (rates.std() / rates.mean()).groupby(level=key).max()
    named = [name for name in (key, COLOUR, *_WORKLOAD) if name in rows]
    jobs = rows.drop_duplicates(key)[named]
    return jobs.assign(spread=jobs[key].map(spreads).astype("float64").fillna(0.0))


def rest_series(count: int, what: str) -> tuple[Series, ...]:
    """Return the legend entry of the lines of what is not named; none for no rest."""
    return (
        (Series(REST, f"the other {count:,} {what if count > 1 else what[:-1]}", "rest"),)
        if count > 0
        else ()
    )


def apart(places: pd.DataFrame, x: Axis, y: Axis, *, room: tuple[float, float]) -> pd.DataFrame:
    """Return the texts that stand clear of each other, those at the right first.

    Args:
        places: a row for each text, at ``_x`` and ``_y``.
        x: axis with limits; `y` likewise.
    """
    kept: list[tuple[float, float]] = []
    is_kept = []
    ordered = places.sort_values("_x", ascending=False)
    across, up = (_shares(ordered[name], axis) for name, axis in (("_x", x), ("_y", y)))
    for point in zip(across, up, strict=True):
        is_free = all(
            abs(point[0] - other[0]) > room[0] or abs(point[1] - other[1]) > room[1]
            for other in kept
        )
        kept += [point] * is_free
        is_kept.append(is_free)
    return ordered[np.array(is_kept, dtype=bool)].sort_index()


def _shares(values: pd.Series[float], axis: Axis) -> list[float]:
    """Return where values are between the ends of an axis, from 0 to 1."""
    ends = np.array([*values, *(axis.limits or (0.0, 1.0))], dtype=float)
    scaled = np.log10(ends) if axis.scale == "log" else ends
    low, high = scaled[-2:]
    return [float(value) for value in (scaled[:-2] - low) / (high - low)]
