"""Statistics of repeats: ratios, confidence intervals and confidence levels.

The unit is the repeat, or the volume if there are several: never a second of one run. All
statistics use logarithms, because storage performance differs by factors and is compared as ratios.

The estimate is that of Hodges and Lehmann (The Annals of Mathematical Statistics 34, 1963): the
median of all pairwise ratios, which one stalled repeat does not move. The interval is Welch's
(Biometrika 34, 1947): Student's t with the degrees of freedom that Welch and Satterthwaite give.
A percentile bootstrap of five repeats covers the truth in 88 to 91 % of cases instead of 95, and
one of three in 80 %, so it is not used; docs/explanation/statistics.md has the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from volbench.analyse.significance import student_quantile, student_tail
from volbench.errors import ComparisonError, InputError
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.analyse.frames.resample import Floats

# Family-wise confidence of verdicts, by convention. Noticed by: test_comparison.py
CONFIDENCE = 0.95
# Power of the minimum detectable difference (Cohen 1988).
# Noticed by: test_repeat_statistics.py::test_the_minimum_detectable_difference_has_80_percent_power
POWER = 0.80
# Repeats from which an interval is worth reporting: of two, Student's factor is 12.7.
# Noticed by: test_repeat_statistics.py::test_too_few_repeats_are_reported
MIN_REPEATS = 3
ONE_RUN = "one run per side"
# Common volumes from which pairs are compared, for the same reason.
# Noticed by: test_repeat_statistics.py::test_units_are_reported
MIN_PAIRS = 3
# Blocks from which the order within them is taken into account: of fewer, the degree of freedom
# that it costs is worth more. A trade-off measured by benchmarks/paired.py.
# Noticed by: test_blocks.py::test_a_drift_within_blocks_is_subtracted
_MIN_ORDERED = 5
# Significance from which it is. Without drift, intervals of five blocks hold the truth in 94.5 % of
# cases; with a threshold of 5 % it was 93.9, with 2 % 94.0. Measured by benchmarks/paired.py.
# Noticed by: test_blocks.py::test_a_drift_within_blocks_is_subtracted
_ORDER_ALPHA = 0.01


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    low: float  # lower end; NaN with too few values
    estimate: float  # point estimate within the interval
    high: float  # upper end; NaN with too few values
    # share of such intervals that contain the true value, such as 0.95
    confidence: float = CONFIDENCE

    def excludes(self, value: float) -> bool:
        """Return whether a value is outside; False if the ends are unknown."""
        return value < self.low or value > self.high


class Group:
    """Repeats of one configuration, on one or several volumes.

    Args:
        volumes: key of each value's volume; None for one volume.
        blocks: block of each value, in which the values of both groups were measured next to each
            other; None for values outside blocks.
        starts: when each value's measurement started, in any order-preserving form.
    """

    def __init__(
        self,
        values: Sequence[float] | Floats,
        volumes: Sequence[Hashable] | None = None,
        *,
        blocks: Sequence[Hashable | None] = (),
        starts: Sequence[str] = (),
    ) -> None:
        self.values: Floats = np.asarray(values, dtype=np.float64)
        keys = [""] * len(self.values) if volumes is None else list(volumes)
        if len(keys) != len(self.values):
            raise InputError(f"{len(self.values)} values cannot be on {len(keys)} volumes")
        if not np.isfinite(self.values).all():
            raise InputError("repeats without a value cannot be compared", hint="leave out NaN")
        places: dict[Hashable, list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, []).append(place)
        self.by_volume: dict[Hashable, Floats] = {
            key: self.values[rows] for key, rows in places.items()
        }
        self._blocks, self._starts = list(blocks), list(starts)

    @property
    def by_block(self) -> dict[Hashable, tuple[float, str]]:
        """Mean of the values' logarithms in each block, and the first start; empty without."""
        places: dict[Hashable, list[int]] = {}
        for place, block in enumerate(self._blocks):
            if block is not None:
                places.setdefault(block, []).append(place)
        return {
            block: (float(np.log(self.values[rows]).mean()), min(self._starts[row] for row in rows))
            for block, rows in places.items()
        }

    def drift(self, alpha: float) -> float | None:
        """Return the change over all repeats by a fitted line, as a logarithm; None by chance."""
        known = len(self._starts) >= _MIN_ORDERED and all(
            isinstance(start, str) for start in self._starts
        )
        if not known or (self.values <= 0).any() or self.volumes > 1:
            return None
        place = np.arange(len(self._starts), dtype=float)
        logs = np.log(self.values[np.argsort(self._starts, kind="stable")])
        line = fit_line(place, logs)
        return line.slope * (len(place) - 1) if line.p_value < alpha else None

    @property
    def repeats(self) -> int:
        """Number of values over all volumes."""
        return len(self.values)

    @property
    def volumes(self) -> int:
        """Number of volumes."""
        return len(self.by_volume)

    @property
    def median(self) -> float:
        """Median of the values over all volumes, as charts and tables show it."""
        return float(np.median(self.values))

    def has_values_of(self, other: Group) -> bool:
        """Return whether both have the same values, in any order."""
        return np.array_equal(np.sort(self.values), np.sort(other.values))

    def by_each_volume(self) -> Floats:
        """Return the pseudomedian of each volume's logarithms."""
        return np.array([pseudomedian(np.log(values)) for values in self.by_volume.values()])


