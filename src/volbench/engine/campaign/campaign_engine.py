"""All Runs of a campaign: journalled, guarded before each, resumable at any instant.

One client does its Runs in order. Several do theirs side by side and meet before each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from volbench.engine.campaign.cleanup import forget_campaign
from volbench.engine.campaign.client_worker import Settings, Worker
from volbench.engine.campaign.clients import run_together
from volbench.engine.campaign.run_states import Ledger
from volbench.engine.conditioning.warmup_verification import Outcomes
from volbench.engine.guard.scratch_files import Scratch
from volbench.engine.hosts.connected_host import of_each
from volbench.engine.hosts.device_lock import free_devices, hold_devices
from volbench.engine.hosts.machine import Machine
from volbench.engine.run.stop_request import Stop
from volbench.errors import CampaignError, StoppedError
from volbench.model.campaign.event import CampaignEnded, CampaignStarted, Listener
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.plan.expansion.estimate import expected_s
from volbench.store.archive import hold_campaign
from volbench.store.journal import Journal, read_history
from volbench.store.layout import Layout


@dataclass(frozen=True)
class RunContext:
    """Where and before whom a campaign runs.

    Attributes:
        machines: host to machine, for every host of the plan.
        listener: told every event, one at a time.
        stop: the user's wish.
    """

    machines: Mapping[str, Machine]
    listener: Listener
    stop: Stop


def run_campaign(
    layout: Layout, campaign: Campaign, *, settings: Settings, around: RunContext
) -> None:
    """Run what is not finished yet, in order, and clean up.

    Args:
        layout: an existing campaign folder.
        campaign: its plan.
        settings: how.
        around: machines, listener and stop request.

    Raises:
        CampaignError: some Runs failed; the others are kept.
        StoppedError: the user stopped it.
        RefusedError: a volume is no longer what was planned.
        ArchiveError: another controller runs it, or the folder can't be written.
    """
    with hold_campaign(layout), Journal(layout.journal) as journal:
        history = read_history(layout.journal)
        ledger = Ledger(journal, history, around.listener)
        scratch = {
            host: Scratch(machine.executor, ledger, history.scratch_of(host))
            for host, machine in around.machines.items()
        }
        outcomes = Outcomes(layout)
        workers = [
            Worker(
                machine=around.machines[runs[0].host],
                layout=layout,
                campaign=campaign,
                runs=runs,
                settings=settings,
                stop=around.stop,
                ledger=ledger,
                scratch=scratch[runs[0].host],
                outcomes=outcomes,
            )
            for runs in by_client(campaign)
        ]
        for machine in around.machines.values():
            machine.executor.wait_when_unreachable(unless=lambda: around.stop.requested)
        machines = list(around.machines.values())
        of_each(machines, lambda machine: hold_devices(machine.executor, campaign))
        try:
            _run_all(campaign, workers, ledger)
        finally:
            # What goes on somewhere keeps its files, its folder and its locks until a resume.
            through = [one for one in machines if _is_through(one, campaign, ledger)]
            for one in through:
                _clean(scratch[one.host], ledger, keep=settings.keep_files)
            of_each(through, lambda machine: _leave(machine, layout, campaign))
        _tell_rounds(layout, campaign, ledger)
        _conclude(layout, campaign, ledger, around)


def by_client(campaign: Campaign) -> list[tuple[Run, ...]]:
    """Return the Runs of each client in order; clients in the order of the plan."""
    clients: dict[tuple[str, int], list[Run]] = {}
    for run in campaign.runs:
        clients.setdefault((run.host, run.client), []).append(run)
    return [tuple(runs) for runs in clients.values()]


def _run_all(campaign: Campaign, workers: Sequence[Worker], ledger: Ledger) -> None:
    def announce(pending: Sequence[Run]) -> None:
        expected = {run.id: expected_s(run) or 0.0 for run in pending}
        ledger.listener(CampaignStarted(campaign, tuple(pending), expected))
        for one in campaign.absent:
            ledger.tell(f"left out: {one.host}: {one.reason}")

    if len(workers) > 1:
        run_together(workers, campaign, ledger, announce=announce)
        return
    (worker,) = workers
    worker.recover()
    pending = worker.pending()
    announce(pending)
    if ledger.is_new:
        worker.probe()
    worker.run_all(pending)


def _is_through(machine: Machine, campaign: Campaign, ledger: Ledger) -> bool:
    """Tell whether no Run goes on any more on a machine."""
    here = [run for run in campaign.runs if run.host == machine.host]
    return all(ledger.state(run) is not RunState.RUNNING for run in here)


def _leave(machine: Machine, layout: Layout, campaign: Campaign) -> None:
    """Let a machine go: its devices, and the folder in which Runs worked."""
    free_devices(machine.executor, campaign)
    forget_campaign(machine.executor, campaign, layout.root)


def _clean(scratch: Scratch, ledger: Ledger, *, keep: bool) -> None:
    """Remove scratch files unless they were asked for."""
    if keep:
        for path in scratch.paths:
            ledger.tell(f"scratch file kept: {path}")
        return
    for path in scratch.remove():
        ledger.tell(f"{path} was replaced by somebody else and is left alone")


def _tell_rounds(layout: Layout, campaign: Campaign, ledger: Ledger) -> None:
    """Tell how the rounds of each profile ended; numpy is imported only for these."""
    if not campaign.rounds:
        return
    from volbench.engine.campaign.round_stopping import RoundJudge  # noqa: PLC0415 - pandas is slow to import

    judge = RoundJudge(layout, campaign, is_finished=ledger.is_finished)
    for profile in campaign.rounds:
        ledger.tell(f"{profile}: {judge.so_far(profile).words}")


def _conclude(layout: Layout, campaign: Campaign, ledger: Ledger, around: RunContext) -> None:
    """Tell how it ended, and raise unless everything is finished."""
    finished, failed, left = (ledger.ids(campaign, *states) for states in _OUTCOMES)
    not_needed = ledger.ids(campaign, RunState.NOT_NEEDED)
    ledger.listener(CampaignEnded(finished, failed, left, not_needed))
    root, total = layout.root, len(campaign.runs)
    if around.stop.requested and left:
        raise StoppedError(
            f"stopped: {len(finished)} of {total} Runs are finished and kept",
            hint=f"go on with: volbench resume {root}",
            context={"finished": finished, "left": left},
        )
    if failed or left:
        raise CampaignError(
            f"{len(failed)} of {total} Runs failed"
            + (f" and {len(left)} were not started" if left else ""),
            hint=f"look at them: volbench show {root}; "
            f"try them again: volbench resume {root} --retry-failed",
            finished=finished,
        )


_OUTCOMES: Sequence[tuple[RunState, ...]] = (
    (RunState.FINISHED,),
    (RunState.FAILED,),
    (RunState.PLANNED, RunState.INTERRUPTED, RunState.RUNNING),
)
