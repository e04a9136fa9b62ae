"""The page: contents enter, one HTML text leaves, with every text from a file escaped.

Pictures are embedded as images, not as markup: their ids can't collide and nothing in them can run.
Scripts are allowed by their hash (Content Security Policy level 3, 2.3.1); no other runs, and no
request can leave the page.
"""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from volbench.model.campaign.planned_run import RunState
from volbench.present.formatting import instant, printable
from volbench.present.report.content import ReportContent, SideBySide
from volbench.present.report.packed import ROOM_CHARS, bokeh_script, digest, pack
from volbench.present.report.part import Part, part_of
from volbench.present.report.sidebyside import Together, together_of

SCRIPTS = ("tables.js", "charts.js", "page.js")


def render_report(content: ReportContent) -> str:
    """Return the report of one campaign as one HTML text that needs no network.

    Args:
        content: everything to show.
    """
    part = part_of(content, prefix="", level=2, room_chars=ROOM_CHARS)
    return _page(content.title, [part], None)


def render_reports(contents: Sequence[ReportContent], *, title: str, together: SideBySide) -> str:
    """Return the report of several campaigns: side by side first, then each by itself.

    Args:
        contents: at least one.
        title: of the page.
        together: what is shown of all of them.
    """
    room = ROOM_CHARS // len(contents)
    parts = [
        part_of(content, prefix=f"c{place}-", level=3, room_chars=room)
        for place, content in enumerate(contents, start=1)
    ]
    return _page(title, parts, together_of(together))


def _page(title: str, parts: Sequence[Part], together: Together | None) -> str:
    loader = PackageLoader("volbench.present.report", "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printable"] = printable
    environment.filters["pack"] = pack
    script = "".join(_asset(loader, environment, name) for name in SCRIPTS)
    charts = [
        *(one for part in parts for one in part.charts),
        *(together.figures if together else ()),
    ]
    is_live = any(figure.plots for figure in charts)
    library = [bokeh_script()] if is_live else []
    first = parts[0].content
    return environment.get_template("report.html.j2").render(
        title=title,
        version=first.volbench_version,
        generated=instant(first.generated_utc),
        style=Markup(_asset(loader, environment, "report.css")),  # noqa: S704 - shipped with the package
        script=Markup(script),  # noqa: S704 - shipped with the package
        script_hashes=[digest(text) for text in (script, *library)],
        library=pack(library[0]) if library else "",
        campaigns=parts,
        together=together,
        finished=RunState.FINISHED,
    )


def _asset(loader: PackageLoader, environment: Environment, name: str) -> str:
    """Return a file of the package as it stands."""
    return loader.get_source(environment, name)[0]
