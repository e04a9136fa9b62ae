"""`volbench resume` of folders that may come from elsewhere: it trusts nothing that it reads."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Volbench
from volbench.store.consent import sign_plan
from volbench.store.layout import Layout


@pytest.fixture
def stopped(tmp_path: Path, scratch: Path, volbench: Volbench) -> Path:
    """Return a campaign whose first run failed and whose second was not started."""
    profile = tmp_path / "p.yaml"
    profile.write_text(
        "name: p\nsample: 0\ndefaults: {size: 1m, ioengine: psync}\njobs:\n"
        "  a: {rw: write, max_latency: 1us}\n  b: {rw: write}\n"
    )
    out = tmp_path / "out"
    done = volbench("run", profile, "--on", scratch, "--output", out, "--on-error", "stop")
    assert done.returncode == 9, done.stderr
    return out


def change(out: Path, **options: str) -> None:
    """Put options into the second run of a stored plan, as one who has the user's key."""
    path = out / "campaign.json"
    archive: dict[str, Any] = json.loads(path.read_text())
    archive["campaign"]["runs"][1]["options"].update(options)
    path.write_text(json.dumps(archive))
    sign_plan(Layout(out), Layout(out).campaign.read_bytes())


@pytest.mark.slow
def test_the_rest_is_done_and_failed_runs_only_when_requested(
    stopped: Path, scratch: Path, volbench: Volbench
) -> None:
    """Resume does what was not started, and leaves a failure alone unless told."""
    scratch.rmdir()
    assert f"create the folder: mkdir -p {scratch}" in volbench("resume", stopped).stderr
    scratch.mkdir()
    done = volbench("resume", stopped)
    assert done.returncode == 9
    assert "1 of 2 runs failed" in done.stderr
    assert not (stopped / "runs" / "001-a-r1" / "attempts").exists()
    again = volbench("resume", stopped, "--retry-failed")
    assert again.returncode == 9
    assert (stopped / "runs" / "001-a-r1" / "attempts" / "1" / "fio.json").exists()
    assert list(scratch.iterdir()) == []


def test_a_plan_of_another_machine_is_refused(
    stopped: Path, scratch: Path, volbench: Volbench
) -> None:
    """The same paths on another machine are other people's devices and files."""
    path = stopped / "campaign.json"
    archive = json.loads(path.read_text())
    archive["provenance"]["hosts"][0]["machine"] = "0123456789abcdef"
    path.write_text(json.dumps(archive))
    sign_plan(Layout(stopped), Layout(stopped).campaign.read_bytes())
    done = volbench("resume", stopped)
    assert done.returncode == 3
    assert "another machine" in done.stderr
    assert list(scratch.iterdir()) == []


def test_a_clone_in_the_place_of_a_host_is_refused(stopped: Path, volbench: Volbench) -> None:
    """It is known by its boot, and by the serial number of its disk where there is one."""
    path = stopped / "campaign.json"
    archive = json.loads(path.read_text())
    (own,) = archive["provenance"]["hosts"]
    assert own["marks"]
    for mark in own["marks"]:
        clone = {**own, "host": "vm1", "marks": [mark]}
        archive["provenance"]["hosts"] = [{**own, "marks": []}, clone]
        path.write_text(json.dumps(archive))
        sign_plan(Layout(stopped), Layout(stopped).campaign.read_bytes())
        done = volbench("resume", stopped)
        assert done.returncode == 3
        assert "local is the machine, or has the disk, that was vm1 when" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"exec_prerun": "touch owned"},
        {"ioengine": "exec"},
        {"write_bw_log": "/tmp/owned"},
        {"filename": "../owned"},
        {"description": "x\nexec_prerun=touch owned"},
    ],
)
def test_a_tampered_plan_runs_nothing(
    stopped: Path, scratch: Path, volbench: Volbench, options: dict[str, str]
) -> None:
    """Options that no profile may have are refused when they come from a folder, too."""
    change(stopped, **options)
    done = volbench("resume", stopped)
    assert done.returncode == 7, done.stderr
    assert "002-b-r1" in done.stderr
    assert list(scratch.iterdir()) == []
    assert not list(stopped.parent.glob("**/owned"))
