"""Cleanup of a campaign's hosts: ends its own processes, removes its own files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from volbench.engine.campaign.campaign_state import RunStates
from volbench.engine.guard.preflight import allowed_for
from volbench.engine.guard.scratch_files import Scratch
from volbench.engine.hosts.connected_host import ConnectedHost, on_every_host
from volbench.engine.hosts.device_lock import release_locks
from volbench.engine.hosts.orphans import end_orphan, end_strays, is_alive
from volbench.engine.run.process_watch import end_process
from volbench.engine.run.run_directory import scrub
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import ArchiveError, InputError
from volbench.execute.protocol import Executor
from volbench.ingest.run_files import Status, read_status
from volbench.model.campaign.event import Listener
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.store.archive import attempts_before, hold_campaign
from volbench.store.consent import hold_copies, seal_of
from volbench.store.journal import History, Journal, read_history, read_signed_history
from volbench.store.layout import STDERR, Layout


def reap(
    layout: Layout, campaign: Campaign, hosts: Sequence[ConnectedHost], *, listener: Listener
) -> ArchiveError | None:
    """End all active runs on some hosts; remove scratch files, folders and locks.

    Ended runs count as interrupted: a resume repeats them.

    Returns:
        What is wrong with the journal. Nothing is then done that only lines from there on name, and
        nothing is written to it.
    """
    seal = seal_of(layout)
    with ExitStack() as stack:
        stack.enter_context(hold_campaign(layout))
        stack.enter_context(hold_copies(layout, campaign.key))
        history, damage = read_signed_history(layout.journal, seal)
        journal = stack.enter_context(
            Journal(layout.journal, seal)
            if damage is None
            else Journal(Path(os.devnull), durable=False)
        )
        states = RunStates(journal, history, listener)

        def clean(host: ConnectedHost) -> None:
            name, executor = host.name, host.executor
            scratch = scratch_of(host, campaign, history=history, states=states)
            runs = [run for run in campaign.runs if run.host == name]
            for run in runs:
                if states.state(run) is RunState.RUNNING:
                    claim_files(executor, scratch, run, states.process(run))
                    end_run(executor, run, states, reason="ended by volbench status --clean")
                    scrub(layout.run(run.id).path, run)
            for folder in end_strays(executor, [layout.run(run.id).path for run in runs]):
                states.notify(f"{folder.name}: ended a process whose start was not recorded")
            if damage is not None and executor.is_remote:
                _end_unknown(executor, runs, campaign.key, states=states, layout=layout)
            for path in scratch.remove():
                states.notify(f"{name}: {not_removed(path)}")
            release_host(host, campaign, layout.root)
            states.write("released", host=name)

        on_every_host(hosts, clean)
    return damage


def _end_unknown(
    executor: Executor, runs: Sequence[Run], key: str, *, states: RunStates, layout: Layout
) -> None:
    """End the processes on another machine whose handles a damaged journal does not give."""
    for run in runs:
        folder = layout.run(run.id)
        if states.state(run).is_settled or not folder.path.is_dir():
            continue
        place = executor.work_folder("", name=f"{key}/{run.id}-{attempts_before(folder)}")
        process = executor.find(f"{place}/.{PurePosixPath(STDERR).stem}")
        if process.poll() is None:
            states.notify(f"{run.id}: ended on {run.host}")
            end_process(process, StopRequest())


def scratch_of(
    host: ConnectedHost, campaign: Campaign, *, history: History, states: RunStates
) -> Scratch:
    """Return the scratch files of a campaign on a host, as recorded in its journal."""
    return Scratch(
        host.executor,
        states,
        key=campaign.key,
        allowed=lambda run: allowed_for(run, campaign),
        history=history,
        is_own_machine=not host.host.connection,
    )


def not_removed(path: str) -> str:
    """Return the message about a scratch file that another program may have made.

    Where a host reports no time of birth, as busybox does, a later controller cannot tell.
    """
    return f"{path} stays: it is not certain that volbench created it"


def claim_files(
    executor: Executor, scratch: Scratch, run: Run, process: Mapping[str, object]
) -> None:
    """Record the files created by a process of an earlier controller."""
    if handle := process.get("handle"):
        scratch.claim_born(run, handle=str(handle))
    elif is_alive(executor, process) and isinstance(pid := process["pid"], int):
        scratch.claim_open(run, pid=pid)


def settle_earlier(
    executor: Executor, scratch: Scratch, runs: Sequence[Run], *, states: RunStates, layout: Layout
) -> None:
    """Settle the processes of an earlier controller that ended with it, and runs not recorded."""
    for run in runs:
        record, folder = states.process(run), layout.run(run.id)
        if states.state(run) is not RunState.RUNNING:
            continue
        claim_files(executor, scratch, run, record)
        if record.get("handle"):
            continue
        if end_orphan(executor, record):
            states.notify(f"{run.id}: ended the process of an earlier controller", host=run.host)
        scrub(folder.path, run)
        status = read_status(folder) or Status(reason="the controller ended while it ran")
        state, reason = status.state or RunState.INTERRUPTED, status.reason
        states.ended(run, state, reason=reason, folder=folder)
    for path in end_strays(executor, [layout.run(run.id).path for run in runs]):
        message = f"{path.name}: ended a process whose start was not recorded"
        states.notify(message, host=runs[0].host)


def reset_run(executor: Executor, scratch: Scratch, run: Run, *, states: RunStates) -> None:
    """Reset a run whose step is repeated on all clients, whatever its state."""
    reason = f"step {run.step} is repeated on all clients"
    match states.state(run):
        case RunState.RUNNING:
            claim_files(executor, scratch, run, states.process(run))
            end_run(executor, run, states, reason=reason)
        case RunState.FINISHED | RunState.FAILED:
            states.ended(run, RunState.INTERRUPTED, reason=reason)


def forget_host(
    layout: Layout, campaign: Campaign, host: str, *, listener: Listener
) -> tuple[Run, ...]:
    """Record the unfinished runs of a permanently lost host as lost."""
    if host not in {run.host for run in campaign.runs}:
        names = ", ".join(dict.fromkeys(run.host for run in campaign.runs))
        raise InputError(f"{campaign.name} has no host {host}", hint=f"its hosts are: {names}")
    with hold_campaign(layout), Journal(layout.journal, seal_of(layout)) as journal:
        states = RunStates(journal, read_history(layout.journal), listener)
        runs = (run for run in campaign.runs if run.host == host)
        lost = tuple(run for run in runs if not states.state(run).is_settled)
        if lost:
            states.settle(lost, RunState.LOST, reason=f"{host} was given up")
    return lost


def end_run(executor: Executor, run: Run, states: RunStates, *, reason: str) -> None:
    """End the process of a run, if it still runs."""
    record = states.process(run)
    if handle := str(record.get("handle", "")):
        process = executor.find(handle)
        if process.poll() is None:
            states.notify(f"{run.id}: ended on {run.host}")
        end_process(process, StopRequest())
    elif end_orphan(executor, record):
        states.notify(f"{run.id}: ended")
    states.ended(run, RunState.INTERRUPTED, reason=reason)


def release_host(host: ConnectedHost, campaign: Campaign, root: Path) -> None:
    """Release a host from a campaign: unlock its devices, remove records and work folder there."""
    executor = host.executor
    folder = executor.work_folder(str(root), name=campaign.key)
    try:
        executor.remove_work_folder(folder)
    finally:
        release_locks(executor, campaign)
