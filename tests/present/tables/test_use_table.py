"""The USE table for people: each cell has number and unit, or says that it was not reported."""

from tests.present.tables.table_rows import ROW
from volbench.present.tables.render_table import render_table
from volbench.present.tables.use_table import run_names, use_columns, use_table


def cells(row: dict[str, object]) -> dict[str, str]:
    """Return the cells of a row by heading."""
    return {column.heading: column.cell(row) for column in use_columns([ROW])}


def test_each_cell_has_its_unit() -> None:
    """Shares of limits stand in brackets, and numbers read as in every other table."""
    assert cells(ROW) == {
        "IOPS": "1.1k (100 %)",
        "bandwidth": "4.5 MB/s (3.6 %)",
        "active": "100 %",
        "latency": "14.5 ms",
        "queue": "16",
        "iowait": "0 %",
        "dirty": "3.7 GB",
        "tail": "38s",
        "reached": "38 %",
        "errors": "0",
        "bottleneck": "iops-limit 1.1k",
    }


def test_columns_and_shares_without_values_are_left_out() -> None:
    """A kernel without pressure has no such column; without a limit there are no brackets."""
    assert "pressure" not in cells(ROW)
    reported = use_columns([ROW, ROW | {"io_pressure_some_percent": 7.0}])
    assert "pressure" in [column.heading for column in reported]
    shown = cells(ROW | {"iops_percent": None, "bw_percent": float("nan")})
    assert shown["IOPS"] == "1.1k"
    assert shown["bandwidth"] == "4.5 MB/s"


def test_a_truncated_write_back_shows_the_remaining_bytes() -> None:
    """Pages that wait still make a tail too short; a few of them are always there."""
    left = ROW | {"tool_bytes": 50e6, "dirty_remaining_bytes": 40e6}
    assert cells(left)["tail"] == "38s, 40 MB left"
    assert cells(left | {"dirty_remaining_bytes": 0.9e6})["tail"] == "38s"
    assert cells(left | {"tool_bytes": 1e12})["tail"] == "38s"


def test_errors_of_device_and_fio_are_told_apart() -> None:
    """Requests of the device are counted, fio's error is named."""
    assert cells(ROW | {"io_errors": 3})["errors"] == "3"
    assert cells(ROW | {"io_errors": 3, "error": 5})["errors"] == "3, fio EIO"
    assert cells(ROW | {"io_errors": None, "error": 28})["errors"] == "fio ENOSPC"
    assert cells(ROW | {"io_errors": None})["errors"] == "fio 0"


def test_each_run_is_reported_separately() -> None:
    """Repeats have their number, other phases their name."""
    again = ROW | {"repeat": 2}
    assert run_names([ROW]) == ["test4"]
    assert run_names([ROW, again]) == ["test4 #1", "test4 #2"]
    assert run_names([ROW | {"phase": "warmup"}]) == ["test4 (warmup)"]


def test_the_table_holds_a_line_per_run() -> None:
    """Piped, nothing is cut off, and the caption explains the columns."""
    text = render_table(use_table([ROW, ROW | {"label": "a-long-name-of-a-job"}]), "table")
    assert "a-long-name-of-a-job" in text
    assert text.count("1.1k (100 %)") == 2
    assert "reached: bytes that reached the device" in text
    assert "IOPS: I/Os of the device" in text
    short = ROW | {"bottleneck": None}
    assert "No bottleneck is named of a run that is too short" in " ".join(use_table([short]).notes)
    assert cells(short)["bottleneck"] == "n/a"
    narrow = render_table(use_table([ROW]), "table", width=60)
    assert "reached:" not in narrow
