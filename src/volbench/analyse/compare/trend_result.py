"""Trends as results: limits, changes of level and the state of each workload over campaigns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from volbench.model.frames.column_names import Measure

Floats = npt.NDArray[np.float64]

LEAST_REFERENCE = 8


class State(StrEnum):
    """What the values of a workload show."""

    REGRESSION = "regression"
    OUTSIDE = "outside limits"
    IMPROVED = "improved"
    STABLE = "stable"
    TOO_FEW = "too few campaigns"

    @property
    def is_bad(self) -> bool:
        """Whether the workload got worse."""
        return self in {State.REGRESSION, State.OUTSIDE}


@dataclass(frozen=True)
class Limits:
    """Control limits, and the centre between them."""

    low: float
    centre: float
    high: float


@dataclass(frozen=True)
class LevelChange:
    """A change of the level between two campaigns."""

    place: int  # first campaign of the new level, counted from 0 among the workload's own
    before: float  # median of the level before
    after: float  # median of the level after
    # what else differs between the two campaigns, such as ``kernel: 6.1 -> 6.8``
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Trend:
    """One metric of one workload over campaigns."""

    label: str  # of the workload
    direction: str  # read, write, trim or sync
    by: Mapping[str, str]  # further columns that distinguish workloads
    measure: Measure  # the metric
    campaigns: tuple[str, ...]  # their names, in order
    started_utc: tuple[str, ...]  # their starts; empty texts where they are not known
    results: Floats  # the metric in each
    reference: int  # number of campaigns of the reference period
    limits: Limits | None  # of the campaigns behind the reference period; None without
    changes: tuple[LevelChange, ...]  # of the level
    tolerance: float  # acceptable relative change for the worse
    shortage: str = ""  # reason for missing limits

    @property
    def base(self) -> float:
        """Median of the reference period."""
        return float(np.median(self.results[: self.reference]))

    @property
    def level(self) -> float:
        """Median since the last change."""
        first = self.changes[-1].place if self.changes else 0
        return float(np.median(self.results[first:]))

    @property
    def outside(self) -> tuple[int, ...]:
        """Places of the campaigns behind the reference period that are beyond a limit."""
        if self.limits is None:
            return ()
        beyond = (self.results < self.limits.low) | (self.results > self.limits.high)
        return tuple(int(place) for place in np.flatnonzero(beyond) if place >= self.reference)

    @property
    def state(self) -> State:
        """What the values show."""
        if len(self.results) <= LEAST_REFERENCE:
            return State.TOO_FEW
        worse = self.loss(self.level)
        if self.changes and worse > self.tolerance:
            return State.REGRESSION
        last = len(self.results) - 1
        if last in self.outside and self.loss(float(self.results[last])) > self.tolerance:
            return State.OUTSIDE
        return State.IMPROVED if self.changes and -worse > self.tolerance else State.STABLE

    def loss(self, value: float) -> float:
        """Return by how much a value is worse than the reference period, as a share of it."""
        change = value / self.base - 1 if self.base else math.inf
        return -change if self.measure.more_is_better else change


@dataclass(frozen=True)
class Trends:
    """All trends of a question; `remarks` are caveats, one sentence each."""

    rows: tuple[Trend, ...]
    remarks: tuple[str, ...]


def record_of(trend: Trend) -> dict[str, object]:
    """Return a trend as plain values for other programs: base SI units, None for unknown."""
    limits = trend.limits
    return {
        "job": trend.label,
        "direction": trend.direction,
        **trend.by,
        "metric": trend.measure.column,
        "state": trend.state.value,
        "campaigns": len(trend.campaigns),
        "reference_campaigns": trend.reference,
        "reference_value": trend.base,
        "limit_low": limits.low if limits else None,
        "limit_high": limits.high if limits else None,
        "value": trend.level,
        "loss_percent": 100 * trend.loss(trend.level),
        "last_campaign": trend.campaigns[-1],
        "last_started_utc": trend.started_utc[-1] or None,
        "last_value": float(trend.results[-1]),
        "outside": [trend.campaigns[place] for place in trend.outside],
        "shortage": trend.shortage or None,
        "changes": [
            {
                "campaign": trend.campaigns[change.place],
                "started_utc": trend.started_utc[change.place] or None,
                "before": change.before,
                "after": change.after,
                "facts": list(change.facts),
            }
            for change in trend.changes
        ],
    }
