"""The report as its readers have it: in a browser, by mouse and keyboard, on paper and phones."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import volbench
from tests.browser.conftest import EVIL
from tests.browser.watched import PHONE, Watched, axe
from volbench.present.plots.colour_themes import THEMES

RESULTS = "#results-table"
TOUCH = """() => {
    const found = [];
    const dive = root => { for (const one of root.querySelectorAll('*')) {
        if (one.classList.contains('bk-events')) found.push(getComputedStyle(one).touchAction);
        if (one.shadowRoot) dive(one.shadowRoot);
    } };
    dive(document);
    return found;
}"""
"""What a finger does on each chart."""
VISIBLE_ROWS = """tables => tables.map(
    table => [...table.tBodies[0].rows].filter(row => row.offsetHeight).length)"""
"""Rows of each table that are on paper."""


def column(page: Page, place: int, table: str = RESULTS) -> list[str]:
    """Return the texts of a column, rows that are filtered out left aside."""
    cells = page.locator(f"{table} tbody tr:not([hidden]) > :nth-child({place + 1})")
    return cells.all_inner_texts()


def test_every_chart_is_drawn(opened: Watched) -> None:
    """All charts are drawn when they are reached, and no panel stays empty."""
    charts = opened.page.locator(".chart")
    assert charts.count() == opened.page.locator(".chart[data-drawn]").count() >= 4
    blank = opened.page.evaluate(
        """() => [...document.querySelectorAll('.chart .canvas')].filter(place => {
            const canvases = [];
            const dive = root => { for (const one of root.querySelectorAll('*')) {
                if (one.tagName === 'CANVAS') canvases.push(one);
                if (one.shadowRoot) dive(one.shadowRoot);
            } };
            dive(place);
            return !canvases.some(canvas => canvas.width && canvas.getContext('2d')
                .getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean));
        }).length"""
    )
    assert blank == 0


def test_the_answer_is_drawn_first(watched: Watched) -> None:
    """The chart of the first screen is drawn at once; others wait until they are reached."""
    lead = watched.page.locator("#answer .chart").first
    box = lead.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] / 2 < 900
    assert watched.page.locator(".chart").last.get_attribute("data-drawn") is None
    watched.page.locator("#answer .chart[data-drawn]").first.wait_for()
    assert watched.page.locator("#answer .chart[data-drawn] .still").count() == 0


IOPS = "#chart-iops-drawing"
TOGETHER = "#together-chart-iops-drawing"
FIRST = f"document.querySelector('{IOPS}').chart.drawn.get(0).drawing"
"""The first panel of the chart of IOPS."""
INK = f"{FIRST}.figure.below[0].major_label_text_color"
"""The colour of its axis' texts."""


def wait_for_theme(watched: Watched, scheme: str) -> None:
    """Wait until the charts have the colours of a theme."""
    watched.page.wait_for_function(f"ink => {INK} === ink", arg=THEMES[scheme].colours["ink"])


def visible(watched: Watched, key: str, *, chart: str = IOPS) -> list[bool]:
    """Return whether the renderers of a series are shown in a chart."""
    drawing = FIRST.replace(IOPS, chart)
    found = watched.page.evaluate(
        f"key => {drawing}.renderers.filter(own => own.key === key)"
        ".map(own => own.renderer.visible)",
        key,
    )
    assert found
    return [bool(is_shown) for is_shown in found]


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_series_is_switched_off_and_on(watched: Watched, by: str) -> None:
    """The button says what it did, and the bars go and come."""
    button = watched.drawn(IOPS).get_by_role("button", name="read")
    for pressed in ("false", "true"):
        if by == "mouse":
            button.click()
        else:
            button.focus()
            watched.page.keyboard.press("Space")
        assert button.get_attribute("aria-pressed") == pressed
        assert set(visible(watched, "read")) == {pressed == "true"}


def x_range(watched: Watched) -> tuple[float, float]:
    """Return the ends of the x axis of the chart of IOPS."""
    start, end = watched.page.evaluate(
        f"(() => {{ const {{start, end}} = {FIRST}.figure.x_range; return [start, end]; }})()"
    )
    return start, end


def test_zoom_by_keyboard_and_back(watched: Watched) -> None:
    """Half of the axis, moved by a half, and the whole again."""
    live = watched.drawn(IOPS)
    whole = x_range(watched)
    live.get_by_label("Zoom in").press("Enter")
    near = x_range(watched)
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2)
    live.get_by_label("Move right").press("Enter")
    assert x_range(watched)[0] == pytest.approx(near[0] + (near[1] - near[0]) / 2)
    live.get_by_role("button", name="Reset").press("Enter")
    assert x_range(watched) == pytest.approx(whole)


