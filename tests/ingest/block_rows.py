"""Blocks of rows as plain rows, for tests."""

from collections.abc import Sequence

from volbench.fio.logs.direction_series import DirectionSeries
from volbench.ingest.series_rows import series_block
from volbench.store.parquet_tables import Block, rows_of, table_of_blocks


def block_rows(frame_name: str, blocks: Sequence[Block]) -> list[dict[str, object]]:
    """Return the rows of blocks, None for unknown values."""
    return rows_of(table_of_blocks(frame_name, blocks))


def series_rows(directions: Sequence[DirectionSeries]) -> list[dict[str, object]]:
    """Return the rows of a section's series."""
    return block_rows("series", [series_block({}, series) for series in directions])
