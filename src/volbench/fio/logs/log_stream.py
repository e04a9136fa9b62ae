"""Log files as streams of blocks of complete lines.

A block has a few MiB, whatever the size of the log. A truncated last line and an endless line are
returned with a NUL in them, so that no parser takes them for rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO

CHUNK_BYTES = 2 << 20
LONGEST_LINE_BYTES = 128 << 10
"""Longer than a histogram row of 1856 bins with 20 digits each."""
NO_ROW = b"\0"


@dataclass(frozen=True)
class Log:
    """One log file.

    Attributes:
        kind: ``bw``, ``iops``, ``lat``, ``clat``, ``slat`` or ``clat_hist``.
        job_number: in its name; 1 is the first job of the process.
        name: path for messages.
        open: returns the uncompressed log; called more than once.
    """

    kind: str
    job_number: int
    name: str
    open: Callable[[], AbstractContextManager[BinaryIO]]


@dataclass(frozen=True, slots=True)
class Block:
    """Complete lines without the last newline, and the number of the first one."""

    lines: bytes
    first_line: int


def blocks_of(stream: BinaryIO, *, chunk_bytes: int | None = None) -> Iterator[Block]:
    """Yield blocks of complete lines, using memory in proportion to the chunk size.

    Args:
        stream: the uncompressed log.
        chunk_bytes: bytes to read at once.
    """
    number = 1
    for lines in _line_blocks(stream, chunk_bytes or CHUNK_BYTES):
        yield Block(lines, number)
        number += lines.count(b"\n") + 1


def _line_blocks(stream: BinaryIO, chunk_bytes: int) -> Iterator[bytes]:
    rest, endless = b"", False
    while chunk := stream.read(chunk_bytes):
        lines, end, tail = chunk.rpartition(b"\n")
        if end:
            if endless:
                lines = NO_ROW + lines[lines.find(b"\n") :] if b"\n" in lines else NO_ROW
            yield rest + lines
            rest, endless = tail, False
        elif not endless:
            rest += tail
        if len(rest) > LONGEST_LINE_BYTES:
            rest, endless = b"", True
    if endless:
        yield NO_ROW
    elif rest.strip():
        yield rest + NO_ROW
