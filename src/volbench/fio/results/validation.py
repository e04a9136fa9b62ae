"""Did fio do what it was asked? Its output, exit status and stderr go in, what is wrong comes out.

fio exits with 0 when its target is mounted, when a worker was killed, or when a log could not be
opened, and with the number of failed jobs modulo 256 otherwise. So everything is looked at.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from volbench.fio.results.json_documents import CUT_OFF
from volbench.model.results.result import Direction, JobResult, RunOutput

INTERRUPTED_STATUS = 128
"""fio's exit status after SIGINT or SIGTERM (plus the number of failed jobs)."""
LEAST_RUNTIME = 0.95
"""The share of a time-based runtime that has to be reached: fio rounds, and may end early."""

_BAD_WORDS = re.compile(
    r"got signal=|appears mounted|fopen log|Error \d+ while parsing|out of range|exceeding max"
    r"|disallowed|stuck grabbing|startup hung|" + re.escape(CUT_OFF)
)
_OWN_WORDS = re.compile(
    r"^fio: |^Bad option|error|failed|refus|not |unable|can't|cannot", re.IGNORECASE
)
_QUOTED_LINES = 3
_ERRNO_END = 4096
"""Linux has no error numbers from here on (MAX_ERRNO in its err.h)."""


@dataclass(frozen=True)
class Expected:
    """One section that fio was asked to run.

    Attributes:
        name: the section.
        entries: how many entries of fio's it has: its clones, or 1 under group_reporting.
        directions: those that have to have done something.
        runtime_s: the runtime of a time-based job; None where the size ends it.
    """

    name: str
    entries: int
    directions: tuple[Direction, ...]
    runtime_s: float | None = None


def problems_of(
    output: RunOutput | None,
    *,
    exit_status: int,
    stderr: str,
    expected: Sequence[Expected],
    interrupted: bool = False,
) -> tuple[str, ...]:
    """Return what went wrong, one plain sentence for each problem; nothing means success.

    Args:
        output: what fio reported; None when there was nothing to read.
        exit_status: as the process ended; negative for the signal that killed it.
        stderr: everything fio wrote there.
        expected: the sections of the job file.
        interrupted: whether fio was asked to stop early; then short runs are no problem.
    """
    said = f"{stderr}\n{'' if output is None else output.diagnostics}"
    problems = [*_of_status(exit_status, said, interrupted=interrupted), *_of_words(said)]
    if output is None:
        problems.append("fio left no result.")
    else:
        problems += _of_jobs(output.jobs, expected, interrupted=interrupted)
    return tuple(dict.fromkeys(problems))


def _of_status(exit_status: int, said: str, *, interrupted: bool) -> Iterator[str]:
    if exit_status < 0:
        yield f"fio was killed by signal {-exit_status}{_quoted(said)}."
    elif exit_status == INTERRUPTED_STATUS:
        if not interrupted:
            yield f"fio was interrupted (exit status 128){_quoted(said)}."
    elif exit_status != 0:
        yield f"fio ended with exit status {exit_status}{_quoted(said)}."


def _of_words(said: str) -> Iterator[str]:
    for line in said.splitlines():
        if _BAD_WORDS.search(line):
            yield f"fio said: {line.strip()[:300]}"


def _quoted(said: str) -> str:
    """Return fio's own words on a failure, ready to follow a statement."""
    lines = list(dict.fromkeys(line.strip() for line in said.splitlines() if line.strip()))
    telling = [line for line in lines if _OWN_WORDS.search(line)] or lines
    return ": " + " / ".join(line[:300] for line in telling[:_QUOTED_LINES]) if telling else ""


def _of_jobs(
    jobs: Sequence[JobResult], expected: Sequence[Expected], *, interrupted: bool
) -> Iterator[str]:
    wanted = Counter[str]()
    for section in expected:
        wanted[section.name] += section.entries
    found = Counter(job.name for job in jobs)
    for name, entries in wanted.items():
        if found[name] < entries:
            yield f"Job {name}: fio reported {found[name]} of {entries} entries."
    by_name = {section.name: section for section in expected}
    for job in jobs:
        yield from _of_errors(job)
        if job.name in by_name and not interrupted:
            yield from _of_work(job, by_name[job.name])


def _of_errors(job: JobResult) -> Iterator[str]:
    if job.error:
        meaning = os.strerror(job.error) if 0 < job.error < _ERRNO_END else "unknown"
        yield f"Job {job.name}: error {job.error} ({meaning})."
    if job.total_errors:
        yield f"Job {job.name}: {job.total_errors} I/Os failed."


def _of_work(job: JobResult, section: Expected) -> Iterator[str]:
    """Yield what an entry left undone; one that reached its steady state may end early."""
    for name in section.directions:
        if not _did(job, name):
            yield f"Job {job.name}: no {name.value} was done."
    if (job.steadystate or {}).get("attained") == 1:
        return
    runtime_s = max((d.runtime_s for d in job.directions), default=0.0)
    if section.runtime_s and job.directions and runtime_s < LEAST_RUNTIME * section.runtime_s:
        yield f"Job {job.name}: it ran {runtime_s:g} s of the {section.runtime_s:g} s asked for."


def _did(job: JobResult, name: Direction) -> bool:
    """Return whether a direction did something; unified reporting does not keep them apart."""
    return job.direction(name) is not None or (
        name is not Direction.SYNC and job.direction(Direction.MIXED) is not None
    )
