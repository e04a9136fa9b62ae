"""What an oracle makes of the same series: one that knows what happened, and when.

It has the kind of the volume, when the level began, and which seconds steal and neighbours
disturbed. What it misses, noise hides from every analysis of the series alone.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from benchmarks.truth_cases import Case
from benchmarks.truth_views import BETWEEN_S, SAMPLE_S, Simulated
from benchmarks.virtual_volume import VirtualVolume, sampled

from volbench.extensions.lab.disk_model import CELL_S, Noise

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_LEAST_CLEAN = 0.3
_LEAST_SECONDS = 5
_REACHED = 0.99
_LONGER = 1.25
"""Longer than without noise, a climb is left out, so that none of it is left in."""
_LIMITED = frozenset({"iops-limit", "bandwidth-limit", "cpu", "credits"})


def instant_of(case: Case, run: Simulated) -> float | None:
    """Return the true instant of the event; None where there is none."""
    return run.series.began.get(case.instant) if isinstance(case.instant, str) else case.instant


def oracle_level(case: Case, run: Simulated, *, level: float) -> float:
    """Return the oracle's level in I/Os a second.

    Limits are never exceeded: there it takes percentile 95; the mean, where a full cache stalls;
    and the mean of the middle half elsewhere.

    Args:
        case: what was drawn.
        run: its simulation.
        level: the true level; with it, the length of a climb is known.
    """
    iops = np.array(run.sampled.iops)
    known = _at_level(case, run, level=level)
    clean = known & ~_disturbed(case, run)
    enough = clean.sum() >= max(_LEAST_SECONDS, _LEAST_CLEAN * known.sum())
    values = np.sort(iops[clean if enough else known])
    if case.kind in _LIMITED or (case.kind == "warming" and case.scenario.limits.iops):
        return float(np.quantile(values, 0.95))
    if case.kind == "cache-full" and float(np.mean(values == 0)):
        return float(values.mean())
    beyond = len(values) // 4
    return float(values[beyond : len(values) - beyond].mean())


def oracle_instant(case: Case, run: Simulated) -> float:
    """Return the instant that an oracle finds that knows both levels; NaN without such an instant.

    It is the split of least squared error of the logarithms, of all seconds.
    """
    when, iops = instant_of(case, run), np.array(run.sampled.iops)
    if when is None or case.kind == "stall":
        return math.nan
    t_s = np.array(run.sampled.t_s)
    last = case.scenario.steps[-1].at_s if case.kind == "neighbour" else t_s[-1]
    logs = np.log(np.maximum(iops[t_s <= last], 0.01 * float(np.median(iops[iops > 0]))))
    is_before = t_s[t_s <= last] <= when
    if is_before.all() or not is_before.any():
        return math.nan
    before, after = (float(np.median(logs[side])) for side in (is_before, ~is_before))
    gains = np.cumsum((logs - after) ** 2 - (logs - before) ** 2)
    return float(t_s[int(np.argmax(gains))])


def _at_level(case: Case, run: Simulated, *, level: float) -> Flags:
    """Return the seconds in which the volume was at its sustained level."""
    t_s = np.array(run.sampled.t_s)
    begins = t_s - SAMPLE_S
    if case.kind == "neighbour":
        fell, rose = (step.at_s for step in case.scenario.steps)
        return np.asarray((t_s <= fell) | (begins >= rose))
    if case.kind == "stall":
        stall = case.scenario.stalls[0]
        return np.asarray((t_s <= stall.at_s) | (begins >= stall.at_s + stall.length_s))
    when = instant_of(case, run)
    if when is not None:
        chosen = begins >= when
        return np.asarray(chosen if chosen.any() else begins >= t_s[-1] - _LEAST_SECONDS)
    return np.asarray(begins >= min(_climbed_s(case, level=level), t_s[-1] - _LEAST_SECONDS))


def _climbed_s(case: Case, *, level: float) -> float:
    """Return when a climb is over; 0 where there is none."""
    if case.is_steady:
        return 0.0
    disk = VirtualVolume(case.scenario.model_copy(update={"noise": None}))
    for load in case.loads:
        series = disk.run(load)
        disk.rest(BETWEEN_S)
    below = np.flatnonzero(np.array(sampled(series, sample_s=SAMPLE_S).iops) < _REACHED * level)
    return _LONGER * SAMPLE_S * float(below[-1] + 1) if len(below) else 0.0


def _disturbed(case: Case, run: Simulated) -> Flags:
    """Return the seconds with steal or with load of neighbours, by the noise itself."""
    parameters = case.scenario.parameters().noise
    count, cells = len(run.sampled.t_s), round(SAMPLE_S / CELL_S)
    if parameters is None:
        return np.zeros(count, dtype=bool)
    noise = Noise(parameters, seed=case.scenario.seed)
    first = round(sum(load.runtime_s + BETWEEN_S for load in case.loads[:-1]) / CELL_S)
    taken = [
        max(noise.neighbour(at), noise.steal(at))
        for at in (CELL_S * (first + number + 0.5) for number in range(cells * count))
    ]
    return np.asarray(np.array(taken).reshape(count, cells).max(axis=1) > 0)
