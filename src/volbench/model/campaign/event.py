"""What happens during a campaign: the journal keeps it, a screen draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from volbench.model.campaign.planned_run import Campaign, Run, RunState


@dataclass(frozen=True)
class Progress:
    """A glance at a running process.

    Attributes:
        elapsed_s: since the process started.
        total_s: expected length; None when only the data's size bounds it.
        state: ``paused`` before its start, ``layout``, ``waiting`` for the others, ``ramp`` or
            ``run``.
        lat_mean_s: of the block device that backs the volume over about the last second, as the
            kernel counts; None when unknown or nothing completed.
        silent_s: since the process, or its machine, last told anything.
        note: what else a person may want to know, such as how far from steady it is.
        read_iops: None when the tool has not said; 0 when it said nothing completes.
    """

    elapsed_s: float
    total_s: float | None = None
    state: str = "run"
    read_iops: float | None = None
    write_iops: float | None = None
    trim_iops: float | None = None
    read_bw_bytes_per_s: float | None = None
    write_bw_bytes_per_s: float | None = None
    trim_bw_bytes_per_s: float | None = None
    lat_mean_s: float | None = None
    note: str = ""
    silent_s: float = 0.0


@dataclass(frozen=True)
class CampaignStarted:
    """The first event; `pending` are the runs still to do."""

    campaign: Campaign
    pending: tuple[Run, ...]
    expected_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunStarted:
    """A process was started."""

    run: Run
    expected_s: float | None


@dataclass(frozen=True)
class RunProgress:
    """A process goes on."""

    run: Run
    progress: Progress


@dataclass(frozen=True)
class RunEnded:
    """A Run ended in a final state; `reason` says why unless it is FINISHED."""

    run: Run
    state: RunState
    reason: str = ""


@dataclass(frozen=True)
class RunsNotNeeded:
    """Runs that were planned will not be made, for a reason that is no failure."""

    runs: tuple[Run, ...]
    reason: str


@dataclass(frozen=True)
class Notice:
    """Something the user should know; not an error."""

    message: str


@dataclass(frozen=True)
class CampaignEnded:
    """The last event."""

    finished: tuple[str, ...]
    failed: tuple[str, ...]
    left: tuple[str, ...]
    not_needed: tuple[str, ...] = ()


Event = (
    CampaignStarted | RunStarted | RunProgress | RunEnded | RunsNotNeeded | Notice | CampaignEnded
)
Listener = Callable[[Event], None]
