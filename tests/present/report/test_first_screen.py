"""First screen of the report: answer, line of quality, and the charts that lead."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from tests.present.frames_by_kind import climbs, fleet, ladder, repeats, rounds, storms
from tests.present.report.small_reports import content_of, parsed, row_of, run_of
from tests.present.tables.declared_tables import delivery
from volbench.analyse.compare.expected_bounds import Answer, Verdict
from volbench.analyse.compare.promised_limits import Outcome
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.model.campaign.planned_run import Imported, RunNote, RunState
from volbench.model.frames.expectation import parse_expectation
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.present.plots.description import numbers
from volbench.present.plots.kinds import Frames, Options
from volbench.present.report.content import ReportContent
from volbench.present.report.lead_charts import Read, report_plots
from volbench.present.report.report_page import render_report
from volbench.present.tables.audit_table import audit_words
from volbench.present.tables.expectations_table import expectation_words, expectations_page_table

RUNS = tuple(run_of(number, "job") for number in range(1, 41))


def finding(run: str, rule: str, severity: str) -> dict[str, object]:
    """Return a row of the findings frame."""
    named: dict[str, object] = {"run": run, "rule": rule, "severity": severity}
    named |= {"job": run[4:-3], "direction": ""}
    texts = {"message": f"{rule} of {run}", "why": "Why.", "advice": "Advice.", "evidence": "{}"}
    return named | texts


def content(findings: list[dict[str, object]]) -> ReportContent:
    """Return a report of forty repeats of a workload."""
    rows = [
        row_of(run, iops=1000.0 + 2 * n, bw_bytes_per_s=4096e3, repeat=n + 1)
        for n, run in enumerate(RUNS)
    ]
    return content_of(RUNS, rows, findings=findings)


def test_runs_that_failed_have_no_result() -> None:
    """A failed run has a row of what was planned, and is counted in the line of quality."""
    runs = RUNS[:3]
    rows = [row_of(run, iops=1000.0) for run in runs]
    rows[0] |= {"status": "failed", "iops": None}
    states = {run.id: RunNote(RunState.FINISHED, "") for run in runs}
    states[runs[0].id] = RunNote(RunState.FAILED, "no space")
    for last, words in ((1000.0, "agree within 0 %"), (2500.0, "differ by up to 2.5 times")):
        rows[2]["iops"] = last
        page = parsed(render_report(content_of(runs, rows, states=states)))
        assert f"Data quality: 1 without a result, repeats {words}" in page.text("summary")


def test_the_page_begins_with_the_answer() -> None:
    """Title, constants, answer, chart and quality stand in this order, the table behind them."""
    html = render_report(content([finding(RUNS[0].id, "noisy", "warning")]))
    page = parsed(html)
    assert "/data" in page.text("p")[0]
    assert "2026-01-02" in page.text("h1")[0]
    assert "randwrite 4k, queue depth 1: 1.04k IOPS" in " ".join(page.text("p"))
    quality = "Data quality: 1 of 40 runs with warnings, repeats agree within 3.8 %"
    assert quality in page.text("summary")
    places = ("<h1>", 'class="verdict"', "<figure", 'class="quality', "<table>", "<details>")
    found = [html.index(place) for place in places]
    assert found == sorted(found)


def test_imported_results_are_not_called_planned() -> None:
    """There is no job file, nobody decided on a seed, and the runs were started elsewhere."""
    made = content([])
    [part] = made.parts
    imported = Imported(files=(), jobs=())
    runs = tuple(run.model_copy(update={"imported": imported}) for run in RUNS)
    campaign = part.campaign.model_copy(update={"runs": runs})
    html = render_report(replace(made, parts=[replace(part, campaign=campaign, jobs={})]))
    for words in ("plain fio can run again", "overwritten"):
        assert words not in html
        assert words in render_report(replace(made, parts=[replace(part, jobs={})]))


@pytest.mark.parametrize(
    ("severities", "level"),
    [([], "ok"), (["note"], "note"), (["note", "warning"], "warning"), (["invalid"], "invalid")],
)
def test_quality_shows_the_most_severe_finding(severities: list[str], level: str) -> None:
    """Green is for repeats that agree without a note."""
    rows = [finding(RUNS[n].id, "noisy", severity) for n, severity in enumerate(severities)]
    details = parsed(render_report(content(rows))).all("details")
    assert details[0]["class"] == f"quality {level}"


def reader(frames: Frames) -> Read:
    """Return what reads a frame; a frame that is missing is empty."""
    return lambda name: frames.get(name, pd.DataFrame(columns=["run", "severity"]))


def warming() -> Frames:
    """Return climbs of a profile that was made to show them."""
    return {name: frame.assign(profile="warmup-curve") for name, frame in climbs().items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (storms, "storm"),
        (warming, "warmup"),
        (climbs, "iops"),
        (rounds, "rounds"),
        (ladder, "iops"),
        (repeats, "iops"),
        (fleet, "iops"),
    ],
)
def test_the_lead_chart_depends_on_the_campaign(given: object, kind: str) -> None:
    """Storm, warm-up, rounds or the design, small enough for the first screen."""
    assert callable(given)
    track = Track(job="b4096-r0", metric=Metric.IOPS)
    options = Options(rounds={"aks-disk": Rounds(track=(track,))} if given is rounds else {})
    lead, *others = report_plots(reader(given()), options)
    assert lead.name == kind
    assert sum(lead.heights) <= 3.5
    assert [plot.name for plot in others][-1:] in (["p99"], ["mean"])
    assert any(panel.x.label for panel in lead.panels)


@pytest.mark.smoke
def test_a_single_run_leads_with_its_series() -> None:
    """One bar repeats the sentence above it; the run over time does not."""
    made = repeats()
    run = made["summary"]["run"].iloc[0]
    single = {name: frame[frame["run"] == run] for name, frame in made.items() if "run" in frame}
    assert [plot.name for plot in report_plots(reader(single))] == ["series", "latency"]
    failed = {**single, "summary": single["summary"].assign(status="failed")}
    assert [*report_plots(reader(failed))] == []


@pytest.mark.slow
def test_no_chart_shows_an_invalid_run() -> None:
    """The caption counts what is not shown."""
    made = repeats()
    invalid = made["summary"]["run"].iloc[0]
    findings = pd.DataFrame({"run": [invalid], "severity": ["invalid"]})
    plots = [*report_plots(reader({**made, "findings": findings}))]
    assert [plot.name for plot in plots] == ["iops", "p99"]
    for plot in plots:
        assert "run" not in numbers(plot) or invalid not in set(numbers(plot)["run"])
    said = [text for plot in plots for text in plot.caption]
    assert any(text.startswith("Invalid results, not shown") for text in said)


def test_expectations_are_answered_in_a_sentence() -> None:
    """The sentence has the answer and the number that decides it; the table has them all."""
    known = Interval(0.011, 0.012, 0.013)
    unknown = Interval(math.nan, math.nan, math.nan)
    wal, reads = parse_expectation("wal.fsync_p99 < 10ms"), parse_expectation("reads.steady=yes")
    expected = [
        Verdict(wal, "wal", "sync", Answer.FAIL, known, 3, ""),
        Verdict(reads, "reads", "", Answer.UNDECIDED, unknown, 0, "no finished result"),
    ]
    words = "Fail: wal.fsync_p99 < 10ms (measured 12 ms [11 ms, 13 ms])."
    assert expectation_words(expected) == f"{words} 0 of 2 expectations are met."
    table = expectations_page_table(expected)
    page = parsed(render_report(replace(content([]), tables=[table])))
    assert {"fail", "undecided", "no finished result"} <= set(page.text("td"))
    assert "Expectations" in page.text("p")


def test_an_audit_is_answered_in_a_sentence() -> None:
    """The worst volume is named after the number of each verdict; the table has all limits."""
    short, fine = delivery("vm02", "read"), delivery("vm01", "read")
    fine = replace(fine, outcome=Outcome.DELIVERS)
    words = audit_words([short, fine])
    assert words.startswith("2 volumes: ")
    assert "1 delivers. The worst: vm02 " in words
    (alone,) = audit_words([fine]).splitlines()
    assert alone.startswith(f"{fine.volume}")
