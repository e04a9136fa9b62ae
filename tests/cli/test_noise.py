"""The verb noise on a real folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.real import measure
from volbench.cli.main import cli
from volbench.errors import ComparisonError, InputError


def test_equal_arms_give_a_floor_and_a_chart(tmp_path: Path) -> None:
    """Five blocks are measured; the folder can be evaluated again, by noise and by compare."""
    scratch, folder, chart = tmp_path / "scratch", tmp_path / "noise", tmp_path / "noise.svg"
    scratch.mkdir()
    command = ["noise", "--on", scratch, "--for", "40s", "--size", "4m", "--set", "runtime=1s"]
    command += ["--output", folder, "--detect", "5%", "--chart", chart]
    done = CliRunner().invoke(cli, [*map(str, command)], env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    assert "Noise floor: the smallest difference" in done.output
    assert "iops: 5 % needs " in done.output
    assert "runs of a block are joined" in chart.read_text(encoding="utf-8")
    again = CliRunner().invoke(cli, ["noise", str(folder), "--json"])
    iops, p99 = json.loads(again.stdout)
    assert (iops["metric"], p99["metric"]) == ("iops", "lat_p99_s")
    assert iops["blocks"] == 5
    assert iops["detectable_3_percent"] > iops["detectable_30_percent"] > 0
    wide = CliRunner().invoke(cli, ["compare", str(folder), "--wide"])
    assert "5 blocks" in wide.output


def test_json_is_one_document(tmp_path: Path) -> None:
    """The results of the runs are not printed before it; events end with it."""
    command = [
        "noise",
        "--on",
        str(tmp_path),
        "--for",
        "40s",
        "--size",
        "4m",
        "--set",
        "runtime=1s",
    ]
    done = CliRunner().invoke(cli, [*command, "--json", "--output", str(tmp_path / "json")])
    assert [row["metric"] for row in json.loads(done.stdout)] == ["iops", "lat_p99_s"]


def test_a_time_without_room_for_five_blocks_is_refused(tmp_path: Path) -> None:
    """Less would not know its own noise."""
    done = CliRunner().invoke(cli, ["noise", "--on", str(tmp_path), "--for", "30s"])
    assert isinstance(done.exception, InputError)
    assert done.exception.hint == "write --for 40s or more"
    done = CliRunner().invoke(cli, ["noise", "--on", str(tmp_path), "--for", "10s"])
    assert str(done.exception).startswith("10s has room for 1 block; the minimum is 5")


def test_arms_that_are_not_equal_are_not_called_equal(tmp_path: Path) -> None:
    """A deeper queue is faster by design, which is no error of the measurement."""
    profile = tmp_path / "p.yaml"
    profile.write_text(
        "{name: p, repeat: 3, sample: 0, jobs: {reads: {rw: randread}},"
        " defaults: {size: 1m, runtime: 1s, time_based: 1, ioengine: libaio, direct: 1},"
        " variants: {slow: {rate_iops: 100}, fast: {rate_iops: 900}}}"
    )
    command = ["run", str(profile), "--on", str(tmp_path), "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(cli, command).exit_code == 0
    done = CliRunner().invoke(cli, ["noise", str(tmp_path / "out")], env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    assert "the arms are not equal" in done.output
    assert "equal arms differ" not in done.output


def test_a_campaign_without_arms_has_no_floor(tmp_path: Path) -> None:
    """What is missing is named."""
    folder = measure(tmp_path, "plain")
    done = CliRunner().invoke(cli, ["noise", str(folder)])
    assert isinstance(done.exception, ComparisonError)
    assert "has no arms in blocks on one volume" in done.exception.message
    both = CliRunner().invoke(cli, ["noise", str(folder), "--on", str(tmp_path)])
    assert str(both.exception).startswith("--on and an earlier campaign exclude each other")
    none = CliRunner().invoke(cli, ["noise"])
    assert isinstance(none.exception, InputError)
    assert "name a target" in none.exception.message


@pytest.mark.parametrize("share", ["0%", "200%"])
def test_shares_are_checked(tmp_path: Path, share: str) -> None:
    """A difference of nothing needs no blocks, and of twice as much is no share."""
    for verb in (["noise"], ["run", "--dry-run"]):
        done = CliRunner().invoke(cli, [*verb, str(tmp_path), "--detect", share])
        assert isinstance(done.exception, InputError)
        assert done.exception.message.startswith(f"--detect: {share!r} must be a percentage")


def test_a_plan_says_what_a_difference_needs(tmp_path: Path) -> None:
    """From the noise run of its volume; without one it says how to get it."""
    (tmp_path / "p.yaml").write_text(
        "name: p\ndefaults: {size: 4m, runtime: 5s, time_based: 1}\njobs: {reads: {rw: read}}\n"
    )
    scratch, results = tmp_path / "scratch", tmp_path / "results"
    scratch.mkdir()
    results.mkdir()
    plan = ["run", str(tmp_path / "p.yaml"), "--on", str(scratch), "--dry-run", "--detect", "5%"]
    command = ["noise", "--on", str(scratch), "--for", "40s", "--size", "4m"]
    command += ["--set", "runtime=1s", "--output", str(results / "floor")]
    assert CliRunner().invoke(cli, command).exit_code == 0
    done = CliRunner().invoke(cli, [*plan, "--detect-from", str(results)])
    assert done.exit_code == 0, done.output
    assert "reads: 5 % of IOPS needs " in done.output
    assert "from 5 blocks of randread-4k-qd16 in floor." in done.output
    lone = CliRunner().invoke(cli, [word for word in plan if word != "--dry-run"])
    assert isinstance(lone.exception, InputError)
    assert "needs --dry-run" in lone.exception.message
