"""What the report is made of, gathered from an opened campaign."""

from __future__ import annotations

from volbench import __version__
from volbench.api import CampaignData
from volbench.model.columns import FRAMES
from volbench.present.figures import KINDS, applicable, describe, draw_chart
from volbench.present.figures.save import svg_text
from volbench.present.report import ReportContent, ReportFigure
from volbench.present.tables import facts_text
from volbench.store.journal import utc_now


def report_content(opened: CampaignData, *, title: str | None) -> ReportContent:
    """Gather plan, states, frames, facts, job files and figures of a campaign."""
    frames = {name: opened.frame(name) for name in FRAMES}
    figures = [
        ReportFigure(
            kind, KINDS[kind].title, svg_text(draw_chart(kind, frames)), describe(kind, frames)
        )
        for kind in applicable(frames)
    ]
    hosts = opened.provenance.hosts
    return ReportContent(
        title=title or opened.campaign.name,
        campaign=opened.campaign,
        states=opened.runs,
        frames=frames,
        host=facts_text(hosts[0].model_dump()) if hosts else {},
        volumes=[facts_text(volume.model_dump()) for volume in opened.provenance.volumes],
        jobs={run.id: opened.job_text(run.id) for run in opened.campaign.runs},
        figures=figures,
        generated_utc=utc_now(),
        volbench_version=__version__,
    )
