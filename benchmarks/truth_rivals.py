"""Criteria for a steady level, side by side on the same series: volbench's and three others.

Each is asked for the sustained level of a run, or says that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from benchmarks.truth_views import Simulated

from volbench.analyse.frames.resample import Floats
from volbench.analyse.frames.run_view import rate_per_s
from volbench.analyse.time.steady_state import ROUNDS, judge_snia

_FIO_SLOPE = 0.003
"""``steadystate=iops_slope:0.3%``, as in the examples of its HOWTO."""
_FIO_DEVIATION = 0.10
"""``steadystate=iops:10%``."""
_PLAIN = 0.05
"""Coefficient of variation below which a spreadsheet calls ten seconds steady."""
_PLAIN_S = 10

Series = Callable[[Floats], float | None]


def volbench_level(run: Simulated) -> float | None:
    """Return the median of the steady stretch at the end."""
    direction = run.series.load.direction
    judged = run.context.steady_end(run.view, direction)
    return None if judged is None else judged.median


def snia_level(values: Floats) -> float | None:
    """Return the mean of the first five rounds that pass SNIA PTS 2.0.2, 2.1.24.

    A round is a minute, or less so that there are five, or more so that there are at most 25.
    """
    size = max(1, int(max(min(60, len(values) / ROUNDS), len(values) / 25)))
    rounds = values[len(values) % size :].reshape(-1, size).mean(axis=1)
    for end in range(ROUNDS, len(rounds) + 1):
        window = rounds[end - ROUNDS : end]
        if judge_snia(window.tolist()).steady:
            return float(window.mean())
    return None


def fio_level(values: Floats, *, slope: bool) -> float | None:
    """Return the mean of the first window in which fio's criterion of that kind is met.

    fio (HOWTO, "steadystate"): the slope of the line of least squares over ``ss_dur``, in percent
    of the mean a check interval, or the largest deviation from the mean.
    """
    window = max(10, len(values) // 4)
    x = np.arange(window) - (window - 1) / 2
    for end in range(window, len(values) + 1):
        part = values[end - window : end]
        mean = float(part.mean())
        if not mean:
            continue
        off = abs(float(x @ part) / float(x @ x)) if slope else float(np.abs(part - mean).max())
        if off <= (_FIO_SLOPE if slope else _FIO_DEVIATION) * mean:
            return mean
    return None


def plain_level(values: Floats) -> float | None:
    """Return the mean of the first ten seconds that vary by less than 5 %."""
    for end in range(_PLAIN_S, len(values) + 1):
        part = values[end - _PLAIN_S : end]
        if part.mean() and part.std() < _PLAIN * part.mean():
            return float(part.mean())
    return None


CRITERIA: Mapping[str, Series] = {
    "SNIA PTS 2.0.2, five rounds": snia_level,
    "fio `steadystate=iops_slope:0.3%`": lambda values: fio_level(values, slope=True),
    "fio `steadystate=iops:10%`": lambda values: fio_level(values, slope=False),
    "10 s with a variation below 5 %": plain_level,
}


def levels(run: Simulated) -> dict[str, float | None]:
    """Return what each criterion says of a run, in IOPS."""
    _, values = rate_per_s(run.view, "iops", direction=run.series.load.direction)
    found: dict[str, float | None] = {"volbench": volbench_level(run)}
    return found | {name: criterion(values) for name, criterion in CRITERIA.items()}
