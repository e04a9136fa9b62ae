"""Execution of a run: start or takeover of its process, watch, judgement, recorded outcome."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from volbench.engine.guard.device_guard import Attachment
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.run.process_watch import Ending, Watched, end_process, watch
from volbench.engine.run.run_directory import (
    RunDirectory,
    check_start,
    devices_to_hold,
    scrub,
    secrets_of,
)
from volbench.engine.run.run_progress import ProgressReporter, Watches
from volbench.engine.run.stop_request import StopRequest
from volbench.engine.run.tool_command import Command, command_of, expected_of
from volbench.engine.sampling.sample_log import SampleLog, sampling_of
from volbench.errors import OutputError, RefusedError, VolbenchError
from volbench.execute.agent.gate import FOLDER
from volbench.execute.agent.volumes import KnownFile, changed_files
from volbench.execute.protocol import FOREVER_S, Process, Supervision
from volbench.fio.jobs.render_job import planned_logs, with_sent_logs
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.merge_jobs import total_rates
from volbench.fio.results.validation import problems_of
from volbench.ingest.run_files import STATUS_FORMAT, read_facts
from volbench.model.campaign.event import Listener, Progress, RunProgress
from volbench.model.campaign.planned_run import Run, RunState
from volbench.model.results.result import RunOutput
from volbench.store.atomic_files import read_text, write_atomic
from volbench.store.held_folder import known_paths
from volbench.store.journal import utc_now
from volbench.store.layout import STDERR, RunFolder
from volbench.store.log_files import compress_logs, raw_checksums

# fio's error for a block that does not contain what it verifies (verify.c returns EILSEQ)
_MISMATCH = f"error {errno.EILSEQ}"

# Line that fio adds to its output for each job with ``exec_prerun`` (backend.c)
_PRERUN_NOTE = re.compile(rb"^\S.* : Saving output of prerun in .*\n", re.MULTILINE)

# Seconds between looks at a user's file while fio runs: what goes wrong ends soon.
# Noticed by: tests/cli/test_kept_files.py::test_a_file_that_becomes_longer_ends_the_run
COMPARE_S = 2.0

# Logs of at least this size are compressed before the next run, since many would fill a disk;
# smaller logs are compressed at the end of the campaign, so that no run waits for them
_LARGE_LOG_BYTES = 64 * 1024**2


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run."""

    state: RunState  # finished, failed or interrupted
    reason: str = ""  # one or more sentences, including the tool's messages; empty if finished
    # I/Os and bytes a second; None unless finished
    rates: tuple[float, float] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Name files by the paths that the user knows."""
        object.__setattr__(self, "reason", known_paths(self.reason))


def stopped_by(error: VolbenchError) -> RunOutcome:
    """Return the outcome of a run that was not started; a refusal does not count as a failure."""
    is_refused = isinstance(error, RefusedError)
    return RunOutcome(RunState.INTERRUPTED if is_refused else RunState.FAILED, error.message)


def judge(run: Run, folder: RunFolder, watched: Watched, *, version: str) -> tuple[RunOutcome, str]:
    """Return the outcome of a run by its raw files and exit status, and the tool's version."""
    if watched.ending is Ending.STOPPED:
        return RunOutcome(RunState.INTERRUPTED, "stopped by the user"), version
    problems, output = _problems_of(run, folder, watched)
    version = (output and output.tool_version) or version
    if watched.ending is Ending.DEADLINE:
        problems.insert(0, f"still running after {watched.elapsed_s:.0f} s, so it was stopped")
    if watched.exit_status is None:
        problems.insert(0, "cannot be ended: it may still be doing I/O")
    if run.extent and any(_MISMATCH in problem for problem in problems):
        problems.insert(0, "a block read back differs from the data written")
    if any(os.strerror(errno.ENOSPC) in problem for problem in problems):
        problems.insert(0, f"{run.volume.target} is full: free some space there (df -h, df -i)")
    if output is not None and not problems and not watched.lost:
        return RunOutcome(RunState.FINISHED, rates=total_rates(output.jobs)), version
    if watched.lost:
        problems.insert(0, f"its end was not observed: {watched.lost}")
    reason = " ".join(f"{problem.rstrip('.')}." for problem in problems)
    return RunOutcome(RunState.FAILED, reason), version


def _problems_of(
    run: Run, folder: RunFolder, watched: Watched
) -> tuple[list[str], RunOutput | None]:
    """Return the problems in the raw files, and the output in them; None if it is damaged."""
    status = -9 if watched.exit_status is None else 0 if watched.lost else watched.exit_status
    stderr, printed = read_text(folder.stderr), read_text(folder.fio_output)
    try:
        output = parse_output(printed, path=folder.fio_output.name)
    except OutputError as error:
        problems = problems_of(None, exit_status=status, stderr=stderr, expected=())
        return [*problems, *([error.message] if printed.strip() else [])], None
    problems = problems_of(
        output,
        exit_status=status,
        stderr=stderr,
        expected=expected_of(run),
        interrupted=watched.ending is Ending.STEADY,
    )
    return list(problems), output


