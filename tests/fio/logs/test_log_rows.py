"""Tables of a log equal what a plain loop over its lines finds, wherever blocks end."""

import io
import random
import re
from contextlib import nullcontext

import pytest

from volbench.fio.logs import log_rows
from volbench.fio.logs.log_rows import (
    BOTH,
    MAX_LINE_BYTES,
    PLAIN,
    Form,
    Log,
    Tally,
    blocks_of,
    read_tables,
)

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
