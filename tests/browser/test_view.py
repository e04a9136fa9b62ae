"""Filters, explorer, theme and keys of the report: what they keep, and that a link restores it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

import volbench
from tests.browser.watched import PHONE, Watched, axe
from tests.extensions.importer.sources import CASES, put, take
from volbench.api.many_campaigns import open_campaigns
from volbench.cli.main import cli
from volbench.present.plots.colour_themes import THEMES

ROWS = "#results-table tbody tr"
BARS = """place => document.querySelector(place).chart.drawn.get(0).drawing.renderers
    .filter(own => own.mark.type === 'Bars').map(own => own.renderer.data_source.data.row.length)"""
CATEGORIES = "place => document.querySelector(place).chart.plot.panels[0].y.categories"


def test_a_filter_acts_on_charts_tables_and_address(watched: Watched) -> None:
    """By keyboard: the menu opens, a value is ticked, everything follows, c clears it."""
    page = watched.page
    chart = "#chart-iops-drawing"
    watched.drawn(chart)
    assert sum(page.evaluate(BARS, chart)) == 8
    page.keyboard.press("/")
    page.locator("#filters summary", has_text="Direction").press("Enter")
    page.get_by_label("read", exact=True).press("Space")
    assert "direction=read" in page.url
    assert page.locator(ROWS).count() == 8
    watched.drawn(chart)
    assert page.evaluate(BARS, chart) == [4]
    assert len(page.evaluate(CATEGORIES, chart)) == 4
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    assert page.locator(ROWS).count() == 16
    assert "direction" not in page.url


def test_a_link_restores_the_view(browser: Browser, report: Path) -> None:
    """Filters, axes, pooling, colour and theme come from the fragment."""
    watched = Watched(browser, report)
    page = watched.page
    view = "direction=write&theme=dark&show=lat_p99_s&against=iodepth&colour=job&pool=all"
    page.goto(f"{report.as_uri()}#{view}")
    page.reload()
    page.locator("#filters output", has_text="of 8 runs").wait_for()
    assert page.locator(ROWS).count() == 8
    watched.drawn("#explorer-drawing")
    panel = "document.querySelector('#explorer-drawing').chart.plot.panels[0]"
    assert page.evaluate(f"[{panel}.x.label, {panel}.y.label]") == [
        "Queue depth of each job",
        "p99 latency",
    ]
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_label("Theme").select_option("Light")
    assert "theme=light" in page.url
    watched.close()
    assert watched.faults == []


def test_logs_without_totals_have_nothing_to_explore(browser: Browser, tmp_path: Path) -> None:
    """Only their series is drawn: there is no measure to choose, and no sentence on filters."""
    for log in CASES.glob("fio-3.33/logs-numjobs/l_*.log"):
        put(tmp_path / "logs" / log.name, log.read_bytes())
    take(tmp_path / "logs", into=tmp_path / "imported")
    page = tmp_path / "page.html"
    arguments = ["report", str(tmp_path / "imported"), "--output", str(page)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    watched = Watched(browser, page)
    watched.drawn()
    assert watched.page.locator("#explorer").is_hidden()
    assert "filters keep" not in watched.page.inner_text("main")
    watched.close()
    assert watched.faults == []


def test_long_names_are_cut_in_their_middle(browser: Browser, report: Path) -> None:
    """Jobs and hosts differ in their beginning, volumes in their end."""
    watched = Watched(browser, report)
    cut = ["['vm10 ...sk_persistent-disk-1', 13]", "['/data\\nvm1', 9]", "['abc', 1]"]
    names = [watched.page.evaluate(f"clipped(...{arguments})") for arguments in cut]
    assert names == ["vm10 .\u2026disk-1", "/data\nvm1", "\u2026"]
    watched.close()


def test_two_groups_are_compared(browser: Browser, report: Path) -> None:
    """What the filters showed first is the baseline; shared workloads have ratios."""
    watched = Watched(browser, report)
    page = watched.page
    page.goto(f"{report.as_uri()}#iodepth=1")
    page.reload()
    page.get_by_role("button", name="Use as baseline").click()
    page.evaluate("changeView({ iodepth: '8' })")
    page.get_by_role("button", name="Compare with baseline").click()
    panel = page.locator("#run[open]")
    panel.locator("p", has_text="Baseline: Queue depth 1").wait_for()
    assert "Compared with it: Queue depth 8" in panel.inner_text()
    assert "They differ in queue depth (1 and 8)" in panel.inner_text()
    names = panel.locator("tbody th").all_inner_texts()
    assert names == ["randrw, 4k, read (2 and 2)", "randrw, 4k, write (2 and 2)"]
    cells = panel.locator("tbody tr").first.locator("td").all_inner_texts()
    assert cells[2].endswith(" x")
    watched.close()
    assert watched.faults == []


def test_a_run_is_opened_beside_the_page(watched: Watched) -> None:
    """By its row, by keyboard, and by its bar; it has what is known of it, and Escape closes it."""
    page = watched.page
    page.locator("#filters output", has_text="8 of 8 runs").wait_for()
    page.locator(f"{ROWS} .open-run").first.press("Enter")
    panel = page.locator("#run[open]")
    panel.get_by_role("heading", name="Over time").wait_for()
    assert panel.locator("h2").inner_text() == "mix-4k-d1"
    assert "run=" in page.url
    for heading in ("Data quality", "Latency percentiles", "Device", "Job file"):
        assert panel.get_by_role("heading", name=heading).count() == 1
    assert "iodepth=1" in panel.locator("pre").inner_text()
    panel.locator(".panel[data-drawn]").first.wait_for()
    page.keyboard.press("]")
    panel.locator("p", has_text="002-").first.wait_for()
    assert axe(page) == []
    page.keyboard.press("Escape")
    panel.wait_for(state="detached")
    assert "run=" not in page.url
    chart = watched.drawn("#explorer-drawing")
    box = chart.locator(".canvas").bounding_box()
    frame = "document.querySelector('#explorer-drawing').chart.drawn.get(0).view.frame.bbox"
    left, top = page.evaluate(f"[{frame}.left, {frame}.top]")
    assert box is not None
    page.mouse.click(box["x"] + left + 12, box["y"] + top + 12)
    panel.locator("caption", has_text="Runs behind the mark").wait_for()
    assert panel.locator("tbody tr").count() == 4


def iops_of(report: Path, run: str, direction: str) -> float:
    """Return a result as volbench gives it."""
    rows = volbench.open_campaign(report.parents[1] / "made-up").frame("summary")
    (value,) = rows.loc[(rows["run"] == run) & (rows["direction"] == direction), "iops"]
    return float(value)


def test_two_single_runs_are_compared(watched: Watched, report: Path) -> None:
    """One is the baseline, the other opened: ratio and charts over each other; it is let go."""
    page = watched.page
    page.locator(f"{ROWS} .open-run", has_text="mix-4k-d1").first.press("Enter")
    panel = page.locator("#run[open]")
    panel.get_by_role("button", name="Use as baseline").click()
    panel.get_by_text("This run is the baseline.").wait_for()
    page.locator("#results").get_by_role("searchbox").fill("mix-4k-d8")
    page.locator(f"{ROWS} .open-run").first.press("Enter")
    panel.get_by_role("heading", name="Compared with the baseline").wait_for()
    lines = panel.locator("p", has_text="Baseline: ").first.inner_text().splitlines()
    runs = [line.split(": ")[1] for line in lines]
    assert [run.split("-", 1)[1] for run in runs] == ["mix-4k-d1-r1", "mix-4k-d8-r1"]
    rates = [iops_of(report, run, "read") for run in runs]
    cells = panel.locator("tbody tr", has_text="read (1 and 1)").locator("td").all_inner_texts()
    assert cells[2] == f"{rates[1] / rates[0]:.2f} x"
    assert (
        f"{rates[1] / rates[0]:.2f} times the IOPS of the baseline"
        in panel.locator(".verdict").inner_text()
    )
    for title in ("Both over time", "Latency percentiles of both"):
        chart = panel.locator("figure", has_text=title).first
        names = {name.strip() for name in chart.locator(".toggles button").all_inner_texts()}
        assert names == {
            f"{side}, {way}" for side in ("baseline", "compared") for way in ("read", "write")
        }
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    panel.get_by_role("heading", name="Compared with the baseline").wait_for()
    panel.get_by_role("button", name="Clear baseline").click()
    panel.get_by_role("heading", name="Compared with the baseline").wait_for(state="detached")
    assert "base=" not in page.url


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_charts_and_columns_are_selected(watched: Watched, by: str) -> None:
    """Measure, axis, colour and pooling change the chart and the address."""
    page = watched.page
    watched.drawn("#explorer-drawing")
    chosen = {"Show": "lat_p99_s", "against": "iodepth", "Colour": "job", "Group": "none"}
    choices = page.locator("#explorer .choices")
    for label, value in chosen.items():
        choice = choices.locator("label", has_text=re.compile(f"^{label}")).locator("select")
        if by == "mouse":
            choice.select_option(value)
            continue
        while choice.input_value() != value:
            choice.press("ArrowDown")
    watched.drawn("#explorer-drawing")
    assert all(f"={value}" in page.url for value in chosen.values())
    chart = "document.querySelector('#explorer-drawing').chart.plot"
    panel = page.evaluate(f"(({{ panels: [own] }}) => [own.x.label, own.y.label])({chart})")
    assert panel == ["Queue depth of each job", "p99 latency"]
    assert page.evaluate(f"{chart}.series.map(own => own.label)") == [
        f"mix-4k-d{depth}" for depth in (1, 2, 4, 8)
    ]
    marks = page.evaluate(f"{chart}.panels[0].marks.map(own => own.table.get('_runs').length)")
    assert marks == [16, 16]


def test_names_of_bars_have_what_tells_them_apart(watched: Watched) -> None:
    """The name of a job is not beside its queue depth, where no two jobs share one."""
    watched.drawn("#explorer-drawing")
    choice = "{show: 'iops', against: 'iodepth', colour: 'direction', pool: 'repeats'}"
    drawn = f"barPlot(pooledRows({choice}), {choice}).plot.panels[0].y.categories"
    assert sorted(set(watched.page.evaluate(drawn))) == ["1", "2", "4", "8"]


def test_the_theme_is_chosen_by_key(watched: Watched) -> None:
    """T goes round: light, dark, and the system's again; charts follow."""
    page = watched.page
    watched.drawn("#chart-iops-drawing")
    drawing = "document.querySelector('#chart-iops-drawing').chart.drawn.get(0).drawing"
    ink = f"{drawing}.figure.below[0].major_label_text_color"
    for theme, colours in (("light", "light"), ("dark", "dark"), ("", "light")):
        page.keyboard.press("t")
        page.wait_for_function(f"ink => {ink} === ink", arg=THEMES[colours].colours["ink"])
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert (f"theme={theme}" in page.url) == bool(theme)


