"""Several clients at once: one thread each, which meet before every step of the plan.

A client that is lost does not hold up the others, unless the plan wants all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock

from volbench.engine.campaign.barrier import Barrier
from volbench.engine.campaign.client_worker import Worker
from volbench.engine.campaign.run_states import Ledger
from volbench.engine.campaign.start_gate import Gate
from volbench.errors import VolbenchError
from volbench.model.campaign.host import Policy
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Phase

PATIENCE_S = 3600.0
"""How long a client that is ready waits for the others: laying files out can take that long."""


class Steps:
    """The meetings of a campaign, by step.

    Args:
        campaign: the plan.
        pending: what is still to do, of all clients.
    """

    def __init__(self, campaign: Campaign, pending: Sequence[Run]) -> None:
        runs: dict[int, list[Run]] = {}
        for run in pending:
            runs.setdefault(run.step, []).append(run)
        self._meetings = {
            step: Barrier(of_step, least=_least(campaign, of_step))
            for step, of_step in runs.items()
        }
        self._runs = runs

    def gate(self, worker: Worker, run: Run) -> Gate | None:
        """Return the gate of a Run; None where it starts when it likes."""
        if run.phase is Phase.PRECONDITION:
            return None
        patience_s = PATIENCE_S + max(one.start_offset_s for one in self._runs[run.step])
        return Gate(self._meetings[run.step], run.id, worker.machine.clock, patience_s=patience_s)

    def give_up(self, runs: Sequence[Run]) -> None:
        """Let nobody wait for Runs that will not come."""
        for run in runs:
            self._meetings[run.step].leave(run.id)


def _least(campaign: Campaign, runs: Sequence[Run]) -> int:
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
    ledger: Ledger,
    *,
    announce: Callable[[Sequence[Run]], None],
) -> None:
    """Run what is pending of all clients side by side.

    Args:
        workers: one for each client.
        campaign: the plan.
        ledger: what is known of every Run.
        announce: called with what is to do before anything is started.

    Raises:
        VolbenchError: the first that a client met and that ends the campaign; the others have
            gone on as far as the plan's policy lets them.
    """
    problems = _Problems(ledger)
    with ThreadPoolExecutor(len(workers), thread_name_prefix="client") as pool:
        for future in [pool.submit(problems.kept, one, one.recover) for one in workers]:
            future.result()
        pending = {id(one): problems.pending(one) for one in workers}
        everything = [run for one in workers for run in pending[id(one)]]
        announce(everything)
        if campaign.cold_probe_roles and ledger.is_new:
            ledger.tell("cold_probe is left out: it looks at one client's volumes only")
        steps = Steps(campaign, everything)

        def work(worker: Worker) -> Callable[[], None]:
            def do() -> None:
                mine = pending[id(worker)]
                try:
                    worker.run_all(mine, gate_of=partial(steps.gate, worker))
                finally:
                    steps.give_up(mine)

            return do

        futures = [pool.submit(problems.kept, one, work(one)) for one in workers]
        for future in futures:
            future.result()
    problems.raise_first()


class _Problems:
    """What went wrong with clients, while the others go on."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._found: list[VolbenchError] = []
        self._lost: set[int] = set()
        self._lock = Lock()

    def kept(self, worker: Worker, work: Callable[[], None]) -> None:
        """Do something for a client; an error of volbench's ends this client only."""
        try:
            work()
        except VolbenchError as error:
            with self._lock:
                self._found.append(error)
                self._lost.add(id(worker))
            self._ledger.tell(f"{worker.name}: {error.message}")

    def pending(self, worker: Worker) -> tuple[Run, ...]:
        """Return what a client has to do; nothing when it is lost."""
        found: list[Run] = []
        if id(worker) not in self._lost:
            self.kept(worker, lambda: found.extend(worker.pending()))
        return tuple(found)

    def raise_first(self) -> None:
        """Raise the first error, if there was one."""
        if self._found:
            raise self._found[0]
