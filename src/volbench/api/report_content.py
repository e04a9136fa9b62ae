"""Content of the report, gathered from opened campaigns."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from volbench import __version__
from volbench.analyse.bottleneck.use_method import use_rows
from volbench.analyse.compare.comparison import Question, compare, headlines
from volbench.analyse.compare.workload_trends import State, TrendQuestion
from volbench.api.compare_campaigns import dataset_trends
from volbench.api.many_campaigns import Dataset
from volbench.api.one_campaign import CampaignData
from volbench.errors import ComparisonError, InputError
from volbench.model.frames.columns import FRAMES
from volbench.present.answer import answer_of
from volbench.present.formatting import printable
from volbench.present.plots.chart import build_plots
from volbench.present.plots.charts.comparison_charts import forest_plot, trend_plot
from volbench.present.plots.description import Plot
from volbench.present.plots.kinds import Options
from volbench.present.report import (
    MultiCampaignContent,
    ReportContent,
    ReportFigure,
    render_report,
    render_reports,
    report_plots,
)
from volbench.present.report.lead_charts import is_wide
from volbench.present.tables.audit_table import AUDIT
from volbench.present.tables.compare_table import trend_headline
from volbench.present.tables.hosts_tables import facts_text
from volbench.present.tables.results_table import result_tables
from volbench.store.journal import utc_now
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.analyse.compare.comparison import Comparison
    from volbench.analyse.compare.promised_limits import Delivery


# Charts over all campaigns of a report, behind the comparison or trend
_COMPARED = ("iops", "p99")
_PAIR = 2
_MAX_SENTENCES = 3
# Widths of pictures, about those of their places: letters keep their size
_PAGE_IN, _HALF_PAGE_IN = 12.5, 6.2


class _CampaignFrames(Mapping[str, pd.DataFrame]):
    """Frames of a campaign, read when they are needed.

    Latency bins, most of the rows of a campaign, are let go after each use.
    """

    def __init__(self, opened: CampaignData) -> None:
        self._opened = opened
        self._kept: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name == "histogram":
            return self._opened.frame_once(name)
        if name not in self._kept:
            self._kept[name] = self._use() if name == "use" else self._opened.frame_once(name)
        return self._kept[name]

    def __contains__(self, name: object) -> bool:  # that of a mapping would read the frame
        return name in FRAMES or name == "use"

    def __iter__(self) -> Iterator[str]:
        return iter((*FRAMES, "use"))

    def __len__(self) -> int:
        return len(FRAMES) + 1

    def _use(self) -> pd.DataFrame:
        return use_rows(self["summary"], self["device"], self["verdicts"])


def report_page(dataset: Dataset, *, title: str | None = None) -> str:
    """Return the page of one campaign, or of several.

    Args:
        title: of the page; None for the name of the campaign, or the number of campaigns.
    """
    if len(dataset.names) == 1:
        (opened,) = dataset.names.values()
        return render_report(report_content(opened, title=title))
    contents = [
        report_content(opened, title=name, has_charts=False)
        for name, opened in dataset.names.items()
    ]
    heading = title or f"{len(contents)} campaigns side by side"
    return render_reports(contents, title=heading, together=multi_campaign_content(dataset))


def report_content(
    opened: CampaignData, *, title: str | None, has_charts: bool = True
) -> ReportContent:
    """Gather plan, states, frames, facts, job files and figures of a campaign.

    Args:
        title: of the page; None for the campaign's name.
    """
    frames = _CampaignFrames(opened)
    dataset = Dataset([opened])
    own = f"Campaign {printable(opened.campaign.name)}"
    plots = report_plots(frames, Options(rounds=opened.campaign.rounds)) if has_charts else ()
    return ReportContent(
        title=title or opened.campaign.name,
        campaign=opened.campaign,
        states=opened.runs,
        frames=frames,
        tables=result_tables(dataset, opened.runs, is_brief=True, has_answer=False),
        hosts=[facts_text(host.model_dump()) for host in opened.provenance.hosts],
        volumes=[facts_text(volume.model_dump()) for volume in opened.provenance.volumes],
        jobs={run.id: opened.job_text(run.id) for run in opened.campaign.runs},
        workloads=answer_of(dataset),
        expected=Dataset([opened]).expect() if opened.campaign.expect else (),
        audited=_audited(opened),
        imprecise=opened.imprecise,
        figures=[_figure(plot, without=own) for plot in plots],
        generated_utc=utc_now(),
        volbench_version=__version__,
    )


def _audited(opened: CampaignData) -> Sequence[Delivery]:
    """Return what the volumes of an audit deliver; nothing for other campaigns."""
    if {run.profile for run in opened.campaign.runs} != {AUDIT}:
        return ()
    try:
        return Dataset([opened]).audit()
    except InputError:  # it was stopped before it measured a limit
        return ()


def multi_campaign_content(dataset: Dataset) -> MultiCampaignContent:
    """Gather the content of several campaigns: a comparison of two, the trend of more.

    The first is the base of all verdicts.
    """
    frames = {name: dataset.frame(name) for name in ("summary", "findings")}
    verdict, plots = _trend(dataset) if len(dataset.names) > _PAIR else ("", [])
    comparison, refusal = None, ""
    try:
        comparison = _compared(dataset)
    except ComparisonError as error:
        hint = f" Hint: {error.hint}." if error.hint else ""
        refusal = f"No verdicts: {error.message}.{hint}"
    if comparison:
        verdict = verdict or _first_of(headlines(comparison))
        if any(not math.isnan(row.ratio) for row in comparison.rows):
            plots.append(forest_plot(comparison))
    plots += build_plots(frames, _COMPARED)
    figures = [_figure(plot) for plot in plots]
    return MultiCampaignContent(list(dataset.names), comparison, refusal, figures, verdict)


def _first_of(sentences: Sequence[str]) -> str:
    """Return a few sentences, and the number of the others."""
    others = len(sentences) - _MAX_SENTENCES
    more = f"The verdicts of {counted_noun(others, 'more campaign')} are below."
    return " ".join([*sentences[:_MAX_SENTENCES], *([more] if others > 0 else [])])


def _compared(dataset: Dataset) -> Comparison:
    """Compare campaigns as `volbench compare` does."""
    single = {name: Dataset([opened]) for name, opened in dataset.names.items()}
    return compare(
        {name: campaign.facts() for name, campaign in single.items()},
        {name: campaign.frame("findings") for name, campaign in single.items()},
        Question(),
        bins=lambda name: single[name].frame("histogram"),
    )


def _trend(dataset: Dataset) -> tuple[str, list[Plot]]:
    """Return the sentence and the chart of trends; nothing for too few campaigns."""
    try:
        trends = dataset_trends(dataset, TrendQuestion())
    except ComparisonError:  # the comparison tells the reason
        return "", []
    if all(trend.state is State.TOO_FEW for trend in trends.rows):
        return "", []
    return trend_headline(trends), [trend_plot(trends)]


def _figure(plot: Plot, *, without: str = "") -> ReportFigure:
    """Return a chart as a picture without title and caption, which the page writes.

    Wide charts take the whole width of the page, so that their letters keep their size.

    Args:
        without: sentence that the page has in its title.
    """
    from volbench.present.renderers.matplotlib import draw, svg_text  # noqa: PLC0415 - an extra

    width_in = _PAGE_IN if is_wide(plot) else _HALF_PAGE_IN
    drawing = svg_text(draw(replace(plot, title="", caption=(), width_in=width_in)))
    sentences = (sentence for sentence in plot.caption if sentence not in {"", without})
    caption = " ".join(sentence.rstrip(".") + "." for sentence in sentences)
    return ReportFigure(
        plot.title,
        plot.description,
        caption,
        "data:image/svg+xml;base64," + base64.b64encode(drawing.encode()).decode(),
        is_wide(plot),
    )
