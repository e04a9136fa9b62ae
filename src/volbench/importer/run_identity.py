"""Labels, host, job and repeat of each draft, from its result and path."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from volbench.fio.results.merge_jobs import plain_name, split_result
from volbench.importer.folder_labels import HOST, JOB, REPEAT, RESERVED, LabelPattern
from volbench.importer.run_drafts import Draft
from volbench.importer.run_names import Naming, assign_host_names, assign_job_names, split_repeat

_LOG_OPTIONS = re.compile(r"write_.*_log|log_.*|per_job_logs")


def name_runs(
    drafts: Sequence[Draft],
    *,
    pattern: LabelPattern | None,
    labels: Mapping[str, str],
    host: str,
) -> list[Draft]:
    """Set the labels, host, job and repeat of each draft.

    Args:
        pattern: of labels in paths; None for none.

    Returns:
        The drafts whose path does not match the pattern.
    """
    pattern_mismatch, hosts, paths = [], [], []
    for draft in drafts:
        source = draft.file.source
        read = pattern.read(source.inside, stem=source.stem) if pattern else {}
        if read is None:
            pattern_mismatch.append(draft)
        path = (source.root, *source.inside.parts[:-1], source.stem)
        if pattern and read is not None:
            kept = (value for name, value in read.items() if name not in RESERVED)
            path = (*kept, *pattern.rest(source.inside, stem=source.stem))
        read = read or {}
        draft.labels = {**labels, **{k: v for k, v in read.items() if k not in RESERVED}}
        hosts.append(draft.part.hostname or read.get(HOST, "") or host)
        paths.append((path, read))
    clients = _clients(drafts)
    names = assign_host_names(hosts)
    differing = _differing_labels(drafts, names)
    for draft, name, (path, read) in zip(drafts, names, paths, strict=True):
        short, number = split_repeat(path)
        draft.naming = Naming(
            host=name,
            client=clients[id(draft)],
            path=short,
            jobname=read.get(JOB) or _jobname(draft),
            among_others=_has_siblings(draft),
            settings=(draft.labels, _settings(draft)),
            labels={own: draft.labels[own] for own in differing[name] if own in draft.labels},
            folder="/".join(split_repeat(path[:-1])[0]),
            repeat=_number(read.get(REPEAT, "")) if REPEAT in read else number,
        )
    assign_job_names([draft.naming for draft in drafts])
    return pattern_mismatch


def _differing_labels(
    drafts: Sequence[Draft], hosts: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return for each host the labels in which its results differ."""
    found: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for draft, host in zip(drafts, hosts, strict=True):
        found[host].append(draft.labels)
    return {
        host: tuple(
            name
            for name in dict.fromkeys(name for labels in own for name in labels)
            if len({labels.get(name) for labels in own}) > 1
        )
        for host, own in found.items()
    }


def _clients(drafts: Sequence[Draft]) -> dict[int, int]:
    """Return the number of each draft's client among those of the same name in its result."""
    ports: dict[tuple[str, int, str], list[int | None]] = defaultdict(list)
    for draft in drafts:
        key = draft.file.source.shown, draft.document, draft.part.hostname
        if draft.part.port not in ports[key]:
            ports[key].append(draft.part.port)
    found = {}
    for draft in drafts:
        mine = ports[draft.file.source.shown, draft.document, draft.part.hostname]
        found[id(draft)] = mine.index(draft.part.port) + 1 if len(mine) > 1 else 0
    return found


def _jobname(draft: Draft) -> str:
    return "_".join(dict.fromkeys(plain_name(job) for job, _ in draft.sections)) or "job"


def _has_siblings(draft: Draft) -> bool:
    own = (draft.part.hostname, draft.part.port)
    parts = [part for part in split_result(draft.output) if (part.hostname, part.port) == own]
    return len(parts) > 1


def _number(text: str) -> int | None:
    digits = re.search(r"\d+", text)
    return int(digits.group()) if digits else None


def _settings(draft: Draft) -> object:
    """Return what makes results comparable as repeats: jobs, and all options but those of logs."""
    return [
        (
            plain_name(job),
            tuple(direction.direction for direction in job.directions),
            {
                name: value
                for name, value in draft.reported[job.name, job.groupid].options.items()
                if not _LOG_OPTIONS.fullmatch(name)
            },
        )
        for job, _ in draft.sections
    ]
