"""One client of a campaign: a machine and a plan in, one Run after another done and noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volbench.engine.campaign.run_states import Ledger
from volbench.engine.campaign.start_gate import Gate
from volbench.engine.conditioning.cold_probe import probe_campaign
from volbench.engine.conditioning.idle_time import LATE_S, flush_volume, pause_before
from volbench.engine.conditioning.warmup_preparation import make_room, with_parallelism
from volbench.engine.conditioning.warmup_verification import Outcomes, progress_words
from volbench.engine.guard.preflight import guard_run
from volbench.engine.guard.run_guard import check_space
from volbench.engine.guard.scratch_files import Scratch
from volbench.engine.hosts.machine import Machine
from volbench.engine.hosts.orphans import end_orphan, end_strays, intent, trace
from volbench.engine.hosts.volume_probe import probe_volume
from volbench.engine.run.process_watch import end_process
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.run_once import (
    Attempt,
    RunHooks,
    RunOutcome,
    run_single,
    take_over,
)
from volbench.engine.run.stop_request import Stop
from volbench.engine.sampling.sampler import Sampler
from volbench.engine.sampling.writeback import may_leave_dirt
from volbench.errors import ArchiveError, RefusedError, TransportError, VolbenchError
from volbench.execute.protocol import Process
from volbench.fio.jobs.output_files import planned_files
from volbench.ingest.run_files import read_facts, read_status
from volbench.model.campaign.event import RunEnded, RunStarted
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.model.profile.profile_model import Phase
from volbench.model.results.provenance import VolumeFacts
from volbench.plan.expansion.estimate import deadline_s, expected_s
from volbench.store.archive import (
    attempts_before,
    forget_attempt,
    fresh_run_folder,
    write_atomic,
)
from volbench.store.layout import Layout, RunFolder
from volbench.units import format_duration

if TYPE_CHECKING:
    from volbench.engine.campaign.round_stopping import RoundJudge

GRACE_S = 600.0
"""Seconds a Run may be late. A provider's cache that is full can hang a volume for 8 minutes
("Disk performance on Azure Kubernetes Service, part 1", Stian Øvrevåge, 2019)."""

RESULT_BYTES = 16 * 1024**2
"""Room that a Run's result and logs get on another machine, beside the reserve of any file."""

GateOf = Callable[[Run], Gate | None]


@dataclass(frozen=True)
class Settings:
    """How to execute a campaign.

    Attributes:
        grace_s: seconds a Run may be late before it is ended.
        keep_files: leave scratch files on the volumes.
        retry_failed: when resuming, do failed Runs again too.
    """

    grace_s: float = GRACE_S
    keep_files: bool = False
    retry_failed: bool = False


