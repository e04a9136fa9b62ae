"""All Runs of a campaign in order: journalled, guarded before each, resumable at any instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from volbench.engine.coldprobe import probe_campaign
from volbench.engine.orphans import end_orphan, identify
from volbench.engine.preflight import guard_run
from volbench.engine.probe import probe_volume
from volbench.engine.scratch import Scratch
from volbench.engine.single import RunEnd, Watcher, read_status, run_single
from volbench.engine.stop import Stop
from volbench.engine.warming import make_room, with_parallelism
from volbench.engine.warmproof import Outcomes, progress_words
from volbench.errors import (
    ArchiveError,
    CampaignError,
    RefusedError,
    StoppedError,
    VolbenchError,
)
from volbench.execute.protocol import Executor, Process
from volbench.fio.files import planned_files
from volbench.model.event import (
    CampaignEnded,
    CampaignStarted,
    Listener,
    Notice,
    RunEnded,
    RunStarted,
)
from volbench.model.profile import Phase
from volbench.model.provenance import VolumeFacts
from volbench.model.run import Campaign, OnError, Run, RunState
from volbench.plan.estimate import deadline_s, expected_s
from volbench.store.archive import fresh_run_folder, hold_campaign, write_atomic
from volbench.store.journal import History, Journal, read_history
from volbench.store.layout import Layout, RunFolder

GRACE_S = 600.0
"""Seconds a Run may be late. A provider's cache that is full can hang a volume for 8 minutes
("Disk performance on Azure Kubernetes Service, part 1", Stian Øvrevåge, 2019)."""


@dataclass(frozen=True)
class Settings:
    """How to execute a campaign.

    Attributes:
        fio: path of the binary; empty when no Run needs it.
        grace_s: seconds a Run may be late before it is ended.
        keep_files: leave scratch files on the volumes.
        retry_failed: when resuming, do failed Runs again too.
    """

    fio: str
    grace_s: float = GRACE_S
    keep_files: bool = False
    retry_failed: bool = False


@dataclass(frozen=True)
class Surroundings:
    """Where and before whom a campaign runs.

    Attributes:
        executor: the machine.
        listener: told every event.
        stop: the user's wish.
    """

    executor: Executor
    listener: Listener
    stop: Stop


def run_campaign(
    layout: Layout, campaign: Campaign, *, settings: Settings, around: Surroundings
) -> None:
    """Run what is not finished yet, in order, and clean up.

    Args:
        layout: an existing campaign folder.
        campaign: its plan.
        settings: how.
        around: machine, listener and stop request.

    Raises:
        CampaignError: some Runs failed; the others are kept.
        StoppedError: the user stopped it.
        RefusedError: a volume is no longer what was planned.
        ArchiveError: another controller runs it, or the folder can't be written.
    """
    with hold_campaign(layout), Journal(layout.journal) as journal:
        history = read_history(layout.journal)
        execution = _Execution(layout, campaign, settings, around, journal, history)
        execution.recover()
        try:
            execution.run_all()
        finally:
            execution.clean()
        execution.conclude()


class _Execution:
    """The state of one execution; `run_campaign` is its table of contents."""

    def __init__(
        self,
        layout: Layout,
        campaign: Campaign,
        settings: Settings,
        around: Surroundings,
        journal: Journal,
        history: History,
    ) -> None:
        self._layout = layout
        self._campaign = campaign
        self._settings = settings
        self._around = around
        self._journal = journal
        self._history = history
        self._scratch = Scratch(around.executor, journal, history.scratch)
        self._states = dict(history.states)
        self._outcomes = Outcomes(layout)

    def recover(self) -> None:
        """Settle what an earlier controller left: processes it started, Runs it did not note."""
        for run in self._campaign.runs:
            if self._states.get(run.id) is not RunState.RUNNING:
                continue
            if end_orphan(self._around.executor, self._history.processes.get(run.id, {})):
                self._tell(f"{run.id}: ended the process that an earlier controller left")
            status = read_status(self._layout.run(run.id))
            state = RunState(str(status.get("state", RunState.INTERRUPTED)))
            reason = str(status.get("reason", "the controller ended while it ran"))
            self._note(run, state, reason=reason)
            self._scratch.settle(planned_files(run))

    def run_all(self) -> None:
        """Run what is pending until the end, a stop, or a failure that ends the campaign."""
        pending = self._pending()
        self._around.listener(
            CampaignStarted(
                self._campaign, pending, {run.id: expected_s(run) or 0.0 for run in pending}
            )
        )
        if not self._history.states:
            self._probe()
        for run in pending:
            if self._around.stop.requested:
                return
            end = self._run(run)
            if end.state is RunState.FAILED and self._ends_campaign(run):
                return

    def _probe(self) -> None:
        """Tell cold from warm while nothing has touched the volumes yet."""
        probe_campaign(
            self._layout,
            self._campaign,
            fio=self._settings.fio,
            executor=self._around.executor,
            listener=self._around.listener,
            stop=self._around.stop,
        )

    def clean(self) -> None:
        """Remove scratch files unless they were asked for."""
        if self._settings.keep_files:
            for path in self._scratch.paths:
                self._tell(f"scratch file kept: {path}")
            return
        for path in self._scratch.remove():
            self._tell(f"{path} was replaced by somebody else and is left alone")

    def conclude(self) -> None:
        """Tell how it ended, and raise unless everything is finished."""
        finished, failed, left = (self._ids(*states) for states in _OUTCOMES)
        self._around.listener(CampaignEnded(finished, failed, left))
        root, total = self._layout.root, len(self._campaign.runs)
        if self._around.stop.requested and left:
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

    def _pending(self) -> tuple[Run, ...]:
        """Return what is still to do, with preparations whose files are gone."""
        done = {RunState.FINISHED} | (set() if self._settings.retry_failed else {RunState.FAILED})
        pending = {run.id for run in self._campaign.runs if self._states.get(run.id) not in done}
        roles = {run.volume.role for run in self._campaign.runs if run.id in pending}
        for run in self._campaign.runs:
            if run.phase is not Phase.MEASURED and run.volume.role in roles and self._gone(run):
                pending.add(run.id)
        return tuple(run for run in self._campaign.runs if run.id in pending)

    def _gone(self, run: Run) -> bool:
        return any(self._around.executor.stat(path) is None for path in planned_files(run))

    def _ends_campaign(self, run: Run) -> bool:
        """Tell whether a failure ends everything, as that of a preparation does."""
        return run.phase is not Phase.MEASURED or self._campaign.on_error is OnError.STOP

    def _run(self, run: Run) -> RunEnd:
        files = planned_files(run)
        folder = fresh_run_folder(self._layout, run.id)
        self._outcomes.forget(run)
        self._around.listener(RunStarted(run, expected_s(run)))
        try:
            guard_run(
                self._around.executor,
                run,
                campaign=self._campaign,
                campaign_dir=str(self._layout.root.resolve()),
                ours=self._scratch.owns,
            )
            facts = probe_volume(self._around.executor, run.volume)
            write_atomic(folder.facts, facts.model_dump_json(indent=1) + "\n")
            self._scratch.expect(files)
            make_room(self._around.executor, run)
            run = with_parallelism(self._outcomes, self._campaign, run, is_done=self._is_done)
            end = self._execute(run, folder, facts)
        except (RefusedError, ArchiveError) as error:
            # The next Run would meet the same: a changed volume, or no room for results.
            self._end(run, RunEnd(RunState.FAILED, error.message))
            raise
        except VolbenchError as error:
            end = RunEnd(RunState.FAILED, error.message)
        self._scratch.settle(files)
        self._end(run, end)
        return end

    def _execute(self, run: Run, folder: RunFolder, facts: VolumeFacts) -> RunEnd:
        def note_start(process: Process) -> None:
            identity = identify(self._around.executor, process.pid)
            self._journal.write("run", run=run.id, state=RunState.RUNNING, process=identity)

        major, minor = facts.major, facts.minor
        device = None if major is None or minor is None else (major, minor)
        devices = (facts.device, *facts.beneath) if facts.device else ()
        return run_single(
            self._around.executor,
            run,
            folder,
            fio=self._settings.fio,
            deadline_s=deadline_s(run, grace_s=self._settings.grace_s),
            watcher=Watcher(
                self._around.listener,
                self._around.stop,
                device,
                devices,
                note_start,
            ),
        )

    def _end(self, run: Run, end: RunEnd) -> None:
        self._note(run, end.state, reason=end.reason)
        self._around.listener(RunEnded(run, end.state, end.reason))
        if run.extent is not None and (
            words := progress_words(self._outcomes, self._campaign, run, states=self._states)
        ):
            self._tell(words)

    def _is_done(self, run: Run) -> bool:
        return self._states.get(run.id) is RunState.FINISHED

    def _note(self, run: Run, state: RunState, *, reason: str) -> None:
        self._journal.write("run", run=run.id, state=state, reason=reason)
        self._states[run.id] = state

    def _tell(self, message: str) -> None:
        self._around.listener(Notice(message))

    def _ids(self, *states: RunState) -> tuple[str, ...]:
        return tuple(
            run.id
            for run in self._campaign.runs
            if self._states.get(run.id, RunState.PLANNED) in states
        )


_OUTCOMES: Sequence[tuple[RunState, ...]] = (
    (RunState.FINISHED,),
    (RunState.FAILED,),
    (RunState.PLANNED, RunState.INTERRUPTED, RunState.RUNNING),
)
