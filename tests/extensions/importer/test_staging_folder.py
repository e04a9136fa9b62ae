"""An import appears whole or not at all."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extensions.importer.sources import JSON, put, take
from volbench.api.many_campaigns import open_campaigns
from volbench.errors import ArchiveError, InputError, RefusedError
from volbench.store.archive import hold_campaign
from volbench.store.layout import Layout

KILLED = """
import os, signal, sys
from pathlib import Path
from volbench.api.one_campaign import CampaignData
from volbench.extensions.importer import import_campaign

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

where, source, into = sys.argv[1:]
if where == "copying":
    true, calls = import_campaign.fresh_run_folder, []
    def second(*given, **named):
        calls.append(given)
        return true(*given, **named) if len(calls) == 1 else killed()
    import_campaign.fresh_run_folder = second
elif where == "making tables":
    CampaignData.store_tables = killed
elif where == "renaming":
    Path.rename = killed
else:
    import_campaign.sync_folder = lambda path: killed() if path == Path(into).parent else None
import_campaign.import_results(source, output=into)
"""


@pytest.mark.slow
def test_a_killed_import_leaves_no_campaign(tmp_path: Path) -> None:
    """Whenever it is killed, nothing looks like a campaign, and the next import works."""
    for name, text in (("a.json", JSON), ("b.json", f"{JSON} ")):
        put(tmp_path / "in" / name, text)
    for where in ("copying", "making tables", "renaming"):
        into = tmp_path / where / "c"
        into.parent.mkdir()
        argv = [sys.executable, "-c", KILLED, where, str(tmp_path / "in"), str(into)]
        assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
        assert not into.exists()
        assert [path.name for path in into.parent.iterdir()] == [".c.importing"]
        with pytest.raises(InputError, match="no campaign"):
            open_campaigns(into.parent)
        _, opened = take(tmp_path / "in", into=into)
        assert len(opened.summary()["run"].unique()) == 2
        assert [path.name for path in into.parent.iterdir()] == ["c"]


def test_an_empty_folder_is_accepted_and_a_used_one_refused(tmp_path: Path) -> None:
    """What stands in a folder stays."""
    put(tmp_path / "in" / "a.json", JSON)
    (tmp_path / "empty").mkdir()
    take(tmp_path / "in", into=tmp_path / "empty")
    kept = put(tmp_path / "used" / "notes.txt", "mine")
    with pytest.raises(ArchiveError, match="not empty"):
        take(tmp_path / "in", into=tmp_path / "used")
    assert kept.read_text() == "mine"


@pytest.mark.root
@pytest.mark.parametrize("is_marked", [True, False])
def test_what_no_import_made_is_not_removed(tmp_path: Path, *, is_marked: bool) -> None:
    """A folder of a name that imports use, and what is mounted in one that was killed."""
    put(tmp_path / "in" / "a.json", JSON)
    data = put(tmp_path / "other" / "db", "mine")
    aside = tmp_path / ".c.importing"
    aside.mkdir()
    inner = aside / (f"whole-{aside.stat().st_ino}" if is_marked else "whole")
    inner.mkdir()
    subprocess.run(["mount", "--bind", data.parent, inner], check=True)
    try:
        with pytest.raises(RefusedError, match="of no import"):
            take(tmp_path / "in", into=tmp_path / "c")
    finally:
        subprocess.run(["umount", inner], check=True)
    assert data.read_text() == "mine"


def test_one_of_two_imports_into_one_folder_is_refused(tmp_path: Path) -> None:
    """The second one takes nothing from below the first."""
    put(tmp_path / "in" / "a.json", JSON)
    aside = tmp_path / ".c.importing"
    aside.mkdir()
    half = put(aside / f"whole-{aside.stat().st_ino}" / "campaign.json", "half")
    with hold_campaign(Layout(aside)), pytest.raises(ArchiveError, match="another"):
        take(tmp_path / "in", into=tmp_path / "c")
    assert half.exists()
