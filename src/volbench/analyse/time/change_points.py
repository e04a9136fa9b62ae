"""Change points: the moments at which the level of a series jumped.

Noise of storage is autocorrelated, and detectors that assume otherwise find dozens of changes in
an hour in which nothing happened. Therefore: medians of blocks, logarithms scaled by the noise of
their differences, a penalty of 3 ln n for each segment of the best piecewise constant fit, and then
each change must be larger than that noise explains, and sharper than a ramp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from volbench.analyse.frames.resample import Floats, interval_of, median, row_medians

# Long enough to average most of the autocorrelation of a volume's noise out: 30 s medians gave a
# false change in 2.5 % of AR(1) hours.
# Noticed by: test_change_points.py::test_blocks_are_30_s_unless_that_gives_few
MAX_BLOCK_S = 30.0
# Blocks of a short series: enough for a segment fit, few enough to have medians.
# Noticed by: test_change_points.py::test_blocks_are_30_s_unless_that_gives_few
WANTED_BLOCKS = 40
# Fewer blocks cannot distinguish a change from noise: four on each side.
# Noticed by: test_change_points.py::test_constant_series_have_no_change
_MIN_BLOCKS = 8
# For each segment, in units of ln n: with 2 ln n, 25 % of AR(1) hours had a false change, with 3 ln
# n 2.5 %. Noticed by: test_change_points.py::test_noise_is_not_a_change
_PENALTY = 3.0
# Share of the median that replaces zero, which has no logarithm.
# Noticed by: test_change_points.py::test_a_long_stall_is_a_change_to_zero
_FLOOR = 0.01
# Blocks of a series from which scatter to one side counts: in fewer it would hide steps.
# Noticed by: test_sustained_level.py::test_dips_below_a_limit_are_not_steps
_MIN_TAIL_BLOCKS = 36
_NORMAL_90 = 1.2815515655446004  # Quantile 0.9 of the normal distribution
# Scatter of a median over that of a mean, for normal noise: the root of pi / 2.
# Noticed by: test_change_points.py::test_noise_is_not_a_change
_MEDIAN_LOSS = 1.25
_BIAS = 4
# Spread up to which the median of samples is their upper edge as well.
# Noticed by: test_sustained_level.py::test_the_level_of_a_limit_is_the_upper_edge
_MAX_FLAT_SPREAD = 0.01
# Samples from which quantiles 0.95 and 0.98 are not the maximum alone.
# Noticed by: benchmarks/truth.py
_MIN_EDGE_SAMPLES = 10
# Distance of percentiles 98 and 75 over that of 50 and 10, up to which samples have an edge (normal
# noise: 1.08); chosen on the even seeds of the truth benchmark.
# Noticed by: test_sustained_level.py::test_symmetric_noise_has_no_edge
_MAX_EDGE_RATIO = 0.55
# Standard errors that a change must be: of hundreds of positions, the largest is tested.
# Noticed by: test_change_points.py::test_noise_is_not_a_change
_MIN_ERRORS = 5.0


@dataclass(frozen=True)
class Change:
    """A jump."""

    t_s: float  # when, to the sample
    before: float  # median from the change before it, or from the start
    after: float  # median to the change after it, or to the end

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.after / self.before if self.before else float("inf")


@dataclass(frozen=True)
class Plateau:
    """A stretch without a jump."""

    from_s: float  # its begin
    to_s: float  # its end
    level: float  # its median
    spread: float  # 1.4826 times the median absolute deviation of the samples, over the level
    # their upper edge, where they scatter below a level that they do not exceed, as under a limit;
    # NaN where they scatter to both sides, or not at all
    ceiling: float = math.nan


def block_length_s(t_s: Floats, block_s: float | None = None) -> float:
    """Return the length of blocks: as requested, else 30 s, or less where that gives few blocks."""
    sample_s = interval_of(t_s)
    if block_s is not None:
        return max(1, round(block_s / sample_s)) * sample_s
    samples = max(1, len(t_s) // WANTED_BLOCKS)
    return min(samples, max(1, round(MAX_BLOCK_S / sample_s))) * sample_s


def block_medians(t_s: Floats, values: Floats, *, block_s: float) -> Floats:
    """Return the median of each whole block, from the start."""
    size = max(1, round(block_s / interval_of(t_s)))
    count = len(values) // size
    return row_medians(values[: count * size].reshape(count, size))


def find_changes(
    t_s: Floats, values: Floats, *, block_s: float | None = None, least_step: float = 0.05
) -> tuple[Change, ...]:
    """Return the jumps of a series, in order of time.

    Args:
        values: of the intervals, such as IOPS; zeros are stalls.
        block_s: length of the blocks; None to choose.
    """
    if len(values) < _MIN_BLOCKS or not np.any(values > 0):
        return ()
    size = max(1, round(block_length_s(t_s, block_s) / interval_of(t_s)))
    logs = _logs(values)
    blocks = block_medians(t_s, logs, block_s=size * interval_of(t_s))
    if len(blocks) < _MIN_BLOCKS:
        return ()
    rule = _JumpRule(least_step, _least_level(len(blocks), size))
    edges = _prune(blocks, _candidates(blocks.tobytes(), rule.least_blocks), rule)
    places = [_refine(logs, edge * size, reach=2 * size) for edge in edges]
    return _changes_at(t_s, values, sorted(set(places)), least_step=least_step)


def place_in_gaps(
    changes: tuple[Change, ...], kept_s: Floats, t_s: Floats, values: Floats
) -> tuple[Change, ...]:
    """Return jumps with each that has left-out samples beside it moved to the best of them.

    The jump came while the host was disturbed. Its levels are known from the kept samples, and a
    left-out one belongs to the level that it is nearer to.
    """
    if len(kept_s) == len(t_s):
        return changes
    placed = []
    for change in changes:
        following = int(np.searchsorted(kept_s, change.t_s, side="right"))
        until_s = kept_s[following] if following < len(kept_s) else math.inf
        gap = (t_s > change.t_s) & (t_s < until_s)
        low = _FLOOR * max(change.before, change.after)
        before, after = (math.log(max(level, low)) for level in (change.before, change.after))
        logs = np.log(np.maximum(values[gap], low))
        gains = np.cumsum([0.0, *(np.abs(logs - after) - np.abs(logs - before))])
        ends = np.concatenate([[change.t_s], t_s[gap]])
        placed.append(replace(change, t_s=float(ends[int(np.argmax(gains))])))
    return tuple(placed)


def plateaus(
    t_s: Floats, values: Floats, *, changes: tuple[Change, ...] | None = None
) -> tuple[Plateau, ...]:
    """Return the stretches between jumps."""
    known = find_changes(t_s, values) if changes is None else changes
    sample_s = interval_of(t_s)
    starts = [int(np.searchsorted(t_s, change.t_s + sample_s / 2)) for change in known]
    edges = [0, *starts, len(values)]
    return tuple(
        _plateau(t_s[first:last], values[first:last], sample_s=sample_s)
        for first, last in pairwise(edges)
        if last > first
    )


def _plateau(t_s: Floats, values: Floats, *, sample_s: float) -> Plateau:
    level = median(values)
    deviation = 1.4826 * median(np.abs(values - level))
    return Plateau(
        from_s=float(t_s[0]) - sample_s,
        to_s=float(t_s[-1]),
        level=level,
        spread=deviation / level if level else 0.0,
        ceiling=_upper_edge(values) if deviation > _MAX_FLAT_SPREAD * level else math.nan,
    )


def _upper_edge(values: Floats) -> float:
    """Return the upper edge of samples; NaN unless they pile up there.

    Under a limit hardly any sample is above the third quartile.
    """
    if len(values) < _MIN_EDGE_SAMPLES:
        return math.nan
    low, middle, third, edge, top = np.quantile(values, [0.1, 0.5, 0.75, 0.95, 0.98])
    return float(edge) if top - third <= _MAX_EDGE_RATIO * (middle - low) else math.nan


def _logs(values: Floats) -> Floats:
    floor = _FLOOR * median(values[values > 0])
    logs: Floats = np.log(np.maximum(values, floor))
    return logs


@dataclass(frozen=True)
class _JumpRule:
    """What a jump must be."""

    least_step: float  # its size, as a share of the larger level
    least_blocks: int  # blocks that the levels on both sides of it last


def _least_level(blocks: int, samples: int) -> int:
    """Return how many blocks of so many samples a level lasts at least.

    A hiccup falls into two samples at most: medians of three samples pass over it.
    """
    return 2 if samples >= 3 and blocks < 3 * WANTED_BLOCKS else 3


@lru_cache(maxsize=16)
def _candidates(content: bytes, least: int) -> tuple[int, ...]:
    """Return the first block of each new level of the best piecewise constant fit.

    It is kept by the bytes of the blocks: steadiness and bottleneck ask for the same ones.
    """
    blocks = np.frombuffer(content)
    penalty = _PENALTY * math.log(len(blocks))
    return tuple(segment(blocks / _block_noise(blocks), penalty=penalty, least=least))


def segment(values: Floats, *, penalty: float, least: int) -> list[int]:
    """Return where the segments of the best piecewise constant fit begin, without the first.

    Optimal partitioning (Jackson et al. 2005): the squared error of all segments plus a penalty for
    each is minimal.

    Args:
        values: at least `least`.
        penalty: for each segment, in squared units of the values.
        least: samples that a segment has at least.
    """
    centred = values - values.mean()
    sums, squares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (centred, centred**2))
    lengths = np.arange(len(values), 0, -1.0)
    best = np.full(len(values) + 1, np.inf)
    best[0] = 0.0
    starts = np.zeros(len(values) + 1, dtype=int)
    for end in range(least, len(values) + 1):
        until = end - least + 1
        errors = squares[end] - squares[:until]
        errors -= (sums[end] - sums[:until]) ** 2 / lengths[-end : len(lengths) - least + 1]
        errors += best[:until]
        starts[end] = int(errors.argmin())
        best[end] = errors[starts[end]] + penalty
    edges = [int(starts[-1])]
    while edges[-1]:
        edges.append(int(starts[edges[-1]]))
    return edges[-2::-1]


def _block_noise(blocks: Floats) -> float:
    """Return the standard deviation of blocks, from differences: a few jumps don't raise it."""
    steps = np.diff(blocks)
    spread = 1.4826 * median(np.abs(steps - median(steps))) / math.sqrt(2)
    return max(spread, 1e-3)


