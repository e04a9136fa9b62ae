"""HTML pages of reports, and of the index of a site, with every text from a file escaped.

Scripts are allowed by their hash (Content Security Policy level 3, 2.3.1); no other runs, and no
request can leave the page.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from volbench.model.campaign.planned_run import RunState
from volbench.present.formatting import instant, printable
from volbench.present.renderers.interactive import LIBRARY, asset, chart_scripts, digest, pack
from volbench.present.report.campaign_section import CampaignSection, campaign_section
from volbench.present.report.content import MultiCampaignContent, ReportContent
from volbench.present.report.embedded_runs import (
    ROOM_CHARS,
    file_name,
    packed_rows,
    run_columns,
    run_details,
)
from volbench.present.report.outcomes import KeyNumber
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.present.report.multi_campaign import MultiCampaignSection

# After those of charts, in the order in which they use each other
_SCRIPTS = (
    *("view.js", "runs.js", "filters.js", "explorer.js", "run_panel.js", "comparison.js"),
    "tables.js",
)
# Rows of a table that are in the page as such; it makes the others when they are shown
_MAX_ROWS = 60
_PAPER_ROWS = 12  # Rows of a table that are printed, as in `report.css`


def render_report(content: ReportContent) -> str:
    """Return the report of one campaign as one HTML text that needs no network."""
    return render_section(single_section(content))


def single_section(content: ReportContent) -> CampaignSection:
    """Return the section of the only campaign of a page."""
    return campaign_section(content, prefix="", level=2, room_chars=ROOM_CHARS)


def render_section(section: CampaignSection) -> str:
    """Return the page of the only campaign."""
    return _page(section.content.title, [section], None)


def render_reports(
    contents: Sequence[ReportContent], *, title: str, together: MultiCampaignContent
) -> str:
    """Return the report of several campaigns: beside each other first, then each by itself.

    Args:
        contents: at least one.
    """
    from volbench.present.report.multi_campaign import (  # noqa: PLC0415 - brings scipy
        multi_campaign_section,
    )

    room = ROOM_CHARS // len(contents)
    sections = [
        campaign_section(content, prefix=f"c{index}-", level=3, room_chars=room)
        for index, content in enumerate(contents, start=1)
    ]
    return _page(title, sections, multi_campaign_section(together))


def _page(
    title: str, sections: Sequence[CampaignSection], together: MultiCampaignSection | None
) -> str:
    figures = [
        *(figure for section in sections for figure in section.content.figures),
        *(figure for section in sections for figure in section.content.lead),
        *(figure for section in sections for figure in section.content.evidence.values()),
        *(together.figures if together else ()),
    ]
    contents = [(section.id, section.content) for section in sections]
    runs = run_columns(contents)
    bokeh = [asset(LIBRARY)] if runs.numbers or any(figure.plot for figure in figures) else []
    first = sections[0].content
    return render_template(
        "report.html.j2",
        *bokeh,
        title=title,
        version=first.volbench_version,
        generated=instant(first.generated_utc),
        library=pack(bokeh[0]) if bokeh else "",
        campaigns=sections,
        runs=runs,
        details=run_details(contents, runs.numbers),
        most_rows=_MAX_ROWS,
        paper_rows=_PAPER_ROWS,
        packed_rows=partial(packed_rows, runs=runs, first=_MAX_ROWS),
        together=together,
        finished=RunState.FINISHED,
    )


def render_template(template: str, *scripts: str, **content: object) -> str:
    """Return a page with the style and the scripts of reports."""
    loader = PackageLoader(__package__, "templates")
    environment = Environment(
        loader=ChoiceLoader([loader, PackageLoader("volbench.present.renderers.interactive", "")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"printable": printable, "counted": counted_noun}
    sources = (loader.get_source(environment, name)[0] for name in _SCRIPTS)
    script = chart_scripts() + "".join(sources)
    style = asset("page.css") + loader.get_source(environment, "report.css")[0]
    return environment.get_template(template).render(
        style=Markup(style),  # noqa: S704 - shipped with the package
        script=Markup(script),  # noqa: S704 - shipped with the package
        script_hashes=[digest(text) for text in (script, *scripts)],
        **content,
    )


@dataclass(frozen=True)
class SiteEntry:
    """A campaign on the index page."""

    title: str  # of its page
    file: str  # name of its page
    created_utc: str  # ISO 8601
    place: str  # hosts, volumes, runs and versions in one line
    verdict: str  # its answer in a sentence
    severity: str  # ``ok``, ``warning`` or ``invalid``
    quality: str  # data quality in a few words
    numbers: Sequence[KeyNumber]  # headline figures


def site_entry(section: CampaignSection, *, taken: Collection[str] = ()) -> SiteEntry:
    """Return the entry of a campaign."""
    name = file_name(section.content.title)
    names = (
        f"{name}{suffix}.html" for suffix in ("", *(f"-{n}" for n in range(2, len(taken) + 3)))
    )
    return SiteEntry(
        title=section.content.title,
        file=next(page for page in names if page not in {*taken, "index.html"}),
        created_utc=section.content.campaign.created_utc,
        place=section.first.place,
        verdict=section.first.verdict,
        severity=section.first.badge.severity,
        quality=section.first.badge.text,
        numbers=section.key_numbers,
    )


def render_site_index(entries: Sequence[SiteEntry], *, title: str, version: str, utc: str) -> str:
    """Return the index page of a site, newest campaign first.

    Args:
        entries: at least one.
        utc: when the site was made, ISO 8601 with ``Z``.
    """
    newest = sorted(entries, key=lambda entry: entry.created_utc, reverse=True)
    return render_template(
        "site.html.j2",
        title=title,
        version=version,
        generated=instant(utc),
        entries=[(entry, instant(entry.created_utc)) for entry in newest],
    )
