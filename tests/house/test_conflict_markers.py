"""No file of the project holds what an unfinished merge leaves behind."""

from pathlib import Path

import pytest

from tests.house.project import run

MARKERS = ("<" * 7 + " ", ">" * 7 + " ")


def marked_lines(root: Path) -> str:
    """Return the lines of tracked text files that begin with a conflict marker."""
    patterns = [part for marker in MARKERS for part in ("-e", f"^{marker}")]
    done = run("git", "grep", "-nI", *patterns, cwd=root)
    assert done.returncode in {0, 1}, done.stderr  # 1: no line was found
    return done.stdout


def test_no_file_holds_a_conflict_marker(root: Path) -> None:
    """A merge is finished before it is committed."""
    assert marked_lines(root) == ""


@pytest.mark.parametrize("marker", MARKERS)
def test_a_conflict_marker_is_found(tmp_path: Path, marker: str) -> None:
    """Both ends of a conflict are found at the beginning of a line, and nowhere else."""
    (tmp_path / "page.md").write_text(f"a\n{marker}main\nsee {marker}b\n", encoding="utf-8")
    for command in (["init", "-q"], ["add", "page.md"]):
        run("git", *command, cwd=tmp_path, check=True)
    assert marked_lines(tmp_path) == f"page.md:2:{marker}main\n"
