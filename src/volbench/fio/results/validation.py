"""Validation of a finished fio process from its output, exit status and stderr.

fio exits with 0 when its target is mounted, a worker was killed, or a log could not be opened, and
otherwise with the number of failed jobs modulo 256. So all of them are checked.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from volbench.fio.results.json_documents import CUT_OFF
from volbench.model.campaign.event import Progress
from volbench.model.results.result import Direction, JobResult, RunOutput

# fio's exit status after SIGINT or SIGTERM (plus the number of failed jobs)
INTERRUPTED_STATUS = 128
# Share of a time-based runtime that must be reached: fio rounds, and may end early.
# Noticed by: test_validation.py
MIN_RUNTIME_SHARE = 0.95

_FAILURES = re.compile(
    r"got signal=|appears mounted|fopen log|Error \d+ while parsing|out of range|exceeding max"
    r"|disallowed|stuck grabbing|startup hung|" + re.escape(CUT_OFF)
)
_MESSAGES = re.compile(
    r"^fio: |^volbench: |^Bad option|error|failed|refus|not |unable|can't|cannot", re.IGNORECASE
)
_NUMBERS = re.compile(r"(?P<kept>^Job [^:]*:|err(?:or |=)\d+)|\d+(?:\.\d+)?(?:e[+-]\d+)?")
_QUOTED_LINES = 3
_MAX_ERRNO = 4096  # Upper bound of Linux error numbers (MAX_ERRNO in err.h)

_LINE = re.compile(
    r"Jobs: \d+ \(f=-?\d+\)(?:, [^:]*)?"
    r"(?:: \[(?P<states>[^\]]*)\]\[(?:[\d.]+|-\.-)%\]"
    r"(?:\[(?P<bw>[rwt]=[^\]]*)\]\[(?P<iops>[rwt]=[^\]]*) IOPS\])?"
    r"\[eta [^\]]*\])?\s*",
    re.ASCII,
)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([kKMGTP]?)(i?)(B|b|bit)?(?:/s)?", re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_RUNNING = frozenset("RrWwMmDdVFf")
_STARTING = frozenset("PCIp")
# Seconds in which fio prints no rates although it runs. Noticed by: test_status_lines.py
_QUIET_START_S = 3.0
_MAX_LINE = 65_536


@dataclass(frozen=True)
class Expected:
    """Expected result of one section."""

    name: str  # the section
    entries: int  # number of entries in fio's result: numjobs, or 1 with group_reporting
    directions: tuple[Direction, ...]  # directions that must have done I/O
    runtime_s: float | None = None  # of a time-based job; None when it ends with its size


def problems_of(
    output: RunOutput | None,
    *,
    exit_status: int,
    stderr: str,
    expected: Sequence[Expected],
    interrupted: bool = False,
) -> tuple[str, ...]:
    """Return a sentence for each problem of a run; empty means success.

    Args:
        output: fio's result; None when it could not be read.
        exit_status: of the process; negative for the signal that killed it.
        interrupted: whether fio was stopped early on purpose; then short runs are accepted.
    """
    heard = stderr.splitlines()  # fio prints some messages to both of its outputs
    printed = [] if output is None else output.diagnostics.splitlines()
    messages = "\n".join([*heard, *(line for line in printed if line not in heard)])
    failures = [line.strip()[:300] for line in messages.splitlines() if _FAILURES.search(line)]
    problems = [
        *_of_status(exit_status, messages, interrupted=interrupted),
        *(f"fio reported: {line}" for line in _folded(failures, "lines")),
    ]
    if output is None:
        problems = problems or ["fio wrote no result: its disk may be full (df -h, df -i)."]
    else:
        jobs = _of_jobs(output.jobs, expected, interrupted=interrupted)
        problems += [f"{problem}." for problem in _folded(jobs, "entries")]
    return tuple(dict.fromkeys(problems))


def _folded(texts: Iterable[str], noun: str) -> list[str]:
    """Merge texts that differ only in numbers, with their count.

    Numbers of errors and of jobs are kept apart.
    """
    alike: dict[str, list[str]] = {}
    for text in texts:
        shape = _NUMBERS.sub(lambda match: match["kept"] or "#", text)
        alike.setdefault(shape, []).append(text)
    return [
        f"{first}, {1 + len(others)} such {noun}" if others else first
        for first, *others in alike.values()
    ]


def _of_status(exit_status: int, messages: str, *, interrupted: bool) -> Iterator[str]:
    if exit_status < 0:
        name = signal.strsignal(-exit_status) or "unknown"
        yield f"fio was killed by signal {-exit_status} ({name}){_quoted(messages)}."
    elif exit_status == INTERRUPTED_STATUS:
        if not interrupted:
            yield f"fio was interrupted (exit status 128){_quoted(messages)}."
    elif exit_status != 0:
        yield f"fio ended with exit status {exit_status}{_quoted(messages)}."


def _quoted(messages: str) -> str:
    """Return fio's messages about a failure, to be appended to a sentence."""
    lines = [line.strip()[:300] for line in messages.splitlines() if line.strip()]
    lines.sort(key=lambda line: not line.startswith("volbench: "))
    telling = _folded([line for line in lines if _MESSAGES.search(line)] or lines, "lines")
    return ": " + " / ".join(telling[:_QUOTED_LINES]) if telling else ""


