"""The journal must survive a crash at any byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from volbench.errors import ArchiveError
from volbench.model.campaign.planned_run import RunState
from volbench.store.journal import Journal, read_history


def write_three(path: Path) -> None:
    """Write a run that started and finished, and one that is running."""
    with Journal(path) as journal:
        journal.write("run", run="001-a", state=RunState.RUNNING, process={"pid": 7})
        journal.write("run", run="001-a", state=RunState.FINISHED, reason="")
        journal.write("run", run="002-b", state=RunState.RUNNING, process={"pid": 8})


def test_last_state_of_each_run_counts(tmp_path: Path) -> None:
    """A Run's state is what the journal said last."""
    path = tmp_path / "journal.jsonl"
    write_three(path)
    history = read_history(path)
    assert history.states == {"001-a": RunState.FINISHED, "002-b": RunState.RUNNING}
    assert history.processes["002-b"] == {"pid": 8}


def test_missing_journal_is_an_empty_history(tmp_path: Path) -> None:
    """A campaign that was planned and never started has no journal."""
    assert read_history(tmp_path / "journal.jsonl").states == {}


def test_every_truncation_reads_and_goes_on(tmp_path: Path) -> None:
    """Cut anywhere, a journal reads without error, and what is appended afterwards is kept."""
    whole = tmp_path / "whole.jsonl"
    write_three(whole)
    content = whole.read_bytes()
    ends = [index + 1 for index, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content) + 1):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(content[:cut])
        complete = sum(end <= cut or end - 1 == cut for end in ends)
        states = read_history(path).states
        assert len(states) == {0: 0, 1: 1, 2: 1, 3: 2}[complete]
        with Journal(path) as journal:
            journal.write("run", run="009-z", state=RunState.FAILED, reason="late")
        again = read_history(path)
        assert again.states == states | {"009-z": RunState.FAILED}
        path.unlink()


def test_garbage_in_the_middle_is_refused_with_its_line(tmp_path: Path) -> None:
    """A damaged entry that no crash explains is an error, never passed over."""
    path = tmp_path / "journal.jsonl"
    write_three(path)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], b"rubbish}", *lines[1:]]))
    with pytest.raises(ArchiveError, match=r"journal\.jsonl:2"):
        read_history(path)


def test_scratch_files_are_remembered_until_removed(tmp_path: Path) -> None:
    """Files on volumes are known again after a crash, and forgotten once removed."""
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.write("scratch", path="/d/a", identity=[])
        journal.write("scratch", path="/d/a", identity=[8, 1, 12])
        journal.write("scratch", path="/d/b", identity=[])
        journal.write("scratch-removed", path="/d/b")
    assert read_history(path).scratch_of("local") == {"/d/a": [8, 1, 12]}


def test_several_runs_enter_a_state_in_one_entry(tmp_path: Path) -> None:
    """All of them or none: a crash can't leave half of a decision."""
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.write("run", run="1", state=RunState.FINISHED)
        journal.write("runs", runs=["2", "3"], state=RunState.NOT_NEEDED, reason="steady")
    history = read_history(path)
    assert history.states == {
        "1": RunState.FINISHED,
        "2": RunState.NOT_NEEDED,
        "3": RunState.NOT_NEEDED,
    }
    assert history.reasons["3"] == "steady"
