"""State shared by all clients of a running campaign."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Protocol

from volbench.engine.campaign.execution_settings import Settings
from volbench.engine.campaign.run_states import RunStates
from volbench.engine.conditioning.warmup_verification import Outcomes
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.run.stop_request import StopRequest
from volbench.model.campaign.event import HostBack, HostSilent, Listener
from volbench.model.campaign.planned_run import Campaign
from volbench.store.layout import Layout

if TYPE_CHECKING:
    from volbench.engine.campaign.round_stopping import RoundJudge

SILENT_S = 10.0  # Silence after which a host is reported; it is polled about every second
_LOOK_S = 1.0


@dataclass(frozen=True)
class CampaignContext:
    """State shared by all clients of a running campaign."""

    layout: Layout  # the campaign folder
    campaign: Campaign  # the plan
    settings: Settings  # execution settings
    stop: StopRequest  # the user's stop request
    states: RunStates  # states of all runs
    outcomes: Outcomes  # bytes moved by finished runs
    attendance: Attendance  # clients that still work

    def round_judge(self) -> RoundJudge | None:
        """Return the judge of the campaign's rounds; None if it has none."""
        if not self.campaign.rounds:
            return None
        from volbench.engine.campaign.round_stopping import RoundJudge  # noqa: PLC0415 - pandas is slow to import

        return RoundJudge(self.layout, self.campaign, is_finished=self.states.is_finished)


class _Client(Protocol):
    """Client with a machine."""

    @property
    def host(self) -> ConnectedHost:
        """Its machine."""

    @property
    def silent_s(self) -> float:
        """Seconds since its machine last answered."""


class Attendance:
    """Clients that still work, so that the end does not wait for hung machines."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._working: list[_Client] = []
        self._has_ended = False
        self._lock = Lock()

    def enter(self, worker: _Client) -> None:
        """Count a client as working."""
        with self._lock:
            self._working.append(worker)

    def leave(self, worker: _Client) -> None:
        """Record that a client has ended."""
        with self._lock:
            self._working.remove(worker)
            self._has_ended = True

    @property
    def is_over(self) -> bool:
        """Whether clients have ended, and the machines of all others are hung."""
        with self._lock:
            if not (self._has_ended and self._working):
                return False
            # Every client asks several times a second: one that works answers for all.
            return all(worker.silent_s >= self._timeout_s for worker in self._working)

    def silent_hosts(self) -> dict[str, float]:
        """Return the seconds since each host with a working client last answered, by name."""
        with self._lock:
            working = list(self._working)
        silent_s: dict[str, float] = {}
        for worker in working:
            silent_s[worker.host.name] = max(silent_s.get(worker.host.name, 0), worker.silent_s)
        return silent_s


@contextmanager
def reported_silence(attendance: Attendance, listener: Listener) -> Iterator[None]:
    """Report hosts that stop answering inside the block, and their return, once each."""
    ended = Event()
    reporter = Thread(target=_report_silence, args=[attendance, listener, ended], daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()


def _report_silence(attendance: Attendance, listener: Listener, ended: Event) -> None:
    since_s: dict[str, float] = {}
    while not ended.wait(_LOOK_S):
        for host, silent_s in attendance.silent_hosts().items():
            if silent_s >= SILENT_S and host not in since_s:
                since_s[host] = time.monotonic() - silent_s
                listener(HostSilent(host, silent_s))
            elif silent_s < SILENT_S and host in since_s:
                listener(HostBack(host, time.monotonic() - since_s.pop(host)))
