"""Parallel clients of a campaign, driven by few threads, with a barrier before every step.

A lost client does not delay the others, unless the plan's policy requires all clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock

from volbench.engine.campaign.barrier import Barrier, WaitPolicy
from volbench.engine.campaign.campaign_state import RunStates
from volbench.engine.campaign.client_worker import Worker
from volbench.engine.campaign.start_gate import Gate
from volbench.errors import VolbenchError
from volbench.execute.parallel import on_each
from volbench.execute.waiting_work import Work, drive
from volbench.model.campaign.host import Policy
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Phase
from volbench.units import format_duration

# Time for which a ready process waits for its start after its controller was lost: a day
PATIENCE_S = 86400.0


class Steps:
    """The barriers of a campaign, by step."""

    def __init__(
        self, campaign: Campaign, pending: Mapping[Worker, Sequence[Run]], states: RunStates
    ) -> None:
        self._states = states
        self._workers = {run.id: worker for worker, runs in pending.items() for run in runs}
        self._given_up: set[Worker] = set()
        self._settings = next(iter(pending)).context.settings
        self._runs: dict[int, list[Run]] = {}
        for run in (run for runs in pending.values() for run in runs):
            self._runs.setdefault(run.step, []).append(run)
        wait = WaitPolicy(
            ready_timeout_s=self._settings.ready_timeout_s,
            silent_s=lambda run: self._workers[run.id].silent_s,
            is_given_up=self._is_given_up,
            round_trip_s=max(worker.host.clock.round_trip_s for worker in pending),
            on_late=self._report_late,
        )
        self._barriers = {
            step: Barrier(
                runs,
                quorum=_quorum(campaign, runs),
                wait=wait,
                held_back="other hosts cannot be reached" if self._settings.settle_only else "",
            )
            for step, runs in self._runs.items()
        }

    def _is_given_up(self, run: Run) -> bool:
        """Return whether a client was late at an earlier step and has been silent since."""
        worker = self._workers[run.id]
        return worker in self._given_up and worker.silent_s >= self._settings.ready_timeout_s

    def _report_late(self, runs: Sequence[Run]) -> None:
        """Report clients that a step no longer waits for."""
        self._given_up.update(self._workers[run.id] for run in runs)
        for run in runs:
            silent = format_duration(round(self._workers[run.id].silent_s))
            self._states.notify(
                f"step {run.step} does not wait for {run.client_name}, silent for {silent}",
                host=run.host,
            )

    def gate(self, worker: Worker, run: Run) -> Gate | None:
        """Return the gate of a run; None if it starts immediately."""
        if run.phase is Phase.PRECONDITION:
            return None
        patience_s = PATIENCE_S + max(other.start_offset_s for other in self._runs[run.step])
        return Gate(self._barriers[run.step], run.id, worker.host.clock, patience_s=patience_s)

    def give_up(self, runs: Sequence[Run]) -> None:
        """Remove runs that will not start from their barriers."""
        for run in runs:
            self._barriers[run.step].leave(run.id)


def _quorum(campaign: Campaign, runs: Sequence[Run]) -> int:
    """Return the minimum number of ready clients for a step to start."""
    match campaign.policy:
        case Policy.ALL:
            return len(runs)
        case Policy.QUORUM:
            return min(campaign.quorum, len(runs))
        case Policy.BEST_EFFORT:
            return 1


def run_together(
    workers: Sequence[Worker],
    campaign: Campaign,
    states: RunStates,
    *,
    announce: Callable[[Sequence[Run]], None],
) -> None:
    """Execute the pending runs of all clients in parallel."""
    problems = _Problems(states)
    recovered: set[Worker] = set()
    pending: dict[Worker, Sequence[Run]] = dict.fromkeys(workers, ())

    def recover(worker: Worker) -> None:
        with problems.of(worker):
            worker.recover()
            recovered.add(worker)

    def plan(worker: Worker) -> None:
        with problems.of(worker):
            pending[worker] = worker.pending()

    on_each(workers, recover)
    on_each([worker for worker in workers if worker in recovered], plan)
    announce([run for runs in pending.values() for run in runs])
    if campaign.cold_probe_roles and states.is_new:
        states.notify("cold_probe is left out: it supports a single client only")
    steps = Steps(campaign, pending, states)

    def work(worker: Worker, runs: Sequence[Run]) -> Work[None]:
        with problems.of(worker):
            try:
                yield from worker.run_all(runs, gate_of=partial(steps.gate, worker))
            finally:
                steps.give_up(runs)
                worker.context.attendance.leave(worker)

    for worker in workers:
        worker.context.attendance.enter(worker)
    drive(work(worker, runs) for worker, runs in pending.items())
    problems.raise_first()


class _Problems:
    """Errors that ended individual clients."""

    def __init__(self, states: RunStates) -> None:
        self._states = states
        self._found: list[VolbenchError] = []
        self._lock = Lock()

    @contextmanager
    def of(self, worker: Worker) -> Iterator[None]:
        """Catch a `VolbenchError`, which ends this client only."""
        try:
            yield
        except VolbenchError as error:
            with self._lock:
                self._found.append(error)
            self._states.notify(f"{worker.name}: {error.message}", host=worker.host.name)

    def raise_first(self) -> None:
        """Raise the first error, if any."""
        if self._found:
            raise self._found[0]
