"""Traces whose rows are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from volbench.extensions.traces.trace_file import TraceFacts, TraceWriter, rows_of


def made_rows(times_ns: list[int] | np.ndarray[Any, Any], **columns: object) -> pa.Table:
    """Return reads of 4 KiB one behind another, with other columns as named."""
    times = np.asarray(times_ns, dtype=np.int64)
    usual = {
        "offset_bytes": 4096 * np.arange(len(times)),
        "size_bytes": 4096,
        "kind": 0,
        "flags": 0,
        "queue": 0,
        "latency_ns": 100_000,
        "process": "fio",
        "device": "sda",
    }
    return rows_of({"time_ns": times, **usual, **columns})


def made_trace(path: Path, *tables: pa.Table, **given: object) -> Path:
    """Write a trace of tables and return its path."""
    usual = {"source": "tracefs", "device_bytes": {"sda": 1 << 30}}
    facts = TraceFacts.model_validate({**usual, **given})
    writer = TraceWriter(path, facts)
    for table in tables:
        writer.add(table)
    writer.close(facts)
    return path
