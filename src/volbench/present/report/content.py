"""Content of a report, gathered by the caller and arranged by the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from volbench.model.campaign.planned_run import Campaign, Run, RunNote, unfinished
from volbench.present.tables.table import Table


@dataclass(frozen=True)
class ReportFigure:
    """One chart as a picture."""

    title: str  # its heading
    description: str  # its main numbers in a sentence, for readers who cannot see it
    caption: str  # in sentences
    picture: str  # a data URI
    is_wide: bool = False  # it takes the whole width of the page


@dataclass(frozen=True)
class Quality:
    """Data quality in a line, which opens."""

    severity: str = "ok"  # ``ok``, ``note``, ``warning`` or ``invalid``
    text: str = ""  # such as ``sound: repeats agree within 6 %, 2 notes``
    findings: str = ""  # grouped by rule, as a text of several lines; empty for none
    cautions: Sequence[str] = ()  # reservations, in sentences


@dataclass(frozen=True)
class CampaignPart:
    """Plan, states, environment and job files of one campaign."""

    name: str
    campaign: Campaign
    # run id to its state; a run without one was planned and never ran
    states: Mapping[str, RunNote]
    hosts: Sequence[Mapping[str, str]] = ()  # label to fact, for each host
    volumes: Sequence[Mapping[str, str]] = ()  # label to fact, for each volume
    # run id to the job file, exactly as used; "" when it never started
    jobs: Mapping[str, str] = field(default_factory=dict)

    @property
    def failures(self) -> Sequence[tuple[Run, RunNote]]:
        """The runs that did not finish though they were needed."""
        return unfinished(self.campaign, self.states)


@dataclass(frozen=True)
class ReportContent:
    """Content of the report of one or several campaigns."""

    title: str  # what was measured, from the factors
    constants: str  # what is equal in all results, and the dates
    answer: Sequence[str]  # in sentences
    quality: Quality
    parts: Sequence[CampaignPart]  # of each campaign
    figures: Sequence[ReportFigure] = ()  # that of the first screen first
    tables: Sequence[Table[Any]] = ()  # of what is compared, or of the cells
    folded: Sequence[Table[Any]] = ()  # of cells and runs
    tools: str = ""  # versions of fio
    generated_utc: str = ""  # ISO 8601 with ``Z``
    volbench_version: str = ""  # that made the report
