"""Simulated disk: computes the completion time of each request.

Nothing here sleeps, reads a clock or accesses data, so tests simulate hours in milliseconds. Each
request passes the limits, then either the write-back cache or a slot in which cold blocks are
prepared and the request is served. The completion time is computed at arrival.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapreplace
from math import exp
from random import Random
from threading import Lock

from volbench.extensions.lab.disk_model import (
    BucketParameters,
    CacheParameters,
    DiskParameters,
    Noise,
    Pacer,
    ServiceParameters,
    Timeline,
)


@dataclass(frozen=True)
class Extent:
    """A range of bytes, written or unwritten."""

    offset: int
    length: int
    written: bool


class Disk:
    """A simulated disk; thread-safe.

    Args:
        pacer: compensates for the server's overhead; None for clients without any, as in tests.
    """

    def __init__(self, parameters: DiskParameters, *, pacer: Pacer | None = None) -> None:
        self._parameters = parameters
        self._pacer = pacer
        self._lock = Lock()
        self._rng = Random(parameters.seed)  # noqa: S311 - a simulation must be repeatable
        self._timeline = Timeline(parameters)
        self._admission = _Admission(
            requests=parameters.request_buckets, volume=parameters.byte_buckets
        )
        self._blocks = _Blocks(parameters)
        self._slots = [float("-inf")] * parameters.slots
        self._cache = _Cache(parameters.cache) if parameters.cache else None
        self._written_bytes = 0
        self._noise = Noise(parameters.noise, seed=parameters.seed) if parameters.noise else None

    def read(self, now: float, offset: int, length: int) -> float:
        """Return the completion time of a read."""
        return self._submit(now, offset, length, write=False)

    def write(self, now: float, offset: int, length: int) -> float:
        """Return the completion time of a write."""
        return self._submit(now, offset, length, write=True)

    def trim(self, offset: int, length: int) -> None:
        """Reset the blocks entirely within a range to cold and unwritten."""
        with self._lock:
            self._blocks.trim(offset, length)

    def extents(self, offset: int, length: int) -> list[Extent]:
        """Return written and unwritten extents, in order and without gaps."""
        with self._lock:
            return list(self._blocks.extents(offset, length))

    def _submit(self, now: float, offset: int, length: int, *, write: bool) -> float:
        with self._lock:
            arrived = self._pacer.arrival(now) if self._pacer else now
            begin = self._timeline.work(arrived, write=write)
            if not write and self._blocks.is_answered_at_once(offset, length):
                return max(arrived, self._timeline.real(begin))
            ended = self._completion(begin, offset, length, write=write)
            done = self._timeline.real(self._noise.delivered(ended) if self._noise else ended)
            if self._pacer:
                self._pacer.expect(done)
            return done

    def _completion(self, at: float, offset: int, length: int, *, write: bool) -> float:
        """Return the completion time of a request in virtual time."""
        jitter = self._noise.jitter(at) if self._noise else 1.0
        held_back = self._noise is not None and self._noise.reaches_limits
        at = self._admission.admit(at, length, speed=min(1.0, jitter) if held_back else 1.0)
        if write and self._cache:
            self._blocks.touch(at, offset, length, write=True)
            return self._cache.take(at, length)
        if self._slots:
            at = max(at, self._slots[0])
        at = self._blocks.touch(at, offset, length, write=write)
        service = self._parameters.write if write else self._parameters.read
        at += self._service_s(service, length) / self._speed(at, length, jitter, write=write)
        if self._slots:
            heapreplace(self._slots, at)
        return at

    def _speed(self, at: float, length: int, jitter: float, *, write: bool) -> float:
        """Return the speed of the device for a request, due to the bytes written and to noise."""
        speed = jitter * (1 - self._noise.neighbour(at)) if self._noise else 1.0
        self._written_bytes += length if write else 0
        limit = self._parameters.slower_after_bytes
        is_slower = write and limit and self._written_bytes >= limit
        return speed * (self._parameters.slower_to if is_slower else 1.0)

    def _service_s(self, service: ServiceParameters, length: int) -> float:
        mean_s = service.mean_s(length)
        if not service.sigma:
            return mean_s
        # A log-normal with this location has a mean of 1.
        return mean_s * exp(self._rng.gauss(-(service.sigma**2) / 2, service.sigma))


class _Blocks:
    """State of the blocks: written or not, and the time since which they are warm."""

    def __init__(self, parameters: DiskParameters) -> None:
        self._size = parameters.block_bytes
        self._end = parameters.size_bytes
        count = -(-parameters.size_bytes // self._size)
        self._instant = parameters.instant_unwritten
        self._first_write_s = parameters.first_write_s
        self._first_read_s = parameters.first_read_s
        self._written = bytearray(bytes([parameters.restored]) * count)
        self._warm = bytearray(count)
        self._ready = array("d", bytes(8 * count))
        self._latest = float("-inf")
        self._workers = [float("-inf")] * parameters.first_touches

    def _span(self, offset: int, length: int) -> tuple[int, int]:
        return offset // self._size, -(-(offset + length) // self._size)

    def is_answered_at_once(self, offset: int, length: int) -> bool:
        """Whether a read covers unwritten blocks only, on a disk that answers these immediately."""
        begin, end = self._span(offset, length)
        return self._instant and self._written.find(1, begin, end) < 0

    def touch(self, at: float, offset: int, length: int, *, write: bool) -> float:
        """Return the time at which all blocks of a request are ready, preparing cold ones."""
        begin, end = self._span(offset, length)
        penalty_s = self._first_write_s if write else self._first_read_s
        if (write or penalty_s) and self._warm.find(0, begin, end) >= 0:
            for block in range(begin, end):
                if not self._warm[block]:
                    self._prepare(block, at, penalty_s)
        if write:
            self._written[begin:end] = b"\1" * (end - begin)
        if self._latest <= at:
            return at
        return max(at, *self._ready[begin:end])

    def _prepare(self, block: int, at: float, penalty_s: float) -> None:
        """Warm a block, in parallel or by the next free worker."""
        self._warm[block] = 1
        if not penalty_s:
            return
        if self._workers:
            at = max(at, self._workers[0])
            heapreplace(self._workers, at + penalty_s)
        self._ready[block] = at + penalty_s
        self._latest = max(self._latest, at + penalty_s)

    def trim(self, offset: int, length: int) -> None:
        """Reset the blocks entirely within a range; the last block may be partial."""
        begin, end = -(-offset // self._size), (offset + length) // self._size
        if offset + length >= self._end:
            end = len(self._warm)
        if end > begin:
            self._warm[begin:end] = bytes(end - begin)
            self._written[begin:end] = bytes(end - begin)

    def extents(self, offset: int, length: int) -> Iterator[Extent]:
        """Yield ranges of consecutive blocks with equal state."""
        end = offset + length
        while offset < end:
            block = offset // self._size
            written = self._written[block]
            change = self._written.find(1 - written, block)
            stop = end if change < 0 else min(end, change * self._size)
            yield Extent(offset, stop - offset, written=bool(written))
            offset = stop


class _Cache:
    """A write-back cache: accepts writes until it is full, and drains continuously."""

    def __init__(self, parameters: CacheParameters) -> None:
        self._parameters = parameters
        self._level = 0.0
        self._at = float("-inf")

    def take(self, at: float, length: int) -> float:
        """Return the completion time of a write."""
        parameters = self._parameters
        at = max(at, self._at)
        self._drain(at)
        if self._level + length > parameters.size_bytes:
            room = parameters.size_bytes - length
            goal = room if parameters.resume_bytes is None else min(room, parameters.resume_bytes)
            at += (self._level - goal) / parameters.drain_bytes_per_s
            self._drain(at)
        self._level += length
        return at + parameters.latency_s

    def _drain(self, at: float) -> None:
        gone = (at - self._at) * self._parameters.drain_bytes_per_s
        self._level = max(0.0, self._level - gone)
        self._at = at


# Maximum delay that a limit makes up for: scheduling jitter of the host, not a burst. Noticed by:
# tests/extensions/lab/test_simulated_disk.py::test_iops_limit_is_exact
_SLACK_S = 0.002


class _Bucket:
    """Token bucket by virtual scheduling; times need not be in order.

    The generic cell rate algorithm (ITU-T I.371, annex A, "virtual scheduling") keeps a single
    number: the due time of the next request at the refill rate. There are no ticks, so a limit is
    exact over any interval longer than the slack.
    """

    def __init__(self, parameters: BucketParameters) -> None:
        self._rate = parameters.rate
        self._ahead_s = max(_SLACK_S, parameters.depth / parameters.rate)
        self._due = float("-inf")

    def earliest(self, at: float) -> float:
        """Return the earliest time at which a request arriving at `at` may pass."""
        return max(at, self._due - self._ahead_s)

    def take(self, at: float, cost: float) -> None:
        """Charge the cost of a request."""
        self._due = max(self._due, at) + cost / self._rate


class _Admission:
    """All buckets of a disk: a request waits for each of them, first come first served."""

    def __init__(
        self, *, requests: Iterable[BucketParameters], volume: Iterable[BucketParameters]
    ) -> None:
        self._requests = [_Bucket(parameters) for parameters in requests]
        self._bytes = [_Bucket(parameters) for parameters in volume]
        self._last = float("-inf")

    def admit(self, at: float, length_bytes: int, *, speed: float = 1.0) -> float:
        """Return the admission time of a request, and charge its cost at a speed of the limits."""
        if not self._requests and not self._bytes:
            return at
        for bucket in (*self._requests, *self._bytes):
            at = bucket.earliest(at)
        at = max(at, self._last)
        for bucket in self._requests:
            bucket.take(at, 1 / speed)
        for bucket in self._bytes:
            bucket.take(at, length_bytes / speed)
        self._last = at
        return at