def test_zoom_by_dragging(watched: Watched) -> None:
    """A stretch that is marked with the mouse fills the chart."""
    canvas = watched.drawn(IOPS).locator(".canvas")
    whole = x_range(watched)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    watched.page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    watched.page.mouse.down()
    watched.page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=5)
    watched.page.mouse.up()
    for _ in range(50):  # a busy browser draws later
        near = x_range(watched)
        if near[1] - near[0] < 0.5 * (whole[1] - whole[0]):
            break
        watched.page.wait_for_timeout(100)
    assert near[1] - near[0] < 0.5 * (whole[1] - whole[0])


def test_pointing_shows_the_number(watched: Watched) -> None:
    """The texts under the pointer name the job and its value, and are text, not markup."""
    canvas = watched.drawn(IOPS).locator(".canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    left, top = watched.page.evaluate(
        f"() => {{ const {{ left, top }} = document.querySelector('{IOPS}').chart.drawn.get(0).view"
        ".frame.bbox; return [left, top]; }"
    )
    assert box is not None
    watched.page.mouse.move(box["x"] + left + 60, box["y"] + top + 80)
    watched.page.mouse.move(box["x"] + left + 8, box["y"] + top + 14, steps=5)
    tooltip = watched.page.locator(".bk-tooltip-content").first
    tooltip.wait_for()
    words = tooltip.inner_text()
    assert "mix-4k-d1" in words
    assert "read" in words
    assert re.search(r"2\.02k \(2,\d{3}(\.\d+)?\)", words)


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_table_is_sorted_by_a_column(watched: Watched, by: str) -> None:
    """Large numbers come first, then small ones, then the first order again."""
    headings = watched.page.locator(f"{RESULTS} thead th")
    place = headings.all_inner_texts().index("IOPS")
    first = column(watched.page, place)
    button = headings.nth(place).locator("button")
    orders = []
    for _ in range(3):
        if by == "mouse":
            button.click()
        else:
            button.press("Enter")
        orders.append((headings.nth(place).get_attribute("aria-sort"), column(watched.page, place)))
    assert [order for order, _ in orders] == ["descending", "ascending", None]
    assert orders[0][1] == sorted(first, key=_number, reverse=True)
    assert orders[1][1] == sorted(first, key=_number)
    assert orders[2][1] == first


def _number(text: str) -> float:
    return float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)


def test_a_table_is_filtered_by_text(watched: Watched) -> None:
    """Words keep rows that have all of them; a minus takes away; the count is told."""
    bar = watched.page.locator("#results .bar")
    field = bar.get_by_role("searchbox")
    assert bar.locator("output").inner_text() == "16 of 16 rows"
    field.fill("mix-4k-d8 READ")
    assert bar.locator("output").inner_text() == "2 of 16 rows"
    assert {name.split()[0] for name in column(watched.page, 0)} == {"mix-4k-d8"}
    field.fill("-mix-4k-d8 -write")
    assert bar.locator("output").inner_text() == "6 of 16 rows"
    field.fill("")
    bar.get_by_label("only rows with warnings").press("Space")
    rows = watched.page.locator(f"{RESULTS} tbody tr:not([hidden])")
    assert 0 < rows.count() < 16
    assert rows.count() == rows.filter(has=watched.page.locator(".badge")).count()


def saved(page: Page, name: str, *, role: str) -> tuple[str, list[dict[str, str]]]:
    """Return name and rows of a file that a button or link gives."""
    with page.expect_download() as download:
        page.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]  # a role
    text = download.value.path().read_bytes().decode()
    return download.value.suggested_filename, list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("frame", ["summary", "series", "device", "verdicts", "histogram"])
def test_downloads_hold_every_number(opened: Watched, report: Path, frame: str) -> None:
    """A download is the frame that volbench gives, to the last digit."""
    name, rows = saved(opened.page, frame, role="link")
    assert name == f"made-up-{frame}.csv"
    campaign = volbench.open_campaign(report.parents[1] / "made-up")
    stream = io.StringIO(newline="")
    campaign.frame(frame).to_csv(stream, index=False, lineterminator="\r\n")
    assert rows == list(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))


