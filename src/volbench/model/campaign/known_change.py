"""Acknowledged change over campaigns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from volbench.model.frozen_model import Frozen


def trend_key(workload: str, metric: str, by: Mapping[str, str]) -> tuple[str, ...]:
    """Return the identity of workload and metric."""
    return workload, metric, *(f"{name}={value}" for name, value in sorted(by.items()))


class KnownChange(Frozen):
    """A change of a workload, or a single campaign beyond its limits."""

    workload: str  # in words, such as ``randread 4k, queue depth 16``
    by: dict[str, str] = Field(default_factory=dict)  # further columns that distinguish workloads
    metric: str  # column of the summary
    is_level: bool  # a new level; False for a single campaign beyond its limits
    campaign: str  # its name: the first at the new level, or the one beyond its limits
    started_utc: str = ""  # its start; empty if unknown
    acknowledged_utc: str = ""  # when it was acknowledged; empty until then

    @property
    def trend(self) -> tuple[str, ...]:
        """Identity of workload and metric."""
        return trend_key(self.workload, self.metric, self.by)

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the change."""
        return *self.trend, self.is_level, self.campaign


class KnownChanges(Frozen):
    """The content of the file."""

    format: Literal[1] = 1
    changes: tuple[KnownChange, ...] = ()
