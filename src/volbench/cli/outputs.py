"""Output of verbs: standard output, a file, or a file with a default name in a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import click

from volbench.errors import InputError


@contextmanager
def binary_output(output: str, *, default_name: str) -> Iterator[BinaryIO]:
    """Yield a buffer that is written to `output` in one piece when the block ends well.

    Args:
        output: ``-`` for standard output, an existing folder, or a file.
        default_name: file name used in a folder.

    Raises:
        InputError: it can't be written; standard output that is a terminal is given no binary.
    """
    buffer = BytesIO()
    yield buffer
    if output == "-":
        sys.stdout.buffer.write(buffer.getvalue())
        return
    path = Path(output)
    path = path / default_name if path.is_dir() else path
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise InputError(
            f"{path} can't be written: {error.strerror}",
            hint="name a file in an existing folder with --output",
            context={"path": str(path)},
        ) from error
    click.echo(f"written: {path}", err=True)


def default_campaign_folder(name: str) -> Path:
    """Return the folder of a new campaign for which none is named."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return Path("volbench-results") / f"{name}-{stamp}"


def recorded_command(inputs: Iterable[str | Path], output: Path | None) -> tuple[str, ...]:
    """Return the command line for the campaign's record, without paths of this machine.

    Args:
        inputs: paths on the command line that are shortened to their last part.
        output: the campaign folder if it was named, which is shortened in the same way.
    """
    short = {str(path): Path(path).resolve().name for path in inputs if str(path)}
    if output is not None:
        short[str(output)] = output.name
        for prefix in ("--output=", "--into=", "-o"):
            short[f"{prefix}{output}"] = f"{prefix}{output.name}"
    return ("volbench", *(short.get(argument, argument) for argument in sys.argv[1:]))
