"""Rows of logs, whole or damaged, and the latencies that they hold."""

import io
import random
import re
from contextlib import nullcontext
from functools import partial
from io import BytesIO

import numpy as np
import pytest

from tests.fio.logs.logtexts import iops, log_of, points_of, reading_of
from volbench.errors import OutputError
from volbench.fio.logs import log_rows
from volbench.fio.logs.log_rows import (
    BOTH,
    MAX_LINE_BYTES,
    PLAIN,
    Form,
    Log,
    Recording,
    Tally,
    Windows,
    blocks_of,
    read_tables,
)
from volbench.fio.logs.log_windows import BIN_COUNT, BinStore, SeenWindows, bin_mids, bin_of
from volbench.fio.logs.section_logs import MAX_INTERVALS, read_latency_map, read_series
from volbench.fio.results.merge_jobs import BINS, bin_edges_ns, percentile_ns
from volbench.model.results.result import Direction

TAILS = ("", ", 0", ", 4096, 0x2000", ", 0, 8192, 1, 77")


def plainly(raw: bytes, columns: tuple[int, ...]) -> tuple[list[list[int]], int, int | None]:
    """Return the rows of a log, how many lines were none, and the first of these."""
    rows, bad, first_bad = [], 0, None
    pattern = re.compile(rb"[ \t]*\d+" + rb",[ \t]*\d+" * max(columns) + rb"(,[^\0]*)?")
    lines = raw.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        whole = pattern.fullmatch(line) is not None and number < len(lines)
        cells = [int(line.split(b",")[n]) for n in columns] if whole else []
        if whole and cells[2] <= 7:
            rows.append(cells)
        else:
            bad += 1
            first_bad = first_bad or number
    return rows, bad, first_bad


