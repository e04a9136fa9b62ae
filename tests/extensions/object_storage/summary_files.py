"""Summaries of one row as Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from volbench.store.parquet_tables import table_of


def summary(folder: Path, name: str, *, iops: float, **labels: str) -> str:
    """Write a summary of one row and return its path."""
    row = {"campaign": "c", "run": "001", "iops": iops}
    row |= {f"label_{label}": value for label, value in labels.items()}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.parquet"
    pq.write_table(table_of("summary", [row], labels=list(labels)), file)
    return str(file)
