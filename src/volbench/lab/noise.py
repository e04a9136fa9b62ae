"""Noise around a simulated volume: jitter, load of neighbours, CPU time stolen from the client.

Each kind is a function of time, drawn in cells of a tenth of a second from the seed, so that two
simulations of the same scenario see the same noise. Jitter is a first-order autoregression with
innovations of Student's t distribution: autocorrelated and heavy-tailed, as latency of shared
storage is. Bursts begin after exponential pauses.
"""

from __future__ import annotations

from math import exp, sqrt
from random import Random

from volbench.lab.disk_parameters import BurstNoise, NoiseParameters

CELL_S = 0.1  # Resolution of the noise

_FREEDOM = 4  # Degrees of freedom of the innovations: the fourth moment does not exist
_MOST = 1.5  # Largest logarithm of a factor: 4.5 times faster or slower


class _Jitter:
    """Logarithm of the speed, cell by cell."""

    def __init__(self, parameters: NoiseParameters, *, seed: int) -> None:
        self._rng = Random(seed)  # noqa: S311 - a simulation must be repeatable
        self._sigma = parameters.jitter
        self._phi = exp(-CELL_S / parameters.jitter_memory_s)
        self._state = 0.0
        self._factors: list[float] = []

    def factor(self, at: float) -> float:
        cell = max(0, int(at / CELL_S))
        while len(self._factors) <= cell:
            self._factors.append(self._next())
        return self._factors[cell]

    def _next(self) -> float:
        rng = self._rng
        # Student's t: a normal over the root of a chi-square over its degrees of freedom.
        chi = sum(rng.gauss(0, 1) ** 2 for _ in range(_FREEDOM))
        fresh = rng.gauss(0, 1) / sqrt(chi / _FREEDOM) / sqrt(_FREEDOM / (_FREEDOM - 2))
        self._state = self._phi * self._state + sqrt(1 - self._phi**2) * fresh
        return exp(max(-_MOST, min(_MOST, self._sigma * self._state)))


class _Bursts:
    """Share that is taken away, cell by cell: 0 in pauses."""

    def __init__(self, parameters: BurstNoise, *, seed: int) -> None:
        self._rng = Random(seed)  # noqa: S311 - a simulation must be repeatable
        self._parameters = parameters
        self._shares: list[float] = []

    def share(self, at: float) -> float:
        cell = max(0, int(at / CELL_S))
        while len(self._shares) <= cell:
            self._append()
        return self._shares[cell]

    def _append(self) -> None:
        rng, parameters = self._rng, self._parameters
        pause = int(rng.expovariate(1.0) * parameters.every_s / CELL_S)
        length = 1 + int(rng.expovariate(1.0) * parameters.length_s / CELL_S)
        size = min(0.95, parameters.share * rng.uniform(0.5, 1.5))
        self._shares += [0.0] * pause + [size] * length


class Noise:
    """Noise of a scenario."""

    def __init__(self, parameters: NoiseParameters, *, seed: int) -> None:
        self.reaches_limits = parameters.reaches_limits
        self.slice_s = parameters.slice_s
        self._jitter = _Jitter(parameters, seed=3 * seed + 1) if parameters.jitter else None
        self._neighbour, self._steal = (
            _Bursts(burst, seed=3 * seed + number) if burst.share else None
            for number, burst in ((2, parameters.neighbour), (3, parameters.steal))
        )

    def jitter(self, at: float) -> float:
        """Return the speed due to jitter; its median is 1."""
        return self._jitter.factor(at) if self._jitter else 1.0

    def neighbour(self, at: float) -> float:
        """Return the share of the device that neighbours use."""
        return self._neighbour.share(at) if self._neighbour else 0.0

    def steal(self, at: float) -> float:
        """Return the share of the client's CPU time that is stolen."""
        return self._steal.share(at) if self._steal else 0.0

    def delivered(self, done: float) -> float:
        """Return when a client whose CPU is stolen in slices notices a completion.

        A share s of the time is one slice out of every slice / s.
        """
        share = self.steal(done)
        if not share:
            return done
        period = self.slice_s / share
        into = done % period
        return done + self.slice_s - into if into < self.slice_s else done
