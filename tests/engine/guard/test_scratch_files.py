"""Scratch files: what volbench made is removed, and nothing else ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from volbench.engine.guard.scratch_files import Scratch
from volbench.execute.local import LocalExecutor
from volbench.store.journal import Journal, read_history


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Return an open journal."""
    with Journal(tmp_path / "journal.jsonl") as opened:
        yield opened


def test_what_a_run_made_is_removed(tmp_path: Path, journal: Journal) -> None:
    """A file that was not there before its run is volbench's, and goes at the end."""
    path = tmp_path / "made"
    scratch = Scratch(LocalExecutor(), journal, {})
    scratch.expect([str(path)])
    path.write_text("data")
    scratch.settle([str(path)])
    assert scratch.owns(str(path))
    assert scratch.remove() == ()
    assert not path.exists()


def test_what_was_there_before_stays(tmp_path: Path, journal: Journal) -> None:
    """A file that stood there before is not volbench's, even if a run names it."""
    path = tmp_path / "precious"
    path.write_text("data")
    scratch = Scratch(LocalExecutor(), journal, {})
    scratch.expect([str(path)])
    scratch.settle([str(path)])
    assert not scratch.owns(str(path))
    scratch.remove()
    assert path.read_text() == "data"


def test_what_replaced_a_scratch_file_stays(tmp_path: Path, journal: Journal) -> None:
    """If somebody puts another file in its place, that one is left alone and named."""
    path, other = tmp_path / "made", tmp_path / "other"
    scratch = Scratch(LocalExecutor(), journal, {})
    scratch.expect([str(path)])
    path.write_text("data")
    scratch.settle([str(path)])
    other.write_text("somebody's")
    other.replace(path)
    assert scratch.remove() == (str(path),)
    assert path.read_text() == "somebody's"


def test_ownership_survives_a_crash(tmp_path: Path, journal: Journal) -> None:
    """A later controller knows from the journal what an earlier one made."""
    path = tmp_path / "made"
    first = Scratch(LocalExecutor(), journal, {})
    first.expect([str(path)])
    path.write_text("data")
    first.settle([str(path)])
    known = read_history(tmp_path / "journal.jsonl").scratch_of("local")
    later = Scratch(LocalExecutor(), journal, known)
    assert later.owns(str(path))
    later.remove()
    assert not path.exists()
    assert read_history(tmp_path / "journal.jsonl").scratch == {}