def _of_jobs(
    jobs: Sequence[JobResult], expected: Sequence[Expected], *, interrupted: bool
) -> Iterator[str]:
    wanted = Counter[str]()
    for section in expected:
        wanted[section.name] += section.entries
    entries_by_job = Counter(job.name for job in jobs)
    for name, entries in wanted.items():
        if entries_by_job[name] < entries:
            yield f"Job {name}: fio reported {entries_by_job[name]} of {entries} entries"
    by_name = {section.name: section for section in expected}
    for job in jobs:
        yield from _of_errors(job)
        if job.name in by_name and not interrupted:
            yield from _of_work(job, by_name[job.name])


def _of_errors(job: JobResult) -> Iterator[str]:
    if job.damage:
        yield f"Job {job.name}: {job.damage}"
    if job.error:
        meaning = os.strerror(job.error) if 0 < job.error < _MAX_ERRNO else "unknown"
        yield f"Job {job.name}: error {job.error} ({meaning})"
    if job.total_errors:
        yield f"Job {job.name}: {job.total_errors} I/Os failed"


def _of_work(job: JobResult, section: Expected) -> Iterator[str]:
    """Yield the shortfalls of an entry; it may end early in a steady state."""
    for name in section.directions:
        without_names = () if name is Direction.SYNC else (Direction.MIXED, Direction.OTHER)
        if all(job.direction(each) is None for each in (name, *without_names)):
            yield f"Job {job.name}: no {name.value} completed"
    if (job.steadystate or {}).get("attained") == 1:
        return
    runtime_s = max((d.runtime_s for d in job.directions), default=0.0)
    if section.runtime_s and job.directions and runtime_s < MIN_RUNTIME_SHARE * section.runtime_s:
        yield f"Job {job.name}: it ran for {runtime_s:g} s of {section.runtime_s:g} s"


class ProgressReader:
    """Incremental parser of output that keeps unfinished lines; `total_s` is the expected time."""

    def __init__(self, *, total_s: float | None = None) -> None:
        self._total_s = total_s
        self._rest = ""
        self._state = "run"
        self._seen: set[str] = set()

    def feed(self, chunk: str, *, elapsed_s: float) -> Progress | None:
        """Return the progress in the last line that a chunk completes, or None without one.

        Args:
            elapsed_s: seconds since the start of the process, by the caller's clock.
        """
        *lines, rest = re.split(r"[\r\n]", self._rest + chunk)
        self._rest = rest[-_MAX_LINE:]
        newest: Progress | None = None
        for line in lines:
            match = _LINE.fullmatch(line.strip())
            if match is not None:
                newest = self._progress(match, elapsed_s)
        return newest

    def _progress(self, match: re.Match[str], elapsed_s: float) -> Progress:
        self._state = _state(match["states"]) or self._state
        bandwidth, iops = self._rates_by_letter(match, elapsed_s)
        return Progress(
            elapsed_s=elapsed_s,
            total_s=self._total_s,
            state=self._state,
            read_iops=iops.get("r"),
            write_iops=iops.get("w"),
            trim_iops=iops.get("t"),
            read_bw_bytes_per_s=bandwidth.get("r"),
            write_bw_bytes_per_s=bandwidth.get("w"),
            trim_bw_bytes_per_s=bandwidth.get("t"),
        )

    def _rates_by_letter(
        self, match: re.Match[str], elapsed_s: float
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return bandwidth and IOPS by letter; a direction seen earlier and now missing is 0."""
        bandwidth, iops = _amounts(match["bw"]), _amounts(match["iops"])
        self._seen |= iops.keys()
        stalled = match["states"] is not None and elapsed_s > _QUIET_START_S
        silent = self._seen or (set("rwt") if stalled and self._state == "run" else set[str]())
        nothing = dict.fromkeys(silent, 0.0)
        return nothing | bandwidth, nothing | iops


def _state(states: str | None) -> str | None:
    """Return the combined state of the state letters in fio's ``eta.c``; None without letters."""
    letters = set(re.findall(r"([A-Za-z/_])(?:\(\d+\))?", states or ""))
    if not letters:
        return None
    if letters & _RUNNING:
        return "run"
    if "/" in letters:
        return "ramp"
    return "layout" if letters & _STARTING else "run"


def _amounts(text: str | None) -> dict[str, float]:
    """Return numbers by letter from a text like ``r=9.77MiB/s,w=512KiB/s`` or ``r=2501,w=2k``."""
    amounts: dict[str, float] = {}
    for field in (text or "").split(","):
        letter, _, amount = field.partition("=")
        match = _AMOUNT.fullmatch(amount)
        if match is None:
            continue
        number, prefix, binary, unit = match.groups()
        base = 1024 if binary else 1000
        bits = unit in {"b", "bit"}
        amounts[letter] = float(number) * base ** _POWERS[prefix.lower()] / (8 if bits else 1)
    return amounts