def some_log(seed: int) -> bytes:
    """Return a small log in one of fio's layouts, partly with bad lines and steps back in time."""
    chance = random.Random(seed)  # noqa: S311 - test data, no secret
    tail = chance.choice(TAILS)
    lines = []
    for _ in range(40):
        value = chance.randrange(1 << chance.randrange(1, 40))
        lines.append(f"{chance.randrange(900)}, {value}, {chance.randrange(4)}, 5, 4096{tail}")
    for bad in chance.sample(
        ["", "fio: error", "1, \0\0, 0, 4096", "5, -7, 0, 0", "1, 2", "1, 2, 9, 9, 9"], seed % 5
    ):
        lines.insert(chance.randrange(len(lines)), bad)
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [PLAIN, BOTH])
@pytest.mark.parametrize("seed", range(12))
def test_rows_equal_those_of_a_simple_loop(
    seed: int, columns: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole or cut anywhere, in blocks of any size, nothing is lost and bad lines are counted."""
    raw = some_log(seed)
    monkeypatch.setattr(log_rows, "CHUNK_BYTES", 64 + 97 * seed)
    monkeypatch.setattr(log_rows, "_MAX_SMALL_BYTES", 0 if seed % 2 else 64 << 10)  # both readers
    for end in (*range(0, len(raw), 29), len(raw)):
        part = raw[:end]
        tally = Tally("l")
        log = Log("lat", 1, "l", lambda part=part: nullcontext(io.BytesIO(part)))  # type: ignore[misc]  # mypy can't infer a lambda with a default
        tables = list(read_tables(log, Form(columns), tally))
        rows, bad, first_bad = plainly(part, columns)
        assert [row for table in tables for row in table.T.tolist()] == rows
        assert (tally.rows, tally.bad_rows, tally.first_bad_line) == (len(rows), bad, first_bad)


@pytest.mark.parametrize("chunk_bytes", [7, 1000, 1 << 20])
def test_an_endless_line_is_dropped_and_keeps_its_number(chunk_bytes: int) -> None:
    """A line beyond any that fio writes is never held in memory as a whole."""
    endless = b"7" * (3 * MAX_LINE_BYTES)
    for raw, lines in (
        (b"a\n" + endless + b"\nb\nc\n", ["a", None, "b", "c"]),
        (b"a\nb\n" + endless, ["a", "b", None]),
    ):
        found: dict[int, bytes] = {}
        for block in blocks_of(io.BytesIO(raw), chunk_bytes=chunk_bytes):
            assert len(block.lines) <= MAX_LINE_BYTES + 2 * chunk_bytes
            found.update(enumerate(block.lines.split(b"\n"), start=block.first_line))
        assert list(found) == list(range(1, len(lines) + 1))
        for line, expected in zip(found.values(), lines, strict=True):
            whole = line.decode() if len(line) < MAX_LINE_BYTES and b"\0" not in line else None
            assert whole == expected


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


def log(kind: str, text: str, *, clone: int = 1) -> Log:
    """Return a log that holds a text."""
    return Log(kind, clone, name=f"l_{kind}.{clone}.log", open=partial(BytesIO, text.encode()))


def single(*rows: tuple[int, int, int]) -> str:
    """Return a log of single I/Os: time in ms, latency in ns, fio's number of the direction."""
    return "".join(f"{at}, {lat}, {way}, 4096, 0, 0\n" for at, lat, way in rows)


RECORDING = Recording(interval_s=1.0, fio_version=(3, 33), runtime_s=3.0)


def test_single_ios_are_counted_where_they_ended() -> None:
    """Each I/O is in the second in which it ended and in the bin that holds its latency."""
    text = single((100, 1_000_000, 0), (200, 1_000_000, 0), (1500, 8_000_000, 0), (2500, 500, 1))
    cells = read_latency_map([log("lat", text)], RECORDING)
    assert [(c.direction, c.from_s, c.to_s, c.count) for c in cells] == [
        (Direction.READ, 0.0, 1.0, 2),
        (Direction.READ, 1.0, 2.0, 1),
        (Direction.WRITE, 2.0, 3.0, 1),
    ]
    for cell, latency_s in zip(cells, (0.001, 0.008, 5e-7), strict=True):
        assert cell.low_s <= latency_s < cell.high_s
        assert cell.high_s <= 1.15 * cell.low_s


def test_counts_of_numjobs_are_added() -> None:
    """The logs of two numjobs make one map."""
    text = single((100, 1_000_000, 0))
    (cell,) = read_latency_map([log("lat", text), log("lat", text, clone=2)], RECORDING)
    assert cell.count == 2


def test_averaged_logs_give_no_latency_map() -> None:
    """Means of intervals hold no distribution, so that none is made up of them."""
    text = "1000, 1000000, 0, 0, 0, 0\n2000, 1000000, 0, 0, 0, 0\n"
    assert read_latency_map([log("lat", text)], RECORDING) == []


@pytest.mark.parametrize("seconds", [MAX_INTERVALS, 3 * MAX_INTERVALS + 1])
def test_long_runs_are_merged_into_few_intervals_without_losing_ios(seconds: int) -> None:
    """However long a run, the map is a picture's worth, and every I/O is in it."""
    rows = [(1000 * at + 500, 1_000_000 + at, 0) for at in range(seconds)]
    recording = Recording(interval_s=1.0, fio_version=(3, 33), runtime_s=float(seconds))
    cells = read_latency_map([log("lat", single(*rows))], recording)
    assert len({cell.from_s for cell in cells}) <= MAX_INTERVALS
    assert sum(cell.count for cell in cells) == seconds
    assert max(cell.to_s for cell in cells) == seconds


def test_every_edge_falls_into_its_bin() -> None:
    """The first and the last value of each bin have its number."""
    edges = np.array([bin_edges_ns(mid) for mid in bin_mids(np.arange(BINS)).tolist()])
    assert bin_of(edges[:, 0]).tolist() == list(range(BINS))
    assert bin_of(edges[:, 1] - 1).tolist() == list(range(BINS))


def test_bins_extend_beyond_the_last_bin_of_fio() -> None:
    """A latency of days has a bin too, with a middle at most 0.8 % away."""
    values = np.array([2**34, 2**40 + 12345, 10**15, 2**50 - 1])
    bins = bin_of(values)
    assert bins.max() < BIN_COUNT
    assert (np.abs(bin_mids(bins) - values) <= values * 0.0079).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_windows_in_any_order_keep_their_counts(seed: int) -> None:
    """Windows that come back after they were packed have the percentiles of all their counts."""
    chance = random.Random(seed)  # noqa: S311 - test data, no secret
    store = BinStore()
    plain: dict[int, dict[int, int]] = {}
    for _ in range(3000):
        window = chance.randrange(600)
        bins = sorted(chance.sample(range(BIN_COUNT), chance.randrange(1, 6)))
        counts = [chance.randrange(1, 10 ** chance.randrange(1, 11)) for _ in bins]
        store.add(window, np.array(bins), np.array(counts))
        mine = plain.setdefault(window, {})
        for bin_, count in zip(bins, counts, strict=True):
            mine[bin_] = mine.get(bin_, 0) + count
    assert store.windows() == set(plain)
    assert store.last() == max(plain)
    for window, mine in plain.items():
        expected = [
            int(bin_mids(np.array(percentile_ns(mine, share)))) for share in (50.0, 99.0, 99.9)
        ]
        assert store.percentiles(window) == tuple(expected)
    assert store.percentiles(601) is None


def test_a_log_whose_time_restarts_loses_its_ramp() -> None:
    """Fio 2 logs the ramp too, and starts at 0 after it; lines out of order are no restart."""
    ramp = "".join(f"{1000 * second}, 900, 0, 0\n" for second in range(1, 6))
    log = log_of("iops", 1, f"{ramp}1000, 500, 0, 0\n990, 400, 1, 0\n2000, 510, 0, 0\n")
    points = points_of(read_series([log], Recording(1.0, (2, 21))))
    reads = [point.iops for point in points if point.direction is Direction.READ]
    assert reads == [500, 510]
    writes = [point.iops for point in points if point.direction is Direction.WRITE]
    assert writes[0] == 400