def test_the_shown_rows_can_be_downloaded(watched: Watched) -> None:
    """Filtered and sorted as they are seen, with exact numbers."""
    watched.page.locator("#results").get_by_role("searchbox").fill("mix-4k-d8 read")
    name, rows = saved(watched.page, "Rows of results as CSV", role="button")
    assert name == "results.csv"
    assert [row["Job"] for row in rows] == ["mix-4k-d8"] * 2
    assert all(len(row["IOPS"]) > 8 for row in rows)


def test_hostile_texts_stay_texts(opened: Watched) -> None:
    """A note with markup is read as it was written, and nothing in it ran."""
    assert EVIL in opened.page.locator("#jobs summary").first.inner_text()
    assert opened.page.title() == "made-up"
    assert opened.page.locator("img[src=x]").count() == 0


def test_no_request_can_leave(opened: Watched) -> None:
    """The page's policy stops what a script in it would fetch."""
    refused = opened.page.evaluate(
        "fetch('https://example.invalid/').then(() => 'sent', () => 'refused')"
    )
    assert refused == "refused"
    reported = [fault for fault in opened.faults if "Content Security Policy" in fault]
    assert reported
    opened.faults.clear()


def wrong_in_either_theme(watched: Watched) -> dict[str, list[str]]:
    """Return what axe-core finds wrong in the light and in the dark theme."""
    found = {}
    for scheme in ("dark", "light"):
        watched.page.emulate_media(color_scheme=scheme)
        wait_for_theme(watched, scheme)
        found[scheme] = axe(watched.page)
    return found


def test_the_page_has_no_accessibility_violations(opened: Watched) -> None:
    """axe-core finds nothing wrong in either theme, with everything opened."""
    assert wrong_in_either_theme(opened) == {"dark": [], "light": []}


CUT = """() => {
  const pen = document.createElement('canvas').getContext('2d');
  const wide = (text, px) => {
    pen.font = `${px}px Helvetica, Arial, sans-serif`;
    return pen.measureText(text).width;
  };
  const charts = [...document.querySelectorAll('.chart')].map(place => place.chart).filter(Boolean);
  const drawn = charts.flatMap(chart => [...chart.drawn.values()]);
  return drawn.flatMap(({drawing: {panel, figure}, view}) => {
    const title = String(figure.left[0].axis_label?.text ?? '').split('\\n');
    const frame = view.frame.bbox;
    const titles = title.filter(line => wide(line, 12) > frame.height + 10);
    if (panel.y.scale !== 'category') return titles;
    const marks = panel.marks.filter(
      mark => mark.type === 'Texts' && mark.align === 'left' && mark.x_in === 'data');
    return [...titles, ...marks.flatMap(mark => mark.table.get(mark.text).filter((text, n) => {
      const at = view.frame.x_scale.compute(Number(mark.table.get(mark.x)[n]));
      return at + mark.offset_pt[0] * 4 / 3 + wide(text, mark.size * 4 / 3) > frame.right + 1;
    }))];
  });
}"""
"""Titles of upright axes that are longer than them, and values that end outside their panel."""


def test_the_page_fits_a_phone(browser: Browser, report: Path) -> None:
    """On a phone axe-core is content too, and nothing but wide tables scrolls sideways.

    A finger on a chart scrolls the page. No value beside a bar and no title of an axis is cut. The
    colours of the dark theme do not depend on the width.
    """
    watched = Watched(browser, report, **PHONE)
    watched.draw_all()
    assert watched.page.evaluate(CUT) == []
    widths = watched.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    touch = watched.page.evaluate(TOUCH)
    found = axe(watched.page)
    watched.close()
    assert widths == [390, 390]
    assert touch
    assert set(touch) <= {"auto", "pan-x pan-y"}
    assert found == []
    assert watched.faults == []


def test_charts_follow_the_colours_of_the_system(watched: Watched) -> None:
    """Texts of an axis have the ink of the theme when the page turns dark."""
    watched.drawn(IOPS)
    assert watched.page.evaluate(INK) == THEMES["light"].colours["ink"]
    watched.page.emulate_media(color_scheme="dark")
    wait_for_theme(watched, "dark")


