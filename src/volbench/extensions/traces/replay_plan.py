"""Plan of a replay: the I/Os of a trace at the times and places of the target, and fio's logs.

fio replays logs of two versions. The times of version 3 count from the last issue, so that each
delay of a timer is added to all later ones (fio issue 1537): 40 ms after 6,000 I/Os with fio 3.33.
The waits of version 2 are milliseconds from the start of fio, in all versions, and do not drift.
fio 3.33 also collects completions of asynchronous engines only when the queue is full. Therefore
the I/Os are divided among lanes: jobs that wait for each I/O, as many as the load needs.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from volbench.errors import InputError, quoted
from volbench.extensions.traces.trace_file import (
    UNKNOWN,
    Kind,
    read_batches,
    read_facts,
    read_rows,
    row_count,
)
from volbench.units import SECTOR_BYTES, format_capacity

FOLDER = "replay"  # In a campaign folder
FILE_NAME = "volbench-replay"  # Of the file in a directory volume
# I/Os of a replay: fio keeps its log in memory, some 130 bytes each. Noticed by:
# tests/extensions/traces/test_replay_plan.py::test_a_trace_that_is_too_long_is_refused
MAX_IOS = 2_000_000
# Lanes of a replay, and of a trace without latencies. Noticed by:
# tests/extensions/traces/test_replay_plan.py::test_lanes_are_as_many_as_overlap
MIN_LANES, MAX_LANES, USUAL_LANES = 16, 64, 32
# Latency where the trace has none: that of a network volume. Noticed by: the same
_USUAL_LATENCY_NS = 2_000_000
# Time in which fio starts its jobs and reads their logs, before the first I/O: 0.4 s and 1 us for
# each I/O were measured on two busy cores. Noticed by: tests/extensions/traces/test_replay.py
_LEAD_MS, _LEAD_MS_PER_LANE, _LEAD_MS_PER_IO = 700, 5, 0.002

_PAGE_BYTES = 4096
# Block in which a new file is filled: only whole ones are written. Noticed by:
# tests/extensions/traces/test_replay_plan.py::test_a_new_file_is_of_whole_blocks
_FILL_BYTES = 1 << 20
Ints = npt.NDArray[np.int64]
_ACTIONS = {Kind.READ: "read", Kind.WRITE: "write", Kind.DISCARD: "trim"}


class Fit(StrEnum):
    """What happens to I/Os beyond the end of the target."""

    REFUSE = "refuse"
    SCALE = "scale"
    WRAP = "wrap"


@dataclass(frozen=True)
class Target:
    """Volume of a replay."""

    size_bytes: int | None  # capacity; None for a new file, which is as long as the trace needs
    block_bytes: int = SECTOR_BYTES  # smallest addressable unit
    discards: bool = False  # whether it is a device, which can discard blocks


@dataclass(frozen=True)
class Load:
    """I/Os of a replay, in order of time."""

    rows: pa.Table  # as in a trace: times from the begin of the replay, offsets within the target
    span_bytes: int  # end of the last block that is used
    left_out: int  # I/Os that the target cannot do: discards in a file

    @property
    def times_ns(self) -> Ints:
        """When each I/O is to arrive."""
        return np.asarray(self.rows["time_ns"].to_numpy())

    @property
    def duration_s(self) -> float:
        """Time from the begin to the last arrival."""
        return float(self.times_ns[-1]) / 1e9

    @property
    def has_reads(self) -> bool:
        """Whether anything is read."""
        return bool((self.rows["kind"].to_numpy() == Kind.READ).any())

    @property
    def write_bytes(self) -> int:
        """Bytes that are written."""
        is_write = self.rows["kind"].to_numpy() == Kind.WRITE
        return int(self.rows["size_bytes"].to_numpy()[is_write].sum(dtype=np.int64))


def load_trace(
    path: Path,
    target: Target,
    *,
    speed: float = 1.0,
    fit: Fit = Fit.REFUSE,
    begin_ns: int | None = None,
) -> Load:
    """Return the load that a trace makes on a target.

    Args:
        speed: 2 replays it in half of its time.
        begin_ns: time of the trace at which the replay begins; None for its first I/O.

    Raises:
        InputError: it is no trace, has no I/O, or does not fit the target.
    """
    if row_count(path) > MAX_IOS:
        raise InputError(
            f"{path} has {row_count(path):,} I/Os; the maximum for a replay is {MAX_IOS:,}",
            hint="fio keeps its log of all I/Os in memory: record a shorter time",
        )
    table = read_rows(path)
    kinds = table["kind"].to_numpy()
    if not target.discards:
        table = table.filter(pa.array(kinds != Kind.DISCARD))
    if not len(table) or not np.isin(table["kind"].to_numpy(), list(_ACTIONS)).any():
        raise InputError(
            f"{path} has no I/Os that can be replayed on this target",
            hint=f"volbench trace show {quoted(path)} lists its kinds of I/O",
        )
    offsets, sizes = _fitted(table, target, fit)
    times = table["time_ns"].to_numpy()
    begin = times[0] if begin_ns is None else begin_ns
    changed: dict[str, Any] = {
        "time_ns": ((times - begin) / speed).astype(np.int64),
        "offset_bytes": offsets,
        "size_bytes": sizes.astype(np.int32),
    }
    for name, values in changed.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(name), pa.array(values))
    return Load(table, int((offsets + sizes).max()), len(kinds) - len(table))


def common_begin_ns(paths: Sequence[Path]) -> list[int | None]:
    """Return the time of each of several traces at which the first I/O of all of them arrived.

    It is None for all of them if the date of one is unknown.
    """
    starts = [read_facts(path).start_utc for path in paths]
    if not all(starts):
        return [None for _ in paths]
    dates_ns = [round(1e6 * datetime.fromisoformat(each).timestamp()) * 1000 for each in starts]
    firsts_ns = [
        next((batch.column(0)[0].as_py() for batch in read_batches(path, ["time_ns"])), 0)
        for path in paths
    ]
    begin_ns = min(date + first for date, first in zip(dates_ns, firsts_ns, strict=True))
    return [begin_ns - date for date in dates_ns]


def whole_blocks(table: pa.Table, block_bytes: int) -> tuple[Ints, Ints]:
    """Return the first block of each I/O and how many it needs; those of a flush are 0."""
    offsets, sizes = (table[name].to_numpy() for name in ("offset_bytes", "size_bytes"))
    first = offsets.astype(np.int64) // block_bytes
    last = -(-(offsets + sizes) // block_bytes)
    is_flush = table["kind"].to_numpy() == Kind.FLUSH
    counts = np.where(is_flush, 0, np.maximum(last - first, 1))
    return np.where(is_flush, 0, first), counts


def _fitted(table: pa.Table, target: Target, fit: Fit) -> tuple[Ints, Ints]:
    """Return offsets and sizes in whole blocks within the target."""
    block = target.block_bytes
    first, counts = whole_blocks(table, block)
    span = int((first + counts).max())
    room = span if target.size_bytes is None else target.size_bytes // block
    if counts.max() > room:
        largest = format_capacity(int(counts.max()) * block)
        raise InputError(
            f"the trace has an I/O of {largest}, which is larger than the target",
            hint="replay it on a larger volume",
        )
    if span > room:
        if fit is Fit.REFUSE:
            raise InputError(
                f"the trace spans {format_capacity(span * block)}, but the target has only "
                f"{format_capacity(room * block)}",
                hint="add --fit scale to scale all offsets down, or --fit wrap to continue at the "
                "start",
            )
        # Pages stay pages: parts of them would be read and modified by disks of 4k sectors.
        page = max(1, _PAGE_BYTES // block)
        page = 1 if (first % page).any() else page
        scaled = (first * (room / span)).astype(np.int64) // page * page
        first = scaled if fit is Fit.SCALE else first % room
        first = np.minimum(first, room - counts)
    return first * block, counts * block


def file_bytes(load: Load, target: Target) -> int:
    """Return the size of the file or part of a device that is used, in whole blocks of a fill."""
    if target.discards:
        return load.span_bytes
    filled = -(-load.span_bytes // _FILL_BYTES) * _FILL_BYTES
    return min(filled, target.size_bytes or filled)


def lane_count(load: Load) -> int:
    """Return the number of lanes: twice the most I/Os that the recording had in flight.

    Each lane has an I/O, as fio refuses an empty log.
    """
    latencies = load.rows["latency_ns"].to_numpy()
    known = latencies != UNKNOWN
    if not known.any():
        return min(USUAL_LANES, len(latencies))
    begins, ends = load.times_ns[known], np.sort(load.times_ns[known] + latencies[known])
    in_flight = np.arange(1, len(begins) + 1) - np.searchsorted(ends, begins, side="right")
    return min(int(np.clip(2 * in_flight.max(), MIN_LANES, MAX_LANES)), len(latencies))


def lanes_of(load: Load, count: int) -> list[int]:
    """Return the lane of each I/O: the one that has been free for the longest time."""
    latencies = load.rows["latency_ns"].to_numpy()
    latencies = np.where(latencies == UNKNOWN, _USUAL_LATENCY_NS, latencies)
    free = [(0, lane) for lane in range(count)]
    lanes = []
    for time, latency in zip(load.times_ns.tolist(), latencies.tolist(), strict=True):
        since, lane = heapq.heappop(free)
        lanes.append(lane)
        heapq.heappush(free, (max(time, since) + max(latency, 1), lane))
    return lanes


def log_names(count: int) -> list[str]:
    """Return the names of the logs of all lanes."""
    return [f"lane-{lane:02}.iolog" for lane in range(count)]


def lead_s(load: Load, count: int) -> float:
    """Return the time from the start of fio to the first I/O."""
    return (_LEAD_MS + _LEAD_MS_PER_LANE * count + _LEAD_MS_PER_IO * len(load.rows)) / 1e3


def render_logs(load: Load, count: int) -> list[str]:
    """Return the log of each lane in fio's version 2.

    A wait ends up to a millisecond late, so the times are rounded down. No text of the trace is
    in the logs. They name no file: fio is told to replay on the target.
    """
    lead_ms = round(1e3 * lead_s(load, count))
    logs = [["fio version 2 iolog", "volume add", "volume open"] for _ in range(count)]
    waited = [0] * count
    columns = ("time_ns", "offset_bytes", "size_bytes", "kind")
    rows = zip(*(load.rows[name].to_pylist() for name in columns), strict=True)
    for lane, (time_ns, offset, size, kind) in zip(lanes_of(load, count), rows, strict=True):
        at_ms = lead_ms + time_ns // 1_000_000
        if at_ms > waited[lane]:
            logs[lane].append(f"volume wait {at_ms} 0")
            waited[lane] = at_ms
        action = _ACTIONS.get(kind)
        logs[lane].append(f"volume {action} {offset} {size}" if action else "volume sync 0 0")
    return ["\n".join([*log, "volume close", ""]) for log in logs]
