"""What is known of every Run of a campaign: written by workers on any thread, never lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock

from volbench.model.campaign.event import Event, Listener, Notice, RunsNotNeeded
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.store.journal import History, Journal


class Ledger:
    """The journal, the states it amounts to, and the listener; one worker at a time.

    Args:
        journal: open.
        history: what it said before.
        listener: told every event.
    """

    def __init__(self, journal: Journal, history: History, listener: Listener) -> None:
        self._journal = journal
        self._history = history
        self._listener = listener
        self._lock = RLock()
        self._states = dict(history.states)

    @property
    def states(self) -> Mapping[str, RunState]:
        """Run id to state; Runs never started are absent."""
        with self._lock:
            return dict(self._states)

    @property
    def is_new(self) -> bool:
        """Whether nothing had been started when the journal was opened."""
        return not self._history.states

    def state(self, run: Run) -> RunState:
        """Return where a Run stands."""
        with self._lock:
            return self._states.get(run.id, RunState.PLANNED)

    def is_finished(self, run: Run) -> bool:
        """Tell whether a Run is done."""
        return self.state(run) is RunState.FINISHED

    def process(self, run: Run) -> Mapping[str, object]:
        """Return what identifies the process that an earlier controller started for a Run."""
        return self._history.processes.get(run.id, {})

    def started(self, run: Run, process: Mapping[str, object]) -> None:
        """Write down that a process was started."""
        with self._lock:
            self._journal.write("run", run=run.id, state=RunState.RUNNING, process=dict(process))
            self._states[run.id] = RunState.RUNNING

    def write(self, kind: str, **facts: object) -> None:
        """Append an entry of any other kind."""
        with self._lock:
            self._journal.write(kind, **facts)

    def note(self, run: Run, state: RunState, *, reason: str) -> None:
        """Write down how a Run ended."""
        with self._lock:
            self._journal.write("run", run=run.id, state=state, reason=reason)
            self._states[run.id] = state

    def leave_out(self, runs: Sequence[Run], *, reason: str) -> None:
        """Write down at once that Runs are not needed, and tell it."""
        with self._lock:
            ids = [run.id for run in runs]
            self._journal.write("runs", runs=ids, state=RunState.NOT_NEEDED, reason=reason)
            self._states.update(dict.fromkeys(ids, RunState.NOT_NEEDED))
            self._listener(RunsNotNeeded(tuple(runs), reason))

    def listener(self, event: Event) -> None:
        """Tell an event; one at a time."""
        with self._lock:
            self._listener(event)

    def tell(self, message: str) -> None:
        """Tell the user something."""
        self.listener(Notice(message))

    def ids(self, campaign: Campaign, *states: RunState) -> tuple[str, ...]:
        """Return the Runs in some states, in the order of the plan."""
        return tuple(run.id for run in campaign.runs if self.state(run) in states)
