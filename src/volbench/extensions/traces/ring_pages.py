"""Pages of the kernel's trace buffer as arrays: all pages of a read are walked at once.

A page has a header (timestamp, committed bytes) and events one behind another, each with a header
of four bytes: 5 bits of type or length and 27 bits of time since the event before
(include/linux/ring_buffer.h). The n-th event of every page is found in the n-th step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_HEADER_BYTES = 16  # timestamp and committed bytes, of a kernel with 64 bits
_COMMITTED = np.uint64((1 << 30) - 1)  # above are flags of lost events
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_DELTA_BITS = 27
_FIELD = re.compile(r"field:(.+?);\s*offset:(\d+);\s*size:(\d+);")


@dataclass(frozen=True)
class EventFormat:
    """Format of a kind of events, as the kernel states it."""

    number: int  # of the kind
    offsets: Mapping[str, int]  # field to its bytes from the start of the event
    sizes: Mapping[str, int]

    @classmethod
    def parse(cls, text: str) -> EventFormat:
        """Return the format in the text of a file ``format``."""
        found = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
        if found is None:
            raise ValueError("it has no ID")
        offsets, sizes = {}, {}
        for declaration, offset, size in _FIELD.findall(text):
            name = declaration.split("[")[0].split()[-1]
            offsets[name], sizes[name] = int(offset), int(size)
        return cls(int(found[1]), offsets, sizes)


@dataclass(frozen=True)
class Events:
    """Events of pages, in the order of the pages."""

    pages: Array  # bytes of all pages, uint8 of shape (pages, bytes of a page)
    starts: Array  # of each event from the start of the first page, in bytes
    times_ns: Array

    def of_kind(self, number: int) -> Events:
        """Return the events of one kind."""
        kinds = self.pages.reshape(-1).view(np.uint16)[self.starts // 2]
        chosen = kinds == number
        return Events(self.pages, self.starts[chosen], self.times_ns[chosen])

    def field(self, kind: EventFormat, name: str) -> Array:
        """Return a field of events of one kind: numbers, or bytes of shape (events, size)."""
        starts, size = self.starts + kind.offsets[name], kind.sizes[name]
        content = self.pages.reshape(-1)
        if size == 4:
            number: Array = content.view(np.uint32)[starts // 4]
            return number
        if size == 8:
            words = content.view(np.uint32)
            low, high = words[starts // 4], words[starts // 4 + 1]
            wide: Array = low.astype(np.int64) | (high.astype(np.int64) << 32)
            return wide
        letters: Array = content[starts[:, None] + np.arange(size)]
        return letters


def events_of(pages: Array) -> Events:
    """Return the events of pages.

    Args:
        pages: uint8 of shape (pages, bytes of a page).
    """
    page_bytes = pages.shape[1]
    words = pages.reshape(-1).view(np.uint32)
    headers = np.ascontiguousarray(pages[:, :_HEADER_BYTES]).view(np.uint64)
    committed = (headers[:, 1] & _COMMITTED).astype(np.int64)
    places = np.arange(len(pages), dtype=np.int64) * page_bytes + _HEADER_BYTES
    ends = places + np.minimum(committed, page_bytes - _HEADER_BYTES)
    times = headers[:, 0].astype(np.int64)
    found: list[tuple[Array, Array, Array]] = []
    pages_left = np.arange(len(pages))
    while True:
        is_left = places + 8 <= ends
        if not is_left.all():
            places, ends, times = places[is_left], ends[is_left], times[is_left]
            pages_left = pages_left[is_left]
        if not len(places):
            break
        header, following = words[places // 4], words[places // 4 + 1].astype(np.int64)
        kind = (header & 31).astype(np.int64)
        delta = (header >> 5).astype(np.int64)
        is_time = (kind == _TIME_EXTEND) | (kind == _TIME_STAMP)
        extended = (following << _DELTA_BITS) + delta
        absolute = extended | (times & ~((1 << 59) - 1))
        times = np.where(
            kind == _TIME_STAMP,
            absolute,
            times + np.where(is_time, extended, np.where(kind == _PADDING, 0, delta)),
        )
        is_long = kind == 0
        is_event = kind < _PADDING
        # A length of its own counts itself, but not the four bytes before it
        length = np.where(is_long | (kind == _PADDING), 4 + following, 4 + 4 * kind)
        length = np.where(is_time, 8, length)
        starts = places + np.where(is_long, 8, 4)
        found.append((pages_left[is_event], starts[is_event], times[is_event]))
        places = places + np.maximum((length + 3) & ~3, 4)
    if not found:
        nothing = np.zeros(0, np.int64)
        return Events(pages, nothing, nothing)
    owners, starts, times = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(owners, kind="stable")
    return Events(pages, starts[order], times[order])
