"""First screen of the report: answer, line of quality, and the charts that lead."""

from dataclasses import replace

import pandas as pd
import pytest

from tests.present.frames_by_kind import climbs, fleet, ladder, repeats, rounds, storms
from tests.present.report.small_reports import content_of, parsed, row_of, run_of
from volbench.model.campaign.planned_run import Imported, RunNote, RunState
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.present.plots.description import numbers
from volbench.present.plots.kinds import Frames, Options
from volbench.present.report import ReportContent, render_report, report_plots
from volbench.present.report.lead_charts import Read

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
    page = parsed(render_report(content_of(runs, rows, states=states)))
    assert "Data quality: 1 without a result, repeats agree within 0 %" in page.text("summary")


def test_the_page_begins_with_the_answer() -> None:
    """Title, constants, answer, chart and quality stand in this order, the table behind them."""
    html = render_report(content([finding(RUNS[0].id, "noisy", "warning")]))
    page = parsed(html)
    assert "/data" in page.text("p")[0]
    assert "2026-01-02" in page.text("p")[0]
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
        (rounds, "convergence"),
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