def _prune(blocks: Floats, edges: Sequence[int], rule: _JumpRule) -> list[int]:
    """Remove changes that noise or a ramp explains as well, weakest first."""
    kept = list(edges)
    while kept:
        strengths = [_strength(blocks, kept, index) for index in range(len(kept))]
        weakest = int(np.argmin(strengths))
        enough = _MIN_ERRORS
        if strengths[weakest] >= enough and _is_jump(blocks, kept, weakest, rule):
            ramps = [n for n in range(len(kept)) if not _is_jump(blocks, kept, n, rule)]
            if not ramps:
                return kept
            weakest = ramps[0]
        del kept[weakest]
    return kept


def _sides(blocks: Floats, edges: list[int], index: int) -> tuple[Floats, Floats]:
    bounds = [0, *edges, len(blocks)]
    return blocks[bounds[index] : bounds[index + 1]], blocks[bounds[index + 1] : bounds[index + 2]]


def _strength(blocks: Floats, edges: list[int], index: int) -> float:
    """Return a jump in standard errors, with the autocorrelation of the blocks in them.

    A side that scatters more than all blocks do has its own error: so has a dip of a few seconds.
    """
    before, after = _sides(blocks, edges, index)
    bounds = [0, *edges, len(blocks)]
    levels = [np.full(b - a, median(blocks[a:b])) for a, b in pairwise(bounds)]
    residuals = blocks - np.concatenate(levels)
    scale = max(
        1.4826 * median(np.abs(residuals)),
        _block_noise(blocks),
        _one_sided(before, after) if len(blocks) >= _MIN_TAIL_BLOCKS else 0.0,
        1e-3,
    )
    both = (max(scale, _own_scatter(side)) ** 2 / len(side) for side in (before, after))
    error = _MEDIAN_LOSS * inflation_of(residuals / scale) * math.sqrt(sum(both))
    return float(abs(median(after) - median(before)) / error)


