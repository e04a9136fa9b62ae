"""Frames of a trace: sizes, arrival, seeks, working set, hot ranges, mix over time and reuse.

A trace is read once, in batches; what is kept of a device is a count for each of its chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from volbench.extensions.traces.trace_file import (
    Kind,
    TraceFacts,
    read_batches,
    read_facts,
    read_span,
)

Array = npt.NDArray[Any]
Rows = list[dict[str, object]]

# Chunks of a device for working set and reuse: 32 MB in memory. Noticed by: benchmarks/trace.py
_MAX_CHUNKS = 1 << 21
_MIN_CHUNK_BYTES = 64 << 10  # where a device is small: what most file systems read ahead at least
BANDS = 64  # of offsets in the heat map and among the hot ranges
_STEPS = 240  # of time in the charts
_MIN_RATED_NS = 1_000  # Less than any I/O takes: a trace at one time has no rates
_MIX_ROWS = 20  # of the table over time, which fits a screen
# Bins of an octave, so that a percentile is right within 2 %
_BINS = 32
_OCTAVES = 64
_HOT_SHARES = (0.01, 0.1, 0.5)
_PERCENTILES = (0.5, 0.9, 0.99)


class LogHistogram:
    """Counts of positive numbers in bins that are 1/32 of an octave wide; zeros apart."""

    def __init__(self) -> None:
        self._counts = np.zeros(_OCTAVES * _BINS, np.int64)
        self.zeros = 0
        self.total = 0
        self.sum = 0.0

    def add(self, values: Array) -> None:
        """Count values."""
        positive = values[values > 0]
        bins = (np.log2(positive) * _BINS).astype(np.int64)
        self._counts += np.bincount(np.clip(bins, 0, None), minlength=len(self._counts))
        self.zeros += len(values) - len(positive)
        self.total += len(values)
        self.sum += float(values.sum(dtype=np.float64))

    def percentile(self, share: float) -> float:
        """Return a percentile, the middle of its bin; NaN without values."""
        if not self.total:
            return float("nan")
        reached = self.zeros + self._counts.cumsum()
        place = int(np.searchsorted(reached, share * self.total))
        return 0.0 if self.zeros >= share * self.total else float(2 ** ((place + 0.5) / _BINS))

    def share_above(self, value: float) -> float:
        """Return the share of the values from a power of two on."""
        return float(self._counts[round(np.log2(value) * _BINS) :].sum()) / max(self.total, 1)

    def row(self, name: str) -> dict[str, object]:
        """Return mean and percentiles as columns."""
        mean = self.sum / self.total if self.total else float("nan")
        values = {f"{name}_p{100 * share:.0f}": self.percentile(share) for share in _PERCENTILES}
        return {f"{name}_mean": mean, **values}


@dataclass
class _Stream:
    """Requests of one kind on one device."""

    count: int = 0
    bytes: int = 0
    sequential: int = 0
    latency: LogHistogram = field(default_factory=LogHistogram)


@dataclass
class _Device:
    """What is kept of a device."""

    chunk_bytes: int
    counts: Array  # I/Os of each chunk
    last_ns: Array  # when each chunk was last used; -1 never
    bands: Array  # I/Os of each band of offsets and step of time
    ios: Array  # reads, writes and discards in each step
    bytes: Array  # same
    last_end: int = -1
    last_time: int = -1
    first_uses: int = 0
    gaps: LogHistogram = field(default_factory=LogHistogram)
    seeks: LogHistogram = field(default_factory=LogHistogram)
    reuse: LogHistogram = field(default_factory=LogHistogram)
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)  # kind and bytes to I/Os


class TraceSummary:
    """Frames of a trace.

    Raises:
        InputError: the file is not a trace.
    """

    def __init__(self, path: Path) -> None:
        self.facts: TraceFacts = read_facts(path)
        last_ns, self.end_bytes = read_span(path)
        end_ns = max(last_ns, round(1e9 * self.facts.duration_s))  # a disk may be idle in the end
        self.duration_s = max(end_ns, 1) / 1e9
        # time over which rates are taken; NaN where there is none
        self.rated_s = self.duration_s if end_ns >= _MIN_RATED_NS else float("nan")
        self.step_s = self.duration_s / _STEPS
        self._streams: dict[tuple[str, int], _Stream] = {}
        self.devices: dict[str, _Device] = {}
        for batch in read_batches(path):
            names = batch.column("device")
            columns = {
                name: batch.column(name).to_numpy()
                for name in ("time_ns", "offset_bytes", "size_bytes", "kind", "latency_ns")
            }
            codes = names.indices.to_numpy()
            for code in np.unique(codes):
                mine = codes == code
                self._add(
                    names.dictionary[int(code)].as_py(),
                    {name: column[mine] for name, column in columns.items()},
                )

    def _add(self, name: str, columns: Mapping[str, Array]) -> None:
        device = self.devices.get(name) or self._device(name)
        times, kinds = columns["time_ns"], columns["kind"]
        offsets, sizes = columns["offset_bytes"], columns["size_bytes"].astype(np.int64)
        before = np.concatenate([[device.last_time], times[:-1]])
        device.gaps.add((times - before)[0 if device.last_time >= 0 else 1 :])
        is_data = kinds != Kind.FLUSH
        self._add_places(device, times[is_data], offsets[is_data], sizes[is_data])
        ends = np.concatenate([[device.last_end], (offsets + sizes)[is_data]])
        seeks = np.abs(offsets[is_data] - ends[:-1])
        device.seeks.add(seeks[0 if device.last_end >= 0 else 1 :])
        is_sequential = np.zeros(len(kinds), bool)
        is_sequential[is_data] = offsets[is_data] == ends[:-1]
        device.last_time, device.last_end = int(times[-1]), int(ends[-1])
        steps = np.minimum((times / 1e9 / self.step_s).astype(np.int64), _STEPS - 1)
        for kind in np.unique(kinds):
            mine = kinds == kind
            stream = self._streams.setdefault((name, int(kind)), _Stream())
            stream.count += int(mine.sum())
            stream.bytes += int(sizes[mine].sum())
            stream.sequential += int(is_sequential[mine].sum())
            known = columns["latency_ns"][mine]
            stream.latency.add(known[known >= 0])
            for size, count in zip(*np.unique(sizes[mine], return_counts=True), strict=True):
                key = (int(kind), int(size))
                device.sizes[key] = device.sizes.get(key, 0) + int(count)
            if kind != Kind.FLUSH:
                device.ios[kind] += np.bincount(steps[mine], minlength=_STEPS)
                device.bytes[kind] += np.bincount(steps[mine], sizes[mine], minlength=_STEPS)
        bands = np.minimum(offsets * BANDS // max(self.end_of(name), 1), BANDS - 1)[is_data]
        cells = bands * _STEPS + steps[is_data]
        device.bands += np.bincount(cells, minlength=BANDS * _STEPS).reshape(BANDS, _STEPS)

    @property
    def has_discards(self) -> bool:
        """Whether blocks are discarded."""
        return any(kind == Kind.DISCARD for _, kind in self._streams)

    def end_of(self, name: str) -> int:
        """Return the size of a device; where it is unknown, the end of the trace's last I/O."""
        return max(self.facts.device_bytes.get(name, 0), 0) or self.end_bytes

    def _device(self, name: str) -> _Device:
        end = max(self.end_of(name), self.end_bytes)
        chunk = max(_MIN_CHUNK_BYTES, 1 << (max(0, end - 1) // _MAX_CHUNKS).bit_length())
        count = end // chunk + 1
        device = _Device(
            chunk,
            np.zeros(count, np.uint32),
            np.full(count, -1, np.int64),
            np.zeros((BANDS, _STEPS), np.int64),
            np.zeros((3, _STEPS), np.int64),
            np.zeros((3, _STEPS)),
        )
        self.devices[name] = device
        return device

    def _add_places(self, device: _Device, times: Array, offsets: Array, sizes: Array) -> None:
        """Count the chunks that I/Os touch, and the time since each was last used."""
        first = offsets // device.chunk_bytes
        counts = (offsets + np.maximum(sizes, 1) - 1) // device.chunk_bytes - first + 1
        total = int(counts.sum())
        if total > _MAX_CHUNKS and len(counts) > 1:  # large discards
            for half in np.array_split(np.arange(len(counts)), 2):
                self._add_places(device, times[half], offsets[half], sizes[half])
            return
        chunks = np.repeat(first - counts.cumsum() + counts, counts) + np.arange(total)
        times = np.repeat(times, counts)
        order = np.argsort(chunks, kind="stable")
        sorted_chunks, sorted_times = chunks[order], times[order]
        is_first = np.ones(len(order), bool)
        is_first[1:] = sorted_chunks[1:] != sorted_chunks[:-1]
        before = np.empty_like(sorted_times)
        before[1:] = sorted_times[:-1]
        before[is_first] = device.last_ns[sorted_chunks[is_first]]
        is_known = before >= 0
        device.reuse.add(sorted_times[is_known] - before[is_known])
        device.first_uses += int((~is_known).sum())
        is_last = np.append(is_first[1:], [True]) if len(order) else is_first
        device.last_ns[sorted_chunks[is_last]] = sorted_times[is_last]
        used, counts = np.unique(chunks, return_counts=True)
        device.counts[used] += counts.astype(np.uint32)

    def rows(self, frame: str) -> Rows:
        """Return the rows of a frame; see `FRAMES`."""
        made: Rows = getattr(self, f"_{frame}")()
        return made

    def _load(self) -> Rows:
        return [
            {
                "device": name,
                "kind": Kind(kind).name.lower(),
                "ios": stream.count,
                "iops": stream.count / self.rated_s,
                "bw_bytes_per_s": stream.bytes / self.rated_s,
                "io_bytes": stream.bytes,
                "size_p50_bytes": self._median_size(name, kind),
                "sequential_share": stream.sequential / stream.count,
                "lat_p50_s": stream.latency.percentile(0.5) / 1e9,
                "lat_p99_s": stream.latency.percentile(0.99) / 1e9,
            }
            for (name, kind), stream in sorted(self._streams.items())
        ]

    def _median_size(self, name: str, kind: int) -> int:
        counts = {
            size: count for (of, size), count in self.devices[name].sizes.items() if of == kind
        }
        sizes = sorted(counts)
        reached = np.cumsum([counts[size] for size in sizes])
        return sizes[int(np.searchsorted(reached, reached[-1] / 2))]

    def _sizes(self) -> Rows:
        rows = []
        for name, device in self.devices.items():
            total = sum(device.sizes.values())
            largest = sorted(device.sizes.items(), key=lambda item: -item[1])[:10]
            rows += [
                {
                    "device": name,
                    "kind": Kind(kind).name.lower(),
                    "size_bytes": size,
                    "ios": count,
                    "share": count / total,
                }
                for (kind, size), count in largest
            ]
        return rows

    def _arrival(self) -> Rows:
        return [
            {"device": name, "ios": device.gaps.total, **_in_seconds(device.gaps.row("gap"))}
            for name, device in self.devices.items()
        ]

    def _seeks(self) -> Rows:
        return [
            {
                "device": name,
                "sequential_share": device.seeks.zeros / max(device.seeks.total, 1),
                "far_share": device.seeks.share_above(1 << 30),
                **{f"{key}_bytes": value for key, value in device.seeks.row("seek").items()},
            }
            for name, device in self.devices.items()
        ]

    def _working_set(self) -> Rows:
        rows = []
        for name, device in self.devices.items():
            counts = np.sort(device.counts[device.counts > 0])[::-1].astype(np.int64)
            total = max(int(counts.sum()), 1)
            hot = {
                f"hottest_{100 * share:.0f}_percent_share": int(
                    counts[: max(1, round(share * len(counts)))].sum()
                )
                / total
                for share in _HOT_SHARES
            }
            rows.append(
                {
                    "device": name,
                    "chunk_bytes": device.chunk_bytes,
                    "working_set_bytes": len(counts) * device.chunk_bytes,
                    **hot,
                }
            )
        return rows

    def _hot_ranges(self) -> Rows:
        rows = []
        for name, device in self.devices.items():
            bands = device.bands.sum(axis=1)
            width = self.end_of(name) / BANDS
            rows += [
                {
                    "device": name,
                    "from_bytes": int(band * width),
                    "to_bytes": int((band + 1) * width),
                    "ios": int(bands[band]),
                    "share": float(bands[band] / max(bands.sum(), 1)),
                }
                for band in np.argsort(-bands, kind="stable")[:10]
                if bands[band]
            ]
        return rows

    def _mix(self) -> Rows:
        rows: Rows = []
        width = _STEPS // _MIX_ROWS
        for name, device in self.devices.items():
            for start in range(0, _STEPS, width):
                part = slice(start, start + width)
                reads, writes, discards = (int(ios[part].sum()) for ios in device.ios)
                seconds = width * self.rated_s / _STEPS
                rows.append(
                    {
                        "device": name,
                        "t_s": start * self.step_s,
                        "read_iops": reads / seconds,
                        "write_iops": writes / seconds,
                        "read_bw_bytes_per_s": float(device.bytes[0, part].sum()) / seconds,
                        "write_bw_bytes_per_s": float(device.bytes[1, part].sum()) / seconds,
                        "read_share": reads / (reads + writes) if reads + writes else float("nan"),
                        **({"discard_iops": discards / seconds} if self.has_discards else {}),
                    }
                )
        return rows

    def _reuse(self) -> Rows:
        rows = []
        for name, device in self.devices.items():
            total = max(device.first_uses + device.reuse.total, 1)
            share = {"reused_share": device.reuse.total / total, "chunk_bytes": device.chunk_bytes}
            rows.append({"device": name, **share, **_in_seconds(device.reuse.row("after"))})
        return rows


def _in_seconds(row: Mapping[str, object]) -> dict[str, object]:
    return {f"{name}_s": float(str(value)) / 1e9 for name, value in row.items()}


# Frame to what it says in a sentence
FRAMES = {
    "load": "Rates, sizes and latencies of each device and kind of I/O.",
    "sizes": "The ten most frequent sizes of each device.",
    "arrival": "Times between one I/O and the next.",
    "seeks": "Distances from the end of one I/O to the start of the next.",
    "working_set": "Space that was used, and the share of the I/Os on its hottest parts.",
    "hot_ranges": f"The busiest of {BANDS} ranges of each device.",
    "mix": "Rates of reads, writes and discards over time.",
    "reuse": "Share of the I/Os on chunks that were used before, and after which time.",
}