@dataclass(frozen=True)
class Contrast:
    """Ratio of a candidate to a base."""

    estimate: float  # Hodges-Lehmann ratio, candidate over base
    centre: float  # centre of the interval, as a logarithm
    error: float  # standard error of `centre`
    freedom: float  # degrees of freedom of `error`
    resolution: float  # error of the values themselves, as a logarithm of a ratio
    # ``repeats`` of one volume each, ``volumes``, ``same volumes`` in both groups, or ``blocks``
    unit: str
    units: int = 0  # number of blocks or of same volumes; 0 where nothing is paired

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Return the ratio with its interval at a confidence."""
        half = student_quantile(self.freedom, (1 + confidence) / 2) * self.error + self.resolution
        low, high = _power(self.centre - half), _power(self.centre + half)
        return Interval(
            min(low, self.estimate), self.estimate, max(high, self.estimate), confidence
        )

    @property
    def p_value(self) -> float:
        """Two-sided p-value: probability of so large a difference where there is none."""
        beyond = max(0.0, abs(self.centre) - self.resolution)
        if not self.error:
            return 1.0 if not beyond else 0.0
        return 2 * student_tail(self.freedom, beyond / self.error)

    def detectable(self, confidence: float = CONFIDENCE) -> float:
        """Return the minimum detectable ratio above 1 at a power of 80 %."""
        quantiles = student_quantile(self.freedom, (1 + confidence) / 2) + student_quantile(
            self.freedom, POWER
        )
        # Beyond a factor of a thousand nothing is detectable, and exp would overflow.
        return math.exp(min(quantiles * self.error + self.resolution, math.log(1e3)))


def shortage(base: Group, candidate: Group) -> str:
    """Return why two groups are not comparable, such as ``2 repeats``; else ""."""
    if base.repeats == candidate.repeats == 1:
        return ONE_RUN
    for group in (base, candidate):
        if group.volumes <= 1 and group.repeats < MIN_REPEATS:
            return counted_noun(group.repeats, "repeat")
    if any((group.values <= 0).any() for group in (base, candidate)):
        return "a repeat is 0"
    return ""


def contrast(base: Group, candidate: Group, *, resolution: float = 0.0) -> Contrast:
    """Compare a candidate with a base.

    With one volume each, repeats are compared and the result holds for these two volumes. With
    several, each volume is one value and the result generalises to similar volumes. With at least
    three volumes common to both groups, the ratio of each volume is one value. One volume against
    several is assumed to have the variance of the others. With at least three blocks in which both
    were measured, on one volume each or on the same two, the ratio in each block is one value.

    Args:
        resolution: relative error of the values that all repeats may share, such as that of fio's
            latency bins; it widens the interval.
    """
    if reason := shortage(base, candidate):
        raise ComparisonError(
            f"not tested: {reason}", hint="run more repeats: volbench run --repeat 5"
        )
    shared = math.log1p(resolution)
    if are_blocked(base, candidate):
        return _block_contrast(base, candidate, resolution=shared)
    return unpaired_contrast(base, candidate, resolution=resolution)


def are_blocked(base: Group, candidate: Group) -> bool:
    """Return whether two groups are compared block by block.

    With several volumes of each, blocks would answer for these volumes only.
    """
    single = base.volumes == candidate.volumes == 1
    same = base.volumes < MIN_PAIRS and base.by_volume.keys() == candidate.by_volume.keys()
    return (single or same) and len(base.by_block.keys() & candidate.by_block.keys()) >= MIN_PAIRS


def unpaired_contrast(base: Group, candidate: Group, *, resolution: float = 0.0) -> Contrast:
    """Compare a candidate with a base as `contrast` does without blocks."""
    shared = math.log1p(resolution)
    if base.volumes >= MIN_PAIRS and base.by_volume.keys() == candidate.by_volume.keys():
        return _volume_contrast(base, candidate, resolution=shared)
    single = base.volumes == candidate.volumes == 1
    first, second = (
        np.log(group.values) if single else group.by_each_volume() for group in (base, candidate)
    )
    error, freedom = _welch(first, second)
    return Contrast(
        estimate=math.exp(hodges_lehmann(first, second)),
        centre=float(second.mean() - first.mean()),
        error=error,
        freedom=freedom,
        resolution=shared,
        unit="repeats" if single else "volumes",
    )


def location_interval(
    values: Sequence[float] | Floats,
    *,
    volumes: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the median of repeats, as tables and charts show it, with a confidence interval.

    Args:
        volumes: volume of each value; the interval then generalises to similar volumes.

    Returns:
        The interval is that of the mean of the logarithms, widened where the median is outside it.
        Ends are NaN with fewer than 3 repeats of one volume, and where a value is not above 0.
    """
    group = Group(values, volumes)
    if not group.repeats:
        raise InputError("an interval needs values")
    estimate = group.median
    if (group.volumes <= 1 and group.repeats < MIN_REPEATS) or (group.values <= 0).any():
        return Interval(math.nan, estimate, math.nan, confidence)
    units = np.log(group.values) if group.volumes <= 1 else group.by_each_volume()
    error = math.sqrt(float(units.var(ddof=1)) / len(units))
    half = student_quantile(len(units) - 1, (1 + confidence) / 2) * error
    centre = float(units.mean())
    low, high = _power(centre - half), _power(centre + half)
    return Interval(min(low, estimate), estimate, max(high, estimate), confidence)


