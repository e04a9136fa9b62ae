"""Files that no campaign of the plan can have written cost neither minutes nor gigabytes."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.command_line import call
from tests.golden import GOLDEN, copy_of
from volbench.api.one_campaign import campaign_data
from volbench.errors import ArchiveError, VolbenchError
from volbench.model.frames.columns import FRAMES
from volbench.store import log_files, parquet_tables
from volbench.store.archive import read_campaign
from volbench.store.atomic_files import content_of
from volbench.store.journal import read_history
from volbench.store.log_files import checksum, open_log
from volbench.store.parquet_tables import StoredTables, fingerprint_of, max_rows, schema_of

RUN = "runs/001-mix-r1"
ZEROS = 64 << 20
"""Zeros of a frame of zstd; 128 of them are 8 GB in 260 KB."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a recorded campaign that may be changed."""
    return copy_of(GOLDEN[-1], tmp_path / "c")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


BOMBS: dict[str, Callable[[Path], None]] = {
    "terabyte": _sparse,
    "pipe": os.mkfifo,
    "endless-device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize(
    "name",
    ["campaign.json", "journal.jsonl"]
    + [f"{RUN}/{name}" for name in ("fio.json", "status.json", "facts.json", "device.log")],
)
def test_a_file_that_never_ends_is_named_and_not_read(root: Path, name: str, kind: str) -> None:
    """It is damaged as any other: the campaign is refused, or its run has the reason."""
    (root / name).unlink(missing_ok=True)
    BOMBS[kind](root / name)
    try:
        said = " ".join(str(row["damage"]) for row in campaign_data(root).rows("summary"))
    except VolbenchError as error:
        said = error.message
    assert Path(name).name in said
    for verb in (["status", "--clean"], ["resume"]):
        ended = call(*verb, root)
        assert ended.returncode in {3, 7, 9}, ended.stderr
    verified = call("check", "--files", root)
    assert Path(name).name in verified.stdout + verified.stderr
    assert verified.returncode != 0


def test_a_log_is_read_as_far_as_its_run_can_have_written(root: Path) -> None:
    """8 GB of zeros, and a million lines of samples of a run of some seconds, name their file."""
    log = next((root / RUN).glob("series_iops.1.log*"))
    log.unlink()
    frame = pa.compress(b"\0" * ZEROS, codec="zstd", asbytes=True)
    log.with_name("series_iops.1.log.zst").write_bytes(frame * 128)
    (root / RUN / "device.log").write_bytes(b"sample 1\n" * (1 << 21))
    rows = campaign_data(root).rows("summary")
    (damage,) = {str(row["damage"]) for row in rows if row["run"] == "001-mix-r1"}
    assert "device.log is larger than" in damage
    assert "series_iops.1.log.zst" in damage
    assert all(row["bw_bytes_per_s"] for row in rows if row["direction"] in {"read", "write"})


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_log_has_a_limit_and_a_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Up to the limit all of it is read."""
    path = tmp_path / f"a.log{ending}"
    path.write_bytes(gzip.compress(b"1" * 5000) if ending else b"1" * 5000)
    with open_log(path, max_bytes=5000) as stream:
        assert len(stream.read()) == 5000
    with open_log(path, max_bytes=4999) as stream, pytest.raises(ArchiveError, match=r"a\.log"):
        stream.read()
    monkeypatch.setattr(log_files, "_FREE_LOG_BYTES", 10)
    monkeypatch.setattr(log_files, "_MAX_LOG_RATIO", 1 if ending else 1000)
    with open_log(path) as stream:
        if not ending:
            assert len(stream.read()) == 5000
        else:
            with pytest.raises(ArchiveError, match="larger than"):
                stream.read()


def test_files_beyond_every_campaign_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checksum of a file takes time with its size, and its content memory."""
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert content_of(path) == b"12345"
    monkeypatch.setattr("volbench.store.atomic_files.MAX_FILE_BYTES", 4)
    with pytest.raises(OSError, match="exceeds the maximum of 4 bytes"):
        content_of(path)
    monkeypatch.setattr(log_files, "MAX_RAW_BYTES", 4)
    with pytest.raises(ArchiveError, match="exceeds the maximum of 4 bytes"):
        checksum(path)


def _store(root: Path, table: pa.Table) -> StoredTables:
    layout, archive = read_campaign(root)
    mark = fingerprint_of(layout, archive.campaign, read_history(layout.journal))
    stored = StoredTables(layout, mark, archive.campaign)
    parts = {name: schema_of(FRAMES[name]).empty_table() for name in ("summary", "series")}
    assert stored.keep([{**parts, "series": table}])
    return stored


def test_a_table_of_20_million_rows_is_made_anew(root: Path) -> None:
    """Its checksum is right, and still no campaign of this plan has so many rows."""
    count = len(campaign_data(root).rows("series"))
    stored = _store(root, pa.table({"t_s": pa.nulls(20_000_000, pa.float64())}))
    assert stored.is_current("series")
    assert not stored.is_intact("series")
    assert len(campaign_data(root).rows("series")) == count
    shown = call("show", root)
    assert shown.returncode == 0


def test_rows_and_bytes_of_a_table_are_bounded_by_the_plan(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table that the campaign itself wrote is within the bounds, and below smaller ones."""
    opened = campaign_data(root)
    opened.store_tables()
    layout, archive = read_campaign(root)
    mark = fingerprint_of(layout, archive.campaign, read_history(layout.journal))
    stored = StoredTables(layout, mark, archive.campaign)
    for name in FRAMES:
        assert stored.is_intact(name), name
        assert max_rows(archive.campaign, name) > 2 * len(opened.rows(name))
    with monkeypatch.context() as patched:
        patched.setattr(parquet_tables, "max_rows", lambda *_: 0)
        for name in ("series", "findings"):  # more than expected, and still all of them
            assert campaign_data(root).rows(name) == opened.rows(name)
    monkeypatch.setattr(parquet_tables, "_FREE_BYTES", 0)
    monkeypatch.setattr(parquet_tables, "_MAX_ROW_BYTES", 1)
    assert not stored.is_intact("summary")
