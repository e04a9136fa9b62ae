"""Every other verb, called as a user calls it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from tests.command_line import COMMAND, Volbench, call
from tests.finished_campaign import half_finished
from volbench.errors import RefusedError
from volbench.model.campaign.planned_run import RunState
from volbench.store.journal import Journal


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small finished campaign."""
    root = tmp_path_factory.mktemp("small")
    (root / "data").mkdir()
    (root / "p.yaml").write_text(
        "name: small\nsample: 0\njobs:\n  a: {rw: write, size: 1m, ioengine: psync}\n"
    )
    done = call("run", root / "p.yaml", "--on", root / "data", "--output", root / "out")
    assert done.returncode == 0, done.stderr
    return root / "out"


def with_path(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call volbench in a process that finds programs in other folders."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_profile_is_found_without_fio(tmp_path: Path, scratch: Path) -> None:
    """Without fio the shipped table checks a profile, and a run says how to get fio."""
    nothing = str(tmp_path / "nothing")
    checked = with_path(nothing, "profile", "check", "quick")
    assert checked.returncode == 0, checked.stderr
    ran = with_path(nothing, "run", "quick", "--on", str(scratch), "--output", str(tmp_path / "o"))
    assert ran.returncode == 5
    assert "apt-get install fio" in ran.stderr


@pytest.mark.parametrize("arguments", ["show nowhere", "profile list", "help findings"])
def test_a_closed_pipe_ends_a_command_as_sigpipe_does(arguments: str) -> None:
    """`volbench ... 2>&1 | head` has the exit status of other tools, whatever is printed."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, *arguments.split()], stdout=write, stderr=write, check=False)
    os.close(write)
    assert done.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("words", ["show --help", "help errors", "profile list --json"])
def test_a_full_standard_output_is_said(words: str) -> None:
    """In a sentence, whatever is printed; so is one that is closed."""
    command = f"{sys.executable} -m volbench {words}"
    for place, text in ((">/dev/full", "cannot be written: No space left"), (">&-", "is closed")):
        done = subprocess.run(["sh", "-c", command + place], check=False, capture_output=True)
        assert (text in str(done.stderr), b"Traceback" in done.stderr) == (True, False)


def test_hosts_shows_what_a_file_holds(tmp_path: Path, volbench: Volbench) -> None:
    """`hosts --cold` says in a line that a sparse file was never written, and in JSON how much."""
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(8 << 20)
    reported = volbench("hosts", "--cold", "--on", sparse)
    assert reported.returncode == 0, reported.stderr
    (line,) = reported.stdout.splitlines()
    assert line.startswith(f"{sparse}: ")
    assert "sampled blocks hold only zeros: never written" in line
    done = volbench("hosts", "--cold", "--json", "--on", sparse, "--on", tmp_path)
    records = json.loads(done.stdout)
    assert records["host"]["kernel"] == os.uname().release
    first, second = records["volumes"]
    assert first["cold"]["zero_share"] == 1
    assert first["cold"]["cold"] is False
    assert second["cold"] is None
    assert "directory" in second["cold_reason"]


def test_a_hint_has_the_folder_of_its_campaign(tmp_path: Path) -> None:
    """What was refused deep below the verb is continued with a command that works."""
    layout = half_finished(tmp_path / "of today")
    refused = RefusedError("x", hint="mount it, then: volbench resume DIR --retry-failed")
    assert call("status", layout.root).returncode == 9  # no module keeps the mock of its import
    with mock.patch("volbench.store.journal.read_history", side_effect=refused):
        done = call("status", layout.root)
    assert done.returncode == 3
    assert f"then: volbench resume '{layout.root}' --retry-failed" in done.stderr


def test_status_says_what_is_left_to_do(tmp_path: Path) -> None:
    """Runs of the plan that were never started have a column; JSON keeps the state's name."""
    layout = half_finished(tmp_path / "c")
    done = call("status", layout.root)
    heading, _, row, *_ = done.stdout.splitlines()
    assert done.returncode == 9
    assert "interrupted: no controller runs, and 1 of 2 runs left to do" in done.stderr
    assert f"hint: continue it: volbench resume {layout.root}" in done.stderr
    (listed,) = json.loads(call("status", tmp_path, "--json").stdout)
    assert listed["answer"].startswith("interrupted, 1 of 2 runs left: ")
    assert heading.split("  ")[-1].strip() == "not started"
    assert row.split()[-1] == "1"
    assert '"planned": 1' in call("status", layout.root, "--json").stdout
    with Journal(layout.journal) as journal:
        journal.write("run", run="002-mix-r2", state=RunState.FAILED, reason="no")
    failed = call("status", layout.root).stderr
    assert "1 of 2 runs failed: volbench show says why" in failed
    assert f"volbench resume {layout.root} --retry-failed" in failed
    (listed,) = json.loads(call("status", tmp_path, "--json").stdout)
    assert "interrupted" not in listed["answer"]


def test_status_follows_a_campaign_without_a_log(tmp_path: Path) -> None:
    """A watch writes none; what is left when it ends is said."""
    layout = half_finished(tmp_path / "c")
    with (
        mock.patch("volbench.store.archive.is_held", return_value=True),
        mock.patch("volbench.api.live_rates.is_held", return_value=False),
    ):
        done = call("status", layout.root, "--follow")
    assert done.returncode == 9
    assert "1 of 2 runs left to do" in done.stderr
