"""Logs at rest give back their bytes, and damage shows as an error."""

import gzip
from pathlib import Path

import pytest

from volbench.errors import ArchiveError
from volbench.store.log_files import compress, open_log, plain_name

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


def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    """A path without a file gives ArchiveError in each way of storing."""
    for ending in ("", ".gz", ".zst"):
        with (
            pytest.raises(ArchiveError, match="series"),
            open_log(tmp_path / f"series_bw.1.log{ending}"),
        ):
            pass


def test_errors_of_the_reader_are_not_those_of_the_file(tmp_path: Path) -> None:
    """What goes wrong while a log is open keeps its own type."""
    path = written(tmp_path, "plain")
    with pytest.raises(FileNotFoundError), open_log(path):
        (tmp_path / "other").read_bytes()
