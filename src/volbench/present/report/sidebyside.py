"""Several campaigns: their joint frames enter, tables and charts that hold them together leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from volbench.present.formatting import records
from volbench.present.report.content import ReportFigure, SideBySide
from volbench.present.report.plotbars import grouped_plot
from volbench.present.report.results import DataTable
from volbench.present.report.together import METRICS, pooled, side_by_side_tables, verdicts_table


@dataclass(frozen=True)
class NamedTable:
    """A table under a heading."""

    title: str
    table: DataTable


@dataclass(frozen=True)
class Together:
    """What stands before the campaigns' own parts."""

    words: Sequence[str]
    tables: Sequence[NamedTable]
    figures: Sequence[ReportFigure]


def together_of(side: SideBySide) -> Together:
    """Arrange what is shown of several campaigns together."""
    summary = side.frames["summary"]
    campaigns = [str(name) for name in summary["campaign"].dropna().unique()]
    rows = pooled(summary)
    shared = sum(len(told) == len(campaigns) for told in rows.values())
    words = [
        f"{len(campaigns)} campaigns: {', '.join(campaigns)}.",
        f"{shared} of {len(rows)} results are of jobs that all ran; jobs are matched by name.",
    ]
    tables = side_by_side_tables(summary, campaigns, findings=records(side.frames["findings"]))
    named = [
        NamedTable(title, t) for (title, _, _), t in zip(METRICS.values(), tables, strict=False)
    ]
    figures = [
        ReportFigure(f"side-{column}", f"{title} side by side", "", plot.description, (plot,))
        for column, (title, _, _) in METRICS.items()
        if (plot := grouped_plot(column, title, rows, campaigns))
    ]
    if side.comparison:
        words += [f"{remark}." for remark in side.comparison.remarks]
        named = [NamedTable("Verdicts", verdicts_table(side.comparison)), *named]
    words += [side.refusal] if side.refusal else []
    return Together(words, named, [*side.figures, *figures])
