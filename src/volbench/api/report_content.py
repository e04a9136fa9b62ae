"""Content of the report, gathered from opened campaigns."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from volbench import __version__
from volbench.analyse.compare.workload_trends import State, TrendQuestion
from volbench.analyse.frames.design import design_of
from volbench.api.compare_campaigns import dataset_trends
from volbench.api.many_campaigns import deliveries_of, plot_frame, rounds_of, states_expectations
from volbench.errors import ComparisonError
from volbench.model.campaign.planned_run import AUDIT
from volbench.present.answer import answer, missing_clients, reservations, subject, valid_results
from volbench.present.factor_words import constants_words
from volbench.present.plots.charts.comparison_charts import trend_plot
from volbench.present.plots.description import Plot
from volbench.present.plots.kinds import Options
from volbench.present.report.content import CampaignPart, ReportContent, ReportFigure
from volbench.present.report.lead_charts import fitted, is_wide, report_plots
from volbench.present.report.report_page import render_report
from volbench.present.report.report_text import constants_line, days_of, quality_of, without_numbers
from volbench.present.tables.audit_table import audit_table
from volbench.present.tables.compare_table import course_sentences, trends_table
from volbench.present.tables.expectations_table import expectation_words, expectations_page_table
from volbench.present.tables.hosts_tables import facts_text
from volbench.present.tables.matrix_table import compared_page_table, shared_runs
from volbench.present.tables.results_table import result_tables, runs_table
from volbench.store.journal import utc_now
from volbench.units import counted_noun

if TYPE_CHECKING:
    import pandas as pd

    from volbench.analyse.compare.workload_trends import Trends
    from volbench.api.many_campaigns import Dataset
    from volbench.present.tables.table import Table

_MIN_COURSE = 3  # Campaigns from which their dates are a course
_LEADS = frozenset({"storm", "warmup"})  # Charts whose numbers are part of the answer
# Widths of pictures, about those of their places: letters keep their size
_PAGE_IN, _HALF_PAGE_IN = 12.5, 6.2


def report_page(dataset: Dataset, *, title: str | None = None) -> str:
    """Return the page of one or several campaigns."""
    return render_report(report_content(dataset, title=title))


def report_content(dataset: Dataset, *, title: str | None = None) -> ReportContent:
    """Gather answer, charts, quality, tables, facts and job files of campaigns."""
    results = dataset.results()
    valid, invalid = valid_results(dataset, results)
    design = design_of(valid)
    findings = dataset.rows("findings")
    parts = [*_campaign_parts(dataset)]
    trends = _trends(dataset)
    plots = [fitted(trend_plot(trends))] if trends else _plots(dataset, shared_runs(design))
    sentences, tables = _special(dataset)
    sentences += [*course_sentences(trends)] if trends else []
    sentences += [plot.description for plot in plots if plot.name in _LEADS] + dataset.sentences
    shown = design_of(valid or results)
    named = subject(shown, invalid=invalid * bool(valid)) if results else ", ".join(dataset.names)
    is_audit = {row["profile"] for row in results} == {AUDIT} and dataset.verdict
    said = [] if is_audit else answer(design, invalid=invalid)
    own = [*missing_clients(dataset), *sentences, *(said[1:] if valid and not title else said)]
    own += reservations(dataset, valid)
    tables += [replace(trends_table(trends), title="")] if trends else []
    compared = compared_page_table(design)
    tables += [compared] if compared and not trends else []
    every = result_tables(dataset, dataset.runs, is_brief=True, has_answer=False)
    cells = [*(replace(table, title="") for table in every[:1]), *every[1:]]
    are_cells = bool(results) and not tables
    return ReportContent(
        title=title or ", ".join(filter(None, [named, days_of(shown)])),
        constants=constants_line(design, [*dataset.names], _machine(dataset)),
        answer=own or [without_numbers(dataset.rows("summary"))],
        quality=quality_of(
            design,
            findings,
            dataset.rows("verdicts"),
            parts,
            runs=len({row["run"] for row in results}),
            cautions=[f"{each}." for opened in dataset.names.values() for each in opened.imprecise],
        ),
        parts=parts,
        figures=[_figure(plot, without=[*said, constants_words(design)]) for plot in plots],
        tables=[*tables, *(cells if are_cells or not results else [])],
        folded=[*([] if are_cells else cells), runs_table(dataset, dataset.runs)]
        if results
        else [],
        tools=", ".join(sorted({str(row.get("fio_version") or "") for row in results} - {""})),
        generated_utc=utc_now(),
        volbench_version=__version__,
    )


def _campaign_parts(dataset: Dataset) -> Iterator[CampaignPart]:
    for name, opened in dataset.names.items():
        yield CampaignPart(
            name,
            opened.campaign,
            opened.runs,
            hosts=[facts_text(host.model_dump()) for host in opened.provenance.hosts],
            volumes=[facts_text(volume.model_dump()) for volume in opened.provenance.volumes],
            jobs={run.id: opened.job_text(run.id) for run in opened.campaign.runs},
        )


def _machine(dataset: Dataset) -> str:
    """Return the only machine of the results, in words; empty for several and an unknown one."""
    hosts = {host for opened in dataset.names.values() for host in opened.provenance.hosts}
    words = {(host.cpu_model, counted_noun(host.cpus, "CPU"), host.os) for host in hosts}
    return ", ".join(filter(None, *words)) if len(words) == 1 else ""


def _special(dataset: Dataset) -> tuple[list[str], list[Table[Any]]]:
    sentences: list[str] = []
    tables: list[Table[Any]] = []
    if states_expectations(dataset):
        expected = dataset.expect()
        sentences.append(expectation_words(expected))
        tables.append(expectations_page_table(expected))
    if verdict := dataset.verdict:
        sentences += verdict
        tables.append(audit_table(deliveries_of(dataset, profile=AUDIT)))
    return sentences, tables


def _trends(dataset: Dataset) -> Trends | None:
    if len(dataset.names) < _MIN_COURSE:
        return None
    try:
        trends = dataset_trends(dataset, TrendQuestion())
    except ComparisonError:
        return None
    is_known = any(t.changes or t.state is not State.TOO_FEW for t in trends.rows)
    return trends if is_known else None


def _plots(dataset: Dataset, shared: Collection[object]) -> list[Plot]:
    """Return the charts of the ranked runs, or all: no storm that is one setting of many."""

    def read(name: str) -> pd.DataFrame:
        frame = plot_frame(dataset, name)
        return frame[frame["run"].isin(shared)] if shared else frame

    is_whole = not 0 < 2 * len(shared) < len(dataset.runs)
    plots = report_plots(read, Options(rounds=rounds_of(dataset)))
    return [plot for plot in plots if is_whole or plot.name != "storm"]


def _figure(plot: Plot, *, without: Sequence[str]) -> ReportFigure:
    from volbench.present.renderers.matplotlib import draw, svg_text  # noqa: PLC0415 - an extra

    width_in = _PAGE_IN if is_wide(plot) else _HALF_PAGE_IN
    drawing = svg_text(draw(replace(plot, title="", answer="", caption=(), width_in=width_in)))
    sentences = [words for words in plot.caption if words and words not in without]
    caption = " ".join(f"{words.rstrip('.')}." for words in sentences)
    return ReportFigure(
        plot.title,
        plot.description,
        caption,
        "data:image/svg+xml;base64," + base64.b64encode(drawing.encode()).decode(),
        is_wide(plot),
    )
