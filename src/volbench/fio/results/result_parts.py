"""Which entries of a result belong together: a result goes in, its parts come out.

Groups that a stonewall keeps apart ran one after another and are never added up; each client of
``fio --client`` is a part of its own. fio's sums over all clients are not among the entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from volbench.errors import OutputError
from volbench.model.campaign.planned_run import Imported
from volbench.model.results.result import JobResult, RunOutput


@dataclass(frozen=True)
class Part:
    """Entries that ran at the same time in one process.

    Attributes:
        hostname: of the client; empty without one.
        port: of the client.
        place: how many parts of the same client came before it.
        jobs: its entries, in fio's order.
        clones_before: logs that earlier parts of the same process have, by their numbers.
    """

    hostname: str
    port: int | None
    place: int
    jobs: tuple[JobResult, ...]
    clones_before: int = 0


def split_result(output: RunOutput) -> tuple[Part, ...]:
    """Return the parts of a result: client by client, and in the order in which they ran."""
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
    """Return entries that ran together; a new group is a stonewall unless it says otherwise."""
    turns: list[list[JobResult]] = []
    for job in sorted(jobs, key=lambda job: job.groupid):
        is_new = not turns or turns[-1][-1].groupid != job.groupid
        if is_new and not (turns and _runs_beside(job)):
            turns.append([])
        turns[-1].append(job)
    return turns


def _runs_beside(job: JobResult) -> bool:
    """Tell whether a group began without waiting for those before it."""
    return "new_group" in job.options and not {"stonewall", "wait_for_previous"} & {*job.options}


def sections_of(jobs: Sequence[JobResult]) -> list[tuple[JobResult, int]]:
    """Return the first entry of each section with how many clones it has."""
    found: dict[tuple[str, int], list[JobResult]] = {}
    for job in jobs:
        found.setdefault((job.name, job.groupid), []).append(job)
    return [(entries[0], _clones(entries)) for entries in found.values()]


def _clones(entries: Sequence[JobResult]) -> int:
    told = entries[0].options.get("numjobs", "")
    return max(len(entries), int(told) if told.isdecimal() else 1)


def select_part(output: RunOutput, imported: Imported) -> RunOutput:
    """Return a result with the entries of one Run alone, named as its sections.

    Raises:
        OutputError: an entry is missing.
    """
    wanted = {(job.name, job.groupid): job.section for job in imported.jobs}
    found = tuple(
        replace(job, name=wanted[plain_name(job), job.groupid])
        for job in output.jobs
        if (plain_name(job), job.groupid) in wanted
        and (job.hostname, job.port) == (imported.hostname, imported.port)
    )
    if {job.name for job in found} != {*wanted.values()}:
        raise OutputError("the result lacks a job of this Run", hint="import it anew")
    return replace(output, jobs=found)


def plain_name(job: JobResult) -> str:
    """Return fio's own jobname, without the client that is put before it."""
    return job.name.removeprefix(f"{job.hostname}:") if job.hostname else job.name
