"""Content of a report, gathered by the caller and arranged by the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volbench.model.campaign.planned_run import Campaign, RunNote
from volbench.model.frames.columns import FRAMES
from volbench.present.renderers.interactive import EmbeddedPlot

if TYPE_CHECKING:
    import pandas as pd

    from volbench.analyse.compare.comparison import Comparison
    from volbench.analyse.compare.expected_bounds import Verdict
    from volbench.analyse.compare.promised_limits import Delivery


@dataclass(frozen=True)
class ReportFigure:
    """One chart, drawn by the page, as a picture, or both."""

    kind: str  # its name, such as ``iops``
    title: str  # its heading
    description: str  # its main numbers in a sentence, for readers who cannot see it
    plot: EmbeddedPlot | None = None  # drawn by the page; None for a picture
    # a data URI, shown until the page draws the chart; empty for charts below the first screen
    picture: str = ""


@dataclass(frozen=True)
class ReportContent:
    """Content of the report of one campaign."""

    title: str  # of the page, or of the campaign's part of it
    campaign: Campaign  # the plan
    # run id to its state; a run without one was planned and never ran
    states: Mapping[str, RunNote]
    # frame name to frame; ``summary`` is shown, and all are offered for download; ``findings`` mark
    # the numbers they are about. Large ones may lack columns that no chart reads.
    frames: Mapping[str, pd.DataFrame]
    hosts: Sequence[Mapping[str, str]] = ()  # label to fact, for each host
    volumes: Sequence[Mapping[str, str]] = ()  # label to fact, for each volume
    # run id to the job file, exactly as used; "" when it never started
    jobs: Mapping[str, str] = field(default_factory=dict)
    # what the campaign was made to answer, in sentences; empty for its key figures
    answer: Sequence[str] = ()
    expected: Sequence[Verdict] = ()  # answers to the expectations of its profiles
    audited: Sequence[Delivery] = ()  # what the volumes of an audit deliver, the worst first
    imprecise: Sequence[str] = ()  # a sentence for each workload that missed `repeat.until`
    figures: Sequence[ReportFigure] = ()  # in the order they are shown
    lead: Sequence[ReportFigure] = ()  # one or two that answer first
    # rule to the chart of a run that it is about
    evidence: Mapping[str, ReportFigure] = field(default_factory=dict)
    generated_utc: str = ""  # ISO 8601 with ``Z``
    volbench_version: str = ""  # that made the report
    # returns a frame with all columns, in pieces of some rows; None where `frames` have all
    read_pieces: Callable[[str, int], Iterator[pd.DataFrame]] | None = None
    # returns the number of rows of a frame without reading it; None like those
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
    """Content of the comparison of several campaigns."""

    # frame name to frame with the rows of all of them; ``campaign`` distinguishes them
    frames: Mapping[str, pd.DataFrame]
    comparison: Comparison | None = None  # of all with the first; None where it was refused
    refusal: str = ""  # why, in a sentence
    figures: Sequence[ReportFigure] = ()  # charts over all of them
    verdict: str = ""  # the answer, in a sentence or more; empty without a comparison
