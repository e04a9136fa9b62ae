"""Execution settings of a campaign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from volbench.engine.campaign.barrier import READY_TIMEOUT_S
from volbench.model.campaign.planned_run import RunState

# Seconds a run may be late. A full provider-side cache can hang a volume for 8 minutes ("Disk
# performance on Azure Kubernetes Service, part 1", Stian Øvrevåge, 2019).
GRACE_S = 600.0

UNFINISHED = 0  # In `Settings.redo_steps`: all steps that only some clients finished


@dataclass(frozen=True)
class Settings:
    """Execution settings of a campaign."""

    grace_s: float = GRACE_S  # seconds a run may be late before it is ended
    keep_files: bool = False  # keep scratch files on the volumes
    retry_failed: bool = False  # when resuming, also repeat failed runs
    ready_timeout_s: float = READY_TIMEOUT_S  # maximum wait of ready clients for silent ones
    settle_only: bool = False  # start nothing; wait for active runs, and fetch their results
    # steps of the plan to repeat on all clients; `UNFINISHED` means all steps that only some
    # clients finished
    redo_steps: frozenset[int] = frozenset()
    # passwords and keys of the runs, by environment variable; never stored
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def is_left(state: RunState, *, retry_failed: bool) -> bool:
    """Return whether a run in a given state is pending."""
    return not state.is_settled and (retry_failed or state is not RunState.FAILED)
