"""What the report is made of, gathered from opened campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from volbench import __version__
from volbench.analyse.compare.comparison import Question, compare
from volbench.analyse.device.use_method import use_rows
from volbench.api import CampaignData
from volbench.dataset import Dataset
from volbench.errors import ComparisonError
from volbench.model.frames.columns import FRAMES
from volbench.present.figures import KINDS, applicable, describe, draw_chart
from volbench.present.report import ReportContent, ReportFigure, SideBySide
from volbench.present.report.live import LIVE, live_plots
from volbench.present.report.packed import picture_of
from volbench.present.tables.hosts_tables import facts_text
from volbench.store.journal import utc_now

PICTURED_RUNS = 40
"""Beyond so many Runs, charts with a row of panels for each job are drawn only when looked at."""
_TALL = frozenset({"series", "device"})

Frames = Mapping[str, pd.DataFrame]


def report_content(
    opened: CampaignData, *, title: str | None, charts: Sequence[str] = ()
) -> ReportContent:
    """Gather plan, states, frames, facts, job files and figures of a campaign.

    Args:
        opened: the campaign.
        title: of the page; None for the campaign's name.
        charts: kinds beside the usual ones.

    Raises:
        InputError: there is no such kind, or the campaign has nothing for it.
    """
    frames = {name: opened.frame(name) for name in FRAMES}
    frames["use"] = use_rows(frames["summary"], frames["device"], frames["verdicts"])
    return ReportContent(
        title=title or opened.campaign.name,
        campaign=opened.campaign,
        states=opened.runs,
        frames=frames,
        hosts=[facts_text(host.model_dump()) for host in opened.provenance.hosts],
        volumes=[facts_text(volume.model_dump()) for volume in opened.provenance.volumes],
        jobs={run.id: opened.job_text(run.id) for run in opened.campaign.runs},
        figures=[_figure(kind, frames) for kind in dict.fromkeys([*applicable(frames), *charts])],
        generated_utc=utc_now(),
        volbench_version=__version__,
    )


def side_by_side(dataset: Dataset) -> SideBySide:
    """Gather what is shown of several campaigns together; the first is what others are held to."""
    frames = {name: dataset.frame(name) for name in ("summary", "findings")}
    alone = {name: Dataset([opened]) for name, opened in dataset.names.items()}
    try:
        comparison = compare(
            {name: one.facts() for name, one in alone.items()},
            {name: one.frame("findings") for name, one in alone.items()},
            Question(),
        )
    except ComparisonError as error:
        reason = f"No verdicts: {error.message}." + f" Hint: {error.hint}." * bool(error.hint)
        return SideBySide(frames, refusal=reason)
    return SideBySide(frames, comparison)


def _figure(kind: str, frames: Frames) -> ReportFigure:
    """Return a chart as a picture and, where that can be had, to zoom into."""
    words = describe(kind, frames)
    title = KINDS[kind].title
    is_tall = kind in _TALL and frames["summary"]["run"].nunique() > PICTURED_RUNS
    picture = "" if is_tall and kind in LIVE else picture_of(draw_chart(kind, frames))
    return ReportFigure(kind, title, picture, words, live_plots(kind, title, words, frames=frames))


__all__: Sequence[str] = ["report_content", "side_by_side"]
