"""One Run: a plan in, raw files and a judgement out."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from volbench.analyse.device.kernel_counters import STARTED
from volbench.engine.campaign.start_gate import WAITING, Gate
from volbench.engine.hosts.machine import Machine
from volbench.engine.run.live_latency import Pulse
from volbench.engine.run.process_watch import Ending, Watched, end_process, watch
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.stop_request import Stop
from volbench.engine.run.tool_command import Command, command_of, expected_of
from volbench.engine.sampling.sampler import Sampler, ended_after, sampling
from volbench.engine.sampling.writeback import follow_tail
from volbench.errors import OutputError
from volbench.execute.protocol import Executor, Process
from volbench.fio.dd import dd_problems, parse_dd, parse_dd_version
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.status_lines import ProgressReader
from volbench.fio.results.validation import problems_of
from volbench.ingest.run_files import STATUS_FORMAT, read_stderr
from volbench.model.campaign.event import Listener, Progress, RunProgress
from volbench.model.campaign.planned_run import Run, RunState
from volbench.model.profile.profile_model import Tool
from volbench.store.archive import write_atomic
from volbench.store.journal import utc_now
from volbench.store.layout import RunFolder
from volbench.store.log_files import compress
from volbench.store.small_files import read_text

if TYPE_CHECKING:
    from volbench.engine.run.stop_when_steady import SteadyWatch

_MISMATCH = f"error {errno.EILSEQ}"
"""How fio says that a block does not hold what it verifies (verify.c returns EILSEQ)."""


@dataclass(frozen=True)
class RunOutcome:
    """How a Run ended.

    Attributes:
        state: finished, failed or interrupted.
        reason: one or more plain sentences with the tool's own words; empty when finished.
    """

    state: RunState
    reason: str = ""


@dataclass(frozen=True)
class RunHooks:
    """What a Run needs of its surroundings.

    Attributes:
        listener: told about progress.
        stop: the user's wish.
        device: number of the block device that backs the volume, for live latency.
        devices: kernel names of that device and of its backing devices, to sample.
        on_intent: called before anything is started with what will find the process, and the
            sampler beside it; not where they end with us.
        on_start: called with the process, and the sampler beside it, right after the start.
    """

    listener: Listener
    stop: Stop
    device: tuple[int, int] | None = None
    devices: tuple[str, ...] = ()
    on_intent: Callable[[str, str], None] = field(default=lambda _handle, _sampler: None)
    on_start: Callable[[Process, Sampler], None] = field(default=lambda _process, _sampler: None)


@dataclass(frozen=True)
class Attempt:
    """One try at a Run.

    Attributes:
        machine: where.
        run: what to do; the guard has passed it.
        place: its folder, here and there.
        deadline_s: seconds after which it is ended.
        watcher: listener, stop request and start hook.
        gate: where it waits for the other Runs of its step; None to start at once.
    """

    machine: Machine
    run: Run
    place: RunDirectory
    deadline_s: float
    watcher: RunHooks
    gate: Gate | None = None


def run_single(attempt: Attempt) -> RunOutcome:
    """Execute one Run in its empty folder and judge it.

    Returns:
        The end state. ``status.json`` is written last.

    Raises:
        TransportError: the machine can't be reached any more; there the Run may go on.
        ArchiveError: there is no room for its results; on another machine it goes on.
    """
    run, place, watcher = attempt.run, attempt.place, attempt.watcher
    command = _command(attempt)
    for name, text in command.files.items():
        place.put(name, text)
    if attempt.gate is not None:
        attempt.gate.open_for(place)
    interval_s, life_s = run.device_sample_s, attempt.deadline_s
    if handle := place.executor.handle_of(place.place_of(command.stderr)):
        watcher.on_intent(handle, Sampler(place).expected_handle if interval_s > 0 else "")
    with sampling(place, watcher.devices, interval_s=interval_s, life_s=life_s) as sampler:
        started_utc = utc_now()
        sampler.mark(STARTED)
        process = place.start(command.argv, stderr=command.stderr, longest_s=life_s)
        _note_start(watcher, process, sampler)
        watched = _attend(attempt, command, process, sampler)
    return _conclude(attempt, command, watched, started_utc=started_utc)


def _note_start(watcher: RunHooks, process: Process, sampler: Sampler) -> None:
    """Write down that a process was started; one that nobody would find again must not run."""
    try:
        watcher.on_start(process, sampler)
    except BaseException:
        if not process.handle:
            end_process(process, watcher.stop)
        raise


def take_over(attempt: Attempt, *, handle: str, sampler_handle: str, since_utc: str) -> RunOutcome:
    """Go on with a Run that an earlier controller started, and judge it.

    Args:
        attempt: the same as then.
        handle: of its process.
        sampler_handle: of the process beside it; empty for none.
        since_utc: when it was started.

    Raises:
        TransportError: the machine can't be reached.
    """
    command = _command(attempt)
    executor = attempt.machine.executor
    if attempt.gate is not None:
        attempt.gate.open_again(attempt.place)
    sampler = Sampler(attempt.place)
    with ended_after(sampler):
        sampler.take_over(executor.find(sampler_handle) if sampler_handle else None)
        watched = _attend(attempt, command, executor.find(handle), sampler)
    return _conclude(attempt, command, watched, started_utc=since_utc)


def _command(attempt: Attempt) -> Command:
    """Return what is started; the machine tells the version of its tool."""
    run, machine = attempt.run, attempt.machine
    version = _tool_version(machine.executor, run, fio=machine.fio)
    is_gated = attempt.gate is not None
    return command_of(run, fio=machine.fio, version=version, is_gated=is_gated)


def _attend(attempt: Attempt, command: Command, process: Process, sampler: Sampler) -> _Attended:
    """Watch a process to its end, and what it left in memory to the device."""
    run, watcher, executor = attempt.run, attempt.watcher, attempt.machine.executor
    steady = _steady_watch(run)
    pulse = Pulse(executor, watcher.device)
    tell = _teller(attempt, command, process, pulse, steady)
    watched = watch(
        process,
        deadline_s=attempt.deadline_s,
        stop=watcher.stop,
        on_output=sampler.beside(tell),
        is_enough=lambda: steady is not None and steady.is_steady,
    )
    ended_utc = utc_now()
    follow_tail(executor, run, sampler, stop=watcher.stop, listener=watcher.listener)
    until = None if steady is None else steady.record
    return _Attended(watched, ended_utc, until, process.lost)


@dataclass(frozen=True)
class _Attended:
    """How a process was seen to end."""

    watched: Watched
    ended_utc: str
    until: Mapping[str, object] | None
    lost: str


def _conclude(
    attempt: Attempt, command: Command, attended: _Attended, *, started_utc: str
) -> RunOutcome:
    """Bring a Run's files back, judge it, and write down how it ended."""
    gate, folder = attempt.gate, attempt.place.folder
    start = None if gate is None else gate.record()
    if gate is not None and not attempt.place.is_here:
        gate.wait_until_quiet(attempt.watcher.stop)
    attempt.place.bring_back()
    end = judge(attempt.run, folder, attended.watched, version=command.version)
    if attended.lost and end.state is RunState.FAILED:
        end = RunOutcome(RunState.FAILED, f"nobody saw how it ended: {attended.lost}. {end.reason}")
    if gate is not None and (reason := gate.held_back):
        end = RunOutcome(RunState.INTERRUPTED, reason)
    _tidy(folder.path)
    record = {"until": attended.until, "start": start}
    span_utc = started_utc, attended.ended_utc
    _write_status(folder, command, end, attended.watched, span_utc=span_utc, record=record)
    attempt.place.discard()
    return end


