"""Series whose truth is known: 1,000 IOPS with autocorrelated noise, by seed."""

from itertools import accumulate

import numpy as np

from volbench.analyse.frames.resample import Floats


def times(samples: int, interval_s: float = 1.0) -> Floats:
    """Return ends of the intervals."""
    return interval_s * np.arange(1, samples + 1, dtype=float)


def noisy(samples: int, *, cv: float, phi: float = 0.0, seed: int) -> Floats:
    """Return 1,000 times an AR(1) process around 1."""
    fresh = np.random.default_rng(seed).standard_normal(samples + 200) * np.sqrt(1 - phi**2)
    linked = [*accumulate(fresh.tolist(), lambda before, own: phi * before + own)]
    return 1000 * np.maximum(1 + cv * np.array(linked[200:]), 0.0)


def restless(seconds: int, *, spread: float, seed: int = 1) -> list[float]:
    """Return a level of 1,000 with noise."""
    noise = np.random.default_rng(seed).normal(0, spread, seconds)
    return [float(1000 * (1 + entry)) for entry in noise]
