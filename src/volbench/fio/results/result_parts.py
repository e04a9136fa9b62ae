"""Parts of a result: entries that ran at the same time in the same process.

Groups separated by a stonewall ran one after another and are never aggregated; each client of
``fio --client`` is a separate part. fio's sums over all clients are not among the entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from volbench.errors import OutputError
from volbench.model.campaign.planned_run import Imported
from volbench.model.results.result import JobResult, RunOutput


@dataclass(frozen=True)
class Part:
    """Entries that ran at the same time in one process."""

    hostname: str  # of the client; empty without one
    port: int | None  # of the client
    place: int  # number of earlier parts of the same client
    jobs: tuple[JobResult, ...]  # its entries, in fio's order
    # number of jobs, and so of log numbers, in earlier parts of the same process
    jobs_before: int = 0


def split_result(output: RunOutput) -> tuple[Part, ...]:
    """Return the parts of a result by client, in the order in which they ran."""
    clients: dict[tuple[str, int | None], list[JobResult]] = {}
    for job in output.jobs:
        clients.setdefault((job.hostname, job.port), []).append(job)
    parts: list[Part] = []
    for (hostname, port), jobs in sorted(clients.items(), key=_by_client):
        before = 0
        for place, together in enumerate(_in_turn(jobs)):
            parts.append(Part(hostname, port, place, tuple(together), before))
            before += sum(count for _, count in sections_of(together))
    return tuple(parts)


def _by_client(
    item: tuple[tuple[str, int | None], list[JobResult]],
) -> tuple[str, int]:
    (hostname, port), _ = item
    return hostname, port or 0


def _in_turn(jobs: Sequence[JobResult]) -> list[list[JobResult]]:
    """Return entries that ran together; a new group means a stonewall unless it has new_group."""
    turns: list[list[JobResult]] = []
    for job in sorted(jobs, key=lambda job: job.groupid):
        is_new = not turns or turns[-1][-1].groupid != job.groupid
        if is_new and not (turns and _runs_beside(job)):
            turns.append([])
        turns[-1].append(job)
    return turns


def _runs_beside(job: JobResult) -> bool:
    """Return whether a group started without waiting for earlier ones."""
    return "new_group" in job.options and not {"stonewall", "wait_for_previous"} & {*job.options}


def sections_of(jobs: Sequence[JobResult]) -> list[tuple[JobResult, int]]:
    """Return the first entry of each section with its number of jobs."""
    found: dict[tuple[str, int], list[JobResult]] = {}
    for job in jobs:
        found.setdefault((job.name, job.groupid), []).append(job)
    return [(entries[0], _numjobs(entries)) for entries in found.values()]


def _numjobs(entries: Sequence[JobResult]) -> int:
    text = entries[0].options.get("numjobs", "")
    return max(len(entries), int(text) if text.isdecimal() else 1)


def select_part(output: RunOutput, imported: Imported) -> RunOutput:
    """Return a result with only the entries of one run, named after its sections."""
    wanted = {(job.name, job.groupid): job.section for job in imported.jobs}
    found = tuple(
        replace(job, name=wanted[plain_name(job), job.groupid])
        for job in output.jobs
        if (plain_name(job), job.groupid) in wanted
        and (job.hostname, job.port) == (imported.hostname, imported.port)
    )
    if {job.name for job in found} != {*wanted.values()}:
        raise OutputError("the result lacks a job of this run", hint="import it again")
    return replace(output, jobs=found)


def plain_name(job: JobResult) -> str:
    """Return fio's jobname, without the client's name in front."""
    return job.name.removeprefix(f"{job.hostname}:") if job.hostname else job.name