def separate_prerun_notes(folder: RunFolder) -> None:
    """Move fio's lines on ``exec_prerun`` out of its output, which is plain JSON then."""
    if not folder.fio_output.exists():
        return
    raw = folder.fio_output.read_bytes()
    if notes := b"".join(match[0] for match in _PRERUN_NOTE.finditer(raw)):
        write_atomic(folder.prerun_notes, notes)
        write_atomic(folder.fio_output, _PRERUN_NOTE.sub(b"", raw))


def write_status(
    folder: RunFolder,
    command: Command,
    outcome: RunOutcome,
    watched: Watched,
    *,
    started_utc: str,
    record: Mapping[str, object],
) -> None:
    """Write status.json, the last file of a run, with the checksums of the others.

    Args:
        record: additional entries; entries with the value None are omitted.
    """
    content = {
        "format": STATUS_FORMAT,
        "state": outcome.state,
        "reason": outcome.reason,
        "exit_status": watched.exit_status,
        "ending": watched.ending,
        "started_utc": started_utc,
        "ended_utc": watched.ended_utc,
        "elapsed_s": round(watched.elapsed_s, 3),
        "argv": command.shown,
    }
    content |= {name: value for name, value in record.items() if value is not None}
    content["files"] = raw_checksums(folder.path)
    write_atomic(folder.status, json.dumps(content, indent=1) + "\n")


if TYPE_CHECKING:
    from volbench.engine.run.start_gate import Gate
    from volbench.engine.run.stop_when_steady import SteadyWatch


def _ignore(_value: object) -> None:
    """Record and check nothing."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a run."""

    host: ConnectedHost  # ready host of the run
    run: Run  # the run, already passed by the guard
    directory: RunDirectory  # its campaign folder and work folder
    deadline_s: float  # seconds after which it is ended
    listener: Listener  # receives progress
    stop: StopRequest  # the user's stop request
    devices: tuple[str, ...] = ()  # kernel names of the device and of those below it, to sample
    # called before the start with the handle of the process; not if it ends with the controller
    on_intent: Callable[[str], None] | None = None  # nobody needs to find the process later
    on_start: Callable[[Process], None] = _ignore  # called with the process right after the start
    # called several times a second with the seconds since the start; returns whether more often
    on_poll: Callable[[float], object] = _ignore
    # returns the keys of other campaigns on the disk of the volume
    others: Callable[[], list[str]] = list
    # start gate shared with the other runs of its step; None to start immediately
    gate: Gate | None = None
    # target to the attachment of its device that the guard accepted, to be verified and held on
    # another machine; None for other volumes
    attachments: Mapping[str, Attachment | None] = field(default_factory=dict)
    kept: tuple[KnownFile, ...] = ()  # files of the user, whose places and lengths must not change
    had_files: bool = False  # whether all files of its jobs exist, so that fio lays none out
    is_temporary: bool = False  # whether its machine removes its work folder soon after its end
    # its passwords and keys, by environment variable
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def longest_s(self) -> float:
        """Seconds after which its machine ends it without a controller, gate wait included."""
        return self.deadline_s + (0.0 if self.gate is None else self.gate.patience_s)


def execute_run(attempt: Attempt) -> RunOutcome:
    """Execute a run in its empty folder and judge it; ``status.json`` is written last."""
    execution = _Execution(attempt)
    execution.put_files()
    started_utc = utc_now()
    process = execution.start()
    watched = execution.watch(process)
    return execution.conclude(watched, started_utc=started_utc)


def take_over_run(attempt: Attempt, *, handle: str, since_utc: str) -> RunOutcome:
    """Continue a run that an earlier controller started, and judge it."""
    executor = attempt.host.executor
    execution = _Execution(attempt)
    if attempt.gate is not None:
        attempt.gate.reopen(executor, attempt.directory.path)
    process = executor.find(handle, followed=execution.followed)
    watched = execution.watch(process)
    return execution.conclude(watched, started_utc=since_utc)


