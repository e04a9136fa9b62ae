"""Pairs of issued and completed requests: from events of the kernel to rows of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from volbench.extensions.traces.ring_pages import EventFormat, Events
from volbench.extensions.traces.trace_file import UNKNOWN, Flags, Kind, rows_of
from volbench.units import SECTOR_BYTES

Array = npt.NDArray[Any]

# After which a request that never completed is written down without a latency: twice the time limit
# of requests in most drivers. Noticed by: tests/extensions/traces/test_request_pairs.py
_GIVEN_UP_NS = 60_000_000_000
# By which events of two CPUs that are read at the same time may be apart: a busy machine reads one
# buffer further than another. Noticed by: tests/extensions/traces/test_request_pairs.py
_APART_NS = 5_000_000_000
_MINOR_BITS = 20  # of a device number inside the kernel

ISSUE = np.dtype(
    [
        ("time", "i8"),
        ("sector", "i8"),
        ("bytes", "i8"),
        ("dev", "u4"),
        ("queue", "i2"),
        ("kind", "u1"),
        ("flags", "u1"),
        ("comm", "S16"),
    ]
)
COMPLETION = np.dtype([("time", "i8"), ("sector", "i8"), ("dev", "u4"), ("is_flush", "?")])


def decode_rwbs(rwbs: Array) -> tuple[Array, Array]:
    """Return kind and flags of each request.

    Args:
        rwbs: letters of the kernel (blk_fill_rwbs), uint8 of shape (requests, letters). F before
            the kind is a flush before a write, F behind it is force unit access.
    """
    first = rwbs[:, 0]
    is_preflush = (first == ord("F")) & (rwbs[:, 1] == ord("W"))
    kind_letter = np.where(is_preflush, rwbs[:, 1], first)
    kinds = np.full(len(rwbs), Kind.READ, np.uint8)
    for letter, kind in (("W", Kind.WRITE), ("D", Kind.DISCARD), ("F", Kind.FLUSH)):
        kinds[kind_letter == ord(letter)] = kind
    flags = np.zeros(len(rwbs), np.uint8)
    tail = rwbs[:, 1:]
    flags[is_preflush | (tail == ord("F")).any(axis=1)] |= np.uint8(Flags.FLUSH)
    for letter, bit in (("S", Flags.SYNC), ("M", Flags.METADATA), ("A", Flags.READAHEAD)):
        flags[(tail == ord(letter)).any(axis=1)] |= np.uint8(bit)
    return kinds, flags


def issues_of(events: Events, kind: EventFormat, queue: int) -> Array:
    """Return the requests that events of a CPU issued."""
    chosen = events.of_kind(kind.number)
    rows = np.zeros(len(chosen.starts), ISSUE)
    rows["time"], rows["queue"] = chosen.times_ns, queue
    rows["sector"], rows["dev"] = chosen.field(kind, "sector"), chosen.field(kind, "dev")
    sectors = chosen.field(kind, "nr_sector").astype(np.int64)
    rows["bytes"] = sectors * SECTOR_BYTES  # of the disk; ``bytes`` is what a discard transfers
    rows["kind"], rows["flags"] = decode_rwbs(chosen.field(kind, "rwbs"))
    comm = np.ascontiguousarray(chosen.field(kind, "comm"))
    rows["comm"] = comm.view("S16").reshape(-1) if len(comm) else rows["comm"]
    return rows


def completions_of(events: Events, kind: EventFormat) -> Array:
    """Return the requests that events of a CPU completed."""
    chosen = events.of_kind(kind.number)
    rows = np.zeros(len(chosen.starts), COMPLETION)
    rows["time"] = chosen.times_ns
    rows["sector"], rows["dev"] = chosen.field(kind, "sector"), chosen.field(kind, "dev")
    kinds, _ = decode_rwbs(chosen.field(kind, "rwbs"))
    rows["is_flush"] = kinds == Kind.FLUSH
    rows["sector"][rows["is_flush"]] = 0  # -1 here, but 0 where it was issued
    return rows


class RequestPairs:
    """Requests that were issued and not yet completed, over many reads of the buffers.

    Args:
        devices: device number of the kernel to name.
    """

    def __init__(self, devices: Mapping[int, str]) -> None:
        self._name(devices)
        self.start_ns = 0  # time 0 of the trace, by the clock of the events
        self._open = np.zeros(0, ISSUE)
        self._early = np.zeros(0, COMPLETION)  # read before the events that issued them

    def _name(self, devices: Mapping[int, str]) -> None:
        self._devices = dict(sorted(devices.items()))
        self._numbers = np.array([*self._devices], np.uint32)
        self._names = pa.array([*self._devices.values()], pa.string())

    def add(
        self, issues: Array, completions: Array, *, names: Mapping[int, str] | None = None
    ) -> pa.Table:
        """Return the requests that are complete now, in no order.

        A completion whose issue is not known waits for it: buffers are read one CPU after another.

        Args:
            names: of more devices, by their numbers; None for no more.
        """
        if names:
            self._name({**self._devices, **names})
        issues = np.concatenate([self._open, issues])
        completions = np.concatenate([self._early, completions])
        done, by = _matched(issues, completions)
        latencies = completions["time"][by] - issues["time"][done]
        newest_end = int(completions["time"].max()) if len(completions) else 0
        is_early = completions["time"] > newest_end - _APART_NS
        is_early[by] = False
        self._early = completions[is_early]
        is_open = np.ones(len(issues), bool)
        is_open[done] = False
        newest = int(issues["time"].max()) if len(issues) else 0
        is_lost = is_open & (issues["time"] < newest - _GIVEN_UP_NS)
        self._open = issues[is_open & ~is_lost]
        return pa.concat_tables(
            [self._rows(issues[done], latencies), self._rows(issues[is_lost], UNKNOWN)]
        )

    def rest(self) -> pa.Table:
        """Return the requests that did not complete before the end."""
        left, self._open = self._open, self._open[:0]
        return self._rows(left, UNKNOWN)

    def _rows(self, issues: Array, latencies: Array | int) -> pa.Table:
        comms, places = np.unique(issues["comm"], return_inverse=True)
        names = [comm.decode("utf-8", errors="replace") for comm in comms.tolist()]
        devices = np.searchsorted(self._numbers, issues["dev"]).astype(np.int32)
        return rows_of(
            {
                "time_ns": issues["time"] - self.start_ns,
                "offset_bytes": issues["sector"] * SECTOR_BYTES,
                "size_bytes": np.minimum(issues["bytes"], np.iinfo(np.int32).max),
                "kind": issues["kind"],
                "flags": issues["flags"],
                "queue": issues["queue"],
                "latency_ns": latencies,
                "process": pa.DictionaryArray.from_arrays(
                    places.astype(np.int32), pa.array(names, pa.string())
                ),
                "device": pa.DictionaryArray.from_arrays(devices, self._names),
            }
        )


def _matched(issues: Array, completions: Array) -> tuple[Array, Array]:
    """Return the places of issues, and of the completion of each: first issued, first completed.

    Issues and completions of a device and a sector form a group, flushes apart, in the order of
    time. Each gets its rank among its kind in the group; issue and completion of equal rank belong
    together. All groups are worked on at once, as arrays of all events in sorted order.
    """
    count = len(issues)
    sector = np.concatenate([issues["sector"], completions["sector"]])
    is_flush = np.concatenate([issues["kind"] == Kind.FLUSH, completions["is_flush"]])
    key = sector * 2 + is_flush
    device = np.concatenate([issues["dev"], completions["dev"]])
    time = np.concatenate([issues["time"], completions["time"]])
    order = np.lexsort((time, key, device))
    is_first = np.ones(len(order), bool)
    if len(order) > 1:
        same = (key[order][1:] == key[order][:-1]) & (device[order][1:] == device[order][:-1])
        is_first[1:] = ~same
    is_issue = order < count
    # The rank of each issue: how many issues there are up to it, less those before its group
    first = np.flatnonzero(is_first)
    group = np.cumsum(is_first) - 1
    issued = np.cumsum(is_issue)
    # Completions before the first issue of their group belong to requests before the recording
    issued_here = issued - (issued[first] - is_issue[first])[group] if len(order) else issued
    is_end = ~is_issue & (issued_here > 0)
    ended = np.cumsum(is_end)
    ended_here = ended - (ended[first] - is_end[first])[group] if len(order) else ended
    wide = len(order) + 1
    starts, ends = np.flatnonzero(is_issue), np.flatnonzero(is_end)
    _, at_starts, at_ends = np.intersect1d(
        group[starts] * wide + issued_here[starts],
        group[ends] * wide + ended_here[ends],
        assume_unique=True,
        return_indices=True,
    )
    done, by = order[starts[at_starts]], order[ends[at_ends]] - count
    is_later = completions["time"][by] >= issues["time"][done]
    return done[is_later], by[is_later]


def device_number(major_minor: str) -> int:
    """Return the kernel's number of a device such as ``254:0``, as in /sys/block/NAME/dev."""
    major, _, minor = major_minor.strip().partition(":")
    return (int(major) << _MINOR_BITS) | int(minor)
