"""Filters, explorer, theme and keys of the report: what they keep, and that a link restores it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.test_page import axe
from tests.browser.watched import Watched

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


def test_two_groups_are_compared(browser: Browser, report: Path) -> None:
    """What the filters showed first is A; each workload that both have stands with its ratio."""
    watched = Watched(browser, report)
    page = watched.page
    page.goto(f"{report.as_uri()}#iodepth=1")
    page.reload()
    page.get_by_role("button", name="Set as A").click()
    page.evaluate("changeView({ iodepth: '8' })")
    page.get_by_role("button", name="Compare with A").click()
    panel = page.locator("#run[open]")
    panel.locator("p", has_text="A: Queue depth 1").wait_for()
    assert "B: Queue depth 8" in panel.inner_text()
    assert "They differ in iodepth" in panel.inner_text()
    names = panel.locator("tbody th").all_inner_texts()
    assert [name.split(":")[1] for name in names] == [" read (2 and 2)", " write (2 and 2)"]
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