def hodges_lehmann(base: Floats, candidate: Floats) -> float:
    """Return the median of all differences, candidate minus base."""
    return float(np.median(candidate[:, None] - base[None, :]))


def pseudomedian(values: Floats) -> float:
    """Return the median of the means of all pairs, each value paired with itself too."""
    first, second = np.triu_indices(len(values))
    return float(np.median((values[first] + values[second]) / 2))


def holm(p_values: Sequence[float], *, confidence: float = CONFIDENCE) -> list[float]:
    """Return the confidence at which to judge each of several comparisons.

    Holm (Scandinavian Journal of Statistics 6, 1979) steps down: the smallest of k p-values is
    judged at alpha / k, the next at alpha / (k - 1), until one fails, which decides for the rest.
    An interval at the confidence returned leaves out "no difference" exactly where Holm's method
    rejects it, so that among all comparisons together a false difference is shown in at most
    alpha of the cases.

    Args:
        confidence: 1 - alpha, for all of them together.

    Returns:
        A confidence for each, in their order; never less than `confidence`.
    """
    alpha = 1 - confidence
    levels = [confidence] * len(p_values)
    share = alpha
    failed = False
    for step, index in enumerate(np.argsort(p_values, kind="stable")):
        if not failed:
            share = alpha / (len(p_values) - step)
            failed = p_values[index] > share
        levels[index] = 1 - share
    return levels