RINGS = """() => { const { plot } = document.querySelector('#answer .chart').chart;
    return plot.panels.map(panel => panel.marks.map(mark => mark.table.get('_direction') ??
        mark.table.get('direction')).filter(Boolean).map(own => [...new Set(own)]).flat()); }"""


def test_rings_and_texts_of_a_chart_follow_the_filters(watched: Watched) -> None:
    """A knee is ringed, and a load written, only where their curve is drawn."""
    page = watched.page
    watched.drawn("#answer .chart")
    every = page.evaluate(RINGS)
    assert {way for panel in every for way in panel} == {"read", "write"}
    page.evaluate("changeView({ direction: 'write' })")
    watched.drawn("#answer .chart")
    assert {way for panel in page.evaluate(RINGS) for way in panel} == {"write"}


def test_filters_without_a_match_suggest_which_to_drop(browser: Browser, report: Path) -> None:
    """Charts and tables say that they are empty; a button brings runs back."""
    watched = Watched(browser, report)
    page = watched.page
    page.goto(f"{report.as_uri()}#iodepth=1&job=mix-4k-d8")
    page.reload()
    hint = page.locator("#kept")
    hint.get_by_text("No run fits all filters").wait_for()
    assert "no run fits the filters" in page.locator(".quality").inner_text()
    assert page.locator(ROWS).all_inner_texts() == ["No row fits the filters."]
    charts = page.locator("#answer .chart")
    empty = charts.filter(has_text="No run that the filters keep")
    for place in range(charts.count()):
        empty.nth(place).wait_for()
    assert axe(page) == []
    assert hint.get_by_role("button").all_inner_texts() == [
        "Drop Job: 2 runs",
        "Drop Queue depth: 2 runs",
    ]
    hint.get_by_role("button", name="Drop Queue depth").press("Enter")
    assert {text.split()[0] for text in page.locator(ROWS).all_inner_texts()} == {"mix-4k-d8"}
    assert page.locator(ROWS).count() == 4
    watched.close()
    assert watched.faults == []


