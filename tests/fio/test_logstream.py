"""The streamed count of a log of single I/Os equals that of a plain loop over its lines."""

from __future__ import annotations

import io
import random
import re

import numpy as np
import pytest

from volbench.fio import logstream
from volbench.fio.histogram import BINS, bin_range_ns
from volbench.fio.logstream import Counted, Window, bin_of, count_stream

COLUMNS = ("", ", 0", ", 4096, 0x2000", ", 0, 8192, 1, 77")


def plain_bin(value: int) -> int:
    """Return the bin whose edges hold a value; the last one holds all above."""
    return next((n for n in range(BINS) if value < bin_range_ns(n)[1]), BINS - 1)


def plainly(raw: bytes, interval_ms: int) -> Counted:
    """Count a log line by line."""
    counted = Counted()
    lines = raw.split(b"\n")
    for number, line in enumerate(lines):
        match = re.fullmatch(rb" *(\d+), *(\d+), *(\d+), *(\d+)(,[^\0]*)?", line)
        if match is None or number == len(lines) - 1:
            counted.bad_rows += bool(line.strip())
            continue
        time_ms, value, direction, size = (int(cell) for cell in match.groups()[:4])
        if direction > 2:
            continue
        counted.rows += 1
        window = counted.windows.setdefault((time_ms // interval_ms, direction), Window())
        window.ios += 1
        window.moved_bytes += size
        window.value_sum += value
        window.value_max = max(window.value_max, value)
        window.bins[plain_bin(value)] += 1
    return counted


def some_log(seed: int) -> bytes:
    """Return a small log in one of fio's layouts, partly with bad lines and steps back in time."""
    chance = random.Random(seed)  # noqa: S311 - test data, no secret
    tail = chance.choice(COLUMNS)
    lines = []
    for _ in range(40):
        value = chance.randrange(1 << chance.randrange(1, 40))
        lines.append(f"{chance.randrange(900)}, {value}, {chance.randrange(4)}, 4096{tail}")
    for bad in chance.sample(
        ["", "fio: error", "1, \0\0, 0, 4096", "5, -7, 0, 0", "1, 2"], seed % 4
    ):
        lines.insert(chance.randrange(len(lines)), bad)
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("seed", range(12))
def test_streams_count_as_a_plain_loop(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole or cut anywhere, in blocks of any size, nothing is lost and bad lines are counted."""
    raw = some_log(seed)
    monkeypatch.setattr(logstream, "_CHUNK_BYTES", 64 + 97 * seed)
    for end in range(0, len(raw) + 1, 29):
        found = count_stream(io.BytesIO(raw[:end]), interval_ms=100)
        assert found == plainly(raw[:end], 100)
    assert count_stream(io.BytesIO(raw), interval_ms=100) == plainly(raw, 100)


def test_every_edge_falls_into_its_bin() -> None:
    """The first and the last value of each bin have its number."""
    edges = np.array([bin_range_ns(n) for n in range(BINS)])
    assert bin_of(edges[:, 0]).tolist() == list(range(BINS))
    assert bin_of(edges[:, 1] - 1).tolist() == list(range(BINS))
