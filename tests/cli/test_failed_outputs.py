"""Files of verbs that fail half-way: what was there before stays, and nothing empty is left."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.golden import GOLDEN, copy_of

VERBS = [
    ("export", "out.csv"),
    ("export --format xlsx", "out.xlsx"),
    ("export --format openmetrics", "out.txt"),
    ("plot iops", "out.svg"),
    ("plot iops", "out.html"),
    ("show --format json", "out.json"),
]


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """Return a recorded campaign with its tables."""
    return copy_of(GOLDEN[-1], tmp_path / "c")


@pytest.mark.parametrize(("verb", "name"), VERBS)
def test_a_full_disk_leaves_the_old_file(
    golden: Path,
    tmp_path: Path,
    volbench: Volbench,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    name: str,
) -> None:
    """The disk is full at the last instant: exit code 2, one sentence."""
    target = tmp_path / "place" / name
    target.parent.mkdir()
    target.write_text("old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("volbench.store.atomic_files.os.fsync", fail)
    done = volbench(*_words(verb), golden, "-o", target)
    assert done.returncode == 2, done.stderr
    assert "No space left" in done.stderr
    assert [path.read_text() for path in target.parent.iterdir()] == ["old"]


@pytest.mark.parametrize("verb", ["report", "plot iops", "plot all"])
def test_a_report_folder_that_is_a_file_is_refused(
    golden: Path, volbench: Volbench, verb: str
) -> None:
    """A folder that cannot be written to: no traceback, and where else to write."""
    (golden / "report").write_text("a file")
    done = volbench(*_words(verb), golden)
    assert done.returncode == 2
    assert "--output" in done.stderr


def _words(verb: str) -> Sequence[str]:
    return verb.split()
