"""Outcome of a run, judged from its raw files and exit status and written to status.json."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from volbench.engine.run.process_watch import Ending, Watched
from volbench.engine.run.tool_command import Command, expected_of
from volbench.errors import OutputError, RefusedError, VolbenchError
from volbench.fio.dd import dd_problems, parse_dd
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.validation import problems_of
from volbench.ingest.run_files import STATUS_FORMAT, read_stderr
from volbench.model.campaign.planned_run import Run, RunState
from volbench.model.profile.profile_model import Tool
from volbench.store.atomic_files import read_text, write_atomic, write_bytes_atomic
from volbench.store.layout import RunFolder
from volbench.store.log_files import raw_checksums

# fio's error for a block that does not contain what it verifies (verify.c returns EILSEQ)
_MISMATCH = f"error {errno.EILSEQ}"

# Line that fio adds to its output for each job with ``exec_prerun`` (backend.c)
_PRERUN_NOTE = re.compile(rb"^\S.* : Saving output of prerun in .*\n", re.MULTILINE)


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run."""

    state: RunState  # finished, failed or interrupted
    reason: str = ""  # one or more sentences, including the tool's messages; empty if finished


def stopped_by(error: VolbenchError) -> RunOutcome:
    """Return the outcome of a run that was not started; a refusal does not count as a failure."""
    is_refused = isinstance(error, RefusedError)
    return RunOutcome(RunState.INTERRUPTED if is_refused else RunState.FAILED, error.message)


@dataclass(frozen=True)
class _Findings:
    """Findings in the raw files: problems, and the version of the tool that wrote them."""

    problems: tuple[str, ...]
    version: str


def judge(run: Run, folder: RunFolder, watched: Watched, *, version: str) -> tuple[RunOutcome, str]:
    """Decide from raw files and exit status whether a run succeeded.

    Returns:
        The outcome, and the version of the tool.
    """
    if watched.ending is Ending.STOPPED:
        return RunOutcome(RunState.INTERRUPTED, "stopped by the user"), version
    found = _read(run, folder, watched, version=version)
    problems = list(found.problems)
    if watched.ending is Ending.DEADLINE:
        problems.insert(0, f"still running after {watched.elapsed_s:.0f} s and was ended")
    if watched.exit_status is None:
        problems.insert(0, "cannot be ended: it may still be doing I/O")
    if run.extent and any(_MISMATCH in problem for problem in problems):
        problems.insert(0, "a block read back differs from the data written")
    if not problems:
        return RunOutcome(RunState.FINISHED), found.version
    if watched.lost:
        problems.insert(0, f"its end was not observed: {watched.lost}")
    reason = " ".join(f"{problem.rstrip('.')}." for problem in problems)
    return RunOutcome(RunState.FAILED, reason), found.version


def _read(run: Run, folder: RunFolder, watched: Watched, *, version: str) -> _Findings:
    status = -9 if watched.exit_status is None else watched.exit_status
    stderr = read_stderr(run, folder)
    if run.tool is Tool.DD:
        problems = dd_problems(exit_status=status, stderr=stderr)
        return _Findings(
            problems or _unreadable(run, folder, watched.elapsed_s, version=version), version
        )
    try:
        output = parse_output(read_text(folder.fio_output), path=folder.fio_output.name)
    except OutputError as error:
        expected_problems = problems_of(None, exit_status=status, stderr=stderr, expected=())
        return _Findings((*expected_problems, error.message), version)
    problems = problems_of(
        output,
        exit_status=status,
        stderr=stderr,
        expected=expected_of(run),
        interrupted=watched.ending is Ending.STEADY,
    )
    return _Findings(problems, output.tool_version or version)


def separate_prerun_notes(folder: RunFolder) -> None:
    """Move fio's lines on ``exec_prerun`` out of its output, which is plain JSON then."""
    if not folder.fio_output.exists():
        return
    raw = folder.fio_output.read_bytes()
    if notes := b"".join(match[0] for match in _PRERUN_NOTE.finditer(raw)):
        write_bytes_atomic(folder.prerun_notes, notes)
        write_bytes_atomic(folder.fio_output, _PRERUN_NOTE.sub(b"", raw))


def _unreadable(run: Run, folder: RunFolder, elapsed_s: float, *, version: str) -> tuple[str, ...]:
    """Return the parse error of dd's report, if any."""
    try:
        parse_dd(read_text(folder.dd_output), run=run, elapsed_s=elapsed_s, version=version)
    except OutputError as error:
        return (error.message,)
    return ()


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