class _Execution:
    """Steps of an attempt."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._steady = _steady_watch(attempt.run)
        self._compared_s = 0.0

    @cached_property
    def command(self) -> Command:
        """Command to start."""
        attempt = self._attempt
        run = attempt.run if attempt.directory.is_here else with_sent_logs(attempt.run)
        return command_of(run, fio=attempt.host.fio, is_gated=attempt.gate is not None)

    def put_files(self) -> None:
        """Write the input files of the process."""
        for name, text in self.command.files.items():
            self._attempt.directory.put(name, text)
        for digest in planned_logs(self._attempt.run):
            self._attempt.directory.put_log(digest)
        if self._attempt.gate is not None:
            directory = self._attempt.directory
            directory.make_folder(FOLDER)
            self._attempt.gate.open_for(directory.executor, directory.path)

    @property
    def followed(self) -> tuple[str, ...]:
        """Files whose first lines are reported while the process runs."""
        gate = self._attempt.gate
        return () if gate is None else gate.followed

    def start(self) -> Process:
        """Start the process and record it; end it if the record cannot be written."""
        attempt = self._attempt
        run, is_here = attempt.run, attempt.directory.is_here
        supervision = Supervision(
            environment=secrets_of(run, attempt.secrets),
            # On this machine the controller holds it.
            hold=() if is_here else devices_to_hold(run, attempt.attachments),
            longest_s=min(attempt.longest_s, FOREVER_S),
            gate_s=None if attempt.gate is None else attempt.gate.patience_s,
            sampling=sampling_of(run, attempt.devices, had_files=attempt.had_files),
            followed=self.followed,
            is_temporary=attempt.is_temporary,
        )
        process = attempt.directory.start(
            self.command.argv, stderr=STDERR, supervision=supervision, on_intent=attempt.on_intent
        )
        try:
            attempt.on_start(process)
            attempt.directory.sync()
        except BaseException:
            if not process.handle:
                end_process(process, attempt.stop)
            raise
        return process

    def watch(self, process: Process) -> Watched:
        """Watch the process to its end, and the device until the end of write-back."""
        attempt, steady = self._attempt, self._steady
        if attempt.gate is not None:
            attempt.gate.follow(process)
        report = ProgressReporter(
            attempt.run,
            process,
            expected_s=self.command.expected_s,
            watches=Watches(steady, attempt.gate),
            listener=attempt.listener,
        )
        samples = SampleLog(attempt.directory.folder.samples, process)

        def on_output(text: str, elapsed_s: float) -> object:
            is_brisk = attempt.on_poll(elapsed_s)
            samples.collect()
            report(text, elapsed_s)
            return is_brisk

        with attempt.stop.awaiting(f"{attempt.run.id} (fio)"):
            watched = watch(
                process,
                deadline_s=attempt.deadline_s,
                stop=attempt.stop,
                on_output=on_output,
                is_enough=lambda: (
                    (steady is not None and steady.is_steady)
                    or bool(self._is_due() and self._changes())
                ),
                gate=attempt.gate,
            )
        samples.follow_tail(
            attempt.run, is_stop_requested=lambda: attempt.stop.requested, listener=attempt.listener
        )
        return watched

    def _is_due(self) -> bool:
        """Return whether files are to be compared again."""
        is_due = time.monotonic() - self._compared_s > COMPARE_S
        self._compared_s = time.monotonic() if is_due else self._compared_s
        return is_due

    def _changes(self) -> tuple[str, ...]:
        """Return what has become of files that must be kept; empty if nothing has."""
        kept = list(self._attempt.kept)
        return self._attempt.host.executor.ask(changed_files, kept) if kept else ()

    def _note_others(self) -> None:
        """Record the campaigns that use the disk of the volume now, beside those at the start."""
        directory = self._attempt.directory
        others, facts = self._attempt.others(), read_facts(directory.folder)
        if facts is not None and others:
            keys = tuple(sorted({*facts.other_campaigns, *others}))
            facts = facts.model_copy(update={"other_campaigns": keys})
            directory.keep(directory.folder.facts, facts.model_dump_json(indent=1) + "\n")

    def conclude(self, watched: Watched, *, started_utc: str) -> RunOutcome:
        """Fetch the run's files, judge it, and write status.json."""
        attempt, gate, directory = self._attempt, self._attempt.gate, self._attempt.directory
        start = None if gate is None else gate.record()
        if gate is not None and not directory.is_here:
            attempt.listener(RunProgress(attempt.run, Progress(watched.elapsed_s, None, "ended")))
            gate.wait_until_quiet(attempt.stop)
        directory.fetch()
        scrub(directory.folder.path, attempt.run)
        self._note_others()
        try:
            check_start(attempt.run, directory.folder, watched.exit_status)
        except RefusedError:
            directory.remove()
            raise
        version = attempt.host.fio_version
        outcome, version = judge(attempt.run, directory.folder, watched, version=version)
        if changes := self._changes():
            outcome = RunOutcome(RunState.FAILED, f"{'; '.join(changes)}. {outcome.reason}".strip())
        if gate is not None and (reason := gate.held_back):
            outcome = RunOutcome(RunState.INTERRUPTED, reason)
        _tidy(directory.folder)
        write_status(
            directory.folder,
            self.command,
            outcome,
            watched,
            started_utc=started_utc,
            record={
                "tool_version": version,
                "until": None if self._steady is None else self._steady.record,
                "start": start,
            },
        )
        directory.remove()
        return outcome


def _tidy(folder: RunFolder) -> None:
    """Compress large logs, and remove empty ones of ``exec_prerun``."""
    separate_prerun_notes(folder)
    compress_logs(folder.path, min_bytes=_LARGE_LOG_BYTES)
    for path in folder.path.glob("*.prerun.txt"):
        if path.is_file() and not path.stat().st_size:
            path.unlink()


def _steady_watch(run: Run) -> SteadyWatch | None:
    """Return the steady-state judge of a run with ``until``; scipy is imported only for these."""
    if run.until is None:
        return None
    from volbench.engine.run.stop_when_steady import SteadyWatch  # noqa: PLC0415 - slow to import

    return SteadyWatch(run.until)
