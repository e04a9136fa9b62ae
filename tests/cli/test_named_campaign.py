"""Commands in hints name the campaign, so that they can be pasted."""

from pathlib import Path
from unittest import mock

from tests.command_line import call
from tests.finished_campaign import half_finished
from volbench.cli.verb_groups import with_paths
from volbench.errors import RefusedError


def test_a_hint_has_the_folder_of_its_campaign(tmp_path: Path) -> None:
    """What was refused deep below the verb is continued with a command that works."""
    layout = half_finished(tmp_path / "of today")
    refused = RefusedError("x", hint="mount it, then: volbench resume DIR --retry-failed")
    with mock.patch("volbench.store.journal.read_history", side_effect=refused):
        done = call("status", layout.root)
    assert done.returncode == 3
    assert f"then: volbench resume '{layout.root}' --retry-failed" in done.stderr


def test_placeholders_of_other_folders_stay() -> None:
    """Folders that are not there yet cannot be named, and neither can those of another verb."""
    text = "volbench export DIR... -o DIR, or volbench status DIR --clean"
    assert (
        with_paths(text, ["a b"])
        == "volbench export DIR... -o DIR, or volbench status 'a b' --clean"
    )
    assert with_paths(text, []) == text


def test_status_says_what_is_left_to_do(tmp_path: Path) -> None:
    """Runs of the plan that were never started are left to do; JSON keeps the state's name."""
    layout = half_finished(tmp_path / "c")
    done = call("status", layout.root)
    heading, _, row, *_ = done.stdout.splitlines()
    words = f"not running; to continue it: volbench resume {layout.root}"
    assert words in f"{done.stdout}{done.stderr}"
    assert heading.split("  ")[-1].strip() == "left to do"
    assert row.split()[-1] == "1"
    assert '"planned": 1' in call("status", layout.root, "--json").stdout
