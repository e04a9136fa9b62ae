"""Classes of latency and of I/Os in flight that fio reports as percentages, also without json+.

fio counts in ``io_u_mark_latency`` and ``io_u_mark_depth`` (``io_u.c``). The names of its latency
classes are their upper ends, those of its depths their lower ends.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from volbench.fio.results.json_fields import Fields

_UNITS_NS = {"latency_ns": 1, "latency_us": 1_000, "latency_ms": 1_000_000}
_SLOWEST = ">="


def read_depth_shares(job: Fields) -> dict[int, float]:
    """Return the least number of I/Os in flight of each class to its percentage."""
    block = job.child("iodepth_level")
    if block is None:
        return {}
    return dict(sorted((_number(block, key), block.need_number(key)) for key in block.raw))


def read_clat_shares(job: Fields) -> dict[int, float]:
    """Return the least completion latency of each class, in nanoseconds, to its percentage.

    The first class begins at 0: fio before 3.0 has none below 2 us.
    """
    starts, shares = [0], []
    for name, unit_ns in _UNITS_NS.items():
        block = job.child(name)
        if block is None:
            continue
        for key in sorted(block.raw, key=partial(_order, block)):
            end_ns = _number(block, key) * unit_ns
            shares.append(block.need_number(key))
            starts += [] if key.startswith(_SLOWEST) else [end_ns]
    if any(end <= start for start, end in pairwise(starts)):
        raise job.wrong("latency_us", "classes in order")
    return dict(zip(starts, shares, strict=False))


def _number(block: Fields, key: str) -> int:
    digits = key.removeprefix(_SLOWEST)
    if not (digits.isdigit() and digits.isascii() and len(digits) < 10):
        raise block.wrong(key, "a class")
    return int(digits)


def _order(block: Fields, key: str) -> tuple[int, bool]:
    return _number(block, key), key.startswith(_SLOWEST)
