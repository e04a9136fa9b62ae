"""Worker of one client, which executes its runs in order, and the steps of all clients."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from volbench.engine.campaign.campaign_state import CampaignContext, RunStates, is_left
from volbench.engine.campaign.cleanup import reset_run, settle_earlier
from volbench.engine.conditioning.cold_probe import probe_campaign
from volbench.engine.conditioning.run_preparation import FLUSH_S, BlockSampler, DirtyData
from volbench.engine.conditioning.volume_warmup import make_room, progress_words
from volbench.engine.guard.device_guard import HeldDevices, attachment_of
from volbench.engine.guard.preflight import RunGuard
from volbench.engine.guard.run_guard import RESULT_BYTES, check_space
from volbench.engine.guard.scratch_files import Scratch, displaces
from volbench.engine.guard.volume_targets import probe_volume, volume_facts
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.hosts.described_volumes import HostState
from volbench.engine.hosts.device_lock import other_campaigns
from volbench.engine.hosts.orphans import start_record
from volbench.engine.run.barrier import Barrier, WaitPolicy
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.run_once import Attempt, RunOutcome, execute_run, stopped_by, take_over_run
from volbench.engine.run.start_gate import Gate
from volbench.engine.sampling.sample_log import may_leave_dirt, writes_buffered
from volbench.errors import (
    ArchiveError,
    ConnectError,
    RefusedError,
    TransportError,
    VolbenchError,
    quoted,
)
from volbench.execute.agent.processes import lifetime
from volbench.execute.protocol import Executor
from volbench.ingest.run_files import read_facts, read_status
from volbench.model.campaign.event import RunEnded, RunStarted
from volbench.model.campaign.host import Policy
from volbench.model.campaign.planned_files import planned_files
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.model.profile.profile_model import Phase
from volbench.model.results.provenance import VolumeFacts
from volbench.plan.expansion.estimate import deadline_s, expected_s
from volbench.store.archive import attempts_before, forget_attempt, fresh_run_folder
from volbench.store.layout import RunFolder
from volbench.units import format_duration

if TYPE_CHECKING:
    from volbench.engine.campaign.round_stopping import ResultsJudge

# Time for which new files are looked for every 10 ms: fio makes them as it starts.
# Noticed by: tests/torture/killed_campaigns.py
BRISK_S = 10.0
# Time for which a ready process waits for its start after its controller was lost: a day
PATIENCE_S = 86400.0
# Of a client that waits for its turn: short beside the second that a start takes
_TURN_POLL_S = 0.5


class Worker:
    """Executes the runs of one client."""

    def __init__(
        self,
        context: CampaignContext,
        host: ConnectedHost,
        runs: tuple[Run, ...],
        scratch: Scratch,
        devices: HeldDevices,
    ) -> None:
        self.context, self.host, self.runs = context, host, runs
        self._scratch = scratch
        self._devices = devices
        self._states = context.states
        self._executor: Executor = host.executor
        self._is_idle = True
        self._results_in: tuple[str, ...] = ()
        self._began_s = 0.0
        self._blocks = BlockSampler(host.executor)
        root = str(context.layout.root.resolve())
        self._guard = RunGuard(host.executor, context.campaign, root)
        self.trouble = ""  # why it cannot go on
        self._gate: Gate | None = None
        self._dirty = DirtyData(writes=0 if context.states.is_new else 1)

    @property
    def name(self) -> str:
        """Display name of the client."""
        return self.runs[0].client_name

    @property
    def silent_s(self) -> float:
        """Seconds since its machine last answered; 0 while no request is pending."""
        gate, active_s = self._gate, time.monotonic() - self._began_s
        if self._is_idle or gate is None:
            return 0.0 if self._is_idle else min(active_s, self._executor.silent_s)
        return min(active_s, gate.active_for_s, self._executor.silent_s)

    def _notify(self, message: str, topic: str = "") -> None:
        self._states.notify(message, host=self.host.name, topic=topic)

    def check_others(self) -> None:
        """Stop waiting for a machine that is hung when all other clients have ended."""
        if self.context.attendance.is_over:
            raise ConnectError(
                f"{self.host.name} has been silent for {format_duration(round(self.silent_s))}; "
                "all other clients have ended",
                hint="continue when it is back: "
                f"volbench resume {quoted(self.context.layout.root)}",
            )

    def recover(self) -> None:
        """Settle processes and unrecorded runs of an earlier controller."""
        executor, states, layout = self.host.executor, self._states, self.context.layout
        settle_earlier(executor, self._scratch, self.runs, states=states, layout=layout)
        for run in self.runs:
            if run.step in self.context.settings.redo_steps:
                reset_run(executor, run, states=states)

    def pending(self) -> tuple[Run, ...]:
        """Return the pending runs, including layout runs whose files are missing.

        A shared file is written again for any client of its host.
        """
        if self.context.settings.settle_only:
            return tuple(run for run in self.runs if self._states.state(run) is RunState.RUNNING)
        pending = {run.id for run in self.runs if self._is_left(run)}
        roles = {run.volume.role for run in self.runs if run.id in pending}
        readers = (run for run in self.context.campaign.runs if run.shared)
        shared = {
            (run.volume.role, run.shared)
            for run in readers
            if run.host == self.host.name and self._is_left(run)
        }
        for run in self.runs:
            is_wanted = self._states.state(run) not in {RunState.NOT_NEEDED, RunState.LOST}
            prepares = run.phase is not Phase.MEASURED and run.volume.role in roles
            is_incomplete = False
            if run.phase is Phase.PRECONDITION and run.shared:
                prepares = (run.volume.role, run.shared) in shared
                is_incomplete = not self._states.is_finished(run)
            if is_wanted and prepares and (is_incomplete or self._scratch.misses_files(run)):
                pending.add(run.id)
        return tuple(run for run in self.runs if run.id in pending)

    def _is_left(self, run: Run) -> bool:
        retry_failed = self.context.settings.retry_failed
        return is_left(self._states.state(run), retry_failed=retry_failed)

    def _folder(self, run: Run) -> RunFolder:
        return self.context.layout.run(run.id)

    def probe(self) -> None:
        """Probe the volumes for cold blocks before the first run touches them."""
        probe_campaign(
            self.context.layout,
            self.context.campaign,
            fio=self.host.fio,
            executor=self._executor,
            listener=self._states.listener,
            stop=self.context.stop,
        )

    def run_all(self, pending: Sequence[Run], steps: Steps | None = None) -> None:
        """Execute pending runs until the end, a stop request or a fatal failure."""
        self._is_idle, self._began_s = False, time.monotonic()
        judges = self.context.judges
        for run in pending:
            if self.context.stop.requested:
                return
            # First: what is judged are the results of all clients.
            if steps is not None and not self._await_turn(run, steps):
                return
            if any(self._is_not_needed(run, pending, judge) for judge in judges):
                if steps is not None:
                    steps.give_up([run])
                continue
            try:
                outcome = self._run_next(self.context.chosen(run), steps)
            except VolbenchError as error:
                self.trouble = error.message  # for clients that wait for this one
                raise
            finally:
                self._gate = None
                if steps is not None:
                    steps.give_up([run])
            if outcome.state is RunState.FAILED and self.context.campaign.ends_with(run):
                return

    def owe_removal(self) -> None:
        """Leave the scratch files to the host if it is lost before the others are done."""
        here = (run for run in self.context.campaign.runs if run.host == self.host.name)
        is_done = all(self._states.state(run).is_settled for run in here)
        if is_done and not self.context.settings.keep_files:
            self._scratch.owe()

    def _await_turn(self, run: Run, steps: Steps) -> bool:
        """Wait for the end of earlier steps, if the run is in turn; return False on a stop."""
        self._is_idle = True
        while self._states.state(run) is not RunState.RUNNING and not steps.is_due(run):
            if self.context.stop.requested:
                return False
            time.sleep(_TURN_POLL_S)
        self._is_idle, self._began_s = False, time.monotonic()
        return True

    def _is_not_needed(self, run: Run, pending: Sequence[Run], judge: ResultsJudge) -> bool:
        """Return whether a run is not needed; if so, record it for all later ones too."""
        if self._states.state(run) is RunState.NOT_NEEDED:
            return True
        decision = judge.before(run)
        if decision is None:
            return False
        if decision.is_over:
            later = [
                r
                for r in pending
                if r.profile == run.profile
                and r.repeat >= run.repeat
                and (not decision.jobs or r.job in decision.jobs)
            ]
            self._states.leave_out(later, reason=decision.words)
        else:
            self._notify(f"{run.workload if decision.jobs else run.profile}: {decision.words}")
        return decision.is_over

    def _run_next(self, run: Run, steps: Steps | None) -> RunOutcome:
        gate = self._gate = None if steps is None else steps.gate(self, run)
        self._files: Sequence[str] = ()
        self._states.listener(RunStarted(run, expected_s(run)))
        try:
            if self._states.state(run) is RunState.RUNNING:
                outcome = self._continue(run, gate)
            else:
                outcome = self._begin(run, gate)
        except TransportError as error:
            if error.transient or error.ends_host:
                # The connection is lost, not the run: it may continue until a resume finds it.
                # A host that has ended runs nothing else: what it has lost is not a failure.
                raise
            outcome = RunOutcome(RunState.FAILED, error.message)
        except (RefusedError, ArchiveError) as error:
            # The next run would fail too: a changed volume, or no room for results.
            if not self._keeps_results_remote(run, error):
                self._end_worker(run, stopped_by(error))
            raise
        except VolbenchError as error:
            outcome = RunOutcome(RunState.FAILED, error.message)
        self._scratch.settle(self._files, is_over=True)
        self._end_worker(run, outcome)
        return outcome

    def _keeps_results_remote(self, run: Run, error: VolbenchError) -> bool:
        """Return whether a run's results stay on its machine until there is space here."""
        is_running = self._states.state(run) is RunState.RUNNING
        is_full = isinstance(error, ArchiveError) and is_running
        return is_full and not self._directory(run, self._folder(run)).is_here

    def _begin(self, run: Run, gate: Gate | None) -> RunOutcome:
        context, executor = self.context, self._executor
        if executor.is_remote and self._states.state(run) is RunState.PLANNED:
            # On that host a start is recorded first, so the run was not attempted.
            forget_attempt(self._folder(run))
        folder = fresh_run_folder(context.layout, run.id)
        context.outcomes.forget(run)
        with ExitStack() as stack:
            directory = self._directory(run, folder)
            run = self._scratch.place(run) or run
            opened = stack.enter_context(self._devices.holding(run))
            is_dirty = self._dirty.needs_flush(run.volume.target)
            state = self._guard.look(
                [run], opened=opened, space=self._results_in, flush_s=FLUSH_S if is_dirty else 0.0
            )
            for problem in filter(None, state.flush_problems):
                self._notify(f"{run.id}: dirty pages of earlier runs may disturb it: {problem}")
            if not self._scratch.is_in_place(run, state.volumes):
                run = self._scratch.place(run) or run
                state = self._guard.look([run], opened=opened, space=self._results_in)
            self._guard.check(
                run, state, ours=lambda path: self._scratch.owns(path, state.files), opened=opened
            )
            attempt = self._prepared(run, directory, gate, state)
            return execute_run(attempt)

    def _prepared(
        self, run: Run, directory: RunDirectory, gate: Gate | None, state: HostState
    ) -> Attempt:
        """Return a guarded run with its work folder, facts and files prepared."""
        executor = self._executor
        kept = self._guard.files_to_keep(run, state, ours=self._scratch.is_recorded)
        self._scratch.note_found(kept, displaced=displaces(run))
        for path, free_bytes in state.free_bytes.items():
            check_space(path, free_bytes=free_bytes, needed_bytes=RESULT_BYTES)
        facts = self._blocks.added_to(volume_facts(run.volume, state.volumes), run, state.files)
        facts = facts.model_copy(update={"other_campaigns": tuple(self._other_campaigns())})
        directory.keep(directory.folder.facts, facts.model_dump_json(indent=1) + "\n")
        files = planned_files(run)
        is_missing = any(state.files[path].identity is None for path in files)
        had_files = not (may_leave_dirt(run) and is_missing)
        if writes_buffered(run) or not had_files:
            self._dirty.writes += 1
        self._devices.begin(run)
        self._scratch.expect(run, state.files)
        if make_room(executor, run, state.files):
            self._scratch.settle(files)
        attempt = self._attempt(run, directory, facts, gate)
        attachments = {path: attachment_of(seen) for path, seen in state.volumes.items()}
        return replace(attempt, had_files=had_files, attachments=attachments, kept=kept)

    def _continue(self, run: Run, gate: Gate | None) -> RunOutcome:
        """Take over a run that continued, or ended, without a controller."""
        folder = self._folder(run)
        directory = self._directory(run, folder)
        if status := read_status(folder):
            # All results are here; the earlier controller could not record that.
            directory.remove()
            return RunOutcome(status.state or RunState.INTERRUPTED, status.reason)
        process = self._states.process(run)
        record = {name: str(value) for name, value in process.items()}
        is_intended = process.get("launched", True) is False
        if self._executor.ask(lifetime, record["handle"]) is None:
            if not is_intended:
                return self._fetched_elsewhere
            directory.remove()
            forget_attempt(folder)
            return self._begin(run, gate)
        facts = read_facts(folder) or probe_volume(self._executor, run.volume)
        self._dirty.writes += 1
        self._notify(f"{run.id}: found again on {self.host.name}", "found again")
        run = self._scratch.place(run, make=False) or run
        with self._devices.holding(run):
            self._devices.begin(run)
            attempt = self._attempt(run, directory, facts, gate)
            since_utc = record.get("since_utc", "")
            try:
                return take_over_run(attempt, handle=record["handle"], since_utc=since_utc)
            except TransportError as error:
                if error.transient or self._executor.ask(lifetime, record["handle"]) is not None:
                    raise
                return self._fetched_elsewhere

    @property
    def _fetched_elsewhere(self) -> RunOutcome:
        """Outcome of a run whose files are gone from its machine: it did not fail."""
        return RunOutcome(
            RunState.INTERRUPTED,
            f"its files are gone from {self.host.name}: the controller of another copy of this "
            "folder has fetched its results, or somebody removed them",
        )

    def _attempt(
        self, run: Run, directory: RunDirectory, facts: VolumeFacts, gate: Gate | None
    ) -> Attempt:
        files = self._files = planned_files(run)
        watch_files = self._scratch.watcher(files)

        def on_poll(elapsed_s: float) -> bool:
            self.check_others()
            watch_files(elapsed_s)
            return elapsed_s < BRISK_S and self._scratch.awaits(files)

        return Attempt(
            self.host,
            run,
            directory,
            deadline_s=deadline_s(run, grace_s=self.context.settings.grace_s),
            listener=self._states.listener,
            stop=self.context.stop,
            devices=tuple(dict.fromkeys(filter(None, (*facts.device.split("+"), *facts.backing)))),
            on_intent=lambda control: self._states.intended(
                run, control, is_remote=self._executor.is_remote
            ),
            on_start=lambda each: self._states.started(run, start_record(self._executor, each)),
            on_poll=on_poll,
            others=self._other_campaigns,
            gate=gate,
            secrets=self.context.settings.secrets,
        )

    def _other_campaigns(self) -> list[str]:
        return other_campaigns(self._executor, self.context.campaign)

    def _directory(self, run: Run, folder: RunFolder) -> RunDirectory:
        name = f"{self.context.campaign.key}/{run.id}-{attempts_before(folder)}"
        directory = RunDirectory(self._executor, folder, name=name)
        self._results_in = () if directory.is_here else (directory.path.removesuffix(f"/{name}"),)
        return directory

    def _end_worker(self, run: Run, outcome: RunOutcome) -> None:
        context = self.context
        folder = self._folder(run)
        self._states.ended(run, outcome.state, reason=outcome.reason, folder=folder)
        self._states.listener(RunEnded(run, outcome.state, outcome.reason, outcome.rates))
        if run.extent is not None and (
            progress := progress_words(
                context.outcomes, context.campaign, run, states=self._states.states
            )
        ):
            self._notify(progress)


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

    def is_due(self, run: Run) -> bool:
        """Return whether a run need not wait for earlier steps: it is in no turn, or they ended."""
        if not run.in_turn or run.phase is Phase.PRECONDITION:
            return True
        return all(barrier.is_over for step, barrier in self._barriers.items() if step < run.step)

    def give_up(self, runs: Sequence[Run]) -> None:
        """Remove runs that have ended, or will not start, from their barriers."""
        for run in runs:
            self._barriers[run.step].leave(run.id, self._workers[run.id].trouble)


def _quorum(campaign: Campaign, runs: Sequence[Run]) -> int:
    """Return the minimum number of ready clients for a step to start."""
    match campaign.policy:
        case Policy.ALL:
            return len(runs)
        case Policy.QUORUM:
            return min(campaign.quorum, len(runs))
        case Policy.BEST_EFFORT:
            return 1
