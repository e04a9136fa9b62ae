"""Rows become frames with the contract's columns and types, through Parquet and back."""

from pathlib import Path

import pytest

from volbench.errors import ArchiveError
from volbench.model.frames.columns import FRAMES
from volbench.store.log_files import compress_logs
from volbench.store.parquet_tables import frame_of, read_table, table_of, write_tables


@pytest.mark.parametrize("name", FRAMES)
def test_empty_frame_has_every_column(name: str) -> None:
    """A campaign without results still gives frames of the documented shape."""
    frame = frame_of(table_of(name, []))
    assert list(frame.columns) == [column.name for column in FRAMES[name]]
    assert len(frame) == 0


def test_values_survive_parquet_exactly(tmp_path: Path) -> None:
    """Integers beyond 2**53 and unknown values are the same after a round trip."""
    row = {"run": "001-a", "io_bytes": 2**60 + 1, "iops": 0.1 + 0.2, "direct": True}
    parts = [{"summary": table_of("summary", [each])} for each in (row, {"run": "002-b"})]
    write_tables(tmp_path, parts)
    frame = frame_of(read_table(tmp_path / "summary.parquet"))
    assert frame["io_bytes"].tolist()[0] == 2**60 + 1
    assert frame["iops"].tolist()[0] == 0.1 + 0.2
    assert bool(frame["direct"].tolist()[0]) is True
    assert frame_of(read_table(tmp_path / "summary.parquet"), is_done=True).equals(frame)
    assert frame.loc[1, ["io_bytes", "iops", "direct"]].isna().all()


def test_leftovers_of_a_killed_command_are_removed_with_the_next_tables(tmp_path: Path) -> None:
    """Its temporary file is removed; one of a process that works is not."""
    left, at_work = tmp_path / ".series.parquet.999999999.tmp", tmp_path / ".series.parquet.1.tmp"
    for path in (left, at_work):
        path.write_bytes(b"PAR1")
    write_tables(tmp_path, [{"summary": table_of("summary", [])}])
    assert (left.exists(), at_work.exists()) == (False, True)


def test_unknown_column_is_refused() -> None:
    """A row can't slip a column past the contract."""
    with pytest.raises(ArchiveError, match="surprise"):
        table_of("summary", [{"surprise": 1}])


def test_a_damaged_table_is_reported_with_a_hint(tmp_path: Path) -> None:
    """A table is derived: the hint says it can be deleted."""
    path = tmp_path / "summary.parquet"
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(ArchiveError) as caught:
        read_table(path)
    assert "rebuilt" in caught.value.hint


def test_only_large_logs_are_compressed_at_once(tmp_path: Path) -> None:
    """Between two runs only what would fill a disk is compressed; afterwards everything is."""
    small, large = tmp_path / "series_bw.1.log", tmp_path / "series_lat.1.log"
    small.write_text("1000, 1, 0, 0\n")
    large.write_text("1000, 1, 0, 0\n" * 100)
    compress_logs(tmp_path, min_bytes=1000)
    assert small.exists()
    assert not large.exists()
    compress_logs(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "series_bw.1.log.zst",
        "series_lat.1.log.zst",
    }