@pytest.mark.parametrize(
    "view", ["job=mix-4k-d8", "iodepth=1&iodepth=4&direction=write", "direction=read"]
)
def test_shown_commands_have_the_filters_of_the_page(
    browser: Browser, report: Path, view: str
) -> None:
    """The condition that the page gives selects the same rows in volbench."""
    watched = Watched(browser, report)
    page = watched.page
    page.goto(f"{report.as_uri()}#{view}")
    page.reload()
    shown = page.locator("#kept code")
    shown.wait_for()
    option, condition = shlex.split(shown.inner_text())
    assert option == "--where"
    rows = open_campaigns(report.parents[1] / "made-up", where=condition).frame("summary")
    assert 0 < len(rows) < 16
    assert page.locator(ROWS).count() == len(rows)
    watched.close()
    assert watched.faults == []


def test_filters_stay_in_view_on_a_phone(browser: Browser, report: Path) -> None:
    """The bar takes one line; a menu opens inside the screen, and headings stand below the bar."""
    watched = Watched(browser, report, **PHONE)
    page = watched.page
    page.locator("#filters output", has_text="8 of 8 runs").wait_for()
    page.locator("nav a", has_text="Results").click()
    bar, heading = page.locator("#filters"), page.locator("#results-heading")
    page.wait_for_timeout(1000)  # charts are drawn meanwhile, and move what is below them
    boxes = [own.bounding_box() for own in (bar, heading)]
    assert boxes[0]
    assert boxes[1]
    assert boxes[0]["y"] == 0
    assert boxes[0]["height"] < 60
    assert boxes[0]["height"] <= boxes[1]["y"] < 150
    page.locator("#filters summary", has_text="Direction").tap()
    options = page.locator(".menu[open] .options").bounding_box()
    assert options
    assert options["x"] >= 0
    assert options["x"] + options["width"] <= 390
    assert options["y"] + options["height"] <= 844
    page.get_by_label("read", exact=True).tap()
    assert "direction=read" in page.url
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    watched.close()
    assert watched.faults == []


