"""`volbench check --expect` on a campaign of fio."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.command_line import Volbench, call

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


@pytest.fixture(scope="module", name="campaign")
def _campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("expect")
    (folder / "wal.yaml").write_text(PROFILE)
    (folder / "scratch").mkdir()
    done = call("run", "wal.yaml", "--on", "scratch", "--output", "out", "--yes", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def test_expectations_pass_fail_and_exit_with_10(campaign: Path, volbench: Volbench) -> None:
    """What is kept exits with 0, and what is not with 10."""
    kept = volbench("check", campaign, "--expect", "wal.fdatasync_p99 < 30s", "--json")
    assert kept.returncode == 0, kept.stderr
    (row,) = json.loads(kept.stdout)
    found = row["answer"], row["job"], row["direction"], row["repeats"]
    assert found == ("pass", "wal", "fdatasync", 3)
    assert row["value_low"] <= row["value"] <= row["value_high"] < row["bound"]
    both = ["--expect", "wal.iops >= 1", "--expect", "wal.iops > 1000000000"]
    failed = volbench("check", campaign, *both)
    assert failed.returncode == 10
    assert [line.split()[0] for line in failed.stdout.splitlines()[2:]] == ["pass", "fail"]
    assert "1 of 2 expectations failed" in failed.stderr
    assert f"caused it: volbench check {campaign}" in failed.stderr


def test_expectations_without_a_result_are_undecided(campaign: Path, volbench: Volbench) -> None:
    """Reads have no syncs: exit 11, and the reason."""
    done = volbench("check", campaign, "--expect", "reads.fsync_p99 < 10ms")
    assert done.returncode == 11
    assert "no finished sync result" in done.stdout
    other = volbench("check", campaign, "--expect", "wal.fsync_p99 < 10ms")
    assert (other.returncode, "measured fdatasync, not fsync" in other.stdout) == (11, True)
    assert "1 of 1 expectation is undecided" in done.stderr


@pytest.mark.slow
def test_a_profile_says_what_is_expected(tmp_path: Path, scratch: Path, volbench: Volbench) -> None:
    """Its expectations are kept with the campaign, --set changes them, --expect replaces them."""
    profile = tmp_path / "wal.yaml"
    profile.write_text(PROFILE + EXPECT)
    arguments = ["run", profile, "--on", scratch, "--yes", "--set", "expect.reads.iops=> 1e12"]
    volbench(*arguments, "--output", tmp_path / "out")
    done = volbench("check", tmp_path / "out", "--json", "--junit", tmp_path / "answers.xml")
    assert done.returncode == 10, done.stderr
    answers = {row["expectation"]: row["answer"] for row in json.loads(done.stdout)}
    assert answers == {
        "wal.fdatasync_p99 < 30s": "pass",
        "wal.error = 0": "pass",
        "reads.iops > 1e12": "fail",
    }
    whole = json.loads(volbench("check", tmp_path / "out", "--json").stdout)
    assert {row["expectation"]: row["answer"] for row in whole["expectations"]} == answers
    given = volbench("check", tmp_path / "out", "--expect", "wal.iops > 1")
    assert given.returncode == 0, given.stderr


def test_nothing_has_finished_yet(campaign: Path, tmp_path: Path, volbench: Volbench) -> None:
    """A campaign whose controller was killed at once decides nothing, and is no error."""
    killed = tmp_path / "killed"
    shutil.copytree(campaign, killed, ignore=shutil.ignore_patterns("tables", "*-r*"))
    first, *_ = (campaign / "journal.jsonl").read_text().splitlines(keepends=True)
    (killed / "journal.jsonl").write_text(first)
    expected = ["--expect", "wal.iops > 1", "--expect", "wal.aggregate_iops > 1"]
    done = volbench("check", killed, *expected)
    assert done.returncode == 11, done.stderr
    assert "2 of 2 expectations are undecided" in done.stderr


def test_nothing_expected_is_refused(campaign: Path, volbench: Volbench) -> None:
    """A gate without a condition would always be open."""
    done = volbench("check", campaign, "--junit", "-")
    assert done.returncode == 2
    assert "state no expectations" in done.stderr


@pytest.mark.slow
def test_run_and_measure_answer_at_their_end(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """--expect adds to the profile; the answers follow the results, and 10 is the exit code."""
    (tmp_path / "wal.yaml").write_text(PROFILE + EXPECT)
    run = ["run", tmp_path / "wal.yaml", "--on", scratch, "--yes"]
    failed = volbench(*run, "--output", tmp_path / "a", "--expect", "reads.iops > 1e12")
    assert failed.returncode == 10, failed.stderr
    checked = volbench("check", tmp_path / "a")
    assert checked.returncode == 10
    assert f"volbench check {tmp_path / 'a'}" in failed.stderr
    assert f"volbench check {tmp_path / 'a'}" in checked.stderr
    shown = volbench("show", tmp_path / "a")
    for printed in (failed, shown, checked):
        assert printed.stdout.startswith("answer")
        assert "fail    reads.iops > 1e12" in printed.stdout
        assert "pass    wal.error = 0" in printed.stdout
    assert json.loads(volbench("show", tmp_path / "a", "--json").stdout)[0]["runs"]
    events = volbench(
        *run, "--output", tmp_path / "b", "--expect", "reads.fsync_p99 < 1s", "--format", "events"
    )
    assert events.returncode == 11, events.stderr
    results, error = (json.loads(line) for line in events.stdout.splitlines()[-2:])
    assert [row["answer"] for row in results["expectations"]] == ["pass", "pass", "undecided"]
    assert error["exit_code"] == 11
    measured = ["measure", "--on", scratch, "--size", "1m", "--runtime", "1s", "--repeat", "1"]
    expected = ["--expect", "randread-*.iops > 1", "--json"]
    passed = volbench(*measured, "--output", tmp_path / "c", *expected)
    assert passed.returncode == 0, passed.stderr
    (answer,) = json.loads(passed.stdout)[0]["expectations"]
    assert (answer["answer"], answer["reason"]) == ("pass", "no interval (needs 3 repeats)")


def test_wrong_expectations_end_before_anything_runs(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """A job of no profile, and a bound without a unit."""
    (tmp_path / "wal.yaml").write_text(PROFILE + EXPECT)
    run = ["run", tmp_path / "wal.yaml", "--on", scratch, "--output", tmp_path / "out", "--yes"]
    for text, message in (("wla.iops > 1", "there is no job 'wla'"), ("p99 < 5", "has no unit")):
        done = volbench(*run, "--expect", text)
        assert done.returncode == 2
        assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_junit_has_each_expectation(campaign: Path, tmp_path: Path, volbench: Volbench) -> None:
    """A failed one is a failure, an undecided one an error; a job must exist."""
    texts = ("wal.iops > 1e12", "wal.fdatasync_p99 < 30s", "reads.steady = yes")
    expected = [part for text in texts for part in ("--expect", text)]
    failed = volbench("check", campaign, *expected, "--junit", tmp_path / "junit.xml")
    assert failed.returncode == 10
    suite = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 - written by this test
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["3", "1", "1"]
    cases = {str(case.get("name")): [part.tag for part in case] for case in suite}
    (failure,) = suite.iter("failure")
    assert "expected > 1e12" in str(failure.get("message"))
    assert cases == dict(zip(texts, (["failure"], ["system-out"], ["error"]), strict=True))
    piped = volbench("check", campaign, "--expect", "wal.iops > 1", "--junit", "-")
    assert ET.fromstring(piped.stdout).get("tests") == "1"  # noqa: S314 - same
    wrong = volbench("check", campaign, "--expect", "wla.iops > 3")
    assert wrong.returncode == 2
    assert "'wla.iops > 3': there is no job 'wla'" in wrong.stderr


# What Jenkins' xunit-plugin accepts of a report (junit-10.xsd): element to its attributes, of which
# those in capitals are required, and its children. Actions of GitHub read the same names.
SCHEMA = {
    "testsuite": ("NAME TESTS FAILURES ERRORS skipped time timestamp", "testcase"),
    "testcase": ("NAME classname time", "failure error skipped system-out system-err"),
    "failure": ("message type", ""),
    "error": ("message type", ""),
    "system-out": ("", ""),
}


@pytest.mark.slow
def test_junit_reports_keep_to_the_schema_of_jenkins(
    campaign: Path, tmp_path: Path, volbench: Volbench
) -> None:
    """A pass, a failure and an error; numbers are plain decimals."""
    texts = ("wal.iops > 1", "wal.iops > 1000000000", "reads.fsync_p99 < 10ms")
    arguments = [word for text in texts for word in ("--expect", text)]
    volbench("check", campaign, *arguments, "--junit", tmp_path / "junit.xml")
    root = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 - written by this test
    assert root.tag == "testsuite"
    seen = set()
    for element in root.iter():
        attributes, children = SCHEMA[element.tag]
        known = {name.lower() for name in attributes.split()}
        required = {name.lower() for name in attributes.split() if name.isupper()}
        assert required <= set(element.attrib) <= known, element.tag
        assert {child.tag for child in element} <= set(children.split()), element.tag
        seen.add(element.tag)
        for name in {"time", "tests", "failures", "errors", "skipped"} & set(element.attrib):
            assert re.fullmatch(r"[0-9]+(\.[0-9]*)?", element.attrib[name]), name
    assert seen == set(SCHEMA)
