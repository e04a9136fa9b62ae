"""volbench compare on campaigns in virtual time whose true ratio is set by a rate limit."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import volbench
from tests.extensions.lab.virtual import write_campaign
from volbench.cli.main import cli
from volbench.errors import InputError, RegressionError, UndecidedError
from volbench.extensions.lab.scenario import load_scenario

pytestmark = pytest.mark.slow

PROFILE = """\
name: paced
repeat: {repeat}
sample: 100ms
defaults:
  ioengine: nbd
  size: 1m
  bs: 4k
  time_based: 1
  runtime: 2s
jobs:
  reads: {{rw: randread{option}}}
"""

VOLUME = """name: uneven
size: 1m
restored: true
service: {{read: {{latency: {us}us, sigma: 0.1}}, write: {{latency: {us}us, sigma: 0.1}}, slots: 4}}
"""
"""Latencies around a median, which differ from request to request."""


def measure(
    folder: Path, name: str, *, rate: int, repeat: int = 5, option: str = "", extra: str = ""
) -> None:
    """Write a campaign on a volume of a rate, measured in virtual time."""
    profile = PROFILE.format(repeat=repeat, option=option) + extra
    volume = VOLUME.format(us=round(1e6 / rate))
    write_campaign(profile, load_scenario(volume, path="uneven.yaml"), folder / name)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paced")
    measure(folder, "slow", rate=1000)
    measure(folder, "fast", rate=1200)
    measure(folder, "brief", rate=1000, repeat=2, extra="  other: {rw: randwrite}\n")
    measure(folder, "asked", rate=1000, option=", rate_iops: 500")
    return folder


def compare(folder: Path, *arguments: str) -> Result:
    """Call the verb with the names of campaigns made into paths."""
    reported = [
        str(folder / argument) if (folder / argument).is_dir() else argument
        for argument in arguments
    ]
    return CliRunner().invoke(cli, ["compare", *reported])


ALLOW = ("--allow-different", "rate_iops")


@pytest.mark.smoke
def test_the_true_ratio_is_found(folder: Path) -> None:
    """20 % more I/Os a second are called 20 % faster, within a percent."""
    result = compare(folder, "slow", "fast", "--metric", "iops")
    assert result.exit_code == 0, result.output
    found = re.search(r"faster ([\d.]+) % \[([\d.]+), ([\d.]+)\]", result.stdout)
    assert found, result.stdout
    size, low, high = map(float, found.groups())
    assert 18 < low <= size <= high < 22


def test_an_asked_rate_is_not_slower(folder: Path) -> None:
    """A rate that fio was asked to keep is named as such, and decides no gate."""
    result = compare(folder, "slow", "asked", *ALLOW, "--metric", "iops")
    answer, *_ = result.stdout.splitlines()
    assert answer == ("asked against slow, iops: as asked: rate_iops=500 in asked for 1 workload.")
    fact = r"^rate_iops +not set +500 +allowed to differ +1$"
    assert re.search(fact, result.stdout, re.MULTILINE)
    gate = compare(folder, "slow", "asked", *ALLOW, "--metric", "iops", "--baseline")
    assert isinstance(gate.exception, UndecidedError)


def test_arms_are_in_the_order_of_the_plan(tmp_path: Path) -> None:
    """The first of them is the base, whether --between names the arms or not."""
    arms = "variants: {before: {rate_iops: 900}, during: {rate_iops: 700}, after: {}}\n"
    measure(tmp_path, "out", rate=1000, repeat=3, extra=arms)
    for more in ((), ("--between", "arm")):
        rows = json.loads(compare(tmp_path, "out", *more, "--json").stdout)["comparisons"]
        assert {row["base"] for row in rows} == {"before"}
        assert [*dict.fromkeys(row["candidate"] for row in rows)] == ["during", "after"]
    done = compare(tmp_path, "out", "--between", "arm", "--base", "during", "--json")
    rows = json.loads(done.stdout)["comparisons"]
    assert [*dict.fromkeys(row["candidate"] for row in rows)] == ["before", "after"]


def test_between_and_where_select_the_sides(folder: Path) -> None:
    """All campaigns below a folder are compared by a value; a condition chooses runs."""
    where = ("--where", "job==reads and repeat<=4")
    reported = (*where, "--metric", "iops", "--format", "json")
    result = compare(folder, ".", "--between", "rate_iops", *reported)
    (entry,) = json.loads(result.stdout)["comparisons"]
    sides = entry["base"], entry["candidate"], entry["verdict"]
    assert sides == ("500", "not set", "as asked")
    assert (entry["base_repeats"], entry["base_asked"]) == (4, "rate_iops=500")
    assert (entry["candidate_repeats"], entry["candidate_volumes"]) == (10, 3)


def test_a_regression_exits_with_10(folder: Path) -> None:
    """Back from 1,200 to 1,000 is a regression beyond 5 %, and none beyond 30 %."""
    reported = ("fast", "slow", "--metric", "iops", "--baseline")
    result = compare(folder, *reported)
    assert isinstance(result.exception, RegressionError)
    assert result.exception.exit_code == 10
    assert "randread 4k, queue depth 1 iops in slow: slower 1" in str(result.exception)
    assert "slower 1" in result.stdout
    assert compare(folder, *reported, "--tolerance", "30%").exit_code == 0
    assert compare(folder, "slow", "fast", *reported[2:]).exit_code == 0
    assert isinstance(compare(folder, *reported, "--tolerance", "0").exception, RegressionError)


def test_undetectable_changes_are_reported(folder: Path) -> None:
    """Two repeats rule nothing out: the gate is undecided, with an exit code of its own."""
    result = compare(folder, "fast", "brief", "--metric", "iops", "--baseline")
    assert isinstance(result.exception, UndecidedError), result.output
    assert result.exception.exit_code == 11
    assert "1 of 1 comparison could not have shown a regression" in str(result.exception)
    assert (
        "not ruled out: a regression beyond 5 % of randread 4k, queue depth 1 iops in brief:"
        " looks" in result.stderr
    )
    assert "not tested: 2 repeats" in result.stderr
    assert "only in brief: randwrite 4k, queue depth 1" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("slow",), "there is nothing to compare with"),
        (("slow", "slow"), "is named twice"),
        (("slow", "fast", "--tolerance", "-1"), "'-1' must be a percentage"),
        (("slow", "fast", "--base", "1"), "--base names a value of --between"),
        (("slow", "fast", "--metric", "nonsense"), "there is no column 'nonsense'"),
        (("slow", "fast", "--where", "bs=="), "cannot be parsed"),
        (("slow", "fast", "--chart", "x.gif"), "x.gif is not the name of an image file"),
        (("slow", "fast", "--metric", ","), "--metric has no value"),
    ],
)
def test_bad_input_is_reported(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    """Each mistake is an InputError (exit code 2) that names it, before anything is printed."""
    result = compare(folder, *arguments)
    assert isinstance(result.exception, InputError), result.output
    assert result.exception.exit_code == 2
    assert message in str(result.exception)
    assert not result.stdout


def test_python_agrees_with_the_command_line(folder: Path) -> None:
    """`volbench.compare` has the rows of the command line, and its remarks."""
    verdicts = volbench.compare(folder / "slow", folder / "fast", metric="iops,p99")
    frame = verdicts.frame
    printed = compare(folder, "slow", "fast", "--metric", "iops,p99", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(printed.stdout)))
    assert list(frame.columns) == list(rows[0])
    assert list(frame["words"]) == [row["words"] for row in rows]
    rate = frame[frame["metric"] == "iops"].iloc[0]
    assert rate["ratio_low"] <= rate["ratio"] <= rate["ratio_high"]
    assert rate["ratio"] == pytest.approx(1.2, rel=0.05)