UNFILTERED = """() => [...document.querySelectorAll('.verdict, figcaption, #summary > p')]
    .filter(own => own.checkVisibility() && own.innerText && !own.closest('dialog, .explorer'))
    .filter(own => !own.innerText.includes('whatever the filters'))
    .map(own => own.innerText)"""


def test_sections_that_filters_do_not_affect_say_so(browser: Browser, comparison: Path) -> None:
    """Sentences, captions and charts without runs say that they are of all runs."""
    watched = Watched(browser, comparison)
    page = watched.page
    page.goto(f"{comparison.as_uri()}#direction=read")
    page.reload()
    page.locator("#filters output", has_text="of 16 runs").wait_for()
    assert page.locator("figcaption").first.is_visible()
    assert set(page.evaluate(UNFILTERED)) <= {"No limits were declared for these volumes."}
    forest = page.locator("#together .of-all-runs")
    forest.first.wait_for()
    content = "own => getComputedStyle(own, '::before').content"
    assert "Of all runs" in forest.first.evaluate(content)
    watched.close()
    assert watched.faults == []


def test_a_menu_of_ten_thousand_values_stays_short(watched: Watched) -> None:
    """It lists some of them, all that are chosen, and those that a search finds."""
    page = watched.page
    page.locator("#filters output", has_text="8 of 8 runs").wait_for()
    listed = page.evaluate(
        """() => {
            const values = Array.from({ length: 10000 }, (_, n) => `job-${n}`);
            const shown = (sought, chosen) =>
                optionsOf("", values, sought, new Set(chosen)).map((own) => own.textContent.trim());
            return [shown("", ["job-9000"]), shown("9999", [])];
        }"""
    )
    assert len(listed[0]) == 202
    assert listed[0][200:] == ["job-9000", "9,799 more: narrow the list"]
    assert listed[1] == ["job-9999"]
    assert watched.faults == []
