"""The journal must survive a crash at any byte."""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from volbench.errors import ArchiveError
from volbench.model.campaign.planned_run import RunState
from volbench.store.consent import Seal
from volbench.store.journal import RESERVE_BYTES, Journal, read_history

SEAL = Seal(b"key", "plan")


def write_three(path: Path, *, seal: Seal | None = None) -> None:
    """Write a run that started and finished, and one that is running."""
    with Journal(path, seal) as journal:
        journal.write("run", run="001-a", state=RunState.RUNNING, process={"pid": 7})
        journal.write("run", run="001-a", state=RunState.FINISHED, reason="")
        journal.write("run", run="002-b", state=RunState.RUNNING, process={"pid": 8})


def test_a_journal_truncated_anywhere_is_read_and_continued(tmp_path: Path) -> None:
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


def test_a_signed_journal_is_continued(tmp_path: Path) -> None:
    """Also after a crash has cut off its last line."""
    path = tmp_path / "journal.jsonl"
    write_three(path, seal=SEAL)
    with path.open("a") as file:
        file.write('{"kind": "run", "ru')
    write_three(path, seal=SEAL)
    with Journal(path, SEAL):
        assert len(path.read_text().splitlines()) == 6


@pytest.mark.parametrize("change", ["edit", "insert", "remove", "swap", "other key", "other plan"])
def test_a_changed_journal_is_refused(tmp_path: Path, change: str) -> None:
    """Each line is signed together with all lines before it, and with the plan."""
    path = tmp_path / "journal.jsonl"
    write_three(path, seal=SEAL)
    first, second, third = path.read_text().splitlines()
    lines = {
        "edit": [first, second.replace("2", "3", 1), third],
        "insert": [first, second, '{"kind": "scratch"}', third],
        "remove": [first, third],
        "swap": [second, first, third],
    }.get(change, [first, second, third])
    path.write_text("\n".join(lines) + "\n")
    seal = {"other key": Seal(b"other", "plan"), "other plan": Seal(b"key", "other")}
    with pytest.raises(ArchiveError, match="not signed with your key"):
        Journal(path, seal.get(change, SEAL))


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


@pytest.mark.root
def test_a_full_disk_tears_no_line(tmp_path: Path) -> None:
    """Entries go on in the space reserved for them; one that does not fit leaves nothing behind."""
    image, point = tmp_path / "disk.img", tmp_path / "small"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    point.mkdir()
    for command in (f"mkfs.ext4 -q {image}", f"mount -o loop {image} {point}"):
        subprocess.run(command.split(), check=True, timeout=300)
    path, count = point / "journal.jsonl", 0
    try:
        with Journal(path, SEAL) as journal:
            with suppress(OSError), (point / "filler").open("wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(1 << 16))
            with suppress(ArchiveError):
                while True:
                    journal.write("run", run=f"{count}", state=RunState.FINISHED, reason="x" * 999)
                    count += 1
            assert count * 1000 > RESERVE_BYTES // 2
            (point / "filler").unlink()
            journal.write("run", run="later", state=RunState.FAILED)
        history = read_history(path)
        assert len(history.states) == count + 1
        Journal(path, SEAL).close()
        assert path.stat().st_blocks * 512 < path.stat().st_size + 8192
    finally:
        subprocess.run(["umount", point], check=True, timeout=300)