def _own_scatter(side: Floats) -> float:
    deviation = 1.4826 * median(np.abs(side - median(side)))
    return min(deviation, float(np.std(np.diff(side))) / math.sqrt(2))


def _one_sided(before: Floats, after: Floats) -> float:
    """Return the scatter of the longer level towards the shorter one.

    Below a limit blocks scatter to one side only, which their median deviation hardly shows.
    """
    longer, shorter = (before, after) if len(before) >= len(after) else (after, before)
    away = np.sign(median(shorter) - median(longer)) * (longer - median(longer))
    return float(np.quantile(away, 0.9)) / _NORMAL_90


def inflation_of(residuals: Floats) -> float:
    """Return the factor by which autocorrelation widens the error of a mean.

    It is that of an AR(1) process with the same correlation of neighbours.
    """
    clipped = np.clip(residuals, -3, 3)
    power = float(clipped @ clipped)
    linked = float(clipped[1:] @ clipped[:-1]) / power if power else 0.0
    if linked > 0 and len(clipped) > _BIAS:
        # Short series show too little of it (M. G. Kendall, Biometrika 41, 1954).
        linked = (linked * len(clipped) + 1) / (len(clipped) - _BIAS)
    linked = min(max(linked, 0.0), 0.9)
    return math.sqrt((1 + linked) / (1 - linked))


