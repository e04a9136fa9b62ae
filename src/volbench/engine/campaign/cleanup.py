"""Cleanup of a campaign's hosts: ends its own processes, removes its own files."""

from __future__ import annotations

import os
import posixpath
import re
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from volbench.engine.campaign.campaign_state import RunStates
from volbench.engine.guard.preflight import allowed_for
from volbench.engine.guard.scratch_files import Scratch
from volbench.engine.hosts.connected_host import ConnectedHost, on_every_host
from volbench.engine.hosts.described_volumes import describe_files, identities_of
from volbench.engine.hosts.device_lock import release_locks
from volbench.engine.hosts.orphans import end_orphan
from volbench.engine.run.process_watch import end_process
from volbench.engine.run.run_directory import scrub
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import ArchiveError, InputError
from volbench.execute.agent.files import NamedFile, remove_exactly, remove_work_folder
from volbench.execute.agent.locks import release
from volbench.execute.agent.supervisor import send_signal
from volbench.execute.agent.volumes import folder_contents
from volbench.execute.agent.watch import is_attended
from volbench.execute.protocol import Executor, OperationError, Process
from volbench.ingest.run_files import Status, read_status
from volbench.model.campaign.event import Listener
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.store.archive import hold_campaign
from volbench.store.consent import hold_copies, seal_of
from volbench.store.journal import History, Journal, read_history, read_signed_history
from volbench.store.layout import STDERR, Layout
from volbench.units import counted_noun

_KEY = re.compile(r"[0-9]{17}-[0-9a-f]{8}")


@dataclass(frozen=True)
class LeftCampaign:
    """What a campaign has left on a host, by the records there."""

    host: ConnectedHost
    work: str  # its work folder
    is_attended: bool  # whether its controller is connected
    running: tuple[Process, ...]
    files: tuple[NamedFile, ...]  # on its volumes, each folder after what is in it

    @property
    def words(self) -> str:
        """Its active runs and its folders."""
        runs = [f"{counted_noun(len(self.running), 'run')} active"] if self.running else []
        named = [file.path for file in self.files if file.path.endswith(self.work[-26:])]
        attended = ["its controller is alive"] if self.is_attended else []
        return ", ".join([*runs, *attended, self.work, *named])


def left_on(host: ConnectedHost, *, key: str = "") -> list[LeftCampaign]:
    """Return what campaigns have left on a host, or the one with a key."""
    executor, found = host.executor, []
    base = posixpath.dirname(executor.work_folder("", name="campaign"))
    places = [at for path in host.host.volumes.values() for at in (path, posixpath.dirname(path))]
    for work, _ in executor.ask(folder_contents, base):
        name = posixpath.basename(work)
        if not _KEY.fullmatch(name) or name != (key or name):
            continue
        attended = executor.ask(is_attended, work)  # before a look at its runs does
        controls = [f"{run.path}/.{STDERR}" for run in executor.ask(folder_contents, work)]
        running = (process for path in controls if (process := executor.find(path)).poll() is None)
        files: list[NamedFile] = []
        folders = [f"{place.rstrip('/')}/volbench-{name}" for place in places]
        for path, seen in zip(folders, describe_files(executor, folders), strict=True):
            stat = seen.stat
            if stat and stat.kind == "directory" and stat.identity == seen.identity:  # no symlink
                files += [*executor.ask(folder_contents, path), NamedFile(path, stat.identity)]
        found.append(LeftCampaign(host, work, attended, tuple(running), tuple(files)))
    return found


def remove_left(left: LeftCampaign) -> list[str]:
    """End and remove what a campaign has left on a host; return paths that stay."""
    executor = left.host.executor
    _end_left(left)
    removed = executor.ask(remove_exactly, [*left.files]) if left.files else []
    executor.remove_work_folder(left.work)
    executor.ask(release, posixpath.basename(left.work))
    return [file.path for file, is_gone in zip(left.files, removed, strict=True) if not is_gone]


def _end_left(left: LeftCampaign) -> list[str]:
    """End the processes of a campaign on a host; return their runs."""
    for process in left.running:
        end_process(process, StopRequest())
    folders = (posixpath.dirname(process.handle) for process in left.running)
    return [posixpath.basename(folder).rpartition("-")[0] for folder in folders]


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
                    end_run(executor, run, states, reason="ended by volbench status --clean")
                    scrub(layout.run(run.id).path, run)
            _settle_controls(executor, scratch, runs, states)
            if damage is not None and executor.is_remote:  # it may not name what runs
                for left in left_on(host, key=campaign.key):
                    for run_id in _end_left(left):
                        states.notify(f"{run_id}: ended on {name}")
            for path in scratch.remove():
                states.notify(f"{name}: {not_removed(path)}")
            release_host(host, campaign, layout.root)
            states.write("released", host=name)

        on_every_host(hosts, clean)
    return damage


def scratch_of(
    host: ConnectedHost, campaign: Campaign, *, history: History, states: RunStates
) -> Scratch:
    """Return the scratch files of a campaign on a host, as recorded in its journal.

    Files of the user are those that the plan found, until a run finds them.
    """
    planned = {path: (mark, None) for path, mark in campaign.files.get(host.name, {}).items()}
    history.found[host.name] = planned | history.found.get(host.name, {})
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
    return f"{path} stays: something hides it, or it is not certain that volbench created it"


def settle_earlier(
    executor: Executor, scratch: Scratch, runs: Sequence[Run], *, states: RunStates, layout: Layout
) -> None:
    """Settle the processes of an earlier controller that ended with it, and runs not recorded."""
    for run in runs:
        record, folder = states.process(run), layout.run(run.id)
        if states.state(run) is not RunState.RUNNING or record.get("handle"):
            continue
        if end_orphan(executor, record):
            states.notify(f"{run.id}: ended the process of an earlier controller", host=run.host)
        scrub(folder.path, run)
        status = read_status(folder) or Status(reason="the controller ended while it ran")
        state, reason = status.state or RunState.INTERRUPTED, status.reason
        states.ended(run, state, reason=reason, folder=folder)
    _settle_controls(executor, scratch, runs, states)


def _settle_controls(
    executor: Executor, scratch: Scratch, runs: Sequence[Run], states: RunStates
) -> None:
    """Record the files that processes of an earlier controller made, by their control folders.

    Those of this machine are removed; a process whose start was not recorded is ended.
    """
    left = [run for run in runs if not states.state(run).is_settled]
    controls = {path: run for run in left if (path := states.control(run))}
    for path, identity in zip(controls, identities_of(executor, [*controls]), strict=True):
        if identity is None:
            continue
        if not executor.is_remote:
            executor.ask(send_signal, path, signal.SIGKILL)
        scratch.claim_born(controls[path], handle=path)
        if executor.is_remote:
            continue
        try:
            executor.ask(remove_work_folder, base=posixpath.dirname(path), path=path)
        except OperationError as error:
            states.notify(f"{path} stays: {error.reason}")
        else:
            states.notify(f"{path} removed: an earlier controller left it")


def reset_run(executor: Executor, run: Run, *, states: RunStates) -> None:
    """Reset a run whose step is repeated on all clients, whatever its state."""
    reason = f"step {run.step} is repeated on all clients"
    match states.state(run):
        case RunState.RUNNING:
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
