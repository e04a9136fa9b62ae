"""Files that appear whole or not at all: written beside their place, synced and renamed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from volbench.errors import ArchiveError, InputError

# Of a file's name that are kept in that of its temporary file: names are bounded (NAME_MAX)
_NAME_CHARACTERS = 50


@contextmanager
def replaced_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file that replaces a file when the block ends without an error.

    Until then, and after an error, the old file is unchanged. An existing file keeps its mode.

    Args:
        durable: whether to fsync file and directory; if not, call `sync_files` later.
    """
    temporary = path.with_name(f".{path.name[:_NAME_CHARACTERS]}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # the error that led here says more
            temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def remove_half_written(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder and its subfolders."""
    for path in folder.rglob(".*.tmp"):
        if is_half_written(path):
            path.unlink(missing_ok=True)


def is_half_written(path: Path) -> bool:
    """Return whether a file is the temporary one of a killed process."""
    process = ["", *path.name.split(".")][-2]
    is_temporary = path.name.startswith(".") and path.suffix == ".tmp" and process.isdecimal()
    return is_temporary and not Path("/proc", process).exists()


def write_output(path: Path, content: bytes) -> None:
    """Write a file that the user named; a pipe or device, such as /dev/stdout, is written to."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        with replaced_file(path.resolve()) as file:
            file.write(content)
    except OSError as error:
        raise _unusable(path, error) from error


def make_output_folder(path: Path) -> None:
    """Create a folder that the user named, and its parents, if they are missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="name a place that exists and that you may write to with --output",
    )


def write_atomic(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a text file of a campaign atomically; see `write_bytes_atomic`."""
    write_bytes_atomic(path, text.encode(), durable=durable)


def write_bytes_atomic(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file of a campaign atomically: readers and crashes see the old or the new content.

    Args:
        durable: whether to fsync file and directory; if not, call `sync_files` later.
    """
    try:
        with replaced_file(path, durable=durable) as file:
            file.write(content)
    except OSError as error:
        raise unwritable(path, error) from error


def sync_files(paths: Iterable[Path]) -> None:
    """Fsync files that were written without `durable`, and their directories."""
    for path in paths:
        try:
            with path.open("rb") as file:
                os.fsync(file.fileno())
            sync_folder(path.parent)
        except OSError as error:
            raise unwritable(path, error) from error


def sync_folder(path: Path) -> None:
    """Fsync a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(path: Path, error: OSError) -> ArchiveError:
    """Return the error of a campaign's file that cannot be written."""
    return ArchiveError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="check permissions and free space, or choose another folder with --output",
        path=str(path),
    )
