"""Folder transfer from a remote host: all its files in one stream, each verified by SHA-256.

The stream starts with its encoding. Each file has a header line (name in base64, size, SHA-256) and
its content; the last line is `end`. Names are checked: a host cannot write outside the folder.
"""

from __future__ import annotations

import binascii
import os
import re
import zlib
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Self

from volbench.errors import ArchiveError, TransferError
from volbench.execute.shell.incoming_file import GZIP_WINDOW, Incoming

_HEADER = re.compile(rb"([A-Za-z0-9+/]+={0,2}) (\d{1,16}) ([0-9a-f]{64})")
_MAX_LINE_BYTES = 8192
_MAX_FILES = 10_000
_MAX_DEPTH = 8


class IncomingFolder:
    """Files in transit, as a context manager.

    Attributes:
        is_whole: whether the stream has come to its end.
    """

    def __init__(self, host: str, path: str, into: Path) -> None:
        self._host = host
        self._path = path
        self._into = into
        self._open = ExitStack()
        self._start()

    def _start(self) -> None:
        self._open.close()
        self._open = ExitStack()
        self._inflate: zlib._Decompress | None = None
        self._has_encoding = False
        self._line = b""
        self._file: Incoming | None = None
        self._left_bytes = 0
        self._count = 0
        self.is_whole = False

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove an incomplete file."""
        self._open.close()

    def restart(self) -> IncomingFolder:
        """Expect the stream from the start; files that arrived whole are received again."""
        self._start()
        return self

    def __call__(self, part: bytes) -> None:
        """Process a chunk of the stream."""
        if not self._has_encoding:
            line, found, part = (self._line + part).partition(b"\n")
            self._line = line
            if not found:
                self._check_line()
                return
            self._read_encoding(line)
        try:
            plain = part if self._inflate is None else self._inflate.decompress(part)
        except zlib.error as error:
            raise self._damaged(str(error)) from error
        self._take(plain)

    def check_whole(self) -> None:
        """Check that the stream has come to its end."""
        if not self.is_whole:
            raise self._damaged("its end is missing")

    def _read_encoding(self, line: bytes) -> None:
        if line not in {b"gzip", b"plain"}:
            raise self._damaged(f"unknown encoding {line[:80]!r}")
        self._has_encoding, self._line = True, b""
        self._inflate = zlib.decompressobj(GZIP_WINDOW) if line == b"gzip" else None

    def _take(self, plain: bytes) -> None:
        """Process decompressed data: headers and contents in turn."""
        while plain and not self.is_whole:
            if self._file is not None:
                body, plain = plain[: self._left_bytes], plain[self._left_bytes :]
                self._left_bytes -= len(body)
                self._file(body)
                self._keep_complete()
                continue
            line, found, plain = (self._line + plain).partition(b"\n")
            self._line = line
            self._check_line()
            if found:
                self._line = b""
                self._read_header(line)

    def _read_header(self, line: bytes) -> None:
        if line == b"end":
            self.is_whole = True
            return
        header = _HEADER.fullmatch(line)
        self._count += 1
        if header is None or self._count > _MAX_FILES:
            raise self._damaged(f"unexpected header {line[:80]!r}")
        try:
            name = os.fsdecode(binascii.a2b_base64(header[1], strict_mode=True))
        except binascii.Error as error:
            raise self._damaged(f"unexpected header {line[:80]!r}") from error
        into = self._local_path(name)
        _make_folder(into.parent)
        self._file = self._open.enter_context(Incoming(f"{name} of {self._host}", into))
        self._left_bytes = int(header[2])
        self._file(b"plain " + header[3] + b"\n")
        self._keep_complete()

    def _keep_complete(self) -> None:
        if self._file is not None and self._left_bytes == 0:
            self._file.keep()
            self._file = None
            self._open.close()

    def _local_path(self, name: str) -> Path:
        """Return where a file goes."""
        words = name.split("/")
        is_below = words[0] == "." and not {"", ".", ".."} & set(words[1:])
        if not is_below or not 1 < len(words) <= _MAX_DEPTH + 1 or "\0" in name:
            raise TransferError(
                f"{self._host} lists a file outside {self._path}: {name!r}",
                hint="do not trust this host",
            )
        return self._into / PurePosixPath(*words[1:])

    def _check_line(self) -> None:
        if len(self._line) > _MAX_LINE_BYTES:
            raise self._damaged("a header is too long")

    def _damaged(self, reason: str) -> TransferError:
        return TransferError(
            f"{self._path} of {self._host} was damaged on the way: {reason}",
            hint="the host needs base64 and sha256sum, of coreutils or busybox; try again",
        )


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArchiveError(
            f"{path} cannot be created: {error.strerror}",
            hint="check permissions and free space, then continue with: volbench resume DIR",
            path=str(path),
        ) from error
