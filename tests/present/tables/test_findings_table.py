"""Findings in the terminal, in the table of results, and in the report."""

from tests.present.report.small_reports import content_of, parsed, row_of, run_of
from tests.present.tables.table_rows import printed, summary
from volbench.model.results.finding import Severity
from volbench.present.report.report_page import render_report
from volbench.present.tables.findings_table import (
    by_rule,
    count_severities,
    findings_text,
    warning_marks,
)
from volbench.present.tables.summary_table import summary_table

Row = dict[str, object]


def finding(run: str = "001-a-r1", rule: str = "stall", **columns: object) -> Row:
    """Return a row of the findings frame."""
    row: Row = {"campaign": "c", "run": run, "rule": rule, "severity": "warning"}
    row |= {"direction": None, "from_s": None, "to_s": None, "why": "It hangs.", "advice": "Look."}
    row |= {"message": "No I/O completed for 8s.", "evidence": '{"stall_s": 8.25}'}
    return row | columns


def shown(*rows: Row, runs: int = 9) -> str:
    """Return what a pipe gets."""
    return findings_text(rows, runs=runs)


def test_notes_affect_no_run() -> None:
    """A note is context; the number of affected runs is that of the report's first screen."""
    assert shown(runs=1) == "no data-quality warnings in 1 run\n"
    rows = [finding("001-a-r1"), finding("002-a-r2") | {"severity": "note"}]
    assert shown(*rows).endswith("1 warning, 1 note; 1 of 9 runs affected\n")
    assert shown(rows[1]).endswith("\n\n1 note\n")


def test_equal_findings_are_reported_once() -> None:
    """Six runs with the same sentence are three names and a count; others keep their line."""
    rows = [finding(f"00{n}-a-r{n}") for n in range(1, 7)]
    text = shown(*rows, finding("007-b-r1", message="Another."))
    assert text.count("No I/O completed") == 1
    assert "and 3 more" in text
    assert "Another." in text
    assert text.count("It hangs.") == text.count("Look.") == 1
    assert text.endswith("7 warnings; 7 of 9 runs affected\n")


def test_long_lists_of_findings_end_with_a_count_and_a_command() -> None:
    """Five sentences are listed, one of those that differ in numbers alone; of notes one."""
    rows = [finding(message=f"Message {letter} of {n}.") for letter in "abcdefg" for n in (1, 2)]
    text = findings_text(rows, runs=9, paths="'of today'")
    assert [word for word in "abcdefg" if f"Message {word} of 1." in text] == [*"abcde"]
    assert "of 2." not in text
    assert "and 9 more like these: volbench check --rule stall 'of today'\n" in text
    assert findings_text(rows, runs=9, detail="whole").count("Message") == 14
    assert shown(*(row | {"severity": "note"} for row in rows)).count("Message") == 1


def test_findings_with_one_cause_are_one_group() -> None:
    """A stall of a stolen CPU is counted below it; a heavier one, or of another run, is listed."""
    rows = [finding(rule="host-noise"), finding(), finding("002-a-r2")]
    text = shown(*rows)
    assert "also 1 warning of stall in the same runs: volbench check --rule stall DIR" in text
    assert "stall  1 warning\n  warning  002-a-r2" in text
    assert "also" not in shown(rows[0], finding(severity="invalid"))
    assert "also" not in findings_text(rows, runs=9, detail="whole")
    assert len(findings_text(rows, runs=9, detail="line").splitlines()) == 3


def test_the_most_severe_rule_comes_first() -> None:
    """Notes come last, whatever the order of the frame."""
    severities = (("a", "note"), ("b", "warning"), ("c", "note"), ("c", "invalid"))
    rows = [finding(rule=rule, severity=severity) for rule, severity in severities]
    assert list(by_rule(rows)) == ["c", "b", "a"]
    expected = {Severity.INVALID: 1, Severity.WARNING: 1, Severity.NOTE: 1}
    assert count_severities(rows) == expected


def test_time_direction_and_one_of_several_campaigns_are_reported() -> None:
    """A finding about a part of a run says which; equal ids in two folders are told apart."""
    assert "write, 20s to 28s: No" in shown(finding(direction="write", from_s=20.0, to_s=28.0))
    text = shown(finding(), finding(campaign="d"))
    assert "c/001-a-r1" in text
    assert "d/001-a-r1" in text


def test_results_show_how_many_findings_there_are() -> None:
    """A rule counts once for a run, as in all sums; notes don't, and invalid numbers are marked."""
    rows = [finding(), finding(severity="invalid"), finding(severity="note"), finding("002-b-r1")]
    rows += [finding(rule="host-noise", direction=direction) for direction in ("read", "write")]
    marks = warning_marks(rows)
    assert marks == {"001-a-r1": "2!", "002-b-r1": "1"}
    text = printed(summary_table(summary(), warnings=marks))
    assert text.splitlines()[2].split()[-2] == "2!"
    assert "! the result is invalid" in text
    assert "warnings" not in printed(summary_table(summary(), warnings={}))


def test_the_report_shows_each_finding() -> None:
    """With message, why and what to do, as text."""
    run = run_of(2, "fast")
    findings = [
        finding(run.id, "never-written", severity="invalid", direction="write"),
        finding(run.id, "too-short", severity="note", message="<b>few</b>"),
    ]
    content = content_of((run,), [row_of(run, iops=90000.0)], findings=findings)
    page = parsed(render_report(content))
    text = " ".join(part for _, part in page.texts)
    for words in ("Data quality: 1 of 1 run invalid", "<b>few</b>", "It hangs.", "1 invalid"):
        assert words in text