def _is_jump(blocks: Floats, edges: list[int], index: int, rule: _JumpRule) -> bool:
    before, after = _sides(blocks, edges, index)
    step = abs(float(median(after) - median(before)))
    if 1 - np.exp(-step) < rule.least_step or _least_blocks(before, after) < rule.least_blocks:
        return False
    both = np.concatenate([before, after])
    x = np.arange(len(both), dtype=float)
    ramp = both - np.polyval(np.polyfit(x, both, 1), x)
    flat = np.concatenate([before - before.mean(), after - after.mean()])
    return bool(flat @ flat <= ramp @ ramp)


def _least_blocks(before: Floats, after: Floats) -> int:
    """Return how many blocks of the shorter level are nearer to it than to the other."""
    low, high = sorted((median(before), median(after)))
    between = (low + high) / 2
    return min(
        int(np.count_nonzero((level > between) == (median(level) > between)))
        for level in (before, after)
    )


def _refine(logs: Floats, edge: int, *, reach: int) -> int:
    first, last = max(0, edge - 4 * reach), min(len(logs), edge + 4 * reach)
    window = logs[first:last]
    low, high = np.percentile(window, [2, 98]) if len(window) > 50 else (window.min(), window.max())
    window = np.clip(window, low, high)
    splits = np.arange(max(1, edge - reach - first), min(len(window), edge + reach - first + 1))
    sums, squares = np.cumsum(window), np.cumsum(window**2)
    left, right = splits.astype(float), len(window) - splits.astype(float)
    valid = right > 0
    splits, left, right = splits[valid], left[valid], right[valid]
    if not len(splits):
        return edge
    ahead = sums[splits - 1]
    loss = squares[-1] - ahead**2 / left - (sums[-1] - ahead) ** 2 / right
    return first + int(splits[int(np.argmin(loss))])


def _changes_at(
    t_s: Floats, values: Floats, places: list[int], *, least_step: float
) -> tuple[Change, ...]:
    bounds = [0, *places, len(values)]
    levels = [median(values[a:b]) for a, b in pairwise(bounds)]
    changes = (
        Change(t_s=float(t_s[edge - 1]), before=before, after=after)
        for edge, (before, after) in zip(places, pairwise(levels), strict=True)
    )
    return tuple(
        change
        for change in changes
        if abs(change.after - change.before) >= least_step * max(change.after, change.before)
    )