@dataclass(frozen=True)
class Worker:
    """What does the Runs of one client.

    Attributes:
        machine: where.
        layout: the campaign folder.
        campaign: the whole plan.
        runs: those of this client, in order.
        settings: how.
        stop: the user's wish.
        ledger: what is known of every Run.
        scratch: files made on the machine.
        outcomes: what finished Runs moved.
    """

    machine: Machine
    layout: Layout
    campaign: Campaign
    runs: tuple[Run, ...]
    settings: Settings
    stop: Stop
    ledger: Ledger
    scratch: Scratch
    outcomes: Outcomes

    @property
    def name(self) -> str:
        """The client, for people."""
        run = self.runs[0]
        return f"{run.host} client {run.client}" if run.client else run.host

    def recover(self) -> None:
        """Settle what an earlier controller left: processes it started, Runs it did not note."""
        for run in self.runs:
            left = self.ledger.process(run)
            if self.ledger.state(run) is not RunState.RUNNING or left.get("handle"):
                continue
            if end_orphan(self.machine.executor, left):
                self.ledger.tell(f"{run.id}: ended the process that an earlier controller left")
            status = read_status(self.layout.run(run.id))
            state = RunState(str(status.get("state", RunState.INTERRUPTED)))
            reason = str(status.get("reason", "the controller ended while it ran"))
            self.ledger.note(run, state, reason=reason)
            self.scratch.settle(planned_files(run))
        folders = [self.layout.run(run.id).path for run in self.runs]
        for folder in end_strays(self.machine.executor, folders):
            self.ledger.tell(f"{folder.name}: ended what an earlier controller had just started")

    def pending(self) -> tuple[Run, ...]:
        """Return what is still to do, with preparations whose files are gone."""
        done = {RunState.FINISHED, RunState.NOT_NEEDED}
        if not self.settings.retry_failed:
            done.add(RunState.FAILED)
        pending = {run.id for run in self.runs if self.ledger.state(run) not in done}
        roles = {run.volume.role for run in self.runs if run.id in pending}
        for run in self.runs:
            is_wanted = self.ledger.state(run) is not RunState.NOT_NEEDED
            prepares = run.phase is not Phase.MEASURED and run.volume.role in roles
            if is_wanted and prepares and self._gone(run):
                pending.add(run.id)
        return tuple(run for run in self.runs if run.id in pending)

    def _gone(self, run: Run) -> bool:
        return any(self.machine.executor.stat(path) is None for path in planned_files(run))

    def probe(self) -> None:
        """Tell cold from warm while nothing has touched the volumes yet."""
        probe_campaign(
            self.layout,
            self.campaign,
            fio=self.machine.fio,
            executor=self.machine.executor,
            listener=self.ledger.listener,
            stop=self.stop,
        )

    def run_all(self, pending: Sequence[Run], *, gate_of: GateOf = lambda _run: None) -> None:
        """Run what is pending until the end, a stop, or a failure that ends the campaign."""
        judge = self._round_judge()
        for run in pending:
            if self.stop.requested:
                return
            if judge is not None and self._is_left_out(run, pending, judge):
                continue
            gate = gate_of(run)
            try:
                end = self._run(run, gate)
            finally:
                if gate is not None:
                    gate.leave()
            if end.state is RunState.FAILED and self.campaign.ends_with(run):
                return

    def _round_judge(self) -> RoundJudge | None:
        """Return what ends the rounds; None where there are none."""
        if not self.campaign.rounds:
            return None
        from volbench.engine.campaign.round_stopping import RoundJudge  # noqa: PLC0415 - pandas is slow to import

        return RoundJudge(self.layout, self.campaign, is_finished=self.ledger.is_finished)

    def _is_left_out(self, run: Run, pending: Sequence[Run], judge: RoundJudge) -> bool:
        """Tell whether a Run is not needed, and note that of all Runs of these rounds at once."""
        if self.ledger.state(run) is RunState.NOT_NEEDED:
            return True
        news = judge.before(run)
        if news is not None and news.is_over:
            left = [one for one in pending if one.profile == run.profile]
            left = [one for one in left if one.repeat >= run.repeat]
            self.ledger.leave_out(left, reason=news.words)
        elif news is not None:
            self.ledger.tell(f"{run.profile}: {news.words}")
        return news is not None and news.is_over

    def _run(self, run: Run, gate: Gate | None) -> RunOutcome:
        files = planned_files(run)
        self.ledger.listener(RunStarted(run, expected_s(run)))
        try:
            goes_on = self.ledger.state(run) is RunState.RUNNING
            if goes_on or self._pause(run):
                end = self._go_on(run, gate) if goes_on else self._begin(run, gate)
            else:
                end = RunOutcome(RunState.INTERRUPTED, "stopped by the user before it started")
        except TransportError as error:
            if error.transient:
                # The machine is lost, not the Run: it may go on there, and a resume finds it again.
                raise
            end = RunOutcome(RunState.FAILED, error.message)
        except (RefusedError, ArchiveError) as error:
            # The next Run would meet the same: a changed volume, or no room for results.
            if not self._waits_there(run, error):
                self._end(run, RunOutcome(RunState.FAILED, error.message))
            raise
        except VolbenchError as error:
            end = RunOutcome(RunState.FAILED, error.message)
        self.scratch.settle(files)
        self._end(run, end)
        return end

    def _pause(self, run: Run) -> bool:
        """Leave the volume alone as the plan says; False when the user stopped it meanwhile."""
        if not run.pause_before_s:
            return True
        self._flush(run)
        before = reversed(self.runs[: self.runs.index(run)])
        mine = (one for one in before if one.volume.target == run.volume.target)
        ends = (read_status(self.layout.run(one.id)).get("ended_utc") for one in mine)
        ended_utc = str(next((end for end in ends if end), ""))
        listener = self.ledger.listener
        rested_s = pause_before(run, ended_utc=ended_utc, listener=listener, stop=self.stop)
        if rested_s > run.pause_before_s + LATE_S:
            rested, asked = format_duration(round(rested_s)), format_duration(run.pause_before_s)
            self.ledger.tell(f"{run.id}: the volume was left alone for {rested}, not for {asked}")
        return not self.stop.requested

    def _waits_there(self, run: Run, error: VolbenchError) -> bool:
        """Tell whether a Run's results wait on its machine until there is room for them here."""
        if not isinstance(error, ArchiveError) or self.ledger.state(run) is not RunState.RUNNING:
            return False
        return not self._place(run, self.layout.run(run.id)).is_here

    def _begin(self, run: Run, gate: Gate | None) -> RunOutcome:
        """Start a Run from nothing."""
        executor = self.machine.executor
        if executor.handle_of("stderr") and self.ledger.state(run) is RunState.PLANNED:
            # There nothing is started before it is written down, so this was no attempt.
            forget_attempt(self.layout.run(run.id))
        folder = fresh_run_folder(self.layout, run.id)
        self.outcomes.forget(run)
        guard_run(
            executor,
            run,
            campaign=self.campaign,
            campaign_dir=str(self.layout.root.resolve()),
            ours=self.scratch.owns,
        )
        place = self._place(run, folder)
        if not place.is_here:
            check_space(executor, place.path, needed_bytes=RESULT_BYTES)
        self._flush(run)
        facts = probe_volume(executor, run.volume)
        write_atomic(folder.facts, facts.model_dump_json(indent=1) + "\n")
        self.scratch.expect(planned_files(run))
        make_room(executor, run)
        run = with_parallelism(self.outcomes, self.campaign, run, is_done=self.ledger.is_finished)
        return run_single(self._attempt(run, place, facts, gate))

    def _flush(self, run: Run) -> None:
        """Write what earlier Runs of this client left in memory: it is not this one's load."""
        before = self.runs[: self.runs.index(run)]
        if any(may_leave_dirt(one) for one in before) and (
            problem := flush_volume(self.machine.executor, run.volume)
        ):
            self.ledger.tell(f"{run.id}: what earlier Runs left may disturb it: {problem}")

    def _go_on(self, run: Run, gate: Gate | None) -> RunOutcome:
        """Take over a Run that goes on, or has ended, without a controller."""
        folder = self.layout.run(run.id)
        place = self._place(run, folder)
        if status := read_status(folder):
            # All of it is here; the earlier controller had no time or room to note that.
            place.discard()
            return RunOutcome(RunState(str(status["state"])), str(status["reason"]))
        process = self.ledger.process(run)
        left = {name: str(told) for name, told in process.items()}
        if process.get("launched", True) is False and not self._was_launched(left):
            place.discard()
            forget_attempt(folder)
            return self._begin(run, gate)
        facts = read_facts(folder) or probe_volume(self.machine.executor, run.volume)
        self.ledger.tell(f"{run.id}: found again on {self.machine.host}")
        return take_over(
            self._attempt(run, place, facts, gate),
            handle=left["handle"],
            sampler_handle=left.get("sampler", ""),
            since_utc=left.get("since_utc", ""),
        )

    def _was_launched(self, left: Mapping[str, str]) -> bool:
        """Tell whether a process that was to be started was; if not, end the sampler before it."""
        executor = self.machine.executor
        if executor.was_started(left["handle"]):
            return True
        if left["sampler"] and executor.was_started(left["sampler"]):
            end_process(executor.find(left["sampler"]), self.stop)
        return False

    def _attempt(
        self, run: Run, place: RunDirectory, facts: VolumeFacts, gate: Gate | None
    ) -> Attempt:
        executor = self.machine.executor

        def note_intent(handle: str, sampler_handle: str) -> None:
            self.ledger.started(run, intent(handle, sampler_handle))

        def note_start(process: Process, sampler: Sampler) -> None:
            self.ledger.started(run, trace(executor, process, sampler_handle=sampler.handle))

        major, minor = facts.major, facts.minor
        device = None if major is None or minor is None else (major, minor)
        devices = (facts.device, *facts.backing) if facts.device else ()
        waits_s = 0.0 if gate is None else gate.patience_s
        return Attempt(
            self.machine,
            run,
            place,
            deadline_s=deadline_s(run, grace_s=self.settings.grace_s) + waits_s,
            watcher=RunHooks(
                self.ledger.listener, self.stop, device, devices, note_intent, note_start
            ),
            gate=gate,
        )

    def _place(self, run: Run, folder: RunFolder) -> RunDirectory:
        name = f"{self.campaign.key}/{run.id}-{attempts_before(folder)}"
        return RunDirectory(self.machine.executor, folder, name=name)

    def _end(self, run: Run, end: RunOutcome) -> None:
        self.ledger.note(run, end.state, reason=end.reason)
        self.ledger.listener(RunEnded(run, end.state, end.reason))
        if run.extent is not None and (
            words := progress_words(self.outcomes, self.campaign, run, states=self.ledger.states)
        ):
            self.ledger.tell(words)
