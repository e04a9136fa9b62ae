"""Clients of a simulated disk in virtual time: hours of I/O in seconds, without any fio."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heapreplace
from math import inf
from random import Random

import numpy as np
from numpy.typing import NDArray

from volbench.errors import InputError
from volbench.extensions.lab.simulated_disk import Disk
from volbench.units import parse_duration, parse_size

READ, WRITE = 0, 1
"""Directions, as fio's logs number them."""

MOST_IOPS = 20_000
"""Rate that a served disk reaches with nbdkit's Python plugin.

Without it, reads of blocks that were never written, which cost nothing, would go on for ever.
"""

_PATTERNS = ("read", "write", "rw", "readwrite", "randread", "randwrite", "randrw")
_KNOWN = frozenset(
    {
        *("rw", "bs", "iodepth", "numjobs", "runtime", "time_based", "size", "io_size"),
        *("offset", "offset_increment", "rate_iops", "rwmixread"),
    }
)
# Of a simulated disk, which holds no content that verification could find changed
_WITHOUT_EFFECT = frozenset(
    {
        *("ioengine", "uri", "filename_format", "thread", "direct", "refill_buffers"),
        *("randrepeat", "randseed", "norandommap"),
        *("verify", "verify_fatal", "verify_state_save", "do_verify"),
    }
)


@dataclass(frozen=True)
class VirtualWorkload:
    """One section of a job file, as far as a simulated disk can tell workloads apart."""

    rw: str
    block_bytes: int = 4096
    iodepth: int = 1
    numjobs: int = 1
    runtime_s: float | None = None  # None to pass over the region once
    size_bytes: int = 0  # region of each job; 0 for all of the volume
    io_bytes: int = 0  # of a job in a pass; 0 for its whole region
    offset_bytes: int = 0  # start of the region of the first job
    step_bytes: int = 0  # distance from there to the region of the next job
    rate_iops: float = 0.0  # maximum of each job; 0 for no limit
    read_percent: float = 50.0

    @property
    def directions(self) -> tuple[int, ...]:
        """The directions that occur."""
        pattern = self.rw.removeprefix("rand")
        return {"read": (READ,), "write": (WRITE,)}.get(pattern, (READ, WRITE))


def workload_of(options: Mapping[str, str]) -> VirtualWorkload:
    """Return the workload of fio's options."""
    unknown = sorted(set(options) - _KNOWN - _WITHOUT_EFFECT)
    rw = options.get("rw", "read")
    if unknown or rw not in _PATTERNS:
        what = f"rw={rw}" if rw not in _PATTERNS else ", ".join(unknown)
        raise InputError(
            f"{what} is not simulated in virtual time",
            hint=f"known are {', '.join(sorted(_KNOWN))}; serve the scenario for anything else",
        )
    is_timed = options.get("time_based", "0") != "0" or "size" not in options
    return VirtualWorkload(
        rw=rw,
        block_bytes=parse_size(options.get("bs", "4k")),
        iodepth=int(options.get("iodepth", "1")),
        numjobs=int(options.get("numjobs", "1")),
        runtime_s=parse_duration(options["runtime"]) if is_timed else None,
        size_bytes=parse_size(options.get("size", "0")),
        io_bytes=parse_size(options.get("io_size", "0")),
        offset_bytes=parse_size(options.get("offset", "0")),
        step_bytes=parse_size(options.get("offset_increment", "0")),
        rate_iops=float(options.get("rate_iops", "0")),
        read_percent=float(options.get("rwmixread", "50")),
    )


@dataclass(frozen=True)
class Requests:
    """Completed requests of one job, in the order in which they were sent."""

    sent_s: NDArray[np.float64]  # since the volume was first used
    done_s: NDArray[np.float64]
    direction: NDArray[np.int8]


class _Job:
    """One of a workload's identical jobs."""

    def __init__(
        self, workload: VirtualWorkload, region_bytes: int, *, number: int, seed: int
    ) -> None:
        self._workload = workload
        self._begin_bytes = workload.offset_bytes + number * workload.step_bytes
        self._rng = Random(seed + number)  # noqa: S311 - a simulation must be repeatable
        self._places = region_bytes // workload.block_bytes
        self._next_s = 0.0
        self.sent_s: list[float] = []
        self.done_s: list[float] = []
        self.direction: list[int] = []

    def requests(self) -> Iterator[tuple[int, int]]:
        """Yield direction and offset of request after request."""
        workload, rng = self._workload, self._rng
        directions = workload.directions
        while True:
            order = list(range(self._places))
            if workload.rw.startswith("rand"):
                rng.shuffle(order)
            for place in order[: workload.io_bytes // workload.block_bytes or None]:
                is_read = len(directions) > 1 and rng.random() * 100 < workload.read_percent
                offset = self._begin_bytes + place * workload.block_bytes
                yield READ if is_read else directions[-1], offset
            if workload.runtime_s is None:
                return

    def earliest(self, now: float) -> float:
        """Return when the next request may be sent, and count it."""
        if not self._workload.rate_iops:
            return now
        at = max(now, self._next_s)
        self._next_s = at + 1 / self._workload.rate_iops
        return at

    def completed(self) -> Requests:
        """Return what was done."""
        return Requests(
            np.asarray(self.sent_s), np.asarray(self.done_s), np.asarray(self.direction, np.int8)
        )


def run_clients(
    disk: Disk, workload: VirtualWorkload, *, begin_s: float, size_bytes: int, seed: int = 1
) -> list[Requests]:
    """Return the requests of each job, which keeps its queue full as fio does."""
    region = min(workload.size_bytes or size_bytes, size_bytes)
    if region < workload.block_bytes:
        raise InputError(f"no request of {workload.block_bytes} bytes fits {region} bytes")
    jobs = [_Job(workload, region, number=n, seed=seed) for n in range(workload.numjobs)]
    sources = [job.requests() for job in jobs]
    end_s = inf if workload.runtime_s is None else begin_s + workload.runtime_s
    waiting = [
        (job.earliest(begin_s), number)
        for _ in range(workload.iodepth)
        for number, job in enumerate(jobs)
    ]
    heapify(waiting)
    free_s = begin_s
    while waiting[0][0] < end_s:
        now, number = waiting[0]
        request = next(sources[number], None)
        if request is None:
            heapreplace(waiting, (inf, number))
            continue
        direction, offset = request
        submit = disk.write if direction == WRITE else disk.read
        free_s = max(free_s, now) + 1 / MOST_IOPS
        done = max(free_s, submit(now, offset, workload.block_bytes))
        job = jobs[number]
        job.sent_s.append(now)
        job.done_s.append(done)
        job.direction.append(direction)
        heapreplace(waiting, (job.earliest(done), number))
    return [job.completed() for job in jobs]
