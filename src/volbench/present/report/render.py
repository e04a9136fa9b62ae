"""The page: content enters, one HTML text leaves, with every text from a file escaped.

Charts are embedded as images, not as markup: their ids can't collide and nothing in them can run.
The one script is allowed by its hash (Content Security Policy level 3, 2.3.1); no other runs.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import shlex

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from volbench.model.run import RunState
from volbench.present.cells import printable, records
from volbench.present.export import export_frame
from volbench.present.outcome import note_of, unfinished
from volbench.present.report.content import ReportContent
from volbench.present.report.device import KIND, use_section
from volbench.present.report.doubts import invalid_runs, told_by_rule, verdict
from volbench.present.report.results import results
from volbench.present.report.summary import (
    against_limits,
    cautions,
    declared,
    instant,
    key_numbers,
    outcomes,
    what_ran,
)


def render_report(content: ReportContent) -> str:
    """Return the report as one HTML text that needs no network and opens from a disk.

    Args:
        content: everything to show.
    """
    loader = PackageLoader("volbench.present.report", "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printable"] = printable
    script = _asset(loader, environment, "report.js")
    summary = content.frames.get("summary", pd.DataFrame())
    rows = records(summary)
    findings = records(content.frames.get("findings", pd.DataFrame()))
    found = outcomes(rows)
    return environment.get_template("report.html.j2").render(
        content=content,
        style=Markup(_asset(loader, environment, "report.css")),  # noqa: S704 - shipped with the package
        script=Markup(script),  # noqa: S704 - shipped with the package
        script_hash=_digest(script),
        ran=what_ran(content, rows),
        key_numbers=key_numbers(found, invalid=invalid_runs(findings)),
        cautions=cautions(found),
        declared=declared(found),
        limits=against_limits(found),
        results=results(rows, findings),
        doubts=told_by_rule(findings),
        doubted=verdict(findings),
        failures=unfinished(content.campaign, content.states),
        states={run.id: note_of(run, content.states).state for run in content.campaign.runs},
        finished=RunState.FINISHED,
        charts=[(one, _image(one.svg)) for one in content.figures if one.kind != KIND],
        device=[(one, _image(one.svg)) for one in content.figures if one.kind == KIND],
        use=use_section(content.frames),
        plan=_plan_facts(content),
        versions=sorted({str(row["fio_version"]) for row in rows if row.get("fio_version")}),
        csv=_csv_link(summary),
        csv_name=f"{_file_name(content.campaign.name)}-summary.csv",
        generated=instant(content.generated_utc),
    )


def _asset(loader: PackageLoader, environment: Environment, name: str) -> str:
    """Return a file of the package as it stands."""
    return loader.get_source(environment, name)[0]


def _digest(script: str) -> str:
    """Return the hash by which a browser recognises the script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _image(svg: str) -> str:
    """Return an SVG document as a data URI."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _csv_link(summary: pd.DataFrame) -> str:
    """Return the summary as a data URI of CSV."""
    stream = io.BytesIO()
    export_frame(summary, frame_name="summary", format="csv", into=stream)
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(stream.getvalue()).decode()


def _file_name(name: str) -> str:
    """Return a name that is a harmless file name everywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "campaign"


def _plan_facts(content: ReportContent) -> dict[str, str]:
    """Return what was decided before the campaign started."""
    campaign = content.campaign
    return {
        "campaign": campaign.name,
        "planned": instant(campaign.created_utc),
        "command line": shlex.join(campaign.command) or "not recorded",
        "seed": str(campaign.seed),
        "order": campaign.order.value,
        "after a failed Run": campaign.on_error.value,
        "allowed to be overwritten": ", ".join(campaign.allow_destroy) or "nothing",
    }
