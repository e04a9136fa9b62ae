"""File transfer from a remote host: verified by SHA-256 and written atomically.

The stream starts with a header that holds its encoding and the SHA-256 of the file.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import zlib
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from volbench.errors import ArchiveError, TransferError

_HEADER_LIMIT_BYTES = 200
# Window bits with 16 added, so that zlib expects a gzip header (zlib manual, inflateInit2)
GZIP_WINDOW = 16 + zlib.MAX_WBITS


class Incoming:
    """A file in transit, as a context manager; removed on exit unless kept."""

    def __init__(self, name: str, into: Path) -> None:
        self._name = name
        self._into = into
        self._temporary = into.with_name(f".{into.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        self._start()

    def _start(self) -> None:
        self._header = b""
        self._expected = ""
        self._inflate: zlib._Decompress | None = None
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        """Open a temporary file beside the target."""
        try:
            self._file = self._temporary.open("wb")
        except OSError as error:
            raise self._unwritable(error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the temporary file, if it is still there."""
        # close() retries a failed flush.
        with suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    def restart(self) -> Incoming:
        """Discard received data and expect the stream from the start."""
        self._start()
        try:
            self._file.seek(0)
            self._file.truncate()
        except OSError as error:
            raise self._unwritable(error) from error
        return self

    def __call__(self, part: bytes) -> None:
        """Process a chunk of the stream."""
        if not self._expected:
            self._header += part
            head, end, part = self._header.partition(b"\n")
            if not end:
                self._check_header_length()
                return
            self._read_header(head.decode("ascii", "replace"))
        self._write(self._plain(part))

    def keep(self) -> None:
        """Verify the file and move it to its target path."""
        if self._inflate is not None:
            self._write(self._inflate.flush())
        whole = self._inflate is None or self._inflate.eof
        if not self._expected or not whole or self._digest.hexdigest() != self._expected:
            raise TransferError(
                f"{self._name} was damaged on the way",
                hint="it may have changed during the transfer: retry when nothing writes to it",
            )
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._temporary.replace(self._into)
            _sync_folder(self._into.parent)
        except OSError as error:
            raise self._unwritable(error) from error

    def _read_header(self, head: str) -> None:
        encoding, _, self._expected = head.partition(" ")
        if encoding not in {"gzip", "plain"} or len(self._expected) != 64:
            raise TransferError(
                f"{self._name} arrives in an unknown encoding: {head[:80]!r}",
                hint="the host needs sha256sum, of coreutils or busybox",
            )
        self._inflate = zlib.decompressobj(GZIP_WINDOW) if encoding == "gzip" else None

    def _check_header_length(self) -> None:
        if len(self._header) > _HEADER_LIMIT_BYTES:
            self._read_header(self._header.decode("ascii", "replace"))

    def _plain(self, part: bytes) -> bytes:
        if self._inflate is None:
            return part
        try:
            return self._inflate.decompress(part)
        except zlib.error as error:
            raise TransferError(
                f"{self._name} was damaged on the way: {error}",
                hint="retry",
            ) from error

    def _write(self, part: bytes) -> None:
        self._digest.update(part)
        try:
            self._file.write(part)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ArchiveError:
        return ArchiveError(
            f"{self._into} cannot be written: {error.strerror}",
            hint="check permissions and free space, then continue with: volbench resume DIR",
            path=str(self._into),
        )


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
