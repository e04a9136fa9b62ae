"""Content of a report, gathered by the caller and arranged by the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volbench.model.campaign.planned_run import Campaign
from volbench.model.frames.columns import FRAMES
from volbench.present.renderers.interactive import EmbeddedPlot
from volbench.present.terminal.campaign_text import RunNote

if TYPE_CHECKING:
    import pandas as pd

    from volbench.analyse.compare.comparison import Comparison


@dataclass(frozen=True)
class ReportFigure:
    """One chart, drawn by the page or as a picture.

    Attributes:
        kind: its name, such as ``iops``.
        title: its heading.
        description: its main numbers in a sentence, for readers who cannot see it.
        plot: drawn by the page; None for a picture.
        picture: a data URI; empty where the page draws the chart.
    """

    kind: str
    title: str
    description: str
    plot: EmbeddedPlot | None = None
    picture: str = ""


@dataclass(frozen=True)
class ReportContent:
    """Content of the report of one campaign.

    Attributes:
        title: of the page, or of the campaign's part of it.
        campaign: the plan.
        states: run id to its state; a run without one was planned and never ran.
        frames: frame name to frame; ``summary`` is shown, and all are offered for download;
            ``findings`` mark the numbers they are about. Large ones may lack columns that no
            chart reads.
        read_pieces: returns a frame with all columns, in pieces of some rows; None where `frames`
            have all.
        count_rows: returns the number of rows of a frame without reading it; None like those.
        hosts: label to fact, for each host.
        volumes: label to fact, for each volume.
        jobs: run id to the job file or dd command, exactly as used; "" when it never started.
        figures: in the order they are shown.
        lead: one or two that answer first.
        evidence: rule to the chart of a run that it is about.
        generated_utc: ISO 8601 with ``Z``.
        volbench_version: that made the report.
    """

    title: str
    campaign: Campaign
    states: Mapping[str, RunNote]
    frames: Mapping[str, pd.DataFrame]
    hosts: Sequence[Mapping[str, str]] = ()
    volumes: Sequence[Mapping[str, str]] = ()
    jobs: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[ReportFigure] = ()
    lead: Sequence[ReportFigure] = ()
    evidence: Mapping[str, ReportFigure] = field(default_factory=dict)
    generated_utc: str = ""
    volbench_version: str = ""
    read_pieces: Callable[[str, int], Iterator[pd.DataFrame]] | None = None
    count_rows: Callable[[str], int] | None = None

    def length(self, name: str) -> int:
        """Return the number of rows of a frame; 0 if there is none."""
        if self.count_rows and name in FRAMES:
            return self.count_rows(name)
        return len(self.frames.get(name, ()))

    def pieces(self, name: str, rows: int) -> Iterator[pd.DataFrame]:
        """Yield a frame with all columns in pieces of so many rows."""
        if self.read_pieces and name in FRAMES:
            yield from self.read_pieces(name, rows)
            return
        frame = self.frames[name]
        for start in range(0, len(frame), rows):
            yield frame.iloc[start : start + rows]


@dataclass(frozen=True)
class MultiCampaignContent:
    """Content of the comparison of several campaigns.

    Attributes:
        frames: frame name to frame with the rows of all of them; ``campaign`` distinguishes them.
        comparison: of all with the first; None where it was refused.
        refusal: why, in a sentence.
        figures: charts over all of them.
        verdict: the answer, in a sentence or more; empty without a comparison.
    """

    frames: Mapping[str, pd.DataFrame]
    comparison: Comparison | None = None
    refusal: str = ""
    figures: Sequence[ReportFigure] = ()
    verdict: str = ""
