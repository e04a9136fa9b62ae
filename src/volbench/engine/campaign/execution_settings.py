"""Settings of the execution of a campaign."""

from __future__ import annotations

from dataclasses import dataclass

from volbench.engine.campaign.barrier import READY_TIMEOUT_S
from volbench.model.campaign.planned_run import RunState

GRACE_S = 600.0
"""Seconds a run may be late. A provider's cache that is full can hang a volume for 8 minutes
("Disk performance on Azure Kubernetes Service, part 1", Stian Øvrevåge, 2019)."""

UNFINISHED = 0
"""In `Settings.redo_steps`: the steps that some clients finished and others did not."""


@dataclass(frozen=True)
class Settings:
    """How to execute a campaign.

    Attributes:
        grace_s: seconds a run may be late before it is ended.
        keep_files: leave scratch files on the volumes.
        retry_failed: when resuming, repeat failed runs too.
        ready_timeout_s: how long clients that are ready wait for silent ones.
        settle_only: start nothing; wait for what is running, and fetch its results.
        redo_steps: steps of the plan that are repeated on all clients; `UNFINISHED` stands for
            those that some clients finished and others did not.
    """

    grace_s: float = GRACE_S
    keep_files: bool = False
    retry_failed: bool = False
    ready_timeout_s: float = READY_TIMEOUT_S
    settle_only: bool = False
    redo_steps: frozenset[int] = frozenset()


def is_left(state: RunState, *, retry_failed: bool) -> bool:
    """Return whether a run in some state is still to be done."""
    return not state.is_settled and (retry_failed or state is not RunState.FAILED)
