"""Content of the report, gathered from opened campaigns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click
import pandas as pd

from volbench import __version__
from volbench.analyse.bottleneck.use_method import use_rows
from volbench.api.many_campaigns import Dataset
from volbench.api.one_campaign import CampaignData
from volbench.cli.audit import AUDIT
from volbench.errors import ComparisonError, InputError
from volbench.model.frames.columns import FRAMES
from volbench.present.plots.chart import build_plot, build_plots
from volbench.present.plots.description import Plot
from volbench.present.plots.kinds import KINDS, Frames, Options
from volbench.present.renderers.interactive import embed
from volbench.present.report import (
    MultiCampaignContent,
    ReportContent,
    ReportFigure,
    finding_plots,
    lead_plots,
)
from volbench.present.tables.hosts_tables import facts_text
from volbench.store.journal import utc_now
from volbench.store.parquet_tables import (
    frame_of,
    pieces_of,
    read_pieces,
    row_count,
)
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.analyse.compare.comparison import Comparison
    from volbench.analyse.compare.promised_limits import Delivery


# Results up to which a report has a bar and a series of each; more are unreadable on a page, so
# the reader picks them. Noticed by: tests/browser
_MAX_RESULTS = 250
_SINGLE = ("iops", "bandwidth", "latency", "series")
# Charts over all campaigns of a report, behind the comparison or trend
_COMPARED = ("iops", "bandwidth", "latency")
_PAIR = 2
_MAX_SENTENCES = 3
_PICTURE_IN = 9.0  # Width of a picture, about that of its place: letters keep their size


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


def _pieces(opened: CampaignData, name: str, rows: int) -> Iterator[pd.DataFrame]:
    """Yield a frame in pieces of at most so many rows; it is never in memory as a whole."""
    file = opened.table_file(name)
    whole = read_pieces(file, rows) if file else pieces_of(opened.table(name), rows)
    return map(frame_of, whole)


def _count_rows(opened: CampaignData, name: str) -> int:
    file = opened.table_file(name)
    return row_count(file) if file else len(opened.table(name))


def report_content(
    opened: CampaignData,
    *,
    title: str | None,
    charts: Sequence[str] = (),
) -> ReportContent:
    """Gather plan, states, frames, facts, job files and figures of a campaign.

    Args:
        title: of the page; None for the campaign's name.
    """
    frames = _CampaignFrames(opened)
    return ReportContent(
        title=title or opened.campaign.name,
        campaign=opened.campaign,
        states=opened.runs,
        frames=frames,
        hosts=[facts_text(host.model_dump()) for host in opened.provenance.hosts],
        volumes=[facts_text(volume.model_dump()) for volume in opened.provenance.volumes],
        jobs={run.id: opened.job_text(run.id) for run in opened.campaign.runs},
        answer=_classes_compared(opened),
        expected=Dataset([opened]).expect() if opened.campaign.expect else (),
        audited=_audited(opened),
        imprecise=opened.imprecise,
        figures=[_figure(plot) for plot in _plots(frames, charts)],
        lead=[
            _figure(plot, is_first=True)
            for plot in lead_plots(frames, Options(opened.campaign.rounds))
        ],
        evidence={rule: _figure(plot) for rule, plot in finding_plots(frames).items()},
        generated_utc=utc_now(),
        volbench_version=__version__,
        read_pieces=partial(_pieces, opened),
        count_rows=partial(_count_rows, opened),
    )


def _audited(opened: CampaignData) -> Sequence[Delivery]:
    """Return what the volumes of an audit deliver; nothing for other campaigns."""
    if {run.profile for run in opened.campaign.runs} != {AUDIT}:
        return ()
    try:
        return Dataset([opened]).audit()
    except InputError:  # it was stopped before it measured a limit
        return ()


_CLASS = "storage_class"  # Label of pods


def _classes_compared(opened: CampaignData) -> Sequence[str]:
    """Return how the storage classes of a campaign in pods compare."""
    from volbench.analyse.compare.comparison import Question, compare, headlines

    if len({host.labels.get(_CLASS) for host in opened.campaign.hosts if host.connection}) < _PAIR:
        return ()
    dataset = Dataset([opened])
    try:
        comparison = compare(
            {"": dataset.facts()},
            {"": dataset.frame("findings")},
            Question(between=_CLASS),
            bins=lambda _: dataset.frame("histogram"),
        )
        return headlines(comparison)
    except ComparisonError as error:
        return [f"The storage classes are not compared: {error.message}."]


def multi_campaign_content(dataset: Dataset) -> MultiCampaignContent:
    """Gather the content of several campaigns: a comparison of two, the trend of more.

    The first is the base of all verdicts.
    """
    from volbench.analyse.compare.comparison import headlines
    from volbench.present.plots.charts.comparison_charts import forest_plot

    frames = {name: dataset.frame(name) for name in ("summary", "findings")}
    figures = [_figure(plot) for plot in build_plots(frames, _COMPARED)]
    verdict, leading = _trend(dataset) if len(dataset.names) > _PAIR else ("", [])
    try:
        comparison = _compared(dataset)
    except ComparisonError as error:
        reason = f"No verdicts: {error.message}." + f" Hint: {error.hint}." * bool(error.hint)
        return MultiCampaignContent(
            frames, refusal=reason, figures=[*leading, *figures], verdict=verdict
        )
    if any(not math.isnan(row.ratio) for row in comparison.rows):
        leading = [*leading, _figure(forest_plot(comparison), is_first=not leading)]
    verdict = verdict or _first_of(headlines(comparison))
    return MultiCampaignContent(frames, comparison, figures=[*leading, *figures], verdict=verdict)


def _first_of(sentences: Sequence[str]) -> str:
    """Return a few sentences, and the number of the others."""
    others = len(sentences) - _MAX_SENTENCES
    more = f"The verdicts of {counted_noun(others, 'more campaign')} are below."
    return " ".join([*sentences[:_MAX_SENTENCES], *([more] if others > 0 else [])])


def _compared(dataset: Dataset) -> Comparison:
    """Compare campaigns as `volbench compare` does."""
    from volbench.analyse.compare.comparison import Question, compare

    single = {name: Dataset([opened]) for name, opened in dataset.names.items()}
    return compare(
        {name: campaign.facts() for name, campaign in single.items()},
        {name: campaign.frame("findings") for name, campaign in single.items()},
        Question(),
        bins=lambda name: single[name].frame("histogram"),
    )


def _trend(dataset: Dataset) -> tuple[str, list[ReportFigure]]:
    """Return the sentence and the chart of trends; nothing for too few campaigns."""
    from volbench.analyse.compare.workload_trends import State, TrendQuestion
    from volbench.api.compare_campaigns import dataset_trends
    from volbench.present.plots.charts.comparison_charts import trend_plot
    from volbench.present.tables.compare_table import trend_headline

    try:
        trends = dataset_trends(dataset, TrendQuestion())
    except ComparisonError:  # the comparison tells the reason
        return "", []
    if all(trend.state is State.TOO_FEW for trend in trends.rows):
        return "", []
    return trend_headline(trends), [_figure(trend_plot(trends), is_first=True)]


def _plots(frames: Frames, charts: Sequence[str]) -> Iterator[Plot]:
    """Yield the default charts that apply, and the requested ones."""
    is_large = len(frames["summary"]) > _MAX_RESULTS
    left_out = _SINGLE if is_large else ()
    usual = [name for name, kind in KINDS.items() if kind.in_report and name not in left_out]
    drawn = set()
    for name in usual:
        for plot in build_plots(KINDS[name].frames_of(frames), [name]):
            drawn.add(name)
            yield plot
    for name in dict.fromkeys(charts):
        if name in drawn:
            continue
        try:
            yield build_plot(name, {**frames})
        except InputError as error:  # the other charts and the report do not depend on it
            if name not in KINDS:
                raise
            click.echo(f"left out: {error.message}", err=True)


def _figure(plot: Plot, *, is_first: bool = False) -> ReportFigure:
    """Return a chart that the page draws; one with towers, or of the first screen, has a picture.

    Mails, previews and readers without scripts see the picture. The page shows the description
    before the caption, which need not repeat it.
    """
    plot = replace(
        plot,
        caption=tuple(sentence for sentence in plot.caption if sentence not in plot.description),
    )
    return ReportFigure(
        plot.name,
        plot.title,
        plot.description,
        None if plot.has_towers else embed(plot),
        _picture(plot) if plot.has_towers or is_first else "",
    )


def _picture(plot: Plot) -> str:
    """Return a chart as a data URI, without the title and the caption that the page writes."""
    import base64

    from volbench.present.renderers.matplotlib import draw, svg_text

    drawing = svg_text(draw(replace(plot, title="", caption=(), width_in=_PICTURE_IN)))
    return "data:image/svg+xml;base64," + base64.b64encode(drawing.encode()).decode()
