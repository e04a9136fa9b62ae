"""A full disk is named as such, with the path that the user knows."""

import errno
import os
from pathlib import Path

import pytest

from volbench.engine.run.run_once import stopped_by
from volbench.errors import ArchiveError, TransportError, unwritten
from volbench.store.atomic_files import unwritable
from volbench.store.held_folder import hold_folder
from volbench.store.layout import Layout

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("error", [FULL, f"[errno 28] {os.strerror(errno.ENOSPC)}"])
def test_a_full_disk_is_no_question_of_permissions(error: OSError | str) -> None:
    """Whether the operating system, a library or another machine reports it."""
    message, hint = unwritten("/d/file", error, hint="check permissions")
    assert message.startswith("/d/file cannot be written: the disk is full (")
    assert hint.startswith("free some space")


def test_other_reasons_keep_their_hint(tmp_path: Path) -> None:
    """A folder that is missing or forbidden is not full."""
    error = unwritable(tmp_path, OSError(errno.EACCES, os.strerror(errno.EACCES)))
    assert error.message == f"{tmp_path} cannot be written: Permission denied"
    assert error.hint.startswith("check permissions")


def test_files_of_a_held_folder_have_their_own_paths_in_messages(tmp_path: Path) -> None:
    """The kernel is given paths below a descriptor, and so are programs that report errors."""
    root = tmp_path / "my campaign"
    root.mkdir(mode=0o700)
    with pytest.raises(ArchiveError) as caught:
        _fail_in(root)
    reason, hint = caught.value.message, caught.value.hint
    assert reason == f"{root}/journal.jsonl cannot be written: the disk is full"
    assert hint == f"look at {root}/journal.jsonl"


def _fail_in(root: Path) -> None:
    """Fail as a run does, with the reason of its outcome, and as a program that is run for it."""
    with hold_folder(root):
        inside = os.fspath(Layout(root).journal)
        assert inside.startswith("/proc/")
        outcome = stopped_by(TransportError(f"{inside} cannot be written: the disk is full"))
        assert str(root) in outcome.reason
        raise ArchiveError(
            f"{inside} cannot be written: the disk is full", hint=f"look at {inside}"
        )
