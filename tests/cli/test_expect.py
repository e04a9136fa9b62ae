"""volbench expect on a campaign of fio."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import Volbench

PROFILE = """
name: wal
repeat: 3
defaults: {ioengine: psync, bs: 4k, size: 1m}
jobs:
  wal: {rw: write, fdatasync: 8}
  reads: {rw: randread, ioengine: 'null'}
"""
EXPECT = """
expect:
  wal: {fdatasync_p99: "< 30s", error: 0}
"""


@pytest.fixture(name="campaign")
def _campaign(tmp_path: Path, scratch: Path, volbench: Volbench) -> Path:
    profile = tmp_path / "wal.yaml"
    profile.write_text(PROFILE)
    done = volbench("run", profile, "--on", scratch, "--output", tmp_path / "out", "--yes")
    assert done.returncode == 0, done.stderr
    return tmp_path / "out"


def test_expectations_pass_fail_and_exit_with_10(campaign: Path, volbench: Volbench) -> None:
    """What is kept exits with 0, what is not with 10, and a typing error with 2."""
    kept = volbench("expect", campaign, "--expect", "wal.fdatasync_p99 < 30s", "--json")
    assert kept.returncode == 0, kept.stderr
    (row,) = json.loads(kept.stdout)
    assert (row["answer"], row["job"], row["direction"], row["repeats"]) == (
        "pass",
        "wal",
        "sync",
        3,
    )
    assert row["value_low"] <= row["value"] <= row["value_high"] < row["bound"]
    both = ["--expect", "wal.iops >= 1", "--expect", "wal.iops > 1000000000"]
    failed = volbench("expect", campaign, *both)
    assert failed.returncode == 10
    assert [line.split()[0] for line in failed.stdout.splitlines()[2:]] == ["pass", "fail"]
    assert "1 of 2 expectations failed" in failed.stderr
    wrong = volbench("expect", campaign, "--expect", "wla.iops > 1")
    assert wrong.returncode == 2
    assert "there is no job 'wla'" in wrong.stderr


def test_expectations_without_a_result_are_undecided(campaign: Path, volbench: Volbench) -> None:
    """Reads have no syncs: exit 11, and the reason."""
    done = volbench("expect", campaign, "--expect", "reads.fsync_p99 < 10ms")
    assert done.returncode == 11
    assert "no finished sync result" in done.stdout
    assert "1 of 1 expectation is undecided" in done.stderr


def test_a_profile_says_what_is_expected(tmp_path: Path, scratch: Path, volbench: Volbench) -> None:
    """Its expectations are kept with the campaign, --set changes them, --expect replaces them."""
    profile = tmp_path / "wal.yaml"
    profile.write_text(PROFILE + EXPECT)
    arguments = ["run", profile, "--on", scratch, "--yes", "--set", "expect.reads.iops=> 1e12"]
    volbench(*arguments, "--output", tmp_path / "out")
    done = volbench("expect", tmp_path / "out", "--json")
    assert done.returncode == 10, done.stderr
    answers = {row["expectation"]: row["answer"] for row in json.loads(done.stdout)}
    assert answers == {
        "wal.fdatasync_p99 < 30s": "pass",
        "wal.error = 0": "pass",
        "reads.iops > 1e12": "fail",
    }
    given = volbench("expect", tmp_path / "out", "--expect", "wal.iops > 1")
    assert given.returncode == 0, given.stderr


def test_nothing_expected_is_refused(campaign: Path, volbench: Volbench) -> None:
    """A gate without a condition would always be open."""
    done = volbench("expect", campaign)
    assert done.returncode == 2
    assert "expect nothing" in done.stderr
