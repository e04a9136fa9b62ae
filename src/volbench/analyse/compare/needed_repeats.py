"""Repeats that a difference needs, from the scatter of earlier campaigns on the same volumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from volbench.analyse.compare.repeat_statistics import CONFIDENCE, MIN_PAIRS, Contrast
from volbench.analyse.frames.job_frames import measured
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Phase
from volbench.units import counted_noun

# More blocks than that take days. Noticed by: test_noise_floor.py::test_blocks_for_a_difference
MAX_BLOCKS = 10_000
# Option of fio to the column of the summary that it is, and fio's default
_SAME = {
    "rw": ("rw", "read"),
    "bs": ("block_bytes", "4096"),
    "iodepth": ("iodepth", "1"),
    "numjobs": ("numjobs", "1"),
}


def least_count(detectable: Callable[[int], float], difference: float) -> int | None:
    """Return the least number of blocks that detect a relative difference; None for too many.

    Args:
        detectable: the relative difference that so many blocks detect; it falls with their number.
    """
    if detectable(MAX_BLOCKS) > difference:
        return None
    low, high = MIN_PAIRS - 1, MAX_BLOCKS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if detectable(middle) <= difference else (middle, high)
    return high


@dataclass(frozen=True)
class Scatter:
    """Scatter of the ratio of two equal runs, as a logarithm, and where it was measured."""

    value: float
    count: int  # blocks or repeats
    source: str  # such as ``10 blocks of randread-4k-qd16 in noise-20261126``

    def detectable(self, count: int, *, is_paired: bool) -> float:
        """Return the relative difference that so many blocks, or repeats a side, detect."""
        freedom = float(count - 1 if is_paired else 2 * count - 2)
        error = self.value / math.sqrt(count)
        planned = Contrast(1.0, 0.0, error, freedom, resolution=0.0, unit="blocks")
        return planned.detectable(CONFIDENCE) - 1


@dataclass(frozen=True)
class NeededRepeats:
    """Repeats of a workload that detect a difference of its IOPS in 80 % of cases."""

    workload: str  # name of the job, without its arm
    is_paired: bool  # whether its arms run in blocks; else it is compared with another campaign
    scatter: Scatter | None  # None if nothing is known of its volumes
    count: int | None  # None if no number is enough, or nothing is known
    runs: tuple[Run, ...]  # of one repeat


def needed_repeats(
    campaign: Campaign, earlier: pd.DataFrame, difference: float
) -> Iterator[NeededRepeats]:
    """Yield what each measured workload of a plan needs to detect a relative difference of IOPS.

    Args:
        earlier: summaries of earlier campaigns; those of the same job are used before others.
    """
    rows = measured(earlier).dropna(subset=["iops"])
    workloads: dict[tuple[str, str], list[Run]] = {}
    for run in campaign.runs:
        if run.phase is Phase.MEASURED and run.repeat == 1:
            workloads.setdefault((run.profile, run.workload), []).append(run)
    for (_, workload), runs in workloads.items():
        places = {(run.host, run.volume.target) for run in runs}
        here = rows[[pair in places for pair in zip(rows["host"], rows["volume"], strict=True)]]
        scatter = _scatter(here[_is_same(here, runs[0])]) or _scatter(here)
        is_paired = any(run.block for run in runs)
        count = None
        if scatter is not None:
            count = least_count(
                lambda n, s=scatter, p=is_paired: s.detectable(n, is_paired=p),  # type: ignore[misc]  # the defaults bind the loop's values
                difference,
            )
        yield NeededRepeats(workload, is_paired, scatter, count, tuple(runs))


def _is_same(rows: pd.DataFrame, run: Run) -> pd.Series[bool]:
    """Return which rows are of the same job as a run."""
    options = run.effective(run.sections[0])
    same = pd.Series(data=True, index=rows.index)
    for name, (column, default) in _SAME.items():
        same &= rows[column].astype(str).eq(options.get(name, default)).fillna(value=False)
    direct = options.get("direct", "0") != "0"
    return same & rows["direct"].eq(direct).fillna(value=False)


def _scatter(rows: pd.DataFrame) -> Scatter | None:
    """Return the scatter that most blocks or repeats know; None if no job has three of them."""
    found = [
        scatter
        for (campaign, job, _), group in rows.assign(
            _job=_without_arm(rows), _logs=np.log(rows["iops"].astype(float))
        ).groupby(["campaign", "_job", "direction"])
        if (scatter := _of_job(group, f"{job} in {campaign}")) is not None
    ]
    return max(found, key=lambda scatter: scatter.count, default=None)


def _without_arm(rows: pd.DataFrame) -> Sequence[str]:
    return [
        str(job) if pd.isna(arm) else str(job).removesuffix(f"-{arm}")
        for job, arm in zip(rows["job"], rows["arm"], strict=True)
    ]


def _of_job(group: pd.DataFrame, name: str) -> Scatter | None:
    logs, root, noun = np.empty(0), 1.0, "block"
    if len(group["arm"].dropna().unique()) > 1:
        table = group.pivot_table(index="block", columns="arm", values="_logs").iloc[:, :2]
        logs = np.diff(table.dropna().to_numpy(dtype=float))[:, 0]
    else:
        volumes = group.groupby(["host", "volume"])["_logs"]
        logs = max((part.to_numpy(dtype=float) for _, part in volumes), key=len)
        root, noun = math.sqrt(2), "repeat"
    if len(logs) < MIN_PAIRS:
        return None
    source = f"{counted_noun(len(logs), noun)} of {name}"
    return Scatter(root * float(np.std(logs, ddof=1)), len(logs), source)
