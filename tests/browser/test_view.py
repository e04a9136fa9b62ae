"""Filters, explorer, theme and keys of the report: what they keep, and that a link restores it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

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
