"""Logs that a killed fio or a full disk left: what is sound counts, the rest is told or refused."""

import numpy as np
import pytest

from tests.fio.logs.logtexts import iops, log_of, points_of, reading_of
from volbench.errors import OutputError
from volbench.fio.logs.log_rows import Windows
from volbench.fio.logs.log_windows import SeenWindows
from volbench.fio.results.merge_jobs import BINS


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bw", "fio: error\n"),
        ("lat", "1000, -5, 0, 0\n"),
        ("lat", "1000, " + "9" * 30 + ", 0, 0\n"),
        ("slat", "1000, 5, 0\n1"),
        ("clat_hist", "1000, 0, 4096, 1, 2, 3\n"),
        ("clat_hist", "1000, 0, 4096\n"),
    ],
)
def test_logs_without_a_single_row_are_refused(kind: str, text: str) -> None:
    """A file that is no log of fio gives OutputError with its path and a line."""
    with pytest.raises(OutputError, match=rf"l_{kind}\.1\.log .* line 1 ") as caught:
        reading_of([log_of(kind, 1, text)], runtime_s=None)
    assert (caught.value.path, caught.value.line) == (f"l_{kind}.1.log", 1)


@pytest.mark.parametrize(
    ("text", "bad_rows", "first_line", "expected"),
    [
        ("1000, 5, 0, 0, 0\n2000, 5, 0", 1, 2, [5]),
        ("1000, 5, 0, 0, 0\n2000, 5, 0, 0, 0", 1, 2, [5]),
        ("1000, 5, 0, 0, 0\n2000, 5, 0\n3000, 7, 0, 0, 0\n", 1, 2, [5, 0, 7]),
        ("fio: x\n\n1000, 5, 0, 0\n2000, -1, 0, 0\n", 2, 1, [5]),
        ("1000, 5, 0, 0\n\n2000, 5, 77, 0\n", 1, 3, [5]),
        ("1000, 5, 0, 0\n2000, 0x10, 0, 0\n2000, +5, 0, 0\n2000, , 0, 0\n", 3, 2, [5]),
        ("1000, 5, 0, 0\n2000, 5, 0, " + "9" * 17 + "\n", 1, 2, [5]),
        (f"1000, 5, 0, 0\n{10**17}, 5, 0, 0\n", 1, 2, [5]),
        ("1000, 5, 0, 0\n" + "7" * 9_000_000 + "\n2000, 6, 0, 0\n", 1, 2, [5, 6]),
        ("1000, 5, 0, 0\n2000, 5, 0, 0\0\n3000, 6, 0, 0\r\n", 1, 2, [5, 0, 6]),
    ],
)
def test_bad_lines_are_left_out_and_reported(
    text: str, bad_rows: int, first_line: int, expected: list[float]
) -> None:
    """What is no whole row is counted, with the line of the first; the others still count."""
    reading = reading_of([log_of("iops", 1, text)], runtime_s=None)
    assert iops(points_of(reading)) == expected
    (reported,) = reading.bad_rows
    assert (reported.log, reported.bad_rows, reported.first_line) == (
        "l_iops.1.log",
        bad_rows,
        first_line,
    )
    assert reported.rows == sum(1 for rate in expected if rate)


def test_rows_outside_the_run_are_reported() -> None:
    """A stamp long after the end, or a relative one among absolute ones, is no row of the run."""
    late = "1000, 1, 0, 0\n2000, 2, 0, 0\n90000, 9, 0, 0\n"
    reading = reading_of([log_of("iops", 1, late)], runtime_s=2.0)
    assert iops(points_of(reading)) == [1, 2]
    assert [bad_row.bad_rows for bad_row in reading.bad_rows] == [1]
    start = 1_795_231_000_000
    mixed = f"{start + 1000}, 1, 0, 0\n17952, 9, 0, 0\n{start + 2000}, 2, 0, 0\n"
    reading = reading_of([log_of("iops", 1, mixed)], runtime_s=2.0)
    assert iops(points_of(reading)) == [1, 2]
    assert [bad_row.first_line for bad_row in reading.bad_rows] == [2]


def test_bad_rows_of_histograms_are_reported() -> None:
    """A histogram that was cut off is left out; those before it count."""
    counts = ", ".join(["0"] * 100 + ["9"] + ["0"] * (BINS - 101))
    text = f"1000, 0, 4096, {counts}\n2000, 0, 4096, {counts[:-30]}\n"
    reading = reading_of([log_of("clat_hist", 1, text)], runtime_s=None)
    assert [point.lat_p50_s for point in points_of(reading)] == [100e-9]
    assert [(bad_row.bad_rows, bad_row.first_line) for bad_row in reading.bad_rows] == [(1, 2)]


def test_a_block_without_a_valid_row_is_skipped() -> None:
    """Rows of a log are read in blocks, and all rows of one may be bad."""
    seen = SeenWindows(Windows(interval_s=1.0, start_ms=0, fio_version=(3, 33)))
    tables = [np.zeros((4, 0), dtype=np.int64), np.array([[1500], [5], [0], [4096]])]
    assert [table.shape for table in seen.watched(tables)] == [(4, 1)]
    assert seen.span() == (1, 1)


@pytest.mark.slow
def test_a_file_without_rows_is_rejected_after_a_few_megabytes() -> None:
    """Some garbage before the first row is skipped; more than a log can have is refused."""
    row = "1000, 5, 0, 0, 0\n"
    (series,) = reading_of([log_of("iops", 1, "x\n" * 1000 + row)], runtime_s=None).directions
    assert series.iops.tolist() == [5]
    for text in ("x\n" * 3_000_000 + row, row + "x\n" * 100_001):
        with pytest.raises(OutputError, match=r"no line of a|lines that are not log lines"):
            reading_of([log_of("iops", 1, text)], runtime_s=None)


@pytest.mark.slow
def test_rows_after_the_runtime_do_not_displace_rows_of_the_run() -> None:
    """A log of every I/O may go on after the runtime that the result has."""
    text = "".join(f"{number // 100}, 5, 0, 4096, 0\n" for number in range(1_200_000))
    reading = reading_of([log_of("lat", 1, text)], runtime_s=4.0)
    assert reading.directions[0].iops.tolist()[:3] == [100_000] * 3
    assert reading.bad_rows[0].bad_rows > 100_000