def _welch(first: Floats, second: Floats) -> tuple[float, float]:
    """Return standard error and degrees of freedom of a difference of means."""
    if min(len(first), len(second)) == 1:
        several = first if len(first) > 1 else second
        variance = float(several.var(ddof=1))
        return math.sqrt(variance * (1 + 1 / len(several))), float(len(several) - 1)
    parts = [float(term.var(ddof=1)) / len(term) for term in (first, second)]
    total = sum(parts)
    sizes = (len(first), len(second))
    below = sum(term**2 / (size - 1) for term, size in zip(parts, sizes, strict=True))
    freedom = total**2 / below if below > 0 else float(sum(sizes) - 2)
    return math.sqrt(total), freedom


def _volume_contrast(base: Group, candidate: Group, *, resolution: float) -> Contrast:
    pairs = [
        (np.log(values), np.log(candidate.by_volume[key])) for key, values in base.by_volume.items()
    ]
    shifts = np.array([pseudomedian(second) - pseudomedian(first) for first, second in pairs])
    return Contrast(
        estimate=math.exp(pseudomedian(shifts)),
        centre=float(shifts.mean()),
        error=math.sqrt(float(shifts.var(ddof=1)) / len(shifts)),
        freedom=float(len(shifts) - 1),
        resolution=resolution,
        unit="same volumes",
        units=len(shifts),
    )


def _block_contrast(base: Group, candidate: Group, *, resolution: float) -> Contrast:
    """Compare block by block, which eliminates what changes from block to block.

    A drift from run to run adds to the ratio in one order of the arms and subtracts in the other;
    where the orders differ significantly, it is subtracted, for a degree of freedom.
    """
    first, second = base.by_block, candidate.by_block
    blocks = [block for block in first if block in second]
    shifts = np.array([second[block][0] - first[block][0] for block in blocks])
    times = [(first[block][1], second[block][1]) for block in blocks]
    order = np.array([float((later > sooner) - (later < sooner)) for sooner, later in times])
    count = len(shifts)
    centre, estimate = float(shifts.mean()), pseudomedian(shifts)
    error, freedom = math.sqrt(float(shifts.var(ddof=1)) / count), float(count - 1)
    if count >= _MIN_ORDERED and len(set(order.tolist())) > 1:
        line = fit_line(order, shifts)
        if line.p_value < _ORDER_ALPHA:
            centre, error, freedom = line.intercept, line.intercept_error, float(count - 2)
            estimate = pseudomedian(shifts - line.slope * order)
    return Contrast(
        estimate=math.exp(estimate),
        centre=centre,
        error=error,
        freedom=freedom,
        resolution=resolution,
        unit="blocks",
        units=count,
    )


@dataclass(frozen=True)
class Line:
    """Least-squares line with the standard error of its intercept."""

    slope: float
    intercept: float
    intercept_error: float
    p_value: float  # of the slope, two-sided: probability of so steep a line without any


def fit_line(x: Floats, y: Floats) -> Line:
    """Fit a line to at least three values; x must vary."""
    design = np.column_stack([np.ones(len(x)), x])
    inverse = np.linalg.inv(design.T @ design)
    intercept, slope = (float(each) for each in inverse @ design.T @ y)
    residuals = y - intercept - slope * x
    variance = float(residuals @ residuals) / (len(x) - 2)
    error = math.sqrt(variance * float(inverse[1, 1]))
    certain = 0.0 if slope else 1.0
    p_value = 2 * student_tail(len(x) - 2, abs(slope) / error) if error else certain
    return Line(slope, intercept, math.sqrt(variance * float(inverse[0, 0])), p_value)


def _power(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 709 else math.inf
