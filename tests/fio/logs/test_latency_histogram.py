"""Latencies over time, from logs that hold them one by one."""

from functools import partial
from io import BytesIO

import pytest

from volbench.fio.logs.log_rows import Log, Recording
from volbench.fio.logs.section_logs import MAX_INTERVALS, read_latency_map
from volbench.model.results.result import Direction


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
