"""Traces for tests of replays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from volbench.extensions.traces.trace_file import Kind, TraceFacts, TraceWriter, rows_of

SPAN_BYTES = 8 << 20


def make_trace(
    path: Path,
    *,
    ios: int = 400,
    rate: float = 200,
    start_utc: str = "",
    **columns: object,
) -> Path:
    """Write a trace of reads and writes of 4k and 16k at random times, two thirds of them reads."""
    chance = np.random.default_rng(5)
    is_read = chance.random(ios) < 2 / 3
    writer = TraceWriter(path)
    writer.add(
        rows_of(
            {
                "time_ns": (np.cumsum(chance.exponential(1 / rate, ios)) * 1e9).astype(np.int64),
                "offset_bytes": chance.integers(0, SPAN_BYTES - 16384, ios) // 4096 * 4096,
                "size_bytes": np.where(chance.random(ios) < 0.5, 4096, 16384).astype(np.int32),
                "kind": np.where(is_read, Kind.READ, Kind.WRITE).astype(np.uint8),
                "flags": 0,
                "queue": -1,
                "latency_ns": np.full(ios, 500_000),
                "process": "$(touch evil)\nvolume write 0 4096",
                "device": "sd#;a",
                **columns,
            }
        )
    )
    writer.close(TraceFacts(source="tracefs", start_utc=start_utc))
    return path
