"""`volbench check` on campaigns that real fio ran."""

import json
from pathlib import Path

import pytest

from tests.command_line import Volbench, call

PROFILE = """\
name: doubtful
sample: 1
device_sample: 0  # whose bytes are those of all that use the disk
repeat: 2
defaults: {ioengine: psync, size: 4m, filename: f}
jobs:
  buffered: {rw: write, bs: 64k, zero_buffers: 1}
  deep: {rw: randwrite, bs: 4k, direct: 1, iodepth: 16, refill_buffers: 1}
"""
CLEAN = """\
name: clean
sample: 0
jobs:
  one: {rw: randwrite, bs: 4k, size: 16m, ioengine: psync, direct: 1, refill_buffers: 1}
"""


def run_profile(root: Path, text: str, *, role: str) -> Path:
    """Return the folder of a finished campaign."""
    (root / "data").mkdir()
    profile = root / "p.yaml"
    profile.write_text(text)
    target = f"{role}={root / 'data'}"
    done = call("run", profile, "--on", target, "--output", root / "out")
    assert done.returncode == 0, done.stderr
    return root / "out"


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign that breaks several rules."""
    return run_profile(tmp_path_factory.mktemp("doubtful"), PROFILE, role="data")


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign of one direct run, on the root disk."""
    text = CLEAN.replace("{rw", "{role: os, rw")
    return run_profile(tmp_path_factory.mktemp("clean"), text, role="os")


def test_findings_are_grouped_by_rule(doubtful: Path, volbench: Volbench) -> None:
    """A rule stands once, with all its runs, why and what to do; the sums come last."""
    done = volbench("check", doubtful)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert " of smaller-than-memory in the same runs: " in " ".join(done.stdout.split())
    for rule in ("page-cache", "queue-depth", "compressible"):
        assert len([line for line in lines if line.startswith(f"{rule}  ")]) == 1
    assert "001-buffered-r1" in done.stdout
    assert done.stdout.count("io_submit") == 0
    assert "  why " in done.stdout
    assert "  do " in done.stdout
    assert lines[-1].endswith("4 of 4 runs affected")


def test_json_and_csv_have_a_record_per_finding(doubtful: Path, volbench: Volbench) -> None:
    """JSON holds the evidence as numbers, and a rule can be chosen."""
    done = volbench("check", doubtful, "--json", "--rule", "queue-depth", "--rule", "stall")
    reported = json.loads(done.stdout)
    assert {entry["rule"] for entry in reported} == {"queue-depth"}
    assert [entry["evidence"]["asked_depth"] for entry in reported] == [16, 16]
    assert {entry["job"] for entry in reported} == {"deep"}


def test_strict_exits_with_ten(doubtful: Path, volbench: Volbench) -> None:
    """Findings are printed all the same, and the error counts them."""
    done = volbench("check", doubtful, "--strict")
    assert done.returncode == 10
    assert "queue-depth" in done.stdout
    assert "data-quality warnings" in done.stderr
    assert volbench("check", doubtful, "--strict", "--rule", "file-not-device").returncode == 0


def test_a_clean_campaign_has_no_findings(clean: Path, volbench: Volbench) -> None:
    """Only notes can stand there, and of the rules on options none."""
    done = volbench("check", clean, "--rule", "page-cache", "--rule", "compressible", "--strict")
    assert (done.returncode, done.stdout) == (0, "no data-quality warnings in 1 run\n")
    reported = json.loads(volbench("check", clean, "--json").stdout)
    machine = {"cpu-bound", "other-load", "stall", "host-noise"}  # what others do on this machine
    assert [
        entry for entry in reported if entry["severity"] != "note" and entry["rule"] not in machine
    ] == []
