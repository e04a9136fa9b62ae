"""Text of files that may be compressed, in any Unicode encoding."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import BinaryIO, cast

from volbench.errors import OutputError

MOST_BYTES = 1 << 30
"""Of one file, once it is unpacked; more is no result of fio."""
ENDINGS = (".gz", ".xz", ".zst", ".bz2")
"""Of names of compressed files."""

_Opener = Callable[[BinaryIO], object]


def _zstd(source: BinaryIO) -> object:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and zstd is rare

    try:
        with pa.CompressedInputStream(pa.BufferReader(source.read()), "zstd") as stream:
            return io.BytesIO(stream.read(MOST_BYTES + 1))
    except pa.ArrowException as error:
        raise OSError(str(error)) from error


_BY_MAGIC: tuple[tuple[bytes, _Opener], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"\xfd7zXZ\x00", lzma.open),
    (b"BZh", bz2.open),
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
        OutputError: they are damaged or cut off, or too many.
    """
    opener = next((opener for magic, opener in _BY_MAGIC if content.startswith(magic)), None)
    if opener is None:
        return content
    try:
        with cast("BinaryIO", opener(io.BytesIO(content))) as stream:
            plain = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise OutputError(f"it can't be unpacked: {error}", hint="restore a copy") from error
    if len(plain) > MOST_BYTES:
        raise OutputError(f"it unpacks to more than {MOST_BYTES} bytes")
    return plain


def is_packed(content: bytes) -> bool:
    """Return whether bytes begin like a compressed file."""
    return any(content.startswith(magic) for magic, _ in _BY_MAGIC)


def decode(content: bytes) -> str:
    """Return the text of a file: UTF-8, or UTF-16 with a mark as PowerShell writes it."""
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "utf-8")
    return content.decode(encoding, errors="replace")


def is_binary(content: bytes) -> bool:
    """Return whether bytes are no text, as those of an image."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in content[:65536]
