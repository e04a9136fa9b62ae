"""Conclusion of a measurement: no sentence quotes a number that a finding rejects."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from tests.present.frames_for_plots import Row, frames, result
from tests.present.report.small_reports import MadeUp
from volbench.analyse.compare.expected_bounds import Answer, Verdict
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.model.frames.expectation import parse_expectation
from volbench.present.terminal.conclusion import closing, conclusion


def concluded(
    rows: list[Row],
    *,
    findings: Sequence[Row] = (),
    verdicts: Sequence[Row] = (),
    expected: Sequence[Verdict] = (),
) -> list[str]:
    """Return the conclusion of results."""
    columns = ["run", "direction", "rule", "severity", "message", "advice", "job", "evidence"]
    judged = ["run", "direction", "verdict", "level_iops", "level_low_iops", "level_high_iops"]
    made = frames(rows) | {
        "findings": pd.DataFrame([*findings], columns=columns),
        "verdicts": pd.DataFrame([*verdicts], columns=judged),
    }
    return conclusion(MadeUp(made), folder=Path("out"), expected=expected)


def sentences(*, invalid: tuple[int, ...] = (), stepped: int = 0, high: float = 310.0) -> list[str]:
    """Return the conclusion of three reads; some invalid, or falling to a level."""
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
    verdicts: list[Row] = [
        {"run": row["run"], "direction": "read", "level_iops": 301.0, "level_low_iops": 290.0}
        | {"level_high_iops": high, "verdict": "stepped" if number < stepped else "steady"}
        for number, row in enumerate(rows)
    ]
    return concluded(rows, findings=findings, verdicts=verdicts)


def test_a_valid_measurement_has_its_rate_and_the_next_command() -> None:
    """The median of the repeats, with the lowest and the highest."""
    _, rate, *_, warning, following = sentences()
    assert "96.2k IOPS (median of 3, 96.2k), 394 MB/s" in rate
    assert (warning, following) == ("No warnings.", "Next: volbench report out")
    single = closing([result("reads")], (), Path("out"), [{"verdict": "too-short"}])[0]
    assert "whether a rate lasts (use a longer runtime) and how much results vary (use --" in single
    *_, warning, following = sentences(invalid=(1, 2))
    assert warning == (
        "Invalid (2 of 3 runs, unwritten-blocks): All reads were of never-written blocks. What to"
        " do: Fill the volume first: volbench run --fill."
    )
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


def test_a_climb_and_a_shared_disk_are_said_with_the_answer() -> None:
    """The mean of a cold volume mixes two speeds; of one disk no volume is the faster."""
    rows = [result("reads", repeat=n, iops=300.0, rw="randread") for n in (1, 2)]
    findings: list[Row] = [
        {"run": row["run"], "job": "reads", "rule": rule, "severity": "warning", "message": rule}
        | {
            "evidence": '{"cold_iops": 10.0, "plateau_iops": 450.0, "volumes": "/a, /b",'
            ' "cause": "undecided whether from cold blocks warming up or other load"}'
        }
        for row, rule in (
            (rows[0], "cold-blocks"),
            (rows[0], "shared-limit"),
            (rows[1], "page-cache"),
            *((row, "host-noise") for row in rows),
        )
    ]
    text = "\n".join(concluded(rows, findings=findings))
    climb = "reads climbed from 10 to 450 IOPS in 1 of 2 runs, undecided whether from cold blocks"
    assert f"{climb} warming up or other load: the mean mixes both speeds" in text
    assert "shared-limit: a difference of up to 2 times may come from the load on it." in text
    assert "Warning (1 of 2 runs, cold-blocks): cold-blocks. And 4 more warnings." in text
    cached = text.index("I/O of 1 of 2 runs went through a cache")
    assert cached < text.index("shared-limit: ") < text.index("climbed")


def test_an_invalid_measurement_has_a_hint_instead_of_a_rate() -> None:
    """Where all runs read never-written blocks, their rate is quoted nowhere."""
    text = " ".join(sentences(invalid=(1, 2, 3)))
    assert "96.2k" not in text
    assert "never-written blocks. What to do: Fill the volume first" in text
    text = " ".join(sentences(invalid=(2,)))
    assert "Invalid (1 of 3 runs, unwritten-blocks): " in text
    assert "median of 2" in text


def test_the_last_level_of_a_rate_that_changed_is_said_where_it_is_known() -> None:
    """Of a volume with credits, the median is neither burst nor base; a climb has no level."""
    for stepped, high, words in (
        (3, 310.0, "the rate changed, at the end it was 301 IOPS."),
        (3, 3.8e6, "the rate changed and had not settled at the end."),
        (2, 310.0, "the rate changed during 2 of 3 runs."),
    ):
        _, rate, *_ = sentences(stepped=stepped, high=high)
        assert rate.endswith(f"394 MB/s, p99 62.4 us; {words}")
        assert "average" not in rate
