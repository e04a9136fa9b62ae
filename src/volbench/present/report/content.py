"""What a report is made of; the caller gathers it, the renderer only arranges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volbench.model.run import Campaign
from volbench.present.outcome import StateNote

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ReportFigure:
    """One chart.

    Attributes:
        kind: its name, such as ``iops``.
        title: its heading.
        svg: the whole SVG document.
        description: what is to be seen, for readers who don't see it.
    """

    kind: str
    title: str
    svg: str
    description: str


@dataclass(frozen=True)
class ReportContent:
    """Everything a report shows.

    Attributes:
        title: of the page.
        campaign: the plan.
        states: run id to where it stands; a Run without one was planned and never ran.
        frames: frame name to frame; ``summary`` is shown, and offered for download;
            ``findings`` stand beside the numbers they put in doubt.
        host: label to fact.
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
    host: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[Mapping[str, str]] = ()
    jobs: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[ReportFigure] = ()
    generated_utc: str = ""
    volbench_version: str = ""
