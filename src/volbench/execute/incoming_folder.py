"""Folder in transit from a host: verified by SHA-256, written atomically, resumed after a break.

The names are checked: a host cannot write outside the folder.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import secrets
import zlib
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Self

from volbench.errors import ArchiveError, TransferError, TransportError, unwritten
from volbench.execute.agent.files import FolderPart

_MAX_FILES = 100_000  # A run has dozens, a campaign thousands; a hostile host any number.
_MAX_DEPTH = 8  # A run has three levels. Noticed by: tests/execute/test_agent.py
_MAX_CHUNK_BYTES = 1024**2  # The agent sends 64 KiB; a small part must not unpack to gigabytes.


class IncomingFolder:
    """Files in transit, as a context manager that removes incomplete ones."""

    def __init__(self, host: str, path: str, into: Path) -> None:
        self.have: dict[str, int] = {}  # bytes that have arrived of each file
        self._host = host
        self._path = path
        self._into = into
        self._name = ""
        self._size = 0
        self._target = into
        self._temporary: Path | None = None
        self._file: IO[bytes] | None = None
        self._digest = hashlib.sha256()
        self._is_verified: set[str] = set()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove an incomplete file."""
        self._drop()

    def take(self, part: FolderPart) -> None:
        """Process a part of `agent.files.fetch_folder`."""
        try:
            match part.kind:
                case "file":
                    self._begin(part.text, part.size, part.offset)
                case "data":
                    self._write_part(_inflated(part.text))
                case "sha256":
                    self._keep(part.text)
                case _:
                    raise self._damaged("unexpected part")
        except (zlib.error, binascii.Error) as error:
            raise self._damaged(str(error)) from error
        except OSError as error:
            message, hint = unwritten(self._target, error, hint="check permissions")
            hint += ", then continue with: volbench resume DIR"
            raise ArchiveError(message, hint=hint, path=str(self._target)) from error

    def _begin(self, name: str, size: int, offset: int) -> None:
        """Begin a file, or go on with the one that was interrupted."""
        is_same = name == self._name and offset == self.have.get(name, 0)
        if offset and not is_same and name not in self._is_verified:
            raise self._damaged(f"unexpected offset of {name[:80]!r}")
        self._size = size
        if offset and is_same and self._file is not None:
            return
        self._drop()
        self._name = name
        self._target = self._local_path(name)
        if name in self._is_verified and offset == size:
            return
        self.have[name] = 0
        if len(self.have) > _MAX_FILES:
            raise self._damaged("too many files")
        self._target.parent.mkdir(parents=True, exist_ok=True)
        unique = f"{os.getpid()}.{secrets.token_hex(4)}"
        self._temporary = self._target.with_name(f".{self._target.name}.{unique}.tmp")
        self._file = self._temporary.open("xb")
        self._digest = hashlib.sha256()

    def _write_part(self, data: bytes) -> None:
        if self._file is None or self.have[self._name] + len(data) > self._size:
            raise self._damaged(f"{self._name[:80]!r} is longer than announced")
        self._file.write(data)
        self._digest.update(data)
        self.have[self._name] += len(data)

    def _keep(self, digest: str) -> None:
        """Verify the file and move it to its place."""
        if self._file is None and self._name in self._is_verified:
            return
        if self._file is None or self._temporary is None or digest != self._digest.hexdigest():
            self.have.pop(self._name, None)
            self._drop()
            raise self._damaged(f"checksum of {self._name[:80]!r}")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._temporary.replace(self._target)
        self._is_verified.add(self._name)
        self._drop()
        folder = os.open(self._target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _drop(self) -> None:
        """Close the file in transit; it is still there only if it is incomplete."""
        if self._file is not None:
            with suppress(OSError):  # close() retries a failed flush
                self._file.close()
            self._file = None
            if self._name not in self._is_verified:
                self.have.pop(self._name, None)
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
            self._temporary = None

    def _local_path(self, name: str) -> Path:
        """Return where a file goes."""
        parts = name.split("/")
        if {"", ".", ".."} & set(parts) or len(parts) > _MAX_DEPTH or "\0" in name:
            message = f"{self._host} lists a file outside {self._path}: {name[:200]!r}"
            raise TransportError(message, hint="do not trust this host")
        return self._into / PurePosixPath(*parts)

    def _damaged(self, reason: str) -> TransferError:
        return TransferError(
            f"{self._path} of {self._host} was damaged on the way: {reason}",
            hint="a file may have changed during the transfer: retry when nothing writes to it",
        )


def _inflated(data: str) -> bytes:
    inflate = zlib.decompressobj()
    plain = inflate.decompress(binascii.a2b_base64(data, strict_mode=True), _MAX_CHUNK_BYTES)
    if not inflate.eof:
        raise zlib.error("incomplete chunk")
    return plain
