"""Parser of the latency objects in fio's JSON."""

from __future__ import annotations

from volbench.fio.results.json_fields import Fields
from volbench.model.results.result import Latency

_UNITS = {"_ns": 1, "": 1000}
"""Unit by suffix of the key: fio 3 prints ``clat_ns``, fio 2 ``clat`` in microseconds."""


def read_latency(direction: Fields, kind: str) -> Latency | None:
    """Return ``lat``, ``clat`` or ``slat`` of a direction.

    Returns:
        None without samples: psync has no submission latency, gtod_reduce has none at all.

    Raises:
        OutputError: a value is not one that fio prints.
    """
    for suffix, unit_ns in _UNITS.items():
        block = direction.child(kind + suffix)
        if block is not None:
            return _read_block(block, unit_ns)
    return None


def _read_block(block: Fields, unit_ns: int) -> Latency | None:
    per_second = 1e9 / unit_ns
    count = block.count("N")
    low, high, mean = (block.need_number(key) for key in ("min", "max", "mean"))
    if count == 0 or (count is None and low == high == mean == 0):
        return None
    return Latency(
        count=count,
        min_s=low / per_second,
        max_s=high / per_second,
        mean_s=mean / per_second,
        stddev_s=block.need_number("stddev") / per_second,
        percentiles=_read_percentiles(block.child("percentile"), per_second),
        bins=_read_bins(block.child("bins"), unit_ns),
    )


def _read_percentiles(block: Fields | None, per_second: float) -> dict[float, float]:
    """Return percentiles in seconds; fio before 3.4 pads the list with ``0.00``."""
    if block is None:
        return {}
    found: dict[float, float] = {}
    for key in block.raw:
        try:
            percentile = float(key)
        except ValueError:
            raise block.wrong(key, "a percentile") from None
        if percentile == 0:
            continue
        if not 0 < percentile <= 100:
            raise block.wrong(key, "a percentile")
        found[percentile] = block.need_number(key) / per_second
    return dict(sorted(found.items()))


def _read_bins(block: Fields | None, unit_ns: int) -> dict[int, int]:
    """Return counts by midpoint; fio 2.2.12 to 2.19 add constants of its source code."""
    if block is None:
        return {}
    found: dict[int, int] = {}
    for key in block.raw:
        if key.startswith("FIO_IO_U_"):
            continue
        if not (key.isascii() and key.isdigit() and len(key) < 20):
            raise block.wrong(key, "a latency bin")
        count = block.need_count(key)
        if count < 0:
            raise block.wrong(key, "a count")
        found[int(key) * unit_ns] = count
    return dict(sorted(found.items()))
