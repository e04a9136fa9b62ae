"""Files are unpacked and decoded by their content, whatever their names."""

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable

import pyarrow as pa
import pytest

from volbench.errors import OutputError
from volbench.store import log_files
from volbench.store.log_files import decode, is_binary, unpack

TEXT = b'{"fio version": "fio-3.33"}\n' * 500
PACKED = {
    "gzip": gzip.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "zstd": pa.compress(TEXT, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("form", PACKED)
def test_compressed_bytes_are_restored_exactly(form: str) -> None:
    """Each form is known by its first bytes; what has none of them is plain."""
    assert unpack(PACKED[form]) == TEXT
    assert unpack(TEXT) == TEXT


@pytest.mark.parametrize("form", PACKED)
def test_damaged_files_are_reported(form: str) -> None:
    """A file that was cut off gives no half of its text."""
    with pytest.raises(OutputError, match="cannot be decompressed"):
        unpack(PACKED[form][: len(PACKED[form]) // 2])


def test_files_larger_than_memory_allows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that unpacks to more than a result can have is no result."""
    monkeypatch.setattr(log_files, "MAX_BYTES", 1000)
    with pytest.raises(OutputError, match="more than 1000,"):
        unpack(PACKED["gzip"])


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_a_decompression_bomb_is_refused_early(compress: Callable[[bytes], bytes]) -> None:
    """A file that expands a thousand times is refused after 64 MiB, not read to its end."""
    bomb = compress(bytes(100 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(OutputError, match=f"more than {64 << 20}, unlike"):
            unpack(bomb)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 150 << 20


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_in_any_unicode(encoding: str) -> None:
    """A mark at the beginning tells the encoding, and is no part of the text."""
    text = '{"jobname": "größe"}'
    assert decode(text.encode(encoding)) == text
    assert not is_binary(text.encode(encoding))


def test_images_are_not_text() -> None:
    """A zero byte stands in no text but UTF-16."""
    assert is_binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
