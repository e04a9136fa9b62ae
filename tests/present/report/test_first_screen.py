"""First screen of the report: place, verdict, badge of data quality, and the charts that lead."""

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
from volbench.model.frames.columns import FRAMES
from volbench.model.frames.expectation import parse_expectation
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.present.plots.description import numbers
from volbench.present.plots.kinds import Frames, Options
from volbench.present.report import ReportContent, lead_plots, render_report, report_plots
from volbench.present.tables.audit_table import audit_words

VERDICT_COLUMNS = [column.name for column in FRAMES["verdicts"]]
RUNS = tuple(run_of(number, f"job{number}") for number in range(1, 41))


def finding(run: str, rule: str, severity: str) -> dict[str, object]:
    """Return a row of the findings frame."""
    named: dict[str, object] = {"run": run, "rule": rule, "severity": severity}
    named |= {"job": run[4:-3], "direction": ""}
    texts = {"message": f"{rule} of {run}", "why": "Why.", "advice": "Advice.", "evidence": "{}"}
    return named | texts


def content(findings: list[dict[str, object]]) -> ReportContent:
    """Return a report of forty runs with a limit that half of them reach."""
    rates = (500.0, 1000.0)
    rows = [
        row_of(run, iops=rates[n % 2], bw_bytes_per_s=4096 * rates[n % 2], limit_iops=1000.0)
        for n, run in enumerate(RUNS)
    ]
    made = content_of(RUNS, rows)
    return replace(made, frames={**made.frames, "findings": pd.DataFrame(findings)})


def test_runs_that_failed_have_no_result_and_each_host_its_volumes() -> None:
    """A failed run has a row of what was planned; the same path on two hosts is two volumes."""
    volumes = [RUNS[0].volume.model_copy(update={"target": path}) for path in "abab"]
    runs = tuple(
        run_of(n, "a").model_copy(update={"volume": volume, "host": f"vm{n % 3}"})
        for n, volume in enumerate(volumes, start=1)
    )
    rows = [row_of(run, iops=1000.0) for run in runs]
    rows[0] |= {"status": "failed", "iops": None}
    states = {run.id: RunNote(RunState.FINISHED, "") for run in runs}
    states[runs[0].id] = RunNote(RunState.FAILED, "no space")
    page = parsed(render_report(replace(content_of(runs, rows), states=states)))
    assert "Data quality: 1 without a result" in page.text("summary")
    assert "3 hosts · 4 volumes · 4 runs of 1 job" in page.text("p")[0]


@pytest.mark.slow
def test_the_page_begins_with_the_answer() -> None:
    """Place, verdict and badge stand before the table, and the charts behind it."""
    html = render_report(content([finding(RUNS[0].id, "noisy", "warning")]))
    page = parsed(html)
    assert "/data" in page.text("p")[0]
    assert "40 runs of 40 jobs" in page.text("p")[0]
    assert "randwrite 4k: 500 IOPS, 2.05 MB/s" in " ".join(page.text("p"))
    assert "Data quality: 1 of 40 runs affected" in page.text("summary")
    places = ('class="verdict"', 'class="quality', "<table>", "<figure", 'class="environment"')
    found = [html.index(place) for place in places]
    assert found == sorted(found)


@pytest.mark.slow
def test_missed_precision_is_on_the_first_screen() -> None:
    """A median that did not become precise is not a number to quote without that."""
    missed = ["reads: not precise after 30 repeats: known to 5 %", "writes: not precise"]
    for sentences, expected in (
        (missed[:1], "reads: not precise after 30 repeats: known to 5 %."),
        (missed, "2 workloads are not precise, see Data quality: reads: not precise after 30"),
    ):
        page = parsed(render_report(replace(content([]), imprecise=sentences)))
        assert any(words.startswith(expected) for words in page.text("p"))


@pytest.mark.slow
def test_expectations_are_answered_before_anything_else() -> None:
    """The sentence has the answer and the number that decides it; the table has them all."""
    known = Interval(0.011, 0.012, 0.013)
    unknown = Interval(math.nan, math.nan, math.nan)
    wal, reads = parse_expectation("wal.fsync_p99 < 10ms"), parse_expectation("reads.steady=yes")
    expected = [
        Verdict(wal, "wal", "sync", Answer.FAIL, known, 3, ""),
        Verdict(reads, "reads", "", Answer.UNDECIDED, unknown, 0, "no finished result"),
    ]
    html = render_report(replace(content([]), expected=expected))
    words = "Fail: wal.fsync_p99 < 10ms (measured 12 ms [11 ms, 13 ms])."
    verdict = next(text for text in parsed(html).text("p") if words in text)
    assert verdict == f"{words} 0 of 2 expectations are met."
    cells = parsed(html).text("td")
    assert {"fail", "undecided", "no finished result"} <= set(cells)
    assert "<p>Expectations</p>" in html
    assert "<p>Expectations</p>" not in render_report(content([]))


@pytest.mark.slow
def test_an_audit_begins_with_its_verdicts() -> None:
    """The worst volume is named after the number of each verdict; the table has all limits."""
    short, fine = delivery("vm02", "read"), delivery("vm01", "read")
    fine = replace(fine, outcome=Outcome.DELIVERS)
    html = render_report(replace(content([]), audited=[short, fine]))
    verdict = next(text for text in parsed(html).text("p") if text.startswith("2 volumes: "))
    assert "1 delivers. The worst: vm02 " in verdict
    assert "<th>verdict</th>" in html
    (alone,) = audit_words([fine]).splitlines()
    assert alone.startswith(f"{fine.volume}")


