"""Run states of a campaign, journalled before any other effect; thread-safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock

from volbench.model.campaign.event import Event, Listener, Notice, RunsNotNeeded
from volbench.model.campaign.planned_run import Run, RunState
from volbench.store.journal import History, Journal
from volbench.store.layout import RunFolder
from volbench.store.log_files import checksum


class RunStates:
    """Journal, run states and listener behind one lock."""

    def __init__(self, journal: Journal, history: History, listener: Listener) -> None:
        self._journal = journal
        self._history = history
        self._listener = listener
        self._lock = RLock()
        self._states = dict(history.states)

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

    def started(self, run: Run, process: Mapping[str, object]) -> None:
        """Record that a process was or is about to be started."""
        with self._lock:
            self._journal.write("run", run=run.id, state=RunState.RUNNING, process=dict(process))
            self._states[run.id] = RunState.RUNNING

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
        """Pass on an event; one at a time."""
        with self._lock:
            self._listener(event)

    def notify(self, message: str, *, host: str = "") -> None:
        """Send the user a notice; `host` if it concerns a single one."""
        self.listener(Notice(message, host))
