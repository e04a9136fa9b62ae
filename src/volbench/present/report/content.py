"""What a report is made of; the caller gathers it, the renderer only arranges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volbench.model.campaign.planned_run import Campaign
from volbench.present.report.plots import Plot
from volbench.present.terminal.outcome import StateNote

if TYPE_CHECKING:
    import pandas as pd

    from volbench.analyse.compare.comparison import Comparison


@dataclass(frozen=True)
class ReportFigure:
    """One chart, as a picture, as something to zoom into, or both.

    Attributes:
        kind: its name, such as ``iops``.
        title: its heading.
        picture: a data URI, for paper and for a browser that runs no script; may be empty.
        description: what is to be seen, for readers who don't see it.
        plots: interactive charts of the same numbers; of several, each has a title of its own.
    """

    kind: str
    title: str
    picture: str
    description: str
    plots: Sequence[Plot] = ()


@dataclass(frozen=True)
class ReportContent:
    """Everything a report shows of one campaign.

    Attributes:
        title: of the page, or of the campaign's part of it.
        campaign: the plan.
        states: run id to where it stands; a Run without one was planned and never ran.
        frames: frame name to frame; ``summary`` is shown, and all are offered for download;
            ``findings`` stand beside the numbers they put in doubt.
        hosts: label to fact, for each host.
        volumes: label to fact, for each volume.
        jobs: run id to the job file or dd command, exactly as used; "" when it never started.
        figures: in the order they are shown.
        generated_utc: ISO 8601 with ``Z``.
        volbench_version: that made the report.
    """

    title: str
    campaign: Campaign
    states: Mapping[str, StateNote]
    frames: Mapping[str, pd.DataFrame]
    hosts: Sequence[Mapping[str, str]] = ()
    volumes: Sequence[Mapping[str, str]] = ()
    jobs: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[ReportFigure] = ()
    generated_utc: str = ""
    volbench_version: str = ""


@dataclass(frozen=True)
class SideBySide:
    """Several campaigns together.

    Attributes:
        frames: frame name to frame with the rows of all of them; ``campaign`` tells them apart.
        comparison: of all with the first; None where it was refused.
        refusal: why, in a sentence.
        figures: charts over all of them.
    """

    frames: Mapping[str, pd.DataFrame]
    comparison: Comparison | None = None
    refusal: str = ""
    figures: Sequence[ReportFigure] = ()
