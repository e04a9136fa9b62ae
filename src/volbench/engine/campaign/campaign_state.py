"""State shared by all clients of a running campaign."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event as Flag
from threading import Lock, RLock, Thread
from typing import TYPE_CHECKING, Protocol

from volbench.engine.conditioning.used_reads import next_depth
from volbench.engine.conditioning.volume_warmup import Outcomes
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.run.barrier import READY_TIMEOUT_S
from volbench.engine.run.stop_request import StopRequest
from volbench.model.campaign.event import (
    Event,
    HostBack,
    HostSilent,
    Listener,
    Notice,
    RunsNotNeeded,
)
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.store.held_folder import known_paths
from volbench.store.journal import History, Journal, utc_at, utc_now
from volbench.store.layout import Layout, RunFolder
from volbench.store.log_files import checksum

if TYPE_CHECKING:
    from volbench.engine.campaign.round_stopping import ResultsJudge

# Silence after which a host is reported: ten times the longest pause of a host that works.
# Noticed by: test_campaign_state.py::test_silence_and_return_are_reported_once
SILENT_S = 10.0
_LOOK_S = 1.0

# Seconds a run may be late. A full provider-side cache can hang a volume for 8 minutes ("Disk
# performance on Azure Kubernetes Service, part 1", Stian Øvrevåge, 2019).
GRACE_S = 600.0
UNFINISHED = 0  # In `Settings.redo_steps`: all steps that only some clients finished


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

    @cached_property
    def judges(self) -> list[ResultsJudge]:
        """Judges of results during the campaign; numpy is imported only where there are any."""
        found: list[ResultsJudge] = []
        plan, states = (self.layout, self.campaign), self.states
        if self.campaign.rounds:
            from volbench.engine.campaign.round_stopping import RoundJudge  # noqa: PLC0415 - numpy

            found.append(RoundJudge(*plan, is_finished=states.is_finished))
        if self.campaign.repeats:
            from volbench.engine.campaign.repeat_stopping import PrecisionJudge  # noqa: PLC0415 - numpy

            found.append(PrecisionJudge(*plan, is_finished=states.is_finished))
        if self.campaign.ladders:
            from volbench.engine.campaign.depth_stopping import DepthJudge  # noqa: PLC0415 - numpy

            found.append(DepthJudge(*plan, is_finished=states.is_finished))
        if any(run.within for run in self.campaign.runs):
            from volbench.engine.campaign.rate_trials import RateJudge  # noqa: PLC0415 - numpy

            judge = RateJudge(
                *plan, is_finished=states.is_finished, chosen=states.chosen, choose=states.choose
            )
            found.append(judge)
        return found

    def chosen(self, run: Run) -> Run:
        """Return a run with the options that judges choose when it begins."""
        for judge in self.judges:
            run = judge.chosen(run)
        if run.extent is None or run.extent.direction != "used":
            return run
        if not self.states.chosen.get(run.id):
            depth = next_depth(self.outcomes, self.campaign, run, self.states.chosen)
            self.states.choose(run, {"iodepth": str(depth)})
        return run.with_options(self.states.chosen[run.id])


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

    def __init__(self, timeout_s: float, *, has_ended: bool = False) -> None:
        self._timeout_s = timeout_s
        self._working: list[_Client] = []
        self._has_ended = has_ended  # whether to go on without any client that is hung
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

    def silent_hosts(self) -> dict[str, tuple[float, str]]:
        """Return the seconds since each host with a working client answered, and why it cannot."""
        with self._lock:
            working = list(self._working)
        silent: dict[str, tuple[float, str]] = {}
        for worker in working:
            name, trouble = worker.host.name, worker.host.executor.trouble
            silent[name] = max(silent.get(name, (0.0, "")), (worker.silent_s, trouble))
        return silent


@contextmanager
def reported_silence(attendance: Attendance, listener: Listener) -> Iterator[None]:
    """Report hosts that stop answering inside the block, and their return, once each."""
    ended = Flag()
    reporter = Thread(target=_report_silence, args=[attendance, listener, ended], daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()


def _report_silence(attendance: Attendance, listener: Listener, ended: Flag) -> None:
    since_s: dict[str, float] = {}
    while not ended.wait(_LOOK_S):
        for host, (silent_s, trouble) in attendance.silent_hosts().items():
            if silent_s >= SILENT_S and host not in since_s:
                since_s[host] = time.monotonic() - silent_s
                listener(HostSilent(host, silent_s, f"({trouble})" if trouble else ""))
            elif silent_s < SILENT_S and host in since_s:
                listener(HostBack(host, time.monotonic() - since_s.pop(host)))


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


class RunStates:
    """Journal, run states and listener behind one lock."""

    def __init__(self, journal: Journal, history: History, listener: Listener) -> None:
        self._journal = journal
        self._history = history
        self._listener = listener
        self._lock = RLock()
        self._states = dict(history.states)
        self._silent: dict[str, str] = {}  # host to the time of its last answer

    @property
    def states(self) -> Mapping[str, RunState]:
        """Run id to state; runs never started are absent."""
        with self._lock:
            return dict(self._states)

    @property
    def is_new(self) -> bool:
        """Whether no run had been started when the journal was opened."""
        return not self._history.states

    def state(self, run: Run) -> RunState:
        """Return the state of a run."""
        with self._lock:
            return self._states.get(run.id, RunState.PLANNED)

    def is_finished(self, run: Run) -> bool:
        """Return whether a run is finished."""
        return self.state(run) is RunState.FINISHED

    def process(self, run: Run) -> Mapping[str, object]:
        """Return the record of a run's process from an earlier controller."""
        return self._history.processes.get(run.id, {})

    def control(self, run: Run) -> str:
        """Return the control folder of a run's last process, if an earlier controller's; or ""."""
        return str(self.process(run).get("handle") or self._history.controls.get(run.id, ""))

    def intended(self, run: Run, control: str, *, is_remote: bool) -> None:
        """Record the control folder of a process that is about to be started."""
        if is_remote:
            record = {"handle": control, "since_utc": utc_now(), "launched": False}
            self.started(run, record)
        else:
            self.write("control", run=run.id, path=control)

    def started(self, run: Run, process: Mapping[str, object]) -> None:
        """Record that a process was or is about to be started."""
        with self._lock:
            self._journal.write("run", run=run.id, state=RunState.RUNNING, process=dict(process))
            self._states[run.id] = RunState.RUNNING

    @property
    def chosen(self) -> Mapping[str, Mapping[str, str]]:
        """Run id to the options that were chosen when it began."""
        return self._history.chosen

    def choose(self, run: Run, options: dict[str, str]) -> None:
        """Record the options that are chosen for a run that is about to begin."""
        with self._lock:
            self._journal.write("chosen", run=run.id, options=options)
            self._history.chosen[run.id] = options

    def write(self, kind: str, **facts: object) -> None:
        """Append an entry of any other kind."""
        with self._lock:
            self._journal.write(kind, **facts)

    def ended(
        self, run: Run, state: RunState, *, reason: str, folder: RunFolder | None = None
    ) -> None:
        """Record the end of a run, with the checksum of its status if it has one in `folder`."""
        status = None if folder is None else folder.status
        facts = {"status_sha256": checksum(status)} if status and status.exists() else {}
        with self._lock:
            self._journal.write("run", run=run.id, state=state, reason=reason, **facts)
            self._states[run.id] = state

    def settle(self, runs: Sequence[Run], state: RunState, *, reason: str) -> None:
        """Record the state of several runs in one step."""
        with self._lock:
            ids = [run.id for run in runs]
            self._journal.write("runs", runs=ids, state=state, reason=reason)
            self._states.update(dict.fromkeys(ids, state))

    def leave_out(self, runs: Sequence[Run], *, reason: str) -> None:
        """Record in one step that several runs are not needed, and report it."""
        with self._lock:
            self.settle(runs, RunState.NOT_NEEDED, reason=reason)
            self._listener(RunsNotNeeded(tuple(runs), reason))

    def listener(self, event: Event) -> None:
        """Pass on an event; one at a time. The journal keeps the silence of hosts."""
        with self._lock:
            if isinstance(event, HostSilent | HostBack):
                self._silent.pop(event.host, "")
                if isinstance(event, HostSilent):
                    self._silent[event.host] = utc_at(time.time() - event.silent_s)
                self.write("in-use", hosts=[], silent=self._silent)
            self._listener(event)

    def notify(self, message: str, *, host: str = "", topic: str = "") -> None:
        """Send the user a notice; `host` if it concerns a single one."""
        self.listener(Notice(known_paths(message), host, topic))
