"""Flash of a simulated SSD: SLC cache, garbage collection, thermal throttling, power-up.

All of it is a factor on the speed of requests, 1 being that of the fresh, cool drive. The state
depends on bytes and on time in the disk's virtual time, so that a request of 4 KiB and a second's
worth of them are charged alike. The models are deliberately small; what garbage collection does to
a real drive is in X.-Y. Hu et al., "Write amplification analysis in flash-based solid state drives"
(SYSTOR 2009).
"""

from __future__ import annotations

from math import exp
from random import Random

from volbench.lab.disk_parameters import FlashParameters

IDLE_S = 0.2  # Gap between requests from which a drive is idle: it reclaims, refills and cools

_CELL_S = 0.5  # Garbage collection is uneven: its speed changes twice a second

_TAIL_SHARE = 0.02  # Share of writes that wait for a block to be erased while the drive collects


class Flash:
    """State of a drive's flash."""

    def __init__(self, parameters: FlashParameters, *, seed: int) -> None:
        self._parameters = parameters
        self._rng = Random(seed)  # noqa: S311 - a simulation must be repeatable
        self._last: float | None = None
        self._since = 0.0
        self._cached = 0.0
        self._spare = float(parameters.spare_bytes)
        self._is_collecting = False
        self._recovery_from: float | None = None
        self._heat_s = 0.0
        self._is_hot = False
        self._cell = (-1, 1.0)
        self.began: dict[str, float] = {}
        """First time of each state: ``slc-cache``, ``write-cliff``, ``thermal``."""

    @property
    def tail_share(self) -> float:
        """Share of writes that wait for an erase."""
        return _TAIL_SHARE if self._is_collecting else 0.0

    def speed(self, at: float, length: float, *, write: bool) -> float:
        """Return the speed of requests at a time, and charge them.

        Args:
            length: bytes moved since the call before.
            write: whether they are written.
        """
        last = at if self._last is None else self._last
        gap_s = max(0.0, at - last)
        if self._last is None or gap_s >= IDLE_S:
            self._rest(gap_s, at)
        self._last = max(at, last)
        self._warm(at, gap_s)
        factor = self._ramp(at) * (self._parameters.hot_speed if self._is_hot else 1.0)
        return factor * (self._write(at, length) if write else 1.0)

    def _rest(self, gap_s: float, at: float) -> None:
        """Begin a busy period after an idle time."""
        parameters = self._parameters
        self._since = at
        self._cached = max(0.0, self._cached - gap_s * parameters.refill_bytes_per_s)
        self._heat_s = max(0.0, self._heat_s - gap_s * parameters.cooling)
        self._is_hot = self._is_hot and self._heat_s > 0
        if self._is_collecting and parameters.recover_s:
            self._is_collecting, self._recovery_from = False, at
            self._spare = parameters.spare_bytes

    def _warm(self, at: float, gap_s: float) -> None:
        if not self._parameters.hot_after_s:
            return
        self._heat_s += gap_s if gap_s < IDLE_S else 0.0
        if self._heat_s >= self._parameters.hot_after_s and not self._is_hot:
            self._is_hot = True
            self.began.setdefault("thermal", at)

    def _ramp(self, at: float) -> float:
        ramp_s, first = self._parameters.ramp_s, self._parameters.ramp_speed
        gone = at - self._since
        if ramp_s and gone < ramp_s:
            return first + (1 - first) * gone / ramp_s
        return 1.0

    def _write(self, at: float, length: float) -> float:
        parameters, factor = self._parameters, 1.0
        if parameters.slc_bytes:
            self._cached += length
            if self._cached >= parameters.slc_bytes:
                self.began.setdefault("slc-cache", at)
                factor *= parameters.slc_after
        if parameters.spare_bytes:
            self._spare -= length
            if self._spare <= 0 and not self._is_collecting:
                self._is_collecting = True
                self.began.setdefault("write-cliff", at)
            factor *= self._collecting(at) if self._is_collecting else self._recovering(at)
        return factor

    def _collecting(self, at: float) -> float:
        cell = int(at / _CELL_S)
        if cell != self._cell[0]:
            spread = self._parameters.collecting_sigma
            self._cell = cell, exp(self._rng.gauss(0.0, spread)) if spread else 1.0
        return min(1.0, self._parameters.collecting_speed * self._cell[1])

    def _recovering(self, at: float) -> float:
        if self._recovery_from is None:
            return 1.0
        gone = (at - self._recovery_from) / self._parameters.recover_s
        if gone >= 1:
            self._recovery_from = None
            return 1.0
        slow = self._parameters.collecting_speed
        return float(slow ** (1 - gone))