@pytest.mark.parametrize("way", ["button", "keys"])
def test_the_printed_page_has_the_main_charts_and_no_buttons(
    watched: Watched, tmp_path: Path, way: str
) -> None:
    """Button and keys draw the principal charts; on paper they are copies that can be scaled."""
    page = watched.page
    page.evaluate("() => { window.print = () => dispatchEvent(new Event('beforeprint')); }")
    if way == "keys":
        page.keyboard.press("Control+p")
    else:
        page.locator("button.print").click()
    page.wait_for_function("() => document.querySelectorAll('canvas.paper').length")
    page.emulate_media(media="print")
    panels = page.locator("figure:not(.screen-only) > .chart .panel:has(.canvas)").count()
    assert panels
    assert page.locator("canvas.paper").count() == panels - page.locator(".panel table").count()
    assert page.locator("canvas.paper").first.is_visible()
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert page.locator("canvas.paper").count() == panels - page.locator(".panel table").count()
    for selector in (".canvas", ".zoom", ".bar", "nav", ".downloads", "button.print"):
        assert not page.locator(selector).first.is_visible()
    assert not page.locator("#jobs pre").first.is_visible()
    assert page.get_by_text("Further charts").is_visible()
    paper = tmp_path / "page.pdf"
    page.pdf(path=paper, prefer_css_page_size=True)
    assert paper.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", ["long_report", "comparison"])
def test_the_printed_page_has_a_few_sheets(
    browser: Browser, request: pytest.FixtureRequest, name: str
) -> None:
    """However long tables and charts are, at most seven sheets are printed; the rest is named."""
    watched = Watched(browser, request.getfixturevalue(name))
    page = watched.page
    page.evaluate("() => { window.print = () => dispatchEvent(new Event('beforeprint')); }")
    page.locator("button.print").click()
    page.wait_for_function("() => document.querySelectorAll('canvas.paper').length")
    page.emulate_media(media="print")
    sheets = len(re.findall(rb"/Type */Page\b", page.pdf(prefer_css_page_size=True)))
    rows = page.locator("table.data:visible").evaluate_all(VISIBLE_ROWS)
    left_out = page.get_by_text("rows: on screen only").filter(visible=True).count()
    watched.close()
    assert 1 <= sheets <= 7
    assert max(rows) == 12
    assert left_out
    assert watched.faults == []


def test_without_scripts_it_can_be_read(browser: Browser, report: Path) -> None:
    """The leading chart, tables and downloads need no script; charts below say what they need."""
    watched = Watched(browser, report, java_script_enabled=False)
    page = watched.page
    assert page.locator("figcaption").first.is_visible()
    assert "IOPS of 8 results" in page.locator("#charts figcaption").first.inner_text()
    leading = page.locator(".leading .chart img")
    assert leading.first.is_visible()
    assert all(leading.evaluate_all("images => images.map(image => image.naturalWidth > 300)"))
    assert page.locator(".leading").get_by_text("drawn by a script").count() == 0
    assert page.locator("#charts").get_by_text("drawn by a script").first.is_visible()
    assert page.locator(f"{RESULTS} tbody tr").count() == 16
    assert not page.locator("button.print").is_visible()
    assert page.get_by_role("link", name="summary", exact=True).get_attribute("download") == (
        "made-up-summary.csv.gz"
    )
    watched.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_before_the_script_suit_paper_and_phone(
    browser: Browser, report: Path, scheme: str
) -> None:
    """On dark paper a still picture is dark; on a phone it scrolls and stays readable."""
    watched = Watched(browser, report, java_script_enabled=False, color_scheme=scheme, **PHONE)
    still = watched.page.locator(".still").first
    look = still.evaluate("image => getComputedStyle(image).filter")
    assert look.startswith("invert") == (scheme == "dark")
    assert still.evaluate("image => image.offsetWidth") > 500
    assert watched.page.evaluate("document.documentElement.scrollWidth") == 390
    watched.page.emulate_media(media="print")
    assert still.evaluate("image => getComputedStyle(image).filter") == "none"
    watched.close()


def test_two_runs_are_shown_side_by_side(browser: Browser, comparison: Path) -> None:
    """Two campaigns share tables and charts, keep parts of their own, and axe is content."""
    watched = Watched(browser, comparison)
    watched.draw_all()
    assert column(watched.page, 3, "#side-by-side-iops-table")[0] in {"0.50 x", "0.49 x", "0.51 x"}
    verdicts = column(watched.page, 6, "#verdicts-table")
    assert len(verdicts) == 16
    assert watched.page.get_by_text("No intervals (not enough repeats: 2)").count() > 0
    watched.page.locator(f"{TOGETHER} .toggles").get_by_role("button", name="after").click()
    assert set(visible(watched, "after", chart=TOGETHER)) == {False}
    assert set(visible(watched, "before", chart=TOGETHER)) == {True}
    assert watched.page.locator("#c2-results-table tbody tr").count() == 16
    found = axe(watched.page)
    watched.close()
    assert found == []
    assert watched.faults == []
