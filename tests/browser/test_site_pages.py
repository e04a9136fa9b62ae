"""The index of a site of reports: links, filter, phone and paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.watched import PHONE, Watched, axe

ROWS = "#campaigns-table tbody tr"


@pytest.mark.parametrize("name", ["north", "east #1 & 50 %"])
def test_names_link_to_reports(browser: Browser, site: Path, name: str) -> None:
    """Each row's link opens the report of its campaign, and its badge the data quality there."""
    watched = Watched(browser, site)
    page = watched.page
    row = page.locator(ROWS).filter(has=page.get_by_role("link", name=name, exact=True))
    row.get_by_role("link", name=name, exact=True).click()
    page.locator("#answer").wait_for()
    assert page.locator("h1").inner_text() == name
    page.go_back()
    row.locator(".badge").click()
    page.locator("#findings-heading").wait_for()
    assert page.url.endswith("#findings")
    watched.close()
    assert watched.faults == []


def test_campaigns_are_filtered_and_sorted(browser: Browser, site: Path) -> None:
    """Words keep rows; a heading sorts by name; nothing found is said."""
    watched = Watched(browser, site)
    page = watched.page
    field = page.get_by_role("searchbox")
    field.fill("north")
    names = [text.split("\n")[0] for text in page.locator(f"{ROWS} th").all_inner_texts()]
    assert names == ["north"]
    field.fill("")
    page.locator("thead button", has_text="Campaign").press("Enter")
    names = [text.split("\n")[0] for text in page.locator(f"{ROWS} th").all_inner_texts()]
    assert names == ["east #1 & 50 %", "north", "south", "west"]
    field.fill("nowhere")
    assert page.locator(ROWS).all_inner_texts() == ["No row fits the filters."]
    watched.close()
    assert watched.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_a_campaign(browser: Browser, site: Path, scheme: str) -> None:
    """Nothing stands beyond the edge of a phone, nothing is blank, and axe-core is content."""
    watched = Watched(browser, site, **PHONE, color_scheme=scheme)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for cell in page.locator(f"{ROWS} >> nth=0").locator("th, td").all():
        box = cell.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    row = page.locator(ROWS).first.bounding_box()
    assert row
    assert row["height"] < 400
    assert axe(page) == []
    watched.close()
    assert watched.faults == []


def test_the_printed_page_has_only_the_table(browser: Browser, site: Path) -> None:
    """All campaigns are on one sheet, without buttons."""
    watched = Watched(browser, site)
    page = watched.page
    page.emulate_media(media="print")
    assert page.locator(ROWS).filter(visible=True).count() == 4
    for selector in (".bar", "button.print", ".theme"):
        assert not page.locator(selector).first.is_visible()
    sheets = re.findall(rb"/Type */Page\b", page.pdf(prefer_css_page_size=True))
    watched.close()
    assert len(sheets) == 1
    assert watched.faults == []
