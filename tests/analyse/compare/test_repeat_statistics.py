"""Intervals and verdicts on repeats whose true ratio is known."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats as reference

from volbench.analyse.compare.repeat_statistics import (
    Contrast,
    Group,
    contrast,
    hodges_lehmann,
    holm,
    location_interval,
    pseudomedian,
    shortage,
)
from volbench.analyse.frames.resample import Floats
from volbench.errors import ComparisonError, InputError

TRIALS = 2000
RATIO = 1.12

Noise = Callable[[np.random.Generator, tuple[int, int]], Floats]


def lognormal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return the logarithm of lognormal noise."""
    return rng.normal(0, 1, shape)


def heavy(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return noise with heavy tails: Student's t with 3 degrees of freedom."""
    return rng.standard_t(3, shape)


def spiked(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return noise of which a tenth is five times as wide."""
    return rng.normal(0, 1, shape) * np.where(rng.random(shape) < 0.1, 5, 1)


@dataclass(frozen=True)
class Side:
    """How the repeats of one group come about; deviations are of logarithms."""

    repeats: int
    volumes: int = 1
    within: float = 0.05
    between: float = 0.0
    noise: Noise = lognormal


@dataclass(frozen=True)
class Shape:
    """A design of an experiment."""

    name: str
    base: Side
    candidate: Side
    same: bool = False
    most: float = 0.97
    """Share of the intervals that may hold the truth: Student's t is cautious with stalls."""

    def draw(self, rng: np.random.Generator, ratio: float) -> tuple[Group, Group]:
        """Return two groups whose true ratio is known."""
        effects = rng.normal(0, self.base.between, self.base.volumes)
        others = effects if self.same else rng.normal(0, self.candidate.between, self.count)
        second = "a" if self.same else "b"
        return (
            _group(rng, self.base, effects, "a"),
            _group(rng, self.candidate, others + math.log(ratio), second),
        )

    @property
    def count(self) -> int:
        """Volumes of the candidate."""
        return self.candidate.volumes


def _group(
    rng: np.random.Generator, side: Side, effects: npt.NDArray[np.float64], name: str
) -> Group:
    noise = side.within * side.noise(rng, (side.volumes, side.repeats))
    volumes = [f"{name}{place}" for place in range(side.volumes) for _ in range(side.repeats)]
    return Group(np.exp(effects[:, None] + noise).ravel(), volumes)


SPREAD = Side(5, volumes=3, within=0.03, between=0.06)
SHAPES = [
    Shape("5 repeats", Side(5), Side(5)),
    Shape("10 repeats", Side(10), Side(10)),
    Shape("3 repeats", Side(3), Side(3)),
    Shape("5 repeats, 4 times the noise", Side(5), Side(5, within=0.2)),
    Shape("5 and 10 repeats, 4 times the noise", Side(5, within=0.2), Side(10)),
    Shape("heavy tails", Side(5, noise=heavy), Side(5, noise=heavy)),
    Shape("a tenth five times as wide", Side(5, noise=spiked), Side(5, noise=spiked), most=0.98),
    Shape("5 repeats on 3 volumes", SPREAD, SPREAD),
    Shape("3 volumes, one kind uneven", SPREAD, Side(5, volumes=3, within=0.03, between=0.2)),
    Shape("3 repeats on 5 volumes", Side(3, 5, 0.05, 0.05), Side(3, 5, 0.05, 0.05)),
    Shape("1 and 2 volumes", Side(5, 1, 0.03, 0.06), Side(5, 2, 0.03, 0.06)),
    Shape("1 and 4 volumes", Side(5, 1, 0.03, 0.06), Side(5, 4, 0.03, 0.06)),
    Shape("the same 3 volumes", SPREAD, SPREAD, same=True),
    Shape("8 volumes once each", Side(1, 8, 0.05, 0.1), Side(1, 8, 0.05, 0.1)),
]

# Two designs answer in the quick set; the others take their trials in the full one.
DESIGNS = [
    shape
    if shape.name in {"5 repeats", "5 repeats on 3 volumes"}
    else pytest.param(shape, marks=pytest.mark.slow)
    for shape in SHAPES
]


def trials(shape: Shape, *, ratio: float) -> list[Contrast]:
    """Return comparisons of groups that were drawn anew each time."""
    rng = np.random.default_rng([SHAPES.index(shape), round(1000 * ratio)])
    return [contrast(*shape.draw(rng, ratio)) for _ in range(TRIALS)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", DESIGNS, ids=lambda shape: shape.name)
def test_intervals_cover_the_true_ratio(shape: Shape) -> None:
    """Of 2,000 intervals at 95 %, 93 to 97 % hold the truth and hold their own estimate."""
    intervals = [trial.interval() for trial in trials(shape, ratio=RATIO)]
    assert all(trial.low <= trial.estimate <= trial.high for trial in intervals)
    covered = np.mean([not trial.excludes(RATIO) for trial in intervals])
    assert 0.93 <= covered <= shape.most


@pytest.mark.slow
@pytest.mark.parametrize("shape", DESIGNS, ids=lambda shape: shape.name)
def test_equal_sides_are_rarely_called_faster(shape: Shape) -> None:
    """Equal groups are called faster in at most 5 % of the trials, and p-values agree."""
    found = trials(shape, ratio=1.0)
    shown = [entry.interval().low > 1 for entry in found]
    assert np.mean(shown) <= 0.05
    assert all(entry.p_value <= 0.05 for entry in found if entry.interval().excludes(1))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES[:2], ids=lambda shape: shape.name)
def test_the_minimum_detectable_difference_has_80_percent_power(shape: Shape) -> None:
    """Where truth equals the detectable ratio, the interval leaves out 1 in about 80 %."""
    rng = np.random.default_rng(5)
    typical = float(np.mean([trial.detectable() for trial in trials(shape, ratio=1.0)]))
    seen = [contrast(*shape.draw(rng, typical)).interval().low > 1 for _ in range(TRIALS)]
    assert 0.75 <= np.mean(seen) <= 0.85


def test_holm_adjusts_step_by_step() -> None:
    """Levels are alpha/k, alpha/(k-1) ... until one fails; the rest share its level."""
    levels = holm([0.03, 0.001, 0.5, 0.04])
    assert levels == pytest.approx([1 - 0.05 / 3, 1 - 0.05 / 4, 1 - 0.05 / 3, 1 - 0.05 / 3])
    assert holm([]) == []
    assert holm([0.2]) == [pytest.approx(0.95)]


def test_one_volume_per_side_uses_welchs_test() -> None:
    """Interval and p-value are those of scipy's Welch test on logarithms."""
    rng = np.random.default_rng(3)
    first, second = rng.lognormal(0, 0.1, 6), rng.lognormal(0.3, 0.3, 4)
    found = contrast(Group(first), Group(second))
    test = reference.ttest_ind(np.log(second), np.log(first), equal_var=False)
    bounds = test.confidence_interval(0.9)
    assert found.p_value == pytest.approx(test.pvalue)
    interval = found.interval(0.9)
    assert (interval.low, interval.high) == pytest.approx(tuple(np.exp(bounds)))


def test_a_stalled_repeat_moves_the_estimate_little() -> None:
    """One repeat ten times slower leaves Hodges and Lehmann's ratio near the truth."""
    base, candidate = [100.0, 101, 99, 100, 102], [120.0, 121, 119, 12, 122]
    assert contrast(Group(base), Group(candidate)).estimate == pytest.approx(1.2, rel=0.02)
    assert hodges_lehmann(np.array([1.0, 2, 3]), np.array([2.0, 3, 9])) == 1
    assert pseudomedian(np.array([1.0, 2, 9])) == pytest.approx(3.5)


def test_too_few_repeats_are_reported() -> None:
    """Two repeats on one volume show nothing, nor does a 0; it is said why."""
    five, two = Group([1.0, 2, 3, 2, 1]), Group([1.0, 2])
    assert shortage(five, two) == "2 repeats"
    assert shortage(Group([0.0, 1, 1]), five) == "a repeat is 0"
    assert not shortage(five, five)
    with pytest.raises(ComparisonError, match="not tested: 2 repeats"):
        contrast(five, two)
    with pytest.raises(InputError):
        Group([1.0, math.nan])
    with pytest.raises(InputError):
        Group([1.0], ["a", "b"])


def test_very_few_repeats_give_wide_intervals() -> None:
    """One volume against two that differ tenfold: ends that are far out, and no overflow."""
    base = Group([1.0, 1.1, 1.2], ["a"] * 3)
    found = contrast(base, Group([1.0, 10.0, 1.0, 10.0], ["b", "c", "b", "c"]))
    assert found.unit == "volumes"
    assert found.interval(0.9999).high == math.inf
    assert not found.interval().excludes(1)
    assert found.detectable() == pytest.approx(1000)


def test_units_are_reported() -> None:
    """Repeats for one volume each, volumes for several, the same volumes where they are."""
    rng = np.random.default_rng(8)
    units = {shape.name: contrast(*shape.draw(rng, 1.0)).unit for shape in SHAPES}
    assert units["5 repeats"] == "repeats"
    assert units["1 and 4 volumes"] == units["5 repeats on 3 volumes"] == "volumes"
    assert units["the same 3 volumes"] == "same volumes"


def test_coarsely_rounded_values_are_not_treated_as_exact() -> None:
    """Repeats that all fall into one bin differ from the next bin's by less than is known."""
    base, candidate = Group([1.0] * 5), Group([1.01] * 5)
    assert contrast(base, candidate).interval().low == pytest.approx(1.01)
    assert contrast(base, candidate).p_value == 0
    coarse = contrast(base, candidate, resolution=0.0157)
    assert not coarse.interval().excludes(1)
    assert coarse.p_value == 1
    assert coarse.detectable() == pytest.approx(1.0157)


@pytest.mark.slow
@pytest.mark.parametrize("volumes", [1, 4])
def test_the_interval_of_one_group_covers_its_median(volumes: int) -> None:
    """Of 2,000 intervals of a location, 93 to 97 % hold the truth."""
    rng = np.random.default_rng(9)
    held = 0
    for _ in range(TRIALS):
        effects = rng.normal(math.log(1100), 0.05 * (volumes > 1), volumes)
        group = _group(rng, Side(5, volumes=volumes), effects, "v")
        keys = [name for name, part in group.by_volume.items() for _ in part]
        held += not location_interval(group.values, volumes=keys).excludes(1100)
    assert 0.93 <= held / TRIALS <= 0.97


def test_two_repeats_have_a_median_without_an_interval() -> None:
    """The estimate is reported; unknown ends are NaN and exclude nothing."""
    found = location_interval([100.0, 121.0])
    assert found.estimate == pytest.approx(110.5)
    assert math.isnan(found.low)
    assert not found.excludes(1e9)
    with pytest.raises(InputError):
        location_interval([])
    assert math.isnan(location_interval([1.0, 0.0, 2.0]).low)
