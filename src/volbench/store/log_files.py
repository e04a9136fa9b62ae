"""Decompression of results and logs: gzip, xz, bzip2, zstd; and their checksums."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import file_digest
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, cast

from volbench.errors import ArchiveError, OutputError
from volbench.store.atomic_files import MAX_FILE_BYTES, open_regular, replaced_file, unwritable
from volbench.store.layout import COMPRESSED, UNCHECKED
from volbench.units import format_capacity

if TYPE_CHECKING:
    import pyarrow as pa

    from volbench.store.journal import Journal
    from volbench.store.layout import Layout

MAX_BYTES = MAX_FILE_BYTES  # Maximum size of a result, before and after decompression
EXTENSIONS = (".gz", ".xz", ".zst", ".bz2")  # File name extensions of compressed files
# Maximum compression ratio: fio's JSON typically reaches 10, rarely 50.
# Noticed by: test_log_files.py
_MAX_RATIO = 200
# Decompressed size accepted at any ratio. Noticed by: test_log_files.py
_FREE_BYTES = 64 << 20

# The same of a log: histograms, which are mostly zeros, reach 300.
# Noticed by: tests/store/test_oversized_files.py
_MAX_LOG_RATIO, _FREE_LOG_BYTES = 1000, 256 << 20
# Maximum size of a file of a run, as stored. Noticed by: tests/store/test_oversized_files.py
MAX_RAW_BYTES = 16 << 30

_CHUNK_BYTES = 1 << 20

_Opener = Callable[[BinaryIO, int], bytes]

_GZIP = ".gz"
_XZ = ".xz"


def _reader(module: ModuleType) -> _Opener:
    def read(source: BinaryIO, limit_bytes: int) -> bytes:
        plain = bytearray()
        with module.open(source) as stream:
            while len(plain) < limit_bytes and (chunk := stream.read(_CHUNK_BYTES)):
                plain += chunk
        return bytes(plain)

    return read


def _zstd(source: BinaryIO, limit_bytes: int) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and zstd is rare

    try:
        with pa.CompressedInputStream(pa.BufferReader(source.read()), "zstd") as stream:
            return bytes(stream.read(limit_bytes))
    except pa.ArrowException as error:
        raise OSError(str(error)) from error


_BY_MAGIC: tuple[tuple[bytes, _Opener], ...] = (
    (b"\x1f\x8b", _reader(gzip)),
    (b"\xfd7zXZ\x00", _reader(lzma)),
    (b"BZh", _reader(bz2)),
    (b"\x28\xb5\x2f\xfd", _zstd),
)


def unpack(content: bytes) -> bytes:
    """Decompress the content of a file; return other content unchanged."""
    opener = next((opener for magic, opener in _BY_MAGIC if content.startswith(magic)), None)
    if opener is None:
        return content
    limit_bytes = min(MAX_BYTES, max(_FREE_BYTES, _MAX_RATIO * len(content)))
    try:
        plain = opener(io.BytesIO(content), limit_bytes + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise OutputError(
            f"it cannot be decompressed: {error}", hint="restore it from a backup"
        ) from error
    if len(plain) > limit_bytes:
        raise OutputError(
            f"{len(content)} bytes decompress to more than {limit_bytes}, unlike a result of fio",
            hint="if it is a result of fio, decompress it first",
        )
    return plain


def is_packed(content: bytes) -> bool:
    """Return whether the content starts with the magic number of a compressed format."""
    return any(content.startswith(magic) for magic, _ in _BY_MAGIC)


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
        raise unwritable(target, error) from error
    return target


def compress_logs(folder: Path, *, min_bytes: int = 0) -> None:
    """Compress the logs of a run folder that have at least a given size."""
    for path in sorted(folder.glob("*.log")):
        if path.stat().st_size >= min_bytes:
            compress(path)


def plain_name(path: Path) -> str:
    """Return the name of a log without its compression suffix."""
    return path.name.removesuffix(COMPRESSED).removesuffix(_GZIP).removesuffix(_XZ)


def log_path(plain: Path) -> Path | None:
    """Return the path of a log: plain where compression did not come to an end; None if missing."""
    packed = plain.with_name(plain.name + COMPRESSED)
    return next((path for path in (plain, packed) if path.exists()), None)


def raw_checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in the folder of a run, its status.json left out."""
    return {
        path.name: checksum(path)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in UNCHECKED
    }


def record_files(journal: Journal, layout: Layout, paths: Iterable[Path]) -> None:
    """Record the checksums of files outside the folders of runs, for `volbench check --files`."""
    digests = {str(path.relative_to(layout.root)): checksum(path) for path in paths}
    if digests:
        journal.write("files", files=digests)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        with open_regular(path, max_bytes=MAX_RAW_BYTES) as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable_log(path, error) from error


def plain_checksum(path: Path) -> str:
    """Return the SHA-256 of the decompressed content of a log."""
    with open_log(path) as stream:
        return file_digest(stream, "sha256").hexdigest()


@contextmanager
def open_log(path: Path, *, max_bytes: int = MAX_RAW_BYTES) -> Iterator[io.BufferedReader[_Guard]]:
    """Open a plain, gzip, xz or zstd log file for reading, decompressed.

    Args:
        max_bytes: that it can have, decompressed; more are an error when they are read.
    """
    try:
        file = open_regular(path, max_bytes=MAX_RAW_BYTES)
        size = os.fstat(file.fileno()).st_size
        source = _unpacking(file, path.name)
    except _unreadable_errors() as error:
        raise _unreadable_log(path, error) from error
    limit = min(max_bytes, max(_FREE_LOG_BYTES, _MAX_LOG_RATIO * size))
    guarded = _Guard(path, source, limit)
    with file, closing(source), io.BufferedReader(guarded, _CHUNK_BYTES) as stream:
        yield stream


def _unpacking(file: BinaryIO, name: str) -> BinaryIO | pa.NativeFile:
    """Return a stream of the decompressed content of a file, which is closed on its own."""
    if name.endswith(COMPRESSED):
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and plain logs do not need it

        return pa.CompressedInputStream(file, "zstd")
    if name.endswith(_XZ):
        return lzma.open(file)
    return gzip.open(file) if name.endswith(_GZIP) else file


class _Guard(io.RawIOBase):
    """Stream that raises ArchiveError if the underlying file is damaged or too large."""

    def __init__(self, path: Path, source: BinaryIO | pa.NativeFile, max_bytes: int) -> None:
        self._path = path
        self._source = source
        self._max_bytes = max_bytes
        self._left = max_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        """Read into a buffer."""
        view = memoryview(cast("bytearray", buffer))
        try:
            chunk = self._source.read(len(view))
        except _unreadable_errors() as error:
            raise _unreadable_log(self._path, error) from error
        self._left -= len(chunk)
        if self._left < 0:
            raise ArchiveError(
                f"{self._path} is larger than the {format_capacity(self._max_bytes)} that its run"
                " can have written",
                hint="the folder is damaged, or another program wrote the file: remove it",
                path=str(self._path),
            )
        view[: len(chunk)] = chunk
        return len(chunk)


def _unreadable_log(path: Path, error: BaseException) -> ArchiveError:
    message = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    return ArchiveError(message, hint="restore it from a backup", path=str(path))
