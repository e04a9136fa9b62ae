"""Medians of short arrays, such as the intervals or blocks of one run."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def median(values: Floats) -> float:
    """Return the median; NaN for no values, and where one is NaN.

    It equals `numpy.median`, whose checks take ten times as long as sorting a hundred values does.
    """
    ordered = np.sort(values)  # NaN comes last
    count = len(ordered)
    if not count or math.isnan(ordered[-1]):
        return math.nan
    half = count // 2
    if count % 2:
        return float(ordered[half])
    return float((ordered[half - 1] + ordered[half]) / 2)


def row_medians(table: Floats) -> Floats:
    """Return the median of each row of a table that has columns; NaN where one of it is NaN."""
    ordered, columns = np.sort(table, axis=1), table.shape[1]
    found: Floats = (ordered[:, (columns - 1) // 2] + ordered[:, columns // 2]) / 2
    return np.where(np.isnan(ordered[:, -1]), math.nan, found)


def median_step(t_s: Floats) -> float:
    """Return the median distance of neighbours; NaN for fewer than two values."""
    return median(t_s[1:] - t_s[:-1])


def interval_of(t_s: Floats) -> float:
    """Return the length of the intervals that end at some times, of which there is at least one."""
    return median_step(t_s) if len(t_s) > 1 else float(t_s[0])
