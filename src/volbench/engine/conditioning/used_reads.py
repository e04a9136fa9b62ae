"""Reads of used blocks: how many run in parallel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volbench.engine.conditioning.volume_warmup import Outcomes, is_same_pass
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.plan.expansion.extents import MIN_EXTENT_BYTES

FIRST_DEPTH = 4  # Parallel reads at first: few enough for a slow volume
# Rate of twice as many parallel reads above which they gain: extents differ by less where nothing
# limits them. Noticed by: test_used_reads.py::test_parallel_reads_double_while_the_rate_grows
MIN_GAIN = 1.1
_TRIES = 2  # Extents that must not gain before fewer reads are kept: one may hold colder blocks


def next_depth(
    outcomes: Outcomes, campaign: Campaign, run: Run, chosen: Mapping[str, Mapping[str, str]]
) -> int:
    """Return how many parallel reads an extent gets, from the rates of those before it."""
    trials = [
        (int(chosen[each.id]["iodepth"]), outcomes.of(each).bytes_per_s)
        for each in campaign.runs[: campaign.runs.index(run)]
        if is_same_pass(each, run) and each.extent and each.extent.size_bytes >= MIN_EXTENT_BYTES
    ]
    return depth_after(trials, most=int(run.effective(run.sections[0])["iodepth"]))


def depth_after(trials: Sequence[tuple[int, float]], *, most: int) -> int:
    """Return how many parallel reads to try next, or to keep; never more than `most`."""
    best, best_rate, failed = 0, 0.0, 0
    for depth, rate in trials:
        if depth > best and rate >= MIN_GAIN * best_rate:
            best, best_rate, failed = depth, rate, 0
        elif depth > best:
            failed += 1
    wanted = best if failed >= _TRIES else 2 * best
    return min(wanted or FIRST_DEPTH, most)
