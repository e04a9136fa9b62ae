"""The report's HTML: whole, self-contained, and harmless whatever stands in the files."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import re
from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest

from tests.present.report.small_reports import (
    EVIL,
    PICTURE,
    content_of,
    parsed,
    row_of,
    run_of,
)
from volbench.model.campaign.planned_run import RunState
from volbench.model.frames.columns import DEVICE, SUMMARY, VERDICTS
from volbench.present.renderers.interactive import EmbeddedPlot
from volbench.present.report import ReportContent, ReportFigure, RunNote, render_report
from volbench.present.report.embedded_runs import downloads


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


def test_the_page_is_well_formed(content: ReportContent) -> None:
    """Every tag closes in its place, ids are unique and every link inside leads somewhere."""
    page = parsed(render_report(content))
    assert page.faults == []
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [a["href"][1:] for a in page.all("a") if a["href"].startswith("#")]
    assert set(targets) <= set(ids)
    labels = [a[name] for _, a in page.tags for name in a if name == "aria-labelledby"]
    assert set(labels) <= set(ids)


def test_nothing_comes_from_the_network(content: ReportContent) -> None:
    """All that is loaded is embedded, styles import nothing, the policy forbids the rest."""
    html = render_report(content)
    page = parsed(html)
    loaded = [a[name] for _, a in page.tags for name in ("src", "href") if name in a]
    assert loaded
    assert all(place.startswith(("#", "data:")) for place in loaded)
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.tags}
    (style,) = page.text("style")
    assert "url(" not in style
    assert "@import" not in style
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_the_policy_allows_the_one_script(content: ReportContent) -> None:
    """The hash in the policy is that of the script, so that it runs and no other does."""
    html = render_report(content)
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html


def test_text_from_files_cannot_run() -> None:
    """Whatever text a file holds is shown as text: no tag and no attribute comes from it."""
    run = run_of(1, "a", note=EVIL)
    evil = replace(
        content_of((run,), [row_of(run, job=EVIL, rw=EVIL, status=EVIL, volume=EVIL)]),
        title=EVIL,
        states={run.id: RunNote(RunState.FAILED, EVIL)},
        hosts=[{EVIL: EVIL}],
        volumes=[{EVIL: EVIL}],
        jobs={run.id: EVIL},
        figures=[
            ReportFigure("towers", EVIL, EVIL, picture=PICTURE),
            ReportFigure("iops", EVIL, EVIL, plot=EmbeddedPlot(EVIL, EVIL, "payload", 100)),
        ],
    )
    page = parsed(render_report(evil))
    assert len(page.all("script")) == 1
    assert not any("onclick" in attributes for _, attributes in page.tags)
    assert EVIL in page.text("h1")
    assert page.text("code").count(EVIL) == 2
    assert page.faults == []


def test_control_characters_are_spelled_out(content: ReportContent) -> None:
    """A character that HTML forbids does not get into the page."""
    html = render_report(replace(content, jobs={"001-direct-r1": "a\x00b\x1bc"}))
    assert "a\\x00b\\x1bc" in html
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", html)


def test_numbers_carry_their_exact_value(content: ReportContent) -> None:
    """A rounded number has the exact one beside it, to read and to sort by."""
    cells = {
        a["data-value"]: a for a in parsed(render_report(content)).all("td") if "data-value" in a
    }
    assert cells["498.25"]["title"] == "498.25 I/Os per second"
    assert cells["0.0123456789"]["title"] == "0.0123456789 s (lat)"
    assert cells["498.25"]["class"] == "number"


def test_missing_values_are_not_zero() -> None:
    """What the tool did not tell reads n/a and sorts apart from zero."""
    run = run_of(1, "a")
    page = parsed(render_report(content_of((run,), [row_of(run, iops=0.0)])))
    reported = [a for a in page.all("td") if "data-value" in a]
    cells = [(a["data-value"], text) for a, text in zip(reported, page.text("td"), strict=False)]
    assert ("0.0", "0") in cells
    assert ("", "n/a") in cells


def test_headings_go_down_in_order(content: ReportContent) -> None:
    """There is one h1, and no level is jumped over."""
    levels = [
        int(tag[1]) for tag, _ in parsed(render_report(content)).tags if re.fullmatch("h[1-6]", tag)
    ]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_page_works_with_a_screen_reader(content: ReportContent) -> None:
    """Charts have a text, tables a caption and scopes, and one can skip to the content."""
    page = parsed(render_report(content))
    assert [image["alt"] for image in page.all("img")] == ["a seen", "b seen"]
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(heading["scope"] in {"row", "col"} for heading in page.all("th"))
    assert page.all("html") == [{"lang": "en"}]
    assert page.all("a")[0]["href"] == "#content"
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}


def test_each_chart_is_complete_and_has_unique_ids(content: ReportContent) -> None:
    """Each chart is an image of its own, so that ids in one can't meet those of another."""
    images = [image["src"] for image in parsed(render_report(content)).all("img")]
    assert images == [PICTURE, PICTURE]


