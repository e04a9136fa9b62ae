"""The report's HTML: whole, self-contained, and harmless whatever stands in the files."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.present.report.small_reports import EVIL, PICTURE, content_of, parsed, row_of, run_of
from volbench.model.campaign.planned_run import RunNote, RunState
from volbench.present.report.content import Quality, ReportContent, ReportFigure
from volbench.present.report.report_page import render_report
from volbench.present.report.report_text import without_numbers


@pytest.fixture
def content() -> ReportContent:
    """Return a report on two runs, one direct and one through the page cache."""
    runs = (run_of(1, "direct"), run_of(2, "cached"))
    limits = {"limit_iops": 500.0, "limit_bw_bytes_per_s": 60e6}
    rows = [
        row_of(runs[0], iops=498.25, bw_bytes_per_s=2040832.0, lat_p99_s=0.0123456789, **limits),
        row_of(runs[1], iops=9000.0, bw_bytes_per_s=36864000.0, direct=False, **limits),
    ]
    return content_of(runs, rows)


def with_part(content: ReportContent, **changes: Any) -> ReportContent:  # noqa: ANN401 - fields of the part
    """Return a report whose only campaign differs."""
    [part] = content.parts
    return replace(content, parts=[replace(part, **changes)])


def test_the_page_is_whole_and_loads_nothing(content: ReportContent) -> None:
    """Every tag closes, headings go down in order, and nothing comes from the network."""
    page = parsed(render_report(content))
    assert page.faults == []
    assert page.open == []
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert page.all("html") == [{"lang": "en"}]
    loaded = [a[name] for _, a in page.tags for name in ("src", "href") if name in a]
    assert loaded == [PICTURE, PICTURE]
    assert [image["alt"] for image in page.all("img")] == ["a seen", "b seen"]
    assert not {"script", "link", "iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    (style,) = page.text("style")
    assert "url(" not in style
    assert "@import" not in style
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_text_from_files_cannot_run() -> None:
    """Whatever text a file holds is shown as text: no tag and no attribute comes from it."""
    run = run_of(1, "a", note=EVIL)
    evil = replace(
        content_of((run,), [row_of(run, job=EVIL, rw=EVIL, status=EVIL, volume=EVIL)]),
        title=EVIL,
        constants=EVIL,
        answer=[EVIL],
        quality=Quality("ok", EVIL, "", [EVIL]),
        tools=EVIL,
        figures=[ReportFigure(EVIL, EVIL, EVIL, PICTURE)],
    )
    evil = with_part(
        evil,
        name=EVIL,
        states={run.id: RunNote(RunState.FAILED, EVIL)},
        hosts=[{EVIL: EVIL}],
        volumes=[{EVIL: EVIL}],
        jobs={run.id: EVIL},
    )
    page = parsed(render_report(evil))
    assert page.all("script") == []
    assert not any("onclick" in attributes for _, attributes in page.tags)
    assert EVIL in page.text("h1")
    assert page.text("pre").count(EVIL) == 2
    assert page.faults == []


def test_control_characters_are_spelled_out(content: ReportContent) -> None:
    """A character that HTML forbids does not get into the page."""
    html = render_report(with_part(content, jobs={"001-direct-r1": "a\x00b\x1bc"}))
    assert "a\\x00b\\x1bc" in html
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", html)


def test_the_page_is_in_plain_english(content: ReportContent) -> None:
    """It says when, how the runs ended, and what is known of the page cache."""
    page = parsed(render_report(content))
    text = " ".join(page.text("p"))
    assert "2026-01-02" in page.text("h1")[0]
    assert "2 runs: 2 finished." in page.text("td")
    assert "cached went through the page cache" in text
    assert ": 498 IOPS, 2.04 MB/s, p99 12.3 ms." in text


def test_failed_runs_show_their_error(content: ReportContent) -> None:
    """A failed run is counted and quoted; one that never ran is listed too."""
    states = {"001-direct-r1": RunNote(RunState.FAILED, "fio: No space left\nline two")}
    page = parsed(render_report(with_part(content, states=states)))
    assert "2 runs: 1 planned, 1 failed." in page.text("td")
    assert "fio: No space left\nline two" in page.text("pre")
    assert any("no reason was recorded" in words for words in page.text("p"))


def test_a_campaign_without_results_still_has_a_report(content: ReportContent) -> None:
    """When everything failed the page says so instead of failing too."""
    runs = content.parts[0].campaign.runs
    page = parsed(render_report(replace(content_of(runs, [], states={}), figures=())))
    assert "No run has a result yet." in page.text("p")
    assert "Data quality: no run has a result" in page.text("summary")
    assert page.faults == []


def test_results_without_totals_are_not_denied() -> None:
    """A fio that was stopped has numbers in the table; logs without a result have a series."""
    run = run_of(1, "direct")
    page = parsed(render_report(content_of((run,), [row_of(run, status="interrupted")])))
    assert any(words.startswith("No run finished. The table") for words in page.text("p"))
    nothing = row_of(run, direction="read") | {"rw": None, "numjobs": None}
    assert without_numbers([nothing]).startswith("The finished runs have time series")


def test_provenance_is_complete(content: ReportContent) -> None:
    """Command line, seed, versions, host and volumes are there, and the job files word by word."""
    page = parsed(render_report(content))
    for reported in ("'a b'", "42", "fio-3.33", "volbench 9.9.9", "Linux 6.1", "/data"):
        assert reported in page.text("td")
    assert "[direct]\nrw=randwrite" in page.text("pre")


@pytest.mark.slow
def test_a_hostile_campaign_stays_safe_and_bounded() -> None:
    """Thousands of runs with markup in long labels, notes and reasons: a page that opens."""
    evil = EVIL.replace("/", "") + "x" * 2_000
    runs = tuple(run_of(n, f"<b>{n}", note=f"{n}{evil}") for n in range(2_000))
    content = content_of(runs[:1_000], [row_of(run, iops=1.0) for run in runs[:1_000]])
    [part] = content.parts
    campaign = part.campaign.model_copy(update={"runs": runs})
    failed = {run.id: RunNote(RunState.FAILED, evil * 10) for run in runs[1_000:]}
    hosts = [{"host": f"{n}{evil}"} for n in range(1_000)]
    states = {**part.states, **failed}
    html = render_report(with_part(content, campaign=campaign, states=states, hosts=hosts))
    assert parsed(html).faults == []
    assert "<script>alert" not in html
    assert "<b>" not in html
    assert len(html) < 6_000_000
    assert "and 800 more rows" in html
    assert "940 more: <code>volbench show DIR --runs</code>" in html
