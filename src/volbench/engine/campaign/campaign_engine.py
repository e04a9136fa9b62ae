"""Campaign engine: executes all runs, journalled, guarded and resumable at any point.

A single client executes its runs in order. Several clients work in parallel, with a thread each
with a barrier before each step; a lost client does not delay the others, unless the plan's policy
requires all clients.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from volbench.engine.campaign.campaign_state import (
    UNFINISHED,
    Attendance,
    CampaignContext,
    RunStates,
    Settings,
    reported_silence,
)
from volbench.engine.campaign.cleanup import not_removed, release_host, scratch_of
from volbench.engine.campaign.client_worker import Steps, Worker
from volbench.engine.conditioning.volume_warmup import Outcomes
from volbench.engine.guard.device_guard import HeldDevices
from volbench.engine.guard.scratch_files import Scratch
from volbench.engine.hosts.connected_host import ConnectedHost, by_cause, raise_all
from volbench.engine.hosts.device_lock import release_locks, reserve_host, shared_note
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import (
    ArchiveError,
    CampaignError,
    NoSpaceError,
    RefusedError,
    StoppedError,
    TransportError,
    VolbenchError,
    quoted,
)
from volbench.execute.scheduler import on_each, side_by_side
from volbench.model.campaign.event import CampaignEnded, CampaignStarted, Listener
from volbench.model.campaign.host import Policy
from volbench.model.campaign.planned_run import Absent, Campaign, Run, RunState
from volbench.model.profile.profile_model import Phase
from volbench.plan.expansion.estimate import expected_s
from volbench.store.archive import hold_campaign
from volbench.store.consent import hold_copies, seal_of
from volbench.store.journal import Journal, read_history
from volbench.store.layout import Layout
from volbench.store.log_files import compress_logs
from volbench.units import counted_noun

_OUTCOMES: Sequence[tuple[RunState, ...]] = (
    (RunState.FINISHED,),
    (RunState.FAILED,),
    (RunState.PLANNED, RunState.INTERRUPTED, RunState.RUNNING),
)


def run_campaign(
    layout: Layout,
    campaign: Campaign,
    hosts: Sequence[ConnectedHost],
    *,
    settings: Settings,
    listener: Listener,
    stop: StopRequest,
) -> None:
    """Execute the unfinished runs of a campaign on ready hosts in order, and clean up there."""
    seal = seal_of(layout)
    with (
        hold_campaign(layout),
        hold_copies(layout, campaign.key),
        Journal(layout.journal, seal) as journal,
    ):
        history = read_history(layout.journal)
        states = RunStates(journal, history, listener)
        settings = replace(settings, redo_steps=_steps_to_redo(campaign, states, settings))
        attendance = Attendance(settings.ready_timeout_s)
        context = CampaignContext(
            layout, campaign, settings, stop, states, Outcomes(layout), attendance
        )
        scratch = {
            host.name: scratch_of(host, campaign, history=history, states=states) for host in hosts
        }
        devices = {
            host.name: HeldDevices(host.executor, states, history.edges.get(host.name, {}))
            for host in hosts
        }
        by_name = {host.name: host for host in hosts}
        workers = [
            Worker(context, by_name[name], runs, scratch[name], devices[name])
            for runs in by_client(campaign)
            for name in (runs[0].host,)
            if name in by_name
        ]
        lost = _reserve(hosts, context)
        hosts = [host for host in hosts if host not in lost]
        workers = [worker for worker in workers if worker.host not in lost]
        for host in hosts:
            host.executor.wait_when_unreachable(
                unless=lambda: stop.requested, is_hung=lambda: attendance.is_over
            )
        try:
            with reported_silence(attendance, states.listener):
                _run_all(campaign, workers, states)
        except VolbenchError as error:
            end = outcome_of(campaign, states.states)
            if isinstance(error, (RefusedError, ArchiveError)) and end.failed:
                way = _next_step(end, layout.root, campaign)
                error.hint = "; ".join(filter(None, [error.hint, way]))
            with suppress(ArchiveError):  # the error that led here says more
                _report_end(context)
            if isinstance(error, NoSpaceError) and (end.finished or end.failed):
                # A volume has filled up meanwhile: much was written, so this is no refusal.
                message = f"a disk is full: {error.message}"
                raise CampaignError(message, hint=error.hint, finished=end.finished) from error
            raise
        finally:
            # Hosts on which a run continues keep their files, folder and locks until a resume.
            done = [host for host in hosts if not _is_running(host, campaign, states)]
            released = _on_each_bounded(
                done, lambda host: _release(host, scratch[host.name], context), context
            )
            _report_unreleased(done, released, context)
        _report_rounds(context)
        for run in campaign.runs:
            if states.state(run) is not RunState.RUNNING:
                compress_logs(layout.run(run.id).path)
        _conclude(context)


@dataclass(frozen=True)
class _HostAtWork:
    """A host that is reserved or released, counted as a client meanwhile."""

    host: ConnectedHost
    _began_s: float = field(default_factory=time.monotonic)

    @property
    def silent_s(self) -> float:
        """Seconds since it last answered."""
        return min(time.monotonic() - self._began_s, self.host.executor.silent_s)


def _on_each_bounded(
    hosts: Sequence[ConnectedHost], work: Callable[[ConnectedHost], None], context: CampaignContext
) -> list[VolbenchError | None]:
    """Call a function for every host in parallel, outside of runs; return the error of each.

    Hosts that do not answer are reported, and given up after the timeout of silent clients.
    """
    attendance = Attendance(context.settings.ready_timeout_s, has_ended=True)

    def attended(host: ConnectedHost) -> None:
        client = _HostAtWork(host)
        attendance.enter(client)
        try:
            work(host)
        finally:
            attendance.leave(client)

    for host in hosts:
        host.executor.wait_when_unreachable(
            unless=lambda: context.stop.requested, is_hung=lambda: attendance.is_over
        )
    with reported_silence(attendance, context.states.listener):
        return on_each(hosts, attended)


def _may_go_on_without(lost: Sequence[VolbenchError], campaign: Campaign, *, clients: int) -> bool:
    """Return whether the policy lets a campaign go on without hosts that do not answer."""
    are_silent = all(isinstance(error, TransportError) and error.transient for error in lost)
    match campaign.policy:
        case Policy.ALL:
            return not lost
        case Policy.QUORUM:
            return are_silent and clients >= campaign.quorum
        case Policy.BEST_EFFORT:
            return are_silent and clients > 0


def _report_unreleased(
    hosts: Sequence[ConnectedHost],
    results: Sequence[VolbenchError | None],
    context: CampaignContext,
) -> None:
    """Report hosts that could not be cleaned; raise unless the policy makes do without them."""
    lost = [result for result in results if result is not None]
    if not _may_go_on_without(lost, context.campaign, clients=len(hosts)):
        raise_all(hosts, results)
    for host, result in zip(hosts, results, strict=True):
        if result is not None:
            context.states.notify(
                f"{host.name} was not cleaned: {result.message}; when it is back: "
                f"volbench status {quoted(context.layout.root)} --clean",
                host=host.name,
            )


def _reserve(hosts: Sequence[ConnectedHost], context: CampaignContext) -> Sequence[ConnectedHost]:
    """Lock devices on all hosts, or on none; return silent hosts that the policy does not need."""
    campaign, states = context.campaign, context.states
    states.write("in-use", hosts=[host.name for host in hosts])
    shared: dict[str, Mapping[str, list[str]]] = {}

    def reserve(host: ConnectedHost) -> None:
        shared[host.name] = reserve_host(host.executor, campaign)

    results = _on_each_bounded(hosts, reserve, context)
    errors = [result for result in results if result is not None]
    lost = [host for host, result in zip(hosts, results, strict=True) if result is not None]
    clients = len([runs for runs in by_client(campaign) if runs[0].host in shared])
    if not _may_go_on_without(errors, campaign, clients=clients):
        idle = [host for host in hosts if not _is_running(host, campaign, states)]
        _on_each_bounded(idle, lambda host: release_locks(host.executor, campaign), context)
        raise_all(hosts, results)
    for host, error in zip(lost, errors, strict=True):
        states.notify(f"left out: {host.name}: {error.message}", host=host.name)
    words, name = shared_note(shared)
    if words:
        states.notify(words, host=name)
    return lost


def by_client(campaign: Campaign) -> list[tuple[Run, ...]]:
    """Return the runs grouped by client, both in the order of the plan."""
    clients: dict[tuple[str, int], list[Run]] = {}
    for run in campaign.runs:
        clients.setdefault((run.host, run.client), []).append(run)
    return [tuple(runs) for runs in clients.values()]


def _steps_to_redo(campaign: Campaign, states: RunStates, settings: Settings) -> frozenset[int]:
    """Return the steps to repeat on all clients."""
    if settings.settle_only or UNFINISHED not in settings.redo_steps:
        return settings.redo_steps
    begun = {run.step for run in campaign.runs if states.state(run) is not RunState.PLANNED}
    left = {run.step for run in campaign.runs if not states.state(run).is_settled}
    return (settings.redo_steps | begun & left) - {UNFINISHED}


def _run_all(campaign: Campaign, workers: Sequence[Worker], states: RunStates) -> None:
    def announce(pending: Sequence[Run]) -> None:
        expected = {run.id: expected_s(run) or 0.0 for run in pending}
        states.listener(CampaignStarted(campaign, tuple(pending), expected))
        for words in left_out(campaign.absent):
            states.notify(words)

    if len(by_client(campaign)) > 1:
        run_together(workers, campaign, states, announce=announce)
        return
    (worker,) = workers
    worker.recover()
    pending = worker.pending()
    announce(pending)
    worker.context.attendance.enter(worker)
    try:
        if states.is_new:
            worker.probe()
        side_by_side([partial(worker.run_all, pending)])  # signals are for the main thread
    finally:
        worker.context.attendance.leave(worker)


def left_out(absent: Sequence[Absent]) -> Iterator[str]:
    """Yield a line for each cause of absent hosts."""
    for names, reason, _ in by_cause((each.host, each.reason) for each in absent):
        yield f"left out: {names}: {reason}"


def _is_running(host: ConnectedHost, campaign: Campaign, states: RunStates) -> bool:
    here = (run for run in campaign.runs if run.host == host.name)
    return any(states.state(run) is RunState.RUNNING for run in here)


def _release(host: ConnectedHost, scratch: Scratch, context: CampaignContext) -> None:
    """Remove the scratch files and folder of a campaign from a host, and unlock its devices."""
    _clean(scratch, context.states, keep=context.settings.keep_files)
    release_host(host, context.campaign, context.layout.root)
    if not context.settings.keep_files:
        context.states.write("released", host=host.name)


def _clean(scratch: Scratch, states: RunStates, *, keep: bool) -> None:
    if keep:
        for path in scratch.paths:
            states.notify(f"scratch file kept: {path}")
        return
    scratch.owe()
    for path in scratch.remove():
        states.notify(not_removed(path))


def _report_rounds(context: CampaignContext) -> None:
    """Report the outcome of rounds, and the workloads that did not become precise."""
    for judge in context.judges:
        for words in judge.outcome():
            context.states.notify(words)
    if context.campaign.repeats:
        missed = [words for judge in context.judges for words in judge.missed()]
        context.states.write("imprecise", workloads=missed)


def _report_end(context: CampaignContext) -> CampaignEnded:
    end = outcome_of(context.campaign, context.states.states)
    context.states.listener(end)
    return end


def _conclude(context: CampaignContext) -> None:
    """Report the outcome of the campaign, and raise an error unless all runs are finished."""
    campaign, end = context.campaign, _report_end(context)
    if context.settings.settle_only:
        return
    root = context.layout.root
    if context.stop.requested and end.left:  # what prepares a new file is done again
        runs = [run.id in end.finished for run in campaign.runs if run.phase is Phase.MEASURED]
        noun = "measured run" if runs else "run"
        runs = runs or [run.id in end.finished for run in campaign.runs]
        raise StoppedError(
            f"stopped: {sum(runs)} of {counted_noun(len(runs), noun)} finished and kept",
            hint=f"continue with: volbench resume {quoted(root)}",
        )
    check_finished(end, root, campaign)


def outcome_of(campaign: Campaign, states: Mapping[str, RunState]) -> CampaignEnded:
    """Return the runs of a campaign by outcome, in the order of the plan."""

    def ids(*wanted: RunState) -> tuple[str, ...]:
        runs = (run.id for run in campaign.runs)
        return tuple(run_id for run_id in runs if states.get(run_id, RunState.PLANNED) in wanted)

    finished, failed, left = (ids(*outcome) for outcome in _OUTCOMES)
    return CampaignEnded(finished, failed, left, ids(RunState.NOT_NEEDED))


def check_finished(end: CampaignEnded, root: Path, campaign: Campaign) -> None:
    """Check that no run of a campaign failed or is left, and that no client was left out."""
    runs = counted_noun(len(campaign.runs), "run")
    parts = [f"{len(end.failed)} of {runs} failed"] if end.failed else []
    parts += [f"{len(end.left)} of {runs} unfinished"] if end.left else []
    steps = [f"inspect them: volbench show {quoted(root)}", _next_step(end, root, campaign)]
    if absent := campaign.clients_absent:
        clients = counted_noun(len(by_client(campaign)) + absent, "client")
        parts.append(f"{absent} of {clients} left out")
        steps = steps if len(parts) > 1 else []
        steps.append(f"to measure all: volbench run --like {quoted(root)} --inventory FILE")
    if parts:
        raise CampaignError(", ".join(parts), hint="; ".join(steps), finished=end.finished)


def _next_step(end: CampaignEnded, root: Path, campaign: Campaign) -> str:
    """Return how to finish the runs that failed or are left."""
    if not end.failed:
        return f"continue with: volbench resume {quoted(root)}"
    if not end.left and any(host.connection for host in campaign.hosts):
        return "its pods and volumes are removed: to repeat them, run the campaign again"
    return f"repeat the failed runs: volbench resume {quoted(root)} --retry-failed"


def run_together(
    workers: Sequence[Worker],
    campaign: Campaign,
    states: RunStates,
    *,
    announce: Callable[[Sequence[Run]], None],
) -> None:
    """Execute the pending runs of all clients in parallel."""
    problems: list[VolbenchError] = []
    recovered: set[Worker] = set()
    pending: dict[Worker, Sequence[Run]] = dict.fromkeys(workers, ())

    @contextmanager
    def ending(worker: Worker) -> Iterator[None]:
        """Catch a `VolbenchError`, which ends this client only."""
        try:
            yield
        except VolbenchError as error:
            problems.append(error)
            states.notify(f"{worker.name}: {error.message}", host=worker.host.name)
            if isinstance(error, NoSpaceError):
                error.message = f"{worker.name}: {error.message}"

    def recover(worker: Worker) -> None:
        with ending(worker):
            worker.recover()
            recovered.add(worker)

    def plan(worker: Worker) -> None:
        with ending(worker):
            pending[worker] = worker.pending()

    on_each(workers, recover)
    on_each([worker for worker in workers if worker in recovered], plan)
    announce([run for runs in pending.values() for run in runs])
    if campaign.cold_probe_roles and states.is_new:
        states.notify("cold_probe is left out: it supports a single client only")
    steps = Steps(campaign, pending, states)

    def work(worker: Worker, runs: Sequence[Run]) -> None:
        with ending(worker):
            try:
                worker.run_all(runs, steps)
                worker.owe_removal()
            finally:
                steps.give_up(runs)
                worker.context.attendance.leave(worker)

    for worker in workers:
        worker.context.attendance.enter(worker)
    side_by_side([partial(work, worker, runs) for worker, runs in pending.items()])
    if problems:
        raise problems[0]