def _tidy(folder: Path) -> None:
    """Compress logs, and remove the empty files that fio makes for what ran before a job."""
    for path in sorted(folder.glob("*.log")):
        compress(path)
    for path in folder.glob("*.prerun.txt"):
        if not path.stat().st_size:
            path.unlink()


def _steady_watch(run: Run) -> SteadyWatch | None:
    """Return the judge of a Run that ends when it is steady; scipy is imported only for these."""
    if run.until is None:
        return None
    from volbench.engine.run.stop_when_steady import SteadyWatch  # noqa: PLC0415 - scipy is slow to import

    return SteadyWatch(run.until)


def _tool_version(executor: Executor, run: Run, *, fio: str) -> str:
    """Return the version of the program that does the I/O, such as ``fio-3.33``."""
    if run.tool is Tool.DD:
        return parse_dd_version(executor.run(["dd", "--version"]).stdout)
    return executor.run([fio, "--version"]).stdout.strip()


def _teller(
    attempt: Attempt,
    command: Command,
    process: Process,
    pulse: Pulse,
    steady: SteadyWatch | None,
) -> Callable[[str, float], None]:
    """Return what turns output of the process into progress events."""
    run, watcher, gate = attempt.run, attempt.watcher, attempt.gate
    reader = ProgressReader(total_s=command.expected_s)
    last = Progress(0.0, command.expected_s)

    def tell(text: str, elapsed_s: float) -> None:
        nonlocal last
        if gate is not None:
            gate.look()
        glance = reader.feed(text, elapsed_s=elapsed_s) if run.tool is Tool.FIO else None
        if glance is not None and steady is not None:
            steady.feed(glance)
        last = replace(
            glance or last,
            elapsed_s=elapsed_s,
            lat_mean_s=pulse.latency_s(elapsed_s),
            note="" if steady is None else steady.words,
            silent_s=process.silent_s,
        )
        if gate is not None and gate.is_waiting:
            last = replace(last, state=WAITING)
        watcher.listener(RunProgress(run, last))

    return tell


