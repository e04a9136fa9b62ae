"""Events of a running campaign, for the journal and the progress display."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from volbench.model.campaign.planned_run import Campaign, Run, RunState


@dataclass(frozen=True)
class Progress:
    """Progress of a running process."""

    elapsed_s: float  # time since the process started
    total_s: float | None = None  # expected duration; None when limited by size, not time
    # ``paused`` before it starts, ``layout``, ``waiting`` for others, ``ramp``, ``run``, ``ended``
    state: str = "run"
    read_iops: float | None = None  # None before the first report; 0 when no read completes
    write_iops: float | None = None
    trim_iops: float | None = None
    read_bw_bytes_per_s: float | None = None
    write_bw_bytes_per_s: float | None = None
    trim_bw_bytes_per_s: float | None = None
    note: str = ""  # additional status for the user, such as the distance from steady state
    silent_s: float = 0.0  # time since the last report of the process or its host

    @property
    def iops(self) -> float | None:
        """I/Os a second of all directions; None before the first report."""
        return _sum(self.read_iops, self.write_iops, self.trim_iops)

    @property
    def bw_bytes_per_s(self) -> float | None:
        """Bytes a second of all directions; None before the first report."""
        return _sum(self.read_bw_bytes_per_s, self.write_bw_bytes_per_s, self.trim_bw_bytes_per_s)


def _sum(*rates: float | None) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


@dataclass(frozen=True)
class CampaignStarted:
    """The first event; `pending` lists the runs not yet done."""

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
    """A progress report of a process."""

    run: Run
    progress: Progress


@dataclass(frozen=True)
class RunEnded:
    """A run reached a final state; `reason` is the cause unless it is FINISHED."""

    run: Run
    state: RunState
    reason: str = ""
    rates: tuple[float, float] | None = None  # I/Os and bytes a second; None where unknown


@dataclass(frozen=True)
class RunsNotNeeded:
    """Planned runs that are skipped for a reason other than failure."""

    runs: tuple[Run, ...]
    reason: str


@dataclass(frozen=True)
class Notice:
    """A message to the user that is not an error; `host` if it concerns a single one."""

    message: str
    host: str = ""
    topic: str = ""  # of notices that a reader needs once; empty for others


@dataclass(frozen=True)
class HostSilent:
    """A host with active runs has stopped answering, reported once; its runs may continue."""

    host: str
    silent_s: float
    reason: str = ""  # why it cannot be connected to, in parentheses; empty if it is not known


@dataclass(frozen=True)
class HostBack:
    """A host reported as silent answers again."""

    host: str
    silent_s: float


@dataclass(frozen=True)
class CampaignEnded:
    """The last event."""

    finished: tuple[str, ...]
    failed: tuple[str, ...]
    left: tuple[str, ...]
    not_needed: tuple[str, ...] = ()


Event = (
    CampaignStarted
    | RunStarted
    | RunProgress
    | RunEnded
    | RunsNotNeeded
    | Notice
    | HostSilent
    | HostBack
    | CampaignEnded
)
Listener = Callable[[Event], None]