@pytest.mark.slow
def test_imported_results_are_not_called_planned() -> None:
    """There is no job file, nobody decided on a seed, and the runs were started elsewhere."""
    made = content([])
    imported = Imported(files=(), jobs=())
    runs = tuple(run.model_copy(update={"imported": imported}) for run in RUNS)
    campaign = made.campaign.model_copy(update={"runs": runs})
    html = render_report(replace(made, campaign=campaign, jobs={}))
    for words in ("plain fio can run again", "overwritten"):
        assert words not in html
        assert words in render_report(replace(made, jobs={}))


@pytest.mark.slow
@pytest.mark.parametrize(("limited", "times"), [(39, 1), (19, 0)])
def test_a_bottleneck_of_few_results_is_not_that_of_the_campaign(limited: int, times: int) -> None:
    """The commonest bottleneck is named, unless that of most results is unknown."""
    causes = ["bandwidth-limit"] * limited + ["unknown"] * (len(RUNS) - limited)
    made = content([])
    pairs = zip(RUNS, causes, strict=True)
    verdicts = [{"run": run.id, "bottleneck": cause} for run, cause in pairs]
    frames = {**made.frames, "verdicts": pd.DataFrame(verdicts, columns=VERDICT_COLUMNS)}
    html = render_report(replace(made, frames=frames))
    assert html.count(f"{limited} of 40 results are consistent with a bandwidth limit") == times
    frames["verdicts"] = frames["verdicts"].head(1)
    only = render_report(replace(made, frames=frames))
    assert "1 of 1 result is consistent with a bandwidth limit" in only


@pytest.mark.slow
@pytest.mark.parametrize(
    ("severities", "badge"),
    [(["note"], "ok"), (["note", "warning"], "warning"), (["warning", "invalid"], "invalid")],
)
def test_the_badge_shows_the_most_severe_finding(severities: list[str], badge: str) -> None:
    """Notes are context: they change no colour."""
    rows = [finding(RUNS[n].id, "noisy", severity) for n, severity in enumerate(severities)]
    details = parsed(render_report(content(rows))).all("details")
    assert details[0]["class"] == f"quality {badge}"


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
    lead, *others = lead_plots(given(), options)
    assert lead.name == kind
    assert sum(lead.heights) <= 3.5
    assert len(others) <= 1
    assert any(panel.x.label for panel in lead.panels)


def test_a_run_that_stepped_has_its_series_beside_the_bars() -> None:
    """The second chart is of the run that changed."""
    frames = repeats()
    run = frames["summary"]["run"].iloc[2]
    verdicts = pd.DataFrame({"run": [run], "verdict": ["stepped"]})
    _, second = lead_plots({**frames, "verdicts": verdicts})
    assert second.name == "series"
    assert run in second.title


@pytest.mark.slow
def test_the_second_chart_shows_the_worst_run_or_the_latency() -> None:
    """The noisiest run has its series; where all are steady, p99 follows over the same design."""
    frames = repeats()
    runs = list(frames["summary"]["run"].iloc[:3])
    verdicts = pd.DataFrame(
        {"run": runs, "verdict": ["noisy", "noisy", "steady"], "spread_percent": [9.0, 30.0, 1.0]}
    )
    _, second = lead_plots({**frames, "verdicts": verdicts})
    assert runs[1] in second.title
    invalid = pd.DataFrame({"run": [runs[1]], "severity": ["invalid"]})
    _, second = lead_plots({**frames, "verdicts": verdicts, "findings": invalid})
    assert second.title.endswith(runs[0])  # The noisiest is invalid
    steady = verdicts.assign(verdict="steady")
    assert [plot.name for plot in lead_plots({**frames, "verdicts": steady})] == ["iops", "p99"]


@pytest.mark.slow
def test_a_single_run_leads_with_its_series() -> None:
    """One bar repeats the sentence above it; the run over time does not."""
    made = repeats()
    run = made["summary"]["run"].iloc[0]
    single = {name: frame[frame["run"] == run] for name, frame in made.items() if "run" in frame}
    assert [plot.name for plot in lead_plots(single)] == ["series"]
    unlogged = {**single, "series": single["series"].iloc[:0]}
    assert [plot.name for plot in lead_plots(unlogged)] == ["iops"]
    failed = {**single, "summary": single["summary"].assign(status="failed")}
    assert lead_plots(failed) == []


@pytest.mark.slow
def test_a_report_has_six_charts_that_fit_and_none_of_an_invalid_run() -> None:
    """The caption counts what is not shown; series of an invalid run are not drawn."""
    made = repeats()
    invalid = made["summary"]["run"].iloc[0]
    findings = pd.DataFrame({"run": [invalid], "severity": ["invalid"]})
    plots = report_plots({**made, "findings": findings})
    assert len({plot.name for plot in plots}) == len(plots) <= 6
    assert "series" in [plot.name for plot in plots]
    for plot in plots:
        assert sum(plot.heights) <= 4.6
        assert "run" not in numbers(plot) or invalid not in set(numbers(plot)["run"])
    said = [text for plot in plots for text in plot.caption]
    assert any(text.startswith("Invalid results, not shown") for text in said)
