"""Clients of a campaign side by side: one thread each, which meet at a barrier before every step.

A client that is lost does not hold up the others, unless the plan's policy requires all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock

from volbench.engine.campaign.barrier import Barrier
from volbench.engine.campaign.client_worker import Worker
from volbench.engine.campaign.run_states import RunStates
from volbench.engine.campaign.start_gate import Gate
from volbench.errors import VolbenchError
from volbench.model.campaign.host import Policy
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Phase

PATIENCE_S = 3600.0
"""How long a client that is ready waits for the others: laying files out can take that long."""


class Steps:
    """The barriers of a campaign, by step.

    Args:
        campaign: the plan.
        pending: what is still to do, of all clients.
    """

    def __init__(self, campaign: Campaign, pending: Sequence[Run]) -> None:
        self._runs: dict[int, list[Run]] = {}
        for run in pending:
            self._runs.setdefault(run.step, []).append(run)
        self._barriers = {
            step: Barrier(runs, quorum=_quorum(campaign, runs)) for step, runs in self._runs.items()
        }

    def gate(self, worker: Worker, run: Run) -> Gate | None:
        """Return the gate of a run; None where it starts at once."""
        if run.phase is Phase.PRECONDITION:
            return None
        patience_s = PATIENCE_S + max(other.start_offset_s for other in self._runs[run.step])
        return Gate(self._barriers[run.step], run.id, worker.host.clock, patience_s=patience_s)

    def give_up(self, runs: Sequence[Run]) -> None:
        """Let nobody wait for runs that will not come."""
        for run in runs:
            self._barriers[run.step].leave(run.id)


def _quorum(campaign: Campaign, runs: Sequence[Run]) -> int:
    """Return how many clients of a step must be ready for it to start."""
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
    """Run what is pending of all clients side by side.

    Args:
        workers: one for each client.
        campaign: the plan.
        states: of every run.
        announce: called with what is to do before anything is started.

    Raises:
        VolbenchError: the first that ended a client; the others have continued as far as the
            plan's policy lets them.
    """
    problems = _Problems(states)
    with ThreadPoolExecutor(len(workers), thread_name_prefix="client") as threads:
        recovered = [threads.submit(problems.catch, worker, worker.recover) for worker in workers]
        for future in recovered:
            future.result()
        pending = [problems.pending(worker) for worker in workers]
        everything = [run for runs in pending for run in runs]
        announce(everything)
        if campaign.cold_probe_roles and states.is_new:
            states.notify("cold_probe is left out: it supports a single client only")
        steps = Steps(campaign, everything)

        def work(worker: Worker, runs: Sequence[Run]) -> None:
            try:
                worker.run_all(runs, gate_of=partial(steps.gate, worker))
            finally:
                steps.give_up(runs)

        futures = [
            threads.submit(problems.catch, worker, partial(work, worker, runs))
            for worker, runs in zip(workers, pending, strict=True)
        ]
        for future in futures:
            future.result()
    problems.raise_first()


class _Problems:
    """Errors that ended clients, while the others continue."""

    def __init__(self, states: RunStates) -> None:
        self._states = states
        self._found: list[VolbenchError] = []
        self._lost: set[int] = set()
        self._lock = Lock()

    def catch(self, worker: Worker, work: Callable[[], None]) -> None:
        """Do something for a client; an error of volbench's ends this client only."""
        try:
            work()
        except VolbenchError as error:
            with self._lock:
                self._found.append(error)
                self._lost.add(id(worker))
            self._states.notify(f"{worker.name}: {error.message}")

    def pending(self, worker: Worker) -> tuple[Run, ...]:
        """Return what a client has to do; nothing when it is lost."""
        found: list[Run] = []
        if id(worker) not in self._lost:
            self.catch(worker, lambda: found.extend(worker.pending()))
        return tuple(found)

    def raise_first(self) -> None:
        """Raise the first error, if there was one."""
        if self._found:
            raise self._found[0]
