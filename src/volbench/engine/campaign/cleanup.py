"""What a campaign left on its machines is ended and removed: only what it started and made."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from volbench.engine.campaign.run_states import Ledger
from volbench.engine.guard.scratch_files import Scratch
from volbench.engine.hosts.connected_host import of_each
from volbench.engine.hosts.device_lock import free_devices
from volbench.engine.hosts.machine import Machine
from volbench.engine.hosts.orphans import end_orphan, end_strays
from volbench.engine.run.process_watch import end_process
from volbench.engine.run.stop_request import Stop
from volbench.execute.protocol import Executor
from volbench.fio.jobs.output_files import planned_files
from volbench.model.campaign.event import Listener
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.store.archive import hold_campaign
from volbench.store.journal import Journal, read_history
from volbench.store.layout import Layout

__all__ = ["forget_campaign", "reap"]


def reap(
    layout: Layout, campaign: Campaign, machines: Sequence[Machine], *, listener: Listener
) -> None:
    """End every Run that still goes on, and remove scratch files, folders and locks.

    Runs that are ended count as interrupted: a resume does them again.

    Args:
        layout: the campaign folder.
        campaign: its plan.
        machines: of its hosts.
        listener: told what was found.

    Raises:
        CampaignError: a process can't be ended.
        TransportError: a host does not answer.
        ArchiveError: another controller runs the campaign.
    """
    with hold_campaign(layout), Journal(layout.journal) as journal:
        history = read_history(layout.journal)
        ledger = Ledger(journal, history, listener)

        def clean(machine: Machine) -> None:
            host, executor = machine.host, machine.executor
            scratch = Scratch(executor, ledger, history.scratch_of(host))
            for run in campaign.runs:
                if run.host == host and ledger.state(run) is RunState.RUNNING:
                    _end(executor, run, ledger)
                    scratch.settle(planned_files(run))
            own = [layout.run(run.id).path for run in campaign.runs if run.host == host]
            for folder in end_strays(executor, own):
                ledger.tell(f"{folder.name}: ended what a controller had just started")
            for path in scratch.remove():
                ledger.tell(f"{host}: {path} was replaced by somebody else and is left alone")
            free_devices(executor, campaign)
            forget_campaign(executor, campaign, layout.root)

        of_each(machines, clean)


def _end(executor: Executor, run: Run, ledger: Ledger) -> None:
    """End the process of a Run and the sampler beside it, if they are still there."""
    left = ledger.process(run)
    handle, sampler = str(left.get("handle", "")), str(left.get("sampler", ""))
    if handle:
        found = executor.find(handle)
        if found.poll() is None:
            ledger.tell(f"{run.id}: ended on {run.host}")
        end_process(found, Stop())
        if sampler:
            beside = executor.find(sampler)
            beside.signal(signal.SIGTERM)
            end_process(beside, Stop())
    elif end_orphan(executor, left):
        ledger.tell(f"{run.id}: ended")
    ledger.note(run, RunState.INTERRUPTED, reason="ended by volbench reap")


def forget_campaign(executor: Executor, campaign: Campaign, root: Path) -> None:
    """Remove the folder on a machine in which Runs of a campaign worked."""
    executor.remove_work_folder(executor.make_work_folder(str(root), name=campaign.key))
