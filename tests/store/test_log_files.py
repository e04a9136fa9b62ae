"""Files at rest give back their bytes, and damage shows as an error."""

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from volbench.errors import ArchiveError, OutputError
from volbench.fio.results.decode_text import decode, is_binary
from volbench.store.log_files import compress, open_log, plain_name, unpack

LINES = b"".join(b"%d, %d, 0, 4096, 0\n" % (number, number * 7) for number in range(300_000))


def written(folder: Path, kind: str) -> Path:
    """Return a log in a folder, stored in one of three ways."""
    path = folder / "series_lat.1.log"
    if kind == "gzip":
        path = path.with_name(path.name + ".gz")
        path.write_bytes(gzip.compress(LINES, 1))
        return path
    path.write_bytes(LINES)
    return path if kind == "plain" else compress(path)


@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd"])
def test_every_way_of_storing_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    """Read in parts of any size, a log is what it was, under the same name."""
    path = written(tmp_path, kind)
    assert plain_name(path) == "series_lat.1.log"
    for size in (1000, 4 << 20, -1):
        with open_log(path) as stream:
            parts = list(iter(lambda size=size: stream.read(size), b""))  # type: ignore[misc]  # mypy can't infer a lambda with a default
        assert b"".join(parts) == LINES
    with open_log(path) as stream:
        assert stream.read(5) == LINES[:5]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign"])
def test_damage_is_noticed_while_reading(tmp_path: Path, kind: str, damage: str) -> None:
    """A truncated or altered file is an error that names it, never a shorter log."""
    path = written(tmp_path, kind)
    raw = path.read_bytes()
    middle = len(raw) // 2
    path.write_bytes(
        {
            "cut": raw[:middle],
            "flipped": raw[:middle] + bytes(255 - entry for entry in raw[middle : middle + 64]),
            "foreign": b"no archive",
        }[damage]
    )
    with pytest.raises(ArchiveError, match=path.name) as caught, open_log(path) as stream:
        stream.read()
    assert "backup" in caught.value.hint


TEXT = b'{"fio version": "fio-3.33"}\n' * 500
PACKED = {
    "gzip": gzip.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "zstd": pa.compress(TEXT, codec="zstd", asbytes=True),
}


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
