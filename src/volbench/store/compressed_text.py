"""Text of files that may be compressed, in any Unicode encoding."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from types import ModuleType
from typing import BinaryIO

from volbench.errors import OutputError

MOST_BYTES = 1 << 30
"""Largest file that is read; results of fio are smaller."""
ENDINGS = (".gz", ".xz", ".zst", ".bz2")
"""Of names of compressed files."""
_MAX_RATIO = 200
"""Largest expansion: fio's JSON compresses to a tenth or less, seldom to a fiftieth."""
_FREE_BYTES = 64 << 20
"""Expansion that is accepted at any ratio."""

_CHUNK_BYTES = 1 << 20

_Opener = Callable[[BinaryIO, int], bytes]


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
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def unpack(content: bytes) -> bytes:
    """Return the bytes of a file, decompressed if they are gzip, xz, bzip2 or zstd.

    Raises:
        OutputError: they are damaged, truncated, or expand to more than a result of fio can.
    """
    opener = next((opener for magic, opener in _BY_MAGIC if content.startswith(magic)), None)
    if opener is None:
        return content
    limit_bytes = min(MOST_BYTES, max(_FREE_BYTES, _MAX_RATIO * len(content)))
    try:
        plain = opener(io.BytesIO(content), limit_bytes + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise OutputError(f"it cannot be decompressed: {error}", hint="restore a copy") from error
    if len(plain) > limit_bytes:
        raise OutputError(
            f"{len(content)} bytes decompress to more than {limit_bytes}, unlike a result of fio",
            hint="if it is one, decompress it first",
        )
    return plain


def is_packed(content: bytes) -> bool:
    """Return whether bytes begin like a compressed file."""
    return any(content.startswith(magic) for magic, _ in _BY_MAGIC)


def decode(content: bytes) -> str:
    """Return the text of a file: UTF-8, or UTF-16 with a byte order mark (PowerShell)."""
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "utf-8")
    return content.decode(encoding, errors="replace")


def is_binary(content: bytes) -> bool:
    """Return whether bytes are binary, such as those of an image."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in content[:65536]
