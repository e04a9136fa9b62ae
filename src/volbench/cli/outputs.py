"""Where a verb writes: standard output, a file, or a file with a default name in a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import click

from volbench.errors import InputError


@contextmanager
def binary_output(into: str, *, default_name: str) -> Iterator[BinaryIO]:
    """Yield a buffer that is written to `into` in one piece when the block ends well.

    Args:
        into: ``-`` for standard output, an existing folder, or a file.
        default_name: file name used in a folder.

    Raises:
        InputError: it can't be written; standard output that is a terminal is given no binary.
    """
    buffer = BytesIO()
    yield buffer
    if into == "-":
        sys.stdout.buffer.write(buffer.getvalue())
        return
    path = Path(into)
    path = path / default_name if path.is_dir() else path
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise InputError(
            f"{path} can't be written: {error.strerror}",
            hint="name a file in an existing folder with --into",
            context={"path": str(path)},
        ) from error
    click.echo(f"written: {path}", err=True)
