"""Overview of a campaign in a notebook: the answer, the charts that answer first, and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd
from markupsafe import Markup

from volbench.model.campaign.planned_run import Campaign
from volbench.model.frames.columns import FRAMES
from volbench.present.formatting import Row, printable, records
from volbench.present.notebook import Chart, table_html
from volbench.present.report.content import ReportContent
from volbench.present.report.findings_section import invalid_runs
from volbench.present.report.first_screen import first_screen
from volbench.present.report.lead_charts import lead_plots
from volbench.present.report.outcomes import against_limits, job_outcomes, key_numbers
from volbench.present.tables.results_table import result_tables
from volbench.present.tables.table import Table
from volbench.present.terminal.campaign_text import RunNote


class Opened(Protocol):
    """A campaign that was opened for reading."""

    @property
    def campaign(self) -> Campaign:
        """The plan."""

    @property
    def runs(self) -> Mapping[str, RunNote]:
        """Every run with its state."""

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name."""

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return a frame as plain rows."""


@dataclass(frozen=True)
class Overview:
    """What a notebook shows of a campaign."""

    title: str  # its name
    place: str  # hosts, volume, number of runs and start
    verdict: str  # the answer in a sentence
    quality: str  # how many runs are affected
    tables: Sequence[Table[Row]]  # of results
    charts: Sequence[Chart]  # one or two that answer first

    def to_html(self) -> Markup:
        """Return heading, answer, charts and results."""
        head = Markup("<h3>{}</h3><p>{}</p><p><b>{}</b> Data quality: {}.</p>")
        parts = (self.title, self.place, self.verdict, self.quality)
        charts = (chart.to_html() for chart in self.charts)
        tables = map(table_html, self.tables)
        return head.format(*map(printable, parts)) + Markup("").join([*charts, *tables])


def overview(opened: Opened) -> Overview:
    """Return the first screen of a campaign's report, and its results."""
    frames = {name: opened.frame(name) for name in FRAMES}
    content = ReportContent(opened.campaign.name, opened.campaign, opened.runs, frames)
    rows = {name: records(frames[name]) for name in ("summary", "findings", "verdicts")}
    outcomes = job_outcomes(rows["summary"])
    invalid = invalid_runs(rows["findings"])
    key = key_numbers(outcomes, invalid=invalid)
    first = first_screen(content, rows, key, against_limits(outcomes))
    return Overview(
        title=content.title,
        place=first.place,
        verdict=first.verdict,
        quality=first.badge.text,
        tables=result_tables(opened, opened.runs, is_brief=True),
        charts=[Chart(plot) for plot in lead_plots(frames)],
    )
