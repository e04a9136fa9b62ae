"""Several targets of one role: each job runs on each of them, in blocks."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import volbench as api
from volbench.cli.main import cli
from volbench.errors import InputError, UndecidedError

PROFILE = """\
name: p
repeat: 3
sample: 0
defaults: {size: 1m, bs: 4k, rate_iops: 300, runtime: 1s, time_based: 1, direct: 1}
limits: {data: {iops: 1000}}
phases: {precondition: {fill: {rw: write, rate_iops: null, time_based: null, runtime: null}}}
jobs: {reads: {rw: randread}}
expect: {reads: {iops: "> 1"}}
"""


def run(profile: Path, *arguments: str | Path) -> Result:
    """Call volbench run."""
    return CliRunner().invoke(cli, ["run", str(profile), *map(str, arguments)])


@pytest.fixture(name="profile")
def _profile(tmp_path: Path) -> Path:
    for name in ("zeta", "alpha"):
        (tmp_path / name).mkdir()
    (tmp_path / "p.yaml").write_text(PROFILE)
    return tmp_path / "p.yaml"


@pytest.mark.slow
def test_two_targets_of_a_role_are_arms(profile: Path, tmp_path: Path) -> None:
    """They alternate, pair in compare, and the first that was named is the base."""
    both = ("--on", tmp_path / "zeta", "--on", f"data={tmp_path / 'alpha'}")
    done = run(profile, *both, "--output", tmp_path / "out")
    # One expectation became two; 1 s on this machine may leave them undecided.
    assert isinstance(done.exception, UndecidedError | None), done.output
    opened = api.open_campaign(tmp_path / "out")
    runs = opened.campaign.runs
    assert [run.job for run in runs if not run.block] == ["fill-zeta", "fill-alpha"]
    arms = [run.arm for run in runs if run.block]
    assert arms == ["zeta", "alpha", *2 * ("alpha", "zeta")]
    assert [Path(run.volume.target).name for run in runs if run.block] == arms
    assert {run.limits.iops for run in runs} == {1000}
    assert {*opened.campaign.expect["p"]} == {"reads-zeta", "reads-alpha"}
    command = ["compare", str(tmp_path / "out"), "--json", "--keep-invalid"]
    rows = json.loads(CliRunner().invoke(cli, command).stdout)["comparisons"]
    assert {(row["workload"], row["base"], row["candidate"], row["design"]) for row in rows} == {
        ("randread 4k, queue depth 1", "zeta", "alpha", "3 blocks")
    }
    assert opened.design.by_column["arm"].values == ("zeta", "alpha")


def test_what_cannot_be_arms_is_refused(profile: Path, tmp_path: Path) -> None:
    """The same target twice, and rounds until one volume is steady."""
    twice = run(profile, "--on", tmp_path / "zeta", "--on", tmp_path / "zeta")
    assert isinstance(twice.exception, InputError)
    assert "twice for the role 'data'" in twice.exception.message
    text = PROFILE.replace("repeat: 3", "rounds: {track: [reads.iops]}").replace("expect:", "#")
    profile.write_text(text)
    both = ("--on", tmp_path / "zeta", "--on", tmp_path / "alpha", "--dry-run")
    refused = run(profile, *both)
    assert isinstance(refused.exception, InputError)
    assert "do not become steady at the same time" in refused.exception.message
