"""Evidence that the CPU limited a run: CPU time of fio, what was stolen of it, busy hosts."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from volbench.analyse.frames.disturbed import FULL_DEMAND_PERCENT, cpu_demand
from volbench.analyse.frames.run_view import RunView, host_rows_in_run, results_of
from volbench.analyse.time.run_rates import Rates

_FULL = 95.0  # Percent of a CPU from which it is held to be saturated
_LEAST_STEAL = 0.5
_MOSTLY = 0.5
_EQUAL = 0.005


def cpu_evidence(view: RunView, rates: Rates) -> tuple[list[str], list[str]] | None:
    """Return the evidence for and against a limit of the CPU; None where nothing speaks for it."""
    usage = (row["cpu_usr"] + row["cpu_sys"] for row in results_of(view))
    used = max((value for value in usage if not math.isnan(value)), default=0.0)
    rows = host_rows_in_run(view)
    steal = _mean(rows, "steal_percent")
    busy = float(rows["cpu_busy_percent"].median()) if len(rows) else math.nan
    reasons: list[str] = []
    against: list[str] = []
    if used >= _FULL:
        reasons.append(f"fio used {used:.0f} % of a CPU")
    elif steal >= _LEAST_STEAL and used >= _FULL * (1 - steal / 100):
        reasons.append(f"fio used {used:.0f} % of a CPU, and {steal:.1f} % of the time was stolen")
        against.append("the steal is that of all CPUs")
    elif (at_most := used * _usual_over_mean(rates)) >= _FULL:
        reasons.append(f"fio used {used:.0f} % of a CPU, {at_most:.0f} % at its usual rate")
        against.append("a part of a CPU was left on average")
    if busy >= _FULL and cpu_demand(view) >= FULL_DEMAND_PERCENT:
        reasons.append(
            f"the CPUs of the host were {busy:.0f} % busy, and a job used one or waited for one"
            f" {cpu_demand(view):.0f} % of the time"
        )
    return (reasons, against) if reasons else None


def _mean(rows: pd.DataFrame, column: str) -> float:
    return float(rows[column].mean()) if len(rows) else math.nan


def _usual_over_mean(rates: Rates) -> float:
    """Return the rate that most intervals have over the mean; 0 where they have no such rate.

    While something else took the CPU, fio did less with less; an I/O takes the same CPU time.
    """
    usual, mean = float(np.quantile(rates.iops, 0.95)), float(rates.iops.mean())
    if not mean > 0 or np.mean(np.abs(rates.iops / usual - 1) <= _EQUAL) < _MOSTLY:
        return 0.0
    return usual / mean