def judge(run: Run, folder: RunFolder, watched: Watched, *, version: str) -> RunOutcome:
    """Decide from raw files and exit status whether a Run succeeded."""
    if watched.ending is Ending.STOPPED:
        return RunOutcome(RunState.INTERRUPTED, "stopped by the user")
    problems = list(_problems(run, folder, watched, version=version))
    if watched.ending is Ending.DEADLINE:
        problems.insert(0, f"still running after {watched.elapsed_s:.0f} s and was ended")
    if watched.exit_status is None:
        problems.insert(0, "can't be ended: it may still be doing I/O")
    if run.extent and any(_MISMATCH in problem for problem in problems):
        problems.insert(0, "a block read back is not what was written there")
    if problems:
        return RunOutcome(RunState.FAILED, " ".join(f"{one.rstrip('.')}." for one in problems))
    return RunOutcome(RunState.FINISHED)


def _problems(run: Run, folder: RunFolder, watched: Watched, *, version: str) -> tuple[str, ...]:
    status = -9 if watched.exit_status is None else watched.exit_status
    stderr = read_stderr(run, folder)
    if run.tool is Tool.DD:
        found = dd_problems(exit_status=status, stderr=stderr)
        return found or _unreadable(run, folder, watched.elapsed_s, version=version)
    try:
        output = parse_output(read_text(folder.fio_output), path=folder.fio_output.name)
    except OutputError as error:
        expected_problems = problems_of(None, exit_status=status, stderr=stderr, expected=())
        return (*expected_problems, error.message)
    return problems_of(
        output,
        exit_status=status,
        stderr=stderr,
        expected=expected_of(run),
        interrupted=watched.ending is Ending.STEADY,
    )


def _unreadable(run: Run, folder: RunFolder, elapsed_s: float, *, version: str) -> tuple[str, ...]:
    """Return why dd's report can't be read, or nothing."""
    try:
        parse_dd(read_text(folder.dd_output), run=run, elapsed_s=elapsed_s, version=version)
    except OutputError as error:
        return (error.message,)
    return ()


def _write_status(
    folder: RunFolder,
    command: Command,
    end: RunOutcome,
    watched: Watched,
    *,
    span_utc: tuple[str, str],
    record: Mapping[str, object],
) -> None:
    content = {
        "format": STATUS_FORMAT,
        "state": end.state,
        "reason": end.reason,
        "exit_status": watched.exit_status,
        "ending": watched.ending,
        "started_utc": span_utc[0],
        "ended_utc": span_utc[1],
        "elapsed_s": round(watched.elapsed_s, 3),
        "argv": command.shown,
        "tool_version": command.version,
    }
    content |= {name: told for name, told in record.items() if told is not None}
    write_atomic(folder.status, json.dumps(content, indent=1) + "\n")
