"""Content of a report, gathered by the caller and arranged by the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from volbench.model.campaign.planned_run import Campaign, RunNote

if TYPE_CHECKING:
    import pandas as pd

    from volbench.analyse.compare.comparison import Comparison
    from volbench.analyse.compare.expected_bounds import Verdict
    from volbench.analyse.compare.promised_limits import Delivery
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
class ReportContent:
    """Content of the report of one campaign."""

    title: str  # of the page, or of the campaign's part of it
    campaign: Campaign  # the plan
    # run id to its state; a run without one was planned and never ran
    states: Mapping[str, RunNote]
    frames: Mapping[str, pd.DataFrame]  # frame name to frame
    tables: Sequence[Table[Any]] = ()  # of results
    hosts: Sequence[Mapping[str, str]] = ()  # label to fact, for each host
    volumes: Sequence[Mapping[str, str]] = ()  # label to fact, for each volume
    # run id to the job file, exactly as used; "" when it never started
    jobs: Mapping[str, str] = field(default_factory=dict)
    workloads: Sequence[str] = ()  # a sentence for each workload or sweep
    expected: Sequence[Verdict] = ()  # answers to the expectations of its profiles
    audited: Sequence[Delivery] = ()  # what the volumes of an audit deliver, the worst first
    imprecise: Sequence[str] = ()  # a sentence for each workload that missed `repeat.until`
    figures: Sequence[ReportFigure] = ()  # in the order they are shown
    generated_utc: str = ""  # ISO 8601 with ``Z``
    volbench_version: str = ""  # that made the report


@dataclass(frozen=True)
class MultiCampaignContent:
    """Content of the comparison of several campaigns."""

    names: Sequence[str]  # of the campaigns, the base first
    comparison: Comparison | None = None  # of all with the first; None where it was refused
    refusal: str = ""  # why, in a sentence
    figures: Sequence[ReportFigure] = ()  # charts over all of them
    verdict: str = ""  # the answer, in a sentence or more; empty without a comparison
