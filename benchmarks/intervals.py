"""How often intervals of a ratio hold the truth, over repeats whose truth is known: a table.

Repeats are lognormal (or as the row says) around a level; volumes differ by a factor of their own.
The candidate is 12 % above the base. Beside volbench stand what one would use instead: a percentile
bootstrap over volumes and repeats, and Welch's t over all repeats as if they were independent.
Seeds are fixed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_ind

from volbench.analyse.compare.repeat_statistics import Floats, Group, Interval, contrast

RATIO = 1.12
RESAMPLES = 499

Noise = Callable[[np.random.Generator, tuple[int, int]], Floats]


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return noise whose exponential is lognormal."""
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return Student's t with 3 degrees of freedom."""
    return rng.standard_t(3, shape)


def stalls(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return noise of which a tenth is stalled: lower by a factor that is exponential."""
    stalled = rng.random(shape) < 0.1
    return rng.standard_normal(shape) - np.where(stalled, rng.exponential(10, shape), 0)


@dataclass(frozen=True)
class Side:
    """Repeats on each volume, volumes, and deviations of the logarithms."""

    repeats: int = 5
    volumes: int = 1
    within: float = 0.05
    between: float = 0.0
    noise: Noise = normal

    def draw(self, rng: np.random.Generator, effects: Floats) -> Floats:
        """Return logarithms, a row a volume."""
        noise = self.within * self.noise(rng, (self.volumes, self.repeats))
        return effects[:, None] + noise


SPREAD = Side(5, 3, 0.03, 0.06)
SHAPES: tuple[tuple[str, Side, Side], ...] = (
    ("3 repeats", Side(3), Side(3)),
    ("5 repeats", Side(5), Side(5)),
    ("10 repeats", Side(10), Side(10)),
    ("5 repeats, one side 4 times as noisy", Side(5), Side(5, within=0.2)),
    ("5 noisy and 10 quiet repeats", Side(5, within=0.2), Side(10)),
    ("3 noisy and 10 quiet repeats", Side(3, within=0.2), Side(10)),
    ("5 repeats, heavy tails (t3)", Side(noise=heavy), Side(noise=heavy)),
    ("5 repeats, a tenth stalled", Side(noise=stalls), Side(noise=stalls)),
    ("5 repeats on 2 volumes", Side(5, 2, 0.03, 0.06), Side(5, 2, 0.03, 0.06)),
    ("5 repeats on 3 volumes", SPREAD, SPREAD),
    ("5 repeats on 3 volumes, one kind uneven", SPREAD, Side(5, 3, 0.03, 0.2)),
    ("3 repeats on 5 volumes", Side(3, 5, 0.05, 0.05), Side(3, 5, 0.05, 0.05)),
    ("5 repeats on 1 and on 4 volumes", Side(5, 1, 0.03, 0.06), Side(5, 4, 0.03, 0.06)),
)


@dataclass
class Tally:
    """How one method did."""

    held: int = 0
    faster: int = 0
    width: float = 0.0

    def add(self, interval: Interval, null: Interval) -> None:
        """Count an interval of different sides, and one of equal sides."""
        self.held += not interval.excludes(RATIO)
        self.faster += null.low > 1
        self.width += math.log(interval.high / interval.low)


def own(base: Floats, candidate: Floats, *, same: bool) -> Interval:
    """Return volbench's interval."""
    return contrast(_group(base, "a"), _group(candidate, "a" if same else "b")).interval()


def bootstrap(base: Floats, candidate: Floats, rng: np.random.Generator) -> Interval:
    """Return the percentile interval of the Hodges-Lehmann ratio, over volumes and repeats."""
    shifts = _resampled(candidate, rng)[:, :, None] - _resampled(base, rng)[:, None, :]
    found = np.median(shifts.reshape(RESAMPLES, -1), axis=1)
    low, middle, high = np.quantile(found, [0.025, 0.5, 0.975])
    return Interval(math.exp(low), math.exp(middle), math.exp(high))


def flat(base: Floats, candidate: Floats) -> Interval:
    """Return Welch's interval over all repeats, whatever volume they are of."""
    test = ttest_ind(candidate.ravel(), base.ravel(), equal_var=False)
    low, high = test.confidence_interval()
    return Interval(math.exp(low), math.exp((low + high) / 2), math.exp(high))


def _group(logs: Floats, name: str) -> Group:
    volumes = [f"{name}{place}" for place, row in enumerate(logs) for _ in row]
    return Group(np.exp(logs).ravel(), volumes)


def _resampled(logs: Floats, rng: np.random.Generator) -> Floats:
    volumes, repeats = logs.shape
    rows = rng.integers(0, volumes, (RESAMPLES, volumes, 1))
    columns = rng.integers(0, repeats, (RESAMPLES, volumes, repeats))
    return logs[rows, columns].reshape(RESAMPLES, -1)


def judged(base: Side, candidate: Side, *, same: bool, trials: int, seed: int) -> list[Tally]:
    """Return how volbench, the bootstrap and the flat t did."""
    rng = np.random.default_rng(seed)
    tallies = [Tally(), Tally(), Tally()]
    for _ in range(trials):
        effects = rng.normal(0, base.between, base.volumes)
        others = effects if same else rng.normal(0, candidate.between, candidate.volumes)
        first, second = base.draw(rng, effects), candidate.draw(rng, others)
        faster = second + math.log(RATIO)
        pairs = (
            (own(first, faster, same=same), own(first, second, same=same)),
            (bootstrap(first, faster, rng), bootstrap(first, second, rng)),
            (flat(first, faster), flat(first, second)),
        )
        for tally, (interval, null) in zip(tallies, pairs, strict=True):
            tally.add(interval, null)
    return tallies


def main() -> None:
    """Print a Markdown row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    trials = parser.parse_args().trials
    print(
        "| repeats | held | false faster | typical width | bootstrap: held | false faster"
        " | flat t: held | false faster |"
    )
    print("|" + " --- |" * 8)
    shapes = [(*shape, False) for shape in SHAPES]
    shapes.append(("5 repeats on the same 3 volumes", SPREAD, SPREAD, True))
    for seed, (name, base, candidate, same) in enumerate(shapes):
        tallies = judged(base, candidate, same=same, trials=trials, seed=seed)
        cells = [name]
        for place, tally in enumerate(tallies):
            cells += [f"{100 * tally.held / trials:.1f}", f"{100 * tally.faster / trials:.1f}"]
            if place == 0:
                cells.append(f"± {100 * math.expm1(tally.width / trials / 2):.0f} %")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