def test_the_csv_is_the_summary(content: ReportContent) -> None:
    """The download holds every column of the summary in full precision, under a safe name."""
    (link,) = [a for a in parsed(render_report(content)).all("a") if "download" in a]
    assert link["download"] == "aks_1_2-summary.csv.gz"
    text = gzip.decompress(base64.b64decode(link["href"].partition(",")[2])).decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert rows[0]["lat_p99_s"] == "0.0123456789"
    assert list(rows[0]) == [column.name for column in SUMMARY]


def test_omitted_large_data_is_reported(content: ReportContent) -> None:
    """A frame that does not fit is named with the command that gives it."""
    (reported,) = downloads(content, room_chars=100)
    assert (reported.name, reported.rows, reported.link) == ("summary", 2, "")


def test_the_summary_is_in_plain_english(content: ReportContent) -> None:
    """It says what ran where and when, and how it ended."""
    text = " ".join(parsed(render_report(content)).text("p"))
    assert "Profile aks ran on this machine, on data (/data), at 2026-01-02 03:04:05 UTC." in text
    assert "All 2 runs finished." in text
    assert "cached went through the page cache" in text
    assert "Each job ran once" in text


def test_main_numbers_prefer_direct_results(content: ReportContent) -> None:
    """The page cache does not win the headline while there is a direct result."""
    page = parsed(render_report(content))
    assert "Highest IOPS, direct I/O" in page.text("dt")
    assert "498" in page.text("dd")
    assert "9k" not in page.text("dd")


def test_results_are_compared_with_declared_limits(content: ReportContent) -> None:
    """A result at its limit has reached it; one far above it through the cache is explained."""
    page = parsed(render_report(content))
    assert "500 IOPS, 60 MB/s" in page.text("td")
    cells = page.text("td")
    assert cells[cells.index("99.7 %") : cells.index("99.7 %") + 3] == [
        "99.7 %",
        "3.4 %",
        "reached",
    ]
    assert "above: served by the page cache" in cells


def test_both_directions_count_against_a_limit() -> None:
    """Reads and writes of a mixed run are added up, as the provider counts them."""
    run = run_of(1, "mixed")
    rows = [row_of(run, direction=way, iops=250.0, limit_iops=1000.0) for way in ("read", "write")]
    assert "50 %" in parsed(render_report(content_of((run,), rows))).text("td")


def test_repeats_give_their_median() -> None:
    """One lucky repeat is not the headline."""
    runs = tuple(run_of(n, "a").model_copy(update={"repeat": n}) for n in (1, 2, 3))
    rows = [row_of(run, iops=iops) for run, iops in zip(runs, (100.0, 900.0, 110.0), strict=True)]
    page = parsed(render_report(content_of(runs, rows)))
    assert "110" in page.text("dd")
    assert "The result of a repeated job is the median of 3 repeats." in page.text("p")
    fewer = run_of(4, "b")
    page = parsed(render_report(content_of((*runs, fewer), [*rows, row_of(fewer, iops=1.0)])))
    assert "The result of a repeated job is the median of up to 3 repeats." in page.text("p")


def test_the_warm_up_is_not_a_main_result() -> None:
    """What ran only to warm the volume up stays out of the headline."""
    runs = (run_of(1, "warm"), run_of(2, "real"))
    rows = [row_of(runs[0], phase="warmup", iops=99999.0), row_of(runs[1], iops=100.0)]
    page = parsed(render_report(content_of(runs, rows)))
    assert "100" in page.text("dd")
    assert "100k" not in page.text("dd")


def test_failed_runs_show_their_error(content: ReportContent) -> None:
    """A failed run is counted, linked and quoted; one that never ran is listed too."""
    states = {"001-direct-r1": RunNote(RunState.FAILED, "fio: No space left\nline two")}
    page = parsed(render_report(replace(content, states=states)))
    assert "Of 2 runs, 1 never ran and 1 failed." in page.text("p")
    assert "fio: No space left\nline two" in page.text("code")
    assert "No reason was recorded." in page.text("p")


def test_a_campaign_without_results_still_has_a_report(content: ReportContent) -> None:
    """When everything failed the page says so instead of failing too."""
    for frames in ({}, {"summary": content.frames["summary"].head(0)}):
        page = parsed(
            render_report(replace(content, frames=frames, figures=(), states={}, jobs={}))
        )
        assert "No run has a result yet." in page.text("p")
        assert page.faults == []


