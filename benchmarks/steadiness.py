"""How often volbench calls a series wrong, over series whose truth is known: a table.

A series is 1,000 IOPS with noise of one autocorrelation (AR(1), coefficient phi) and size (CV). It
is left as it is, or it falls at once, or evenly from its start to its end. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.signal import lfilter

from volbench.analyse.bottleneck.sustained_level import around
from volbench.analyse.frames.resample import Floats
from volbench.analyse.time.steady_state import State, Steadiness, judge_steady

LEVEL = 1000.0
_SETTLE = 200
"""Samples that are thrown away, until the noise has forgotten its start."""


@dataclass(frozen=True)
class Shape:
    """Length and noise of a series."""

    samples: int
    interval_s: float
    phi: float
    cv: float

    @property
    def t_s(self) -> Floats:
        """Ends of the intervals."""
        return self.interval_s * np.arange(1, self.samples + 1, dtype=float)

    def noise(self, rng: np.random.Generator) -> Floats:
        """Return factors around 1."""
        fresh = rng.standard_normal(self.samples + _SETTLE) * np.sqrt(1 - self.phi**2)
        linked: Floats = lfilter([1.0], [1.0, -self.phi], fresh)[_SETTLE:]
        return np.maximum(1 + self.cv * linked, 0.0)


LONG = tuple(
    Shape(samples, 1.0, phi, cv)
    for samples in (3600, 4 * 3600)
    for phi in (0.5, 0.8)
    for cv in (0.03, 0.08, 0.15)
)
SHORT = tuple(
    Shape(samples, interval_s, 0.0, cv)
    for samples, interval_s in ((80, 0.25), (60, 0.5), (60, 1.0))
    for cv in (0.02, 0.05)
)


def judged(
    shape: Shape, runs: int, bend: Callable[[Floats, int], Floats]
) -> Iterator[tuple[int, Steadiness]]:
    """Yield the place of the step, if there is one, and the verdict, of each seed."""
    for seed in range(runs):
        rng = np.random.default_rng([seed, shape.samples, int(100 * shape.phi)])
        place = int(rng.integers(shape.samples // 5, 4 * shape.samples // 5))
        values = LEVEL * shape.noise(rng) * bend(np.arange(shape.samples, dtype=float), place)
        yield place, judge_steady(shape.t_s, values)


def flat(at: Floats, place: int) -> Floats:
    """Return a level that stays."""
    del place
    return np.ones(len(at))


def step(size: float) -> Callable[[Floats, int], Floats]:
    """Return a fall by a share at one moment."""
    return lambda at, place: np.where(at < place, 1.0, 1.0 - size)


def ramp(size: float) -> Callable[[Floats, int], Floats]:
    """Return an even fall by a share of the middle, over the whole."""
    return lambda at, _: 1.0 + size / 2 - size * at / (len(at) - 1)


def share(verdicts: list[bool]) -> str:
    """Return how many are true, in percent."""
    return f"{100 * sum(verdicts) / len(verdicts):.1f}"


def row(shape: Shape, runs: int, *, near_s: float) -> tuple[str, ...]:
    """Return one row of the table; a step has to be found at most `near_s` off."""
    still = [verdict.state for _, verdict in judged(shape, runs, flat)]
    stepped = list(judged(shape, runs, step(0.15)))
    ramps = [[v.state for _, v in judged(shape, runs, ramp(size))] for size in (0.12, 0.2)]
    off = [
        min((abs(c.t_s - place * shape.interval_s) for c in v.changes), default=np.inf)
        for place, v in stepped
    ]
    return (
        f"{shape.samples} x {shape.interval_s:g} s",
        f"{shape.phi:g}",
        f"{100 * shape.cv:g} %",
        share([state is State.STEPPED for state in still]),
        share([state is State.DRIFTING for state in still]),
        share([state is State.STEADY for state in still]),
        share([not v.changes for _, v in stepped]),
        share([near_s + 1e-9 < distance < np.inf for distance in off]),
        share([len(v.changes) > 1 for _, v in stepped]),
        *(share([state is State.STEADY for state in states]) for states in ramps),
    )


LENGTHS_S = (18, 30, 60, 120, 300)
_PHI = 0.5


def needed(runs: int) -> Iterator[tuple[str, ...]]:
    """Yield, for each noise and step, how often the step is found in runs of each length.

    The last row of a noise is the width of the interval of the level: its median, one way.
    """
    for cv in (0.05, 0.12, 0.2):
        shapes = [Shape(seconds, 1.0, _PHI, cv) for seconds in LENGTHS_S]
        for size in (0.15, 0.3, 0.5):
            found = (
                share([bool(v.changes) for _, v in judged(shape, runs, step(size))])
                for shape in shapes
            )
            yield f"{100 * cv:g} %", f"step of {100 * size:g} % found", *found
        reaches = (median(_reach(shape, seed) for seed in range(runs)) for shape in shapes)
        yield f"{100 * cv:g} %", "level known to, ±", *(f"{100 * each:.1f}" for each in reaches)


def _reach(shape: Shape, seed: int) -> float:
    values = LEVEL * shape.noise(np.random.default_rng([seed, shape.samples]))
    return around(values).reach


HEAD = (
    "series",
    "phi",
    "CV",
    "flat: called stepped",
    "flat: called drifting",
    "flat: called steady",
    "15 % step: not found",
    "15 % step: found, but too far off",
    "15 % step: more than one found",
    "12 % drift: called steady",
    "20 % drift: called steady",
)


def main() -> None:
    """Print the tables, and how long a judgement takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    for title, shapes, blocks in (("long", LONG, 2), ("short", SHORT, 0)):
        print(f"\n{title}: {runs} seeds a cell, in percent\n")
        print("| " + " | ".join(HEAD) + " |")
        print("|" + " --- |" * len(HEAD))
        for shape in shapes:
            near_s = 30.0 * blocks or shape.interval_s
            print("| " + " | ".join(row(shape, runs, near_s=near_s)) + " |", flush=True)
    print(f"\nlength of a run, {runs} seeds a cell, phi {_PHI}, in percent\n")
    print("| CV | | " + " | ".join(f"{seconds} s" for seconds in LENGTHS_S) + " |")
    print("|" + " --- |" * (2 + len(LENGTHS_S)))
    for line in needed(runs):
        print("| " + " | ".join(line) + " |", flush=True)
    for samples in (3600, 100_000):
        shape = Shape(samples, 1.0, 0.5, 0.08)
        started = time.perf_counter()
        list(judged(shape, 5, step(0.15)))
        print(f"\n{samples} samples: {(time.perf_counter() - started) / 5 * 1000:.0f} ms")


if __name__ == "__main__":
    main()
