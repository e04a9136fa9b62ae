"""Clients of a simulated disk that live in made-up time: hours pass in milliseconds."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heapreplace
from random import Random

from volbench.extensions.lab.disk_model import DiskParameters, ServiceParameters
from volbench.extensions.lab.simulated_disk import Disk

KIB = 1024
MIB = 1024**2


@dataclass(frozen=True)
class Answer:
    """One request: when it was sent, and when it was answered."""

    sent_s: float
    done_s: float

    @property
    def latency_s(self) -> float:
        """How long it took."""
        return self.done_s - self.sent_s


def parameters(**changes: object) -> DiskParameters:
    """Return a disk of 64 MiB whose requests take 1 ms, with changes."""
    service = ServiceParameters(latency_s=0.001)
    usual = {
        "size_bytes": 64 * MIB,
        "block_bytes": 64 * KIB,
        "seed": 1,
        "read": service,
        "write": service,
    }
    return DiskParameters(**(usual | changes))  # type: ignore[arg-type]  # tests name real fields


def keep_busy(  # noqa: PLR0913 - each is a knob of fio, too
    disk: Disk,
    *,
    until_s: float,
    depth: int = 1,
    length: int = 4 * KIB,
    write: bool = True,
    size: int = 64 * MIB,
    overhead: Callable[[], float] = lambda: 0.0,
) -> list[Answer]:
    """Keep some requests in flight at random places, as fio does with a random map."""
    places = [place * length for place in range(size // length)]
    rng = Random(7)  # noqa: S311 - a test must be repeatable
    todo: list[int] = []
    arrivals = [0.0] * depth
    heapify(arrivals)
    answers = []
    while arrivals[0] < until_s:
        if not todo:
            rng.shuffle(places)
            todo = places[:]
        now = arrivals[0]
        done = (disk.write if write else disk.read)(now, todo.pop(), length)
        if done <= until_s:
            answers.append(Answer(now, done))
        heapreplace(arrivals, max(done, now) + overhead())
    return answers


def rate(answers: list[Answer], begin_s: float, end_s: float) -> float:
    """Return answers a second in a window."""
    return sum(begin_s < answer.done_s <= end_s for answer in answers) / (end_s - begin_s)
