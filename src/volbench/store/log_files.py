"""Raw files of runs: compression of logs, transparent decompression on read, and checksums."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from volbench.errors import ArchiveError
from volbench.store.atomic_files import replaced_file
from volbench.store.layout import COMPRESSED, UNCHECKED

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK_BYTES = 1 << 20
_GZIP = ".gz"
_XZ = ".xz"


def _unreadable_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions raised by reading a damaged log."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and no log is read before a run

    return OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException


def compress(path: Path) -> Path:
    """Compress a file to ``<name>.zst`` with zstd, remove the original and return the new path."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and not needed before a run has ended

    target = path.with_name(path.name + COMPRESSED)
    try:
        with (
            path.open("rb") as source,
            replaced_file(target, durable=False) as file,
            pa.CompressedOutputStream(file, "zstd") as sink,
        ):
            while chunk := source.read(_CHUNK_BYTES):
                sink.write(chunk)
        path.unlink()
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(
            f"{path} cannot be compressed: {error}",
            hint="check free space; the uncompressed file is kept",
            path=str(path),
        ) from error
    return target


def compress_logs(folder: Path, *, min_bytes: int = 0) -> None:
    """Compress the logs of a run folder that have at least a given size."""
    for path in sorted(folder.glob("*.log")):
        if path.stat().st_size >= min_bytes:
            compress(path)


def plain_name(path: Path) -> str:
    """Return the name of a log without its compression suffix."""
    return path.name.removesuffix(COMPRESSED).removesuffix(_GZIP).removesuffix(_XZ)


def raw_checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in the folder of a run, its status.json left out."""
    return {
        path.name: checksum(path)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in UNCHECKED
    }


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def plain_checksum(path: Path) -> str:
    """Return the SHA-256 of what a log that was compressed with `compress` contains."""
    digest = sha256()
    with open_log(path) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def open_log(path: Path) -> Iterator[BinaryIO]:
    """Open a plain, gzip, xz or zstd log file for reading, decompressed."""
    try:
        source = _opened(path)
    except _unreadable_errors() as error:
        raise _unreadable(path, error) from error
    with closing(source), io.BufferedReader(_Guarded(path, source), _CHUNK_BYTES) as stream:
        yield stream


def _opened(path: Path) -> BinaryIO | pa.NativeFile:
    if path.name.endswith(COMPRESSED):
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and plain logs do not need it

        return pa.CompressedInputStream(str(path), "zstd")
    if path.name.endswith(_XZ):
        return lzma.open(path)
    return gzip.open(path) if path.name.endswith(_GZIP) else path.open("rb")


class _Guarded(io.RawIOBase):
    """Stream that raises ArchiveError if the underlying file is damaged."""

    def __init__(self, path: Path, source: BinaryIO | pa.NativeFile) -> None:
        self._path = path
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        """Read into a buffer."""
        view = memoryview(cast("bytearray", buffer))
        try:
            chunk = self._source.read(len(view))
        except _unreadable_errors() as error:
            raise _unreadable(self._path, error) from error
        view[: len(chunk)] = chunk
        return len(chunk)


def _unreadable(path: Path, error: BaseException) -> ArchiveError:
    return ArchiveError(
        f"{path} cannot be read: {error}",
        hint="restore it from a backup",
        path=str(path),
    )
