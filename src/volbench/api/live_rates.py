"""Progress of active runs as their controller last received it, for `volbench status`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from time import monotonic, time

from pydantic import TypeAdapter

from volbench.errors import ArchiveError
from volbench.model.campaign.event import (
    CampaignEnded,
    CampaignStarted,
    Event,
    Progress,
    RunEnded,
    RunProgress,
    RunsNotNeeded,
    RunStarted,
)
from volbench.model.campaign.planned_run import Campaign, RunState
from volbench.plan.expansion.estimate import expected_s
from volbench.store.archive import is_held
from volbench.store.atomic_files import read_bytes, write_atomic
from volbench.store.journal import History, read_history
from volbench.store.layout import Layout

_ACTIVE = TypeAdapter(dict[str, Progress])


class LiveRates:
    """Listener that keeps the progress of active runs in a file of the campaign folder."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.live_rates
        self._active: dict[str, tuple[Progress, float]] = {}  # with the time of each
        self._wrote_s = 0.0

    def __call__(self, event: Event, /) -> None:
        """Note the progress of a run; a full disk keeps old rates."""
        if isinstance(event, RunProgress):
            self._active[event.run.id] = event.progress, monotonic()
        elif isinstance(event, RunEnded):
            self._active.pop(event.run.id, None)
        with suppress(OSError, ArchiveError):
            if isinstance(event, CampaignEnded):
                self._path.unlink()
            elif monotonic() - self._wrote_s >= 1.0:  # fio reports once a second
                self._wrote_s = monotonic()
                aged = {
                    run: _aged(seen, monotonic() - s) for run, (seen, s) in self._active.items()
                }
                write_atomic(self._path, _ACTIVE.dump_json(aged), durable=False)


def read_rates(layout: Layout) -> dict[str, Progress]:
    """Return run id to progress, with the time since it was reported; empty if none is known."""
    with suppress(ValueError, FileNotFoundError):
        active = _ACTIVE.validate_json(read_bytes(layout.live_rates))
        age_s = max(0.0, time() - layout.live_rates.stat().st_mtime)
        return {run: _aged(seen, age_s) for run, seen in active.items()}
    return {}


def _aged(seen: Progress, age_s: float) -> Progress:
    """Return a report as it stands after some time; a run that has ended does not grow older."""
    if seen.state == "ended":
        return seen
    return replace(seen, elapsed_s=seen.elapsed_s + age_s, silent_s=seen.silent_s + age_s)


def events_of(layout: Layout, plan: Campaign) -> Iterator[list[Event]]:
    """Yield the events since the last look at a campaign, until its controller has ended."""
    runs = {run.id: run for run in plan.runs if not run.imported}
    expected = {run_id: expected_s(run) or 0.0 for run_id, run in runs.items()}
    events: list[Event] = [CampaignStarted(plan, (*runs.values(),), expected)]
    history, replayed_bytes, rates = History(), 0, dict[str, Progress]()
    is_running = True
    while is_running:
        is_running = is_held(layout)
        before, size = history.states, layout.journal_bytes
        if size != replayed_bytes:
            history, replayed_bytes = read_history(layout.journal), size
        for run_id, state in history.states.items():
            run, known = runs.get(run_id), before.get(run_id)
            if run is None or state is known:
                continue
            if state is RunState.RUNNING:
                events.append(RunStarted(run, expected_s(run)))
            elif state is RunState.NOT_NEEDED:
                events.append(RunsNotNeeded((run,), ""))
            elif state is not RunState.INTERRUPTED or known:  # that one is to be resumed
                events.append(RunEnded(run, state))
        last, rates = rates, read_rates(layout)
        fresh = [each for each in rates.items() if last.get(each[0]) != each[1] and each[0] in runs]
        yield [*events, *(RunProgress(runs[run_id], progress) for run_id, progress in fresh)]
        events = []
