"""How often the interval at which repeats stop holds the true median: a Markdown table.

Each look is taken after a repeat, from the third to the thirtieth; a series stops at the first
whose interval is within +- 3 %. The designs are those of intervals.py, and repeats that drift, have
two levels, or follow each other. Truth is the median of what the repeats were drawn from; under
drift, that of the conditions up to the stop. A series counts as held if it stopped with an
interval that holds the truth, or never stopped: then nothing was claimed. Seeds are fixed and odd.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from intervals import heavy, normal, stalls
from scipy.stats import t as student

from volbench.analyse.compare.repeat_precision import judge_precision
from volbench.analyse.frames.resample import Floats

MIN, MAX, WITHIN = 3, 30, 0.03

Draw = Callable[[np.random.Generator, int], Floats]


def plain(rng: np.random.Generator, count: int, *, noise: float, shape: object = normal) -> Floats:
    """Return logarithms around 0."""
    return noise * shape(rng, (1, count))[0]  # type: ignore[operator]


def drifting(rng: np.random.Generator, count: int, *, noise: float, total: float) -> Floats:
    """Return logarithms that fall evenly by `total` over the longest series."""
    return noise * rng.standard_normal(count) - total * np.arange(count) / MAX


def bimodal(rng: np.random.Generator, count: int, *, noise: float, gap: float) -> Floats:
    """Return logarithms at two levels, equally often, their median between them."""
    return noise * rng.standard_normal(count) + gap * (rng.random(count) < 0.5) - gap / 2


def linked(rng: np.random.Generator, count: int, *, noise: float, by: float) -> Floats:
    """Return logarithms of which neighbours are correlated."""
    values = rng.standard_normal(count)
    for place in range(1, count):
        values[place] = by * values[place - 1] + math.sqrt(1 - by**2) * values[place]
    return noise * values


DESIGNS: tuple[tuple[str, Draw], ...] = (
    *((f"noise {noise} %", partial(plain, noise=noise / 100)) for noise in (1, 2, 3, 5, 10)),
    ("noise 3 %, heavy tails (t3)", partial(plain, noise=0.03, shape=heavy)),
    ("noise 3 %, a tenth stalled", partial(plain, noise=0.03, shape=stalls)),
    ("noise 2 %, drifts by 10 %", partial(drifting, noise=0.02, total=0.1)),
    ("noise 3 %, drifts by 30 %", partial(drifting, noise=0.03, total=0.3)),
    ("noise 1 %, two levels 6 % apart", partial(bimodal, noise=0.01, gap=0.06)),
    ("noise 1 %, two levels 15 % apart", partial(bimodal, noise=0.01, gap=0.15)),
    ("noise 3 %, neighbours correlated by 0.3", partial(linked, noise=0.03, by=0.3)),
    ("noise 3 %, neighbours correlated by 0.6", partial(linked, noise=0.03, by=0.6)),
)


@dataclass(frozen=True)
class Stop:
    """Where a series stopped: repeats, and the interval of the logarithm."""

    repeats: int
    low: float
    high: float


def own(logs: Floats, *, least: int = MIN) -> Stop | None:
    """Return where volbench stops; None for nowhere."""
    for count in range(least, MAX + 1):
        judged = judge_precision(np.exp(logs[:count]), WITHIN)
        if judged.is_reached:
            return Stop(count, math.log(judged.interval.low), math.log(judged.interval.high))
    return None


def student_t(logs: Floats, *, alpha: Callable[[int], float]) -> Stop | None:
    """Return where Student's interval is narrow enough, at an error rate for each look."""
    for count in range(MIN, MAX + 1):
        part = logs[:count]
        half = student.isf(alpha(count) / 2, count - 1) * part.std(ddof=1) / math.sqrt(count)
        if half <= math.log1p(WITHIN):
            return Stop(count, part.mean() - half, part.mean() + half)
    return None


METHODS: dict[str, Callable[[Floats], Stop | None]] = {
    "volbench": own,
    "volbench, min 6": partial(own, least=6),
    "95 % each time": partial(student_t, alpha=lambda _: 0.05),
    "99 % each time": partial(student_t, alpha=lambda _: 0.01),
    "equal spending": partial(student_t, alpha=lambda _: 0.05 / (MAX - MIN + 1)),
}


def main() -> None:
    """Print how often intervals hold, and the median number of repeats, for each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    trials = parser.parse_args().trials
    columns = [f"{name}: held | of stopped | repeats" for name in METHODS]
    print("| repeats | " + " | ".join(columns) + " |")
    print("|" + " --- |" * (1 + 3 * len(METHODS)))
    for name, draw in DESIGNS:
        cells = [name]
        for method in METHODS.values():
            held, stopped, counts = 0, 0, []
            for seed in range(1, 2 * trials, 2):
                logs = draw(np.random.default_rng(seed), MAX)
                stop = method(logs)
                counts.append(MAX if stop is None else stop.repeats)
                truth = 0.0
                if stop is not None and draw.func is drifting:  # type: ignore[attr-defined]
                    truth = -draw.keywords["total"] * (stop.repeats - 1) / 2 / MAX  # type: ignore[attr-defined]
                stopped += stop is not None
                held += stop is not None and stop.low <= truth <= stop.high
            cells += [
                f"{100 * (held + trials - stopped) / trials:.1f}",
                f"{100 * held / stopped:.1f}" if stopped else "n/a",
                f"{np.median(counts):.0f}",
            ]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
