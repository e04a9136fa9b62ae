"""Drafts of imported runs: one for each part of a result, with the process that wrote its logs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from volbench.fio.results.embedded_results import started_utc_s
from volbench.fio.results.merge_jobs import Part, plain_name, sections_of, split_result
from volbench.importer.log_matching import FioProcess, prefixes_of
from volbench.importer.reported_options import ReportedOptions, reported_options
from volbench.importer.run_names import Naming
from volbench.importer.scan_folders import ResultFile
from volbench.model.campaign.host import Host
from volbench.model.results.result import JobResult, RunOutput


@dataclass
class Draft:
    """Run under construction."""

    file: ResultFile  # with its result
    document: int  # number of the result in the file, from 0
    output: RunOutput  # that result
    part: Part  # its entries in the result
    # options by section; the key is fio's name and group
    reported: Mapping[tuple[str, int], ReportedOptions]
    process: FioProcess  # the process that wrote its logs
    labels: Mapping[str, str] = field(default_factory=dict)  # of its result
    # candidates for its name
    naming: Naming = field(
        default_factory=lambda: Naming("", 0, (), "", among_others=False, settings=None)
    )
    step: int = 0  # number of the step that it shares with other clients; 0 for none
    read_as: str = ""  # version of fio assumed for logs without a result; empty otherwise

    @property
    def sections(self) -> list[tuple[JobResult, int]]:
        """First entry of each section, with the number of its jobs."""
        return sections_of(self.part.jobs)

    @property
    def started_utc_s(self) -> float | None:
        """Start of its I/O, or else of fio; None if neither is reported."""
        starts = [job.start_utc_s for job in self.part.jobs if job.start_utc_s]
        return min(starts) if starts else started_utc_s(self.output)


def draft_runs(files: Sequence[ResultFile]) -> list[Draft]:
    """Return a draft for each part of each result, with the process that may have written logs."""
    drafts: list[Draft] = []
    step = 0
    for file in files:
        for document, output in enumerate(file.results):
            parts = split_result(output)
            clients = {(part.hostname, part.port) for part in parts}
            processes: dict[tuple[str, int | None], FioProcess] = {}
            for part in parts:
                own = (part.hostname, part.port)
                reported = {
                    (job.name, job.groupid): reported_options(output, job) for job in part.jobs
                }
                if own not in processes:
                    processes[own] = _claim(
                        file, output, parts, part, next(iter(reported.values()))
                    )
                draft = Draft(file, document, output, part, reported, processes[own])
                if len(clients) > 1:
                    draft.step = step + 1 + part.place
                drafts.append(draft)
            if len(clients) > 1:
                step += 1 + max(part.place for part in parts)
    return drafts


def _claim(
    file: ResultFile,
    output: RunOutput,
    parts: Sequence[Part],
    part: Part,
    reported: ReportedOptions,
) -> FioProcess:
    own = [other for other in parts if (other.hostname, other.port) == (part.hostname, part.port)]
    jobs = [job for other in own for job in other.jobs]
    prefixes = [
        prefixes_of({**output.shared_options(job), **job.options}, jobname=plain_name(job))
        for job in jobs
    ]
    return FioProcess(
        source=file.source,
        hostname=part.hostname,
        prefixes=frozenset().union(*prefixes),
        ranges=_ranges(own),
        ended_utc_s=output.ended_utc_s,
        runtime_s=max((done.runtime_s for job in jobs for done in job.directions), default=0.0),
        fio_version=output.tool_version,
        has_options=any(reported_options(output, job).is_whole for job in jobs),
        options=reported.options,
    )


def _ranges(parts: Sequence[Part]) -> tuple[tuple[int, int], ...]:
    """Return the number of the first log of each section of a process, and their count."""
    ranges, first = [], 1
    for part in parts:
        for _, count in sections_of(part.jobs):
            ranges.append((first, count))
            first += count
    return tuple(ranges)


def order_runs(drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts in the order in which they ran, or by path if that is not reported."""
    by_path = sorted(drafts, key=lambda draft: _natural(draft.file.source.shown))
    starts = [draft.started_utc_s for draft in by_path]
    if any(start is None for start in starts):
        return by_path
    return sorted(by_path, key=lambda draft: (draft.started_utc_s or 0.0, draft.part.place))


def _natural(text: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def campaign_hosts(drafts: Sequence[Draft]) -> tuple[Host, ...]:
    """Return the hosts of a campaign in the order of its runs, with labels of all their results."""
    found: dict[str, dict[str, str]] = {}
    for draft in drafts:
        labels = found.setdefault(draft.naming.host, dict(draft.labels))
        found[draft.naming.host] = dict(labels.items() & draft.labels.items())
    first = {draft.naming.host: draft.labels for draft in reversed(drafts)}
    return tuple(
        Host(name=name, labels={key: value for key, value in first[name].items() if key in labels})
        for name, labels in found.items()
    )
