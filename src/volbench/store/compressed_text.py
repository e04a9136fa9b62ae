"""Decompression and decoding of text files: gzip, xz, bzip2, zstd; UTF-8, UTF-16."""

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

# Maximum size of a file, before and after decompression; fio's results are smaller
MAX_BYTES = 1 << 30
EXTENSIONS = (".gz", ".xz", ".zst", ".bz2")  # File name extensions of compressed files
_MAX_RATIO = 200  # Maximum compression ratio. fio's JSON typically reaches 10, rarely 50.
_FREE_BYTES = 64 << 20  # Decompressed size accepted at any ratio

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


def decode(content: bytes) -> str:
    """Decode text in UTF-8, or in UTF-16 with a byte order mark (PowerShell)."""
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "utf-8")
    return content.decode(encoding, errors="replace")


def is_binary(content: bytes) -> bool:
    """Return whether the content is binary, such as an image."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in content[:65536]
