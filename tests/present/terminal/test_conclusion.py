"""Conclusion of a measurement: no sentence quotes a number that a finding rejects."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from tests.present.frames_for_plots import Row, frames, result
from tests.present.report.small_reports import MadeUp
from volbench.analyse.compare.expected_bounds import Answer, Verdict
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.model.frames.expectation import parse_expectation
from volbench.present.terminal.conclusion import conclusion


def concluded(
    rows: list[Row],
    *,
    findings: Sequence[Row] = (),
    verdicts: Sequence[Row] = (),
    expected: Sequence[Verdict] = (),
) -> list[str]:
    """Return the conclusion of results."""
    columns = ["run", "direction", "rule", "severity", "message", "advice"]
    judged = ["run", "direction", "verdict", "level_iops"]
    made = frames(rows) | {
        "findings": pd.DataFrame([*findings], columns=columns),
        "verdicts": pd.DataFrame([*verdicts], columns=judged),
    }
    return conclusion(MadeUp(made), folder=Path("out"), expected=expected)


def sentences(
    *, invalid: tuple[int, ...] = (), two_kinds: tuple[int, ...] = (), stepped: bool = False
) -> list[str]:
    """Return the conclusion of three reads; some invalid, or all of them falling to a level."""
    rows = [
        result("reads", repeat=n, iops=96_200.0 + n, rw="randread", direction="read")
        for n in (1, 2, 3)
    ]
    findings: list[Row] = [
        {"run": rows[n - 1]["run"], "direction": "read", "rule": "unwritten-blocks"}
        | {"severity": "invalid", "message": "All reads were of never-written blocks."}
        | {"advice": "Fill the volume first: volbench run --fill."}
        for n in invalid
    ]
    findings += [
        {"run": rows[n - 1]["run"], "direction": "read", "rule": "two-latencies"}
        | {"severity": "note", "message": "33 % of the reads took 60 us or less."}
        for n in two_kinds
    ]
    verdicts: list[Row] = [
        {"run": row["run"], "direction": "read", "level_iops": 301.0}
        | {"verdict": "stepped" if stepped else "steady"}
        for row in rows
    ]
    return concluded(rows, findings=findings, verdicts=verdicts)


def test_a_valid_measurement_has_its_rate_and_the_next_command() -> None:
    """The median of the repeats, with the lowest and the highest."""
    _, rate, *_, warning, following = sentences()
    assert "96.2k IOPS (median of 3, 96.2k), 394 MB/s" in rate
    assert (warning, following) == ("No warnings.", "Next: volbench report out")
    *_, warning, following = sentences(invalid=(1, 2), two_kinds=(1, 2, 3))
    assert warning == "Invalid (2 of 3 runs): All reads were of never-written blocks."
    assert following == "Next: volbench check out"


def test_the_answer_and_the_sync_come_first() -> None:
    """Buffered writes end in memory: their p99 is not what an application waits for."""
    wal = {"rw": "write", "direct": False}
    rows = [
        {**result("wal", repeat=n, iops=900.0, direction="write", **wal), "lat_p99_s": 2e-5}
        for n in (1, 2, 3)
    ]
    rows += [
        {**row, "direction": "sync", "iops": None, "lat_p99_s": 0.004, "sync_calls": "fdatasync"}
        for row in rows
    ]
    expectation = parse_expectation("wal.fdatasync_p99 < 10ms")
    interval = Interval(0.003, 0.004, 0.005)
    passed = Verdict(expectation, "wal", "fdatasync", Answer.PASS, interval, 3, "")
    first, _, second, *_ = concluded(rows, expected=[passed])
    assert first == "Pass: wal.fdatasync_p99 < 10ms (measured 4 ms [3 ms, 5 ms])."
    assert second.endswith("fdatasync p99 4 ms.")


def test_two_kinds_of_latency_are_named() -> None:
    """Neither the mean nor the p99 of a workload stands for both; invalid runs do not count."""
    text = " ".join(sentences(two_kinds=(1, 2), invalid=(2,)))
    assert "two kinds of latency in 1 of 2 runs. 33 % of the reads took 60 us or less." in text
    assert "two kinds" not in " ".join(sentences())


def test_an_invalid_measurement_has_a_hint_instead_of_a_rate() -> None:
    """Where all runs read never-written blocks, their rate is quoted nowhere."""
    text = " ".join(sentences(invalid=(1, 2, 3)))
    assert "96.2k" not in text
    assert "3 of 3 runs invalid and left out (unwritten-blocks)" in text
    assert "never-written blocks. What to do: Fill the volume first" in text


def test_one_invalid_run_is_left_out_of_the_median() -> None:
    """The other two are the result."""
    text = " ".join(sentences(invalid=(2,)))
    assert "1 of 3 runs invalid" in text
    assert "median of 2" in text


def test_a_rate_that_fell_is_called_an_average_with_its_last_level() -> None:
    """Of a volume with credits, the mean of burst and base is neither."""
    _, rate, *_ = sentences(stepped=True)
    assert "IOPS on average" in rate
    assert "the rate changed, at the end it was 301 IOPS" in rate
