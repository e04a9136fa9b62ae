"""volbench audit with real fio, and on campaigns that exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import volbench as api
from tests.command_line import Volbench
from volbench.cli.audit import _WORKLOADS

PROFILE = """
name: bounded
defaults: {ioengine: 'null', bs: 4k, size: 64m, runtime: 6s, time_based: 1, rw: randread}
limits: {iops: 1000000000000, time_percent: 99.9}
jobs:
  shallow: {iodepth: 16}
  deep: {iodepth: 64}
"""


def test_the_shares_of_the_workloads_are_the_whole_time() -> None:
    """The time that is asked for is that of all runs."""
    assert sum(share for *_, share in _WORKLOADS) == pytest.approx(1)


def test_an_audit_measures_and_ends_with_a_verdict(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """Seven workloads on a directory that a file is written to first; no promise, no failure."""
    done = volbench(
        *("audit", "--on", scratch, "--for", "1m", "--size", "4m", "--output", tmp_path / "out"),
        *("--set", "runtime=3s", "--set", "repeat=1", "--set", "ioengine=null", "--yes"),
    )
    assert done.returncode == 0, done.stderr
    rows = api.open_campaign(tmp_path / "out").summary()
    rows = rows[rows["phase"] == "measured"].sort_values("iodepth")
    assert rows.groupby("rw")["iodepth"].agg(list).to_dict() == {
        "read": [4, 16, 64],
        "randread": [1, 16, 64, 256],
    }
    assert "Latency at queue depth 1, read of 4 KiB: median " in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{scratch}: no promise, read ")
    assert not list(scratch.iterdir())


def test_the_exit_code_follows_the_verdict(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """10 for a volume that falls short; the same from the campaign later, and as JSON."""
    (tmp_path / "bounded.yaml").write_text(PROFILE)
    made = volbench("run", "bounded.yaml", "--on", scratch, "--output", "out", "--yes")
    assert made.returncode == 0, made.stderr
    short = volbench("audit", "out", "--json")
    assert short.returncode in {10, 11}, short.stderr
    (row,) = json.loads(short.stdout)
    assert row["limit"] == "read IOPS"
    assert row["promised"] == 1e12
    assert row["promised_time_percent"] == pytest.approx(99.9)
    assert 0 <= row["delivered_low"] < row["delivered"] < row["delivered_high"]
    assert row["shortfall_percent"] > 90
    assert "99.9 % of the time" not in short.stdout
    page = volbench("audit", "out", columns=80)
    assert page.returncode == short.returncode
    assert max(map(len, page.stdout.split("delivered: ")[0].splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ((), "name campaigns, or volumes with --on", "--type azure/P15"),
        (("out", "--on", "."), "exclude each other", "volbench audit --on"),
        (("out", "--type", "azure/P15"), "--type has no effect on campaigns", "with --on"),
        (("out", "--for", "1h"), "--for has no effect on campaigns", "with --on"),
        (("out", "--set", "limits.iops=3k"), "--set has no effect on campaigns", "with --on"),
        (("--on", ".", "--for", "10s"), "10s is too short for an audit", "--for 10m"),
        (("--on", ".", "--type", "azure/P99"), "no volume type 'azure/P99'", "azure/P"),
        (("--on", ".", "--type", "azure/premium-ssd"), "depend on the size", "size="),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    arguments: tuple[str, ...], message: str, hint: str, tmp_path: Path, volbench: Volbench
) -> None:
    """Exit code 2, with what to do instead."""
    (tmp_path / "out").mkdir()
    done = volbench("audit", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert hint in done.stderr
    assert not (tmp_path / "volbench-results").exists()


def test_runs_without_a_series_are_refused(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """Nothing is judged by its mean alone."""
    (tmp_path / "bounded.yaml").write_text(PROFILE)
    made = volbench(
        *("run", "bounded.yaml", "--on", scratch, "--output", "out", "--set", "sample=0", "--yes")
    )
    assert made.returncode == 0, made.stderr
    done = volbench("audit", "out")
    assert done.returncode == 2
    assert "too short" in done.stderr