def test_what_interrupted_runs_reported_is_not_denied(content: ReportContent) -> None:
    """An imported result of a fio that was stopped has numbers, in the table."""
    summary = content.frames["summary"].assign(status="interrupted")
    page = parsed(render_report(replace(content, frames={"summary": summary}, figures=())))
    assert any(words.startswith("No run finished; the table") for words in page.text("p"))


def test_runs_without_totals_are_not_called_unfinished(content: ReportContent) -> None:
    """Logs without a result have a series; their pattern and number of jobs are unknown."""
    run = content.campaign.runs[0]
    row = row_of(run, direction="read") | dict.fromkeys(("rw", "iops", "bw_bytes_per_s", "numjobs"))
    page = parsed(render_report(content_of((run,), [row])))
    assert "The finished runs have time series but no totals: see the charts." in page.text("p")
    assert "Workloads: read 4k." in page.text("p")
    assert "numjobs" not in page.text("th")


def test_provenance_is_complete(content: ReportContent) -> None:
    """Command line, seed, versions, host and volumes are there, and the job files word by word."""
    page = parsed(render_report(content))
    for reported in ("'a b'", "42", "fio-3.33", "volbench 9.9.9", "Linux 6.1", "/data"):
        assert reported in page.text("td")
    assert "[direct]\nrw=randwrite" in page.text("code")


def test_thirty_runs_stay_small() -> None:
    """A larger campaign stays a file that can be mailed."""
    runs = tuple(run_of(number, f"job{number}") for number in range(30))
    content = content_of(runs, [row_of(run, iops=1.0) for run in runs])
    big = replace(
        content, figures=[ReportFigure("a", "A", "d", picture=PICTURE.ljust(150_000))] * 8
    )
    assert len(render_report(big).encode()) < 3_000_000


def test_the_device_has_a_section_of_its_own(content: ReportContent) -> None:
    """The table of the device and its chart stand together, with what speaks for a cause."""
    run = content.campaign.runs[0]
    known = ("campaign", "run", "profile", "job", "group", "host", "volume", "phase", "repeat")
    same = {name: row_of(run)[name] for name in known}
    rates = {"read_iops": 0.0, "write_iops": 125.0, "write_lat_s": 0.0025}
    sample = {**same, **rates, "device": "sdx", "level": "volume", "t_s": 1.0, "interval_s": 1.0}
    sample["after_fio"] = False
    verdict = {**same, "direction": "write", "bottleneck": "latency", "explanation": EVIL}
    frames = {
        **content.frames,
        "device": pd.DataFrame([sample], columns=[column.name for column in DEVICE]),
        "verdicts": pd.DataFrame([verdict], columns=[column.name for column in VERDICTS]),
    }
    figures = [
        *content.figures,
        ReportFigure("device", "The device", "device seen", picture=PICTURE),
    ]
    html = render_report(replace(content, frames=frames, figures=figures))
    page = parsed(html)
    assert page.faults == []
    part = html[html.index('<section id="device"') : html.index('<section id="jobs"')]
    for reported in ("125 (25 %)", "2.5 ms", "latency", "device seen", "no bottleneck"):
        assert reported in part
    assert "a seen" not in part
    assert html.count("device seen</figcaption>") == 1
    assert len(page.all("script")) == 1
    assert "#device" in [link.get("href") for link in page.all("a")]


def test_without_samples_there_is_no_device_section(content: ReportContent) -> None:
    """A campaign that nobody watched has neither the heading nor a link to it."""
    html = render_report(content)
    assert 'id="device"' not in html
    assert "#device" not in html


def test_a_hostile_campaign_stays_safe_and_bounded() -> None:
    """Thousands of runs with markup in long labels, notes and reasons: a page that opens."""
    evil = EVIL.replace("/", "") + "x" * 2_000
    runs = tuple(run_of(n, f"<b>{n}", note=f"{n}{evil}") for n in range(2_000))
    content = content_of(runs[:1_000], [row_of(run, iops=1.0) for run in runs[:1_000]])
    labels = [f"{n}{evil}" for n in range(1_000)]
    html = render_report(
        replace(
            content,
            campaign=content.campaign.model_copy(update={"runs": runs}),
            states={
                **content.states,
                **{run.id: RunNote(RunState.FAILED, evil * 10) for run in runs[1_000:]},
            },
            frames={"summary": content.frames["summary"].assign(label_kind=labels)},
            hosts=[{"host": f"{n}{evil}"} for n in range(1_000)],
        )
    )
    assert parsed(html).faults == []
    assert "<script>alert" not in html
    assert "<b>" not in html
    assert len(html) < 6_000_000
    assert "940 more: <code>volbench show DIR --runs</code>" in html
