"""Results and logs in; the Runs of a campaign, with the files of each, out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from volbench.engine.intake.labels import HOST, JOB, REPEAT, RESERVED, LabelPattern
from volbench.engine.intake.logs import Claim, interval_s, prefixes_of
from volbench.engine.intake.names import Naming, choose_hosts, choose_jobs, split_repeat
from volbench.engine.intake.scan import LogFile, ResultFile
from volbench.engine.intake.told import Told, told_of, unsaid_by, volume_of
from volbench.fio.foreign import started_utc_s
from volbench.fio.parts import Part, plain_name, sections_of, split_result
from volbench.fio.success import problems_of
from volbench.model.fleet import Host
from volbench.model.result import JobResult, RunOutput
from volbench.model.run import Imported, ImportedJob, Run, RunState, Section, SourceFile

PROFILE = "imported"
_LOG_OPTIONS = re.compile(r"write_.*_log|log_.*|per_job_logs")
_STOPPED = re.compile(r"terminating on signal \d+")


@dataclass
class Draft:
    """A Run on its way.

    Attributes:
        file: that holds its result.
        document: which of the results in it.
        output: that result.
        part: which entries of it.
        told: section to what is known of it; the key is fio's name and group.
        claim: the process that wrote its logs.
        labels: of its host.
        naming: what it may be called.
        step: it shares with other clients; 0 for none.
    """

    file: ResultFile
    document: int
    output: RunOutput
    part: Part
    told: Mapping[tuple[str, int], Told]
    claim: Claim
    labels: Mapping[str, str] = field(default_factory=dict)
    naming: Naming = field(
        default_factory=lambda: Naming("", 0, (), "", among_others=False, settings=None)
    )
    step: int = 0

    @property
    def sections(self) -> list[tuple[JobResult, int]]:
        """Its sections, the first entry of each with how many clones it has."""
        return sections_of(self.part.jobs)

    @property
    def started_utc_s(self) -> float | None:
        """When its I/O began, or else when fio was started; None where that is not told."""
        starts = [job.start_utc_s for job in self.part.jobs if job.start_utc_s]
        return min(starts) if starts else started_utc_s(self.output)


@dataclass(frozen=True)
class Ready:
    """A Run with its files and how it ended.

    Attributes:
        run: the plan.
        copies: path of each file that was imported, with its name in the Run's folder.
        state: finished, failed or interrupted.
        reason: why; empty when finished.
        started_utc: ISO 8601; None where it is not told.
        ended_utc: as `started_utc`.
    """

    run: Run
    copies: tuple[tuple[Path, str], ...]
    state: RunState
    reason: str
    started_utc: str | None
    ended_utc: str | None


def draft_runs(files: Sequence[ResultFile]) -> list[Draft]:
    """Return a draft for each part of each result, with the process that may have written logs."""
    drafts: list[Draft] = []
    step = 0
    for file in files:
        for document, output in enumerate(file.results):
            parts = split_result(output)
            clients = {(part.hostname, part.port) for part in parts}
            claims: dict[tuple[str, int | None], Claim] = {}
            for part in parts:
                own = (part.hostname, part.port)
                told = {(job.name, job.groupid): told_of(output, job) for job in part.jobs}
                if own not in claims:
                    claims[own] = _claim(file, output, parts, part, next(iter(told.values())))
                draft = Draft(file, document, output, part, told, claims[own])
                if len(clients) > 1:
                    draft.step = step + 1 + part.place
                drafts.append(draft)
            if len(clients) > 1:
                step += 1 + max(part.place for part in parts)
    return drafts


def _claim(
    file: ResultFile, output: RunOutput, parts: Sequence[Part], part: Part, told: Told
) -> Claim:
    own = [one for one in parts if (one.hostname, one.port) == (part.hostname, part.port)]
    jobs = [job for one in own for job in one.jobs]
    prefixes = [
        prefixes_of({**output.global_options, **job.options}, jobname=plain_name(job))
        for job in jobs
    ]
    return Claim(
        source=file.source,
        hostname=part.hostname,
        prefixes=frozenset().union(*prefixes),
        ranges=_ranges(own),
        ended_utc_s=output.ended_utc_s,
        runtime_s=max((one.runtime_s for job in jobs for one in job.directions), default=0.0),
        fio_version=output.tool_version,
        is_told=any(told_of(output, job).is_whole for job in jobs),
        options=told.options,
    )


def _ranges(parts: Sequence[Part]) -> tuple[tuple[int, int], ...]:
    """Return the number of the first log of each section of a process, and how many it has."""
    ranges, first = [], 1
    for part in parts:
        for _, count in sections_of(part.jobs):
            ranges.append((first, count))
            first += count
    return tuple(ranges)


def name_runs(
    drafts: Sequence[Draft],
    *,
    pattern: LabelPattern | None,
    labels: Mapping[str, str],
    host: str,
) -> list[Draft]:
    """Give each draft its labels, host, job and repeat.

    Args:
        drafts: all of them.
        pattern: of labels in paths; None for none.
        labels: of all hosts.
        host: name of the host where neither result nor path tells one.

    Returns:
        The drafts whose path the pattern does not fit.
    """
    unfitting, wanted, paths = [], [], []
    for draft in drafts:
        source = draft.file.source
        read = pattern.read(source.inside, stem=source.stem) if pattern else {}
        if read is None:
            unfitting.append(draft)
        path = (source.root, *source.inside.parts[:-1], source.stem)
        if pattern and read is not None:
            path = pattern.rest(source.inside, stem=source.stem)
        read = read or {}
        draft.labels = {**labels, **{k: v for k, v in read.items() if k not in RESERVED}}
        wanted.append((draft.part.hostname or read.get(HOST, "") or host, draft.labels))
        paths.append((path, read))
    clients = _clients(drafts)
    for draft, name, (path, read) in zip(drafts, choose_hosts(wanted), paths, strict=True):
        short, number = split_repeat(path)
        draft.naming = Naming(
            host=name,
            client=clients[id(draft)],
            path=short,
            jobname=read.get(JOB) or _jobname(draft),
            among_others=_has_siblings(draft),
            settings=_settings(draft),
            repeat=_number(read.get(REPEAT, "")) if REPEAT in read else number,
        )
    choose_jobs([draft.naming for draft in drafts])
    return unfitting


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
                for name, value in draft.told[job.name, job.groupid].options.items()
                if not _LOG_OPTIONS.fullmatch(name)
            },
        )
        for job, _ in draft.sections
    ]


def order_runs(drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts in the order in which they ran, or by their paths where that is not told."""
    by_path = sorted(drafts, key=lambda draft: _natural(draft.file.source.shown))
    starts = [draft.started_utc_s for draft in by_path]
    if any(start is None for start in starts):
        return by_path
    return sorted(by_path, key=lambda draft: (draft.started_utc_s or 0.0, draft.part.place))


def _natural(text: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def hosts_of(drafts: Sequence[Draft]) -> tuple[Host, ...]:
    """Return the hosts of a campaign with their labels, in the order of its Runs."""
    found = {draft.naming.host: draft.labels for draft in drafts}
    return tuple(Host(name=name, labels=dict(labels)) for name, labels in found.items())


def finish_run(draft: Draft, *, number: int, digests: Mapping[Path, str]) -> Ready:
    """Return a draft as a Run with its files.

    Args:
        draft: named, with its logs shared out.
        number: its place in the campaign, from 1.
        digests: SHA-256 of each log.
    """
    sections = _section_names(draft)
    by_name = {sections[key]: draft.told[key] for key in sections}
    first = 1 + draft.part.clones_before
    last = first + sum(count for _, count in draft.sections)
    logs = [log for log in draft.claim.logs if first <= (log.clone or 1) < last]
    copies = [
        (draft.file.source.path, _result_name(draft)),
        *((_path(log), log.name) for log in logs),
    ]
    imported = Imported(
        files=(
            SourceFile(
                name=_result_name(draft), source=draft.file.source.shown, sha256=draft.file.digest
            ),
            *(
                SourceFile(name=log.name, source=log.source.shown, sha256=digests[_path(log)])
                for log in logs
            ),
        ),
        document=draft.document,
        hostname=draft.part.hostname,
        port=draft.part.port,
        jobs=tuple(
            ImportedJob(
                name=plain_name(job),
                groupid=job.groupid,
                section=sections[job.name, job.groupid],
                clones=count,
            )
            for job, count in draft.sections
        ),
        first_clone=first,
        untold=tuple(name for name, told in by_name.items() if not told.is_whole),
        unsaid=unsaid_by(draft.output),
    )
    naming = draft.naming
    run = Run(
        id=f"{number:04}-{naming.job}-r{naming.repeat}",
        profile=PROFILE,
        job=naming.job,
        volume=volume_of(by_name),
        repeat=naming.repeat or 1,
        host=naming.host,
        sections=tuple(_section(draft, job, count, sections) for job, count in draft.sections),
        note="; ".join(dict.fromkeys(told.note for told in by_name.values() if told.note)),
        sample_s=interval_s(draft.claim) if logs else 0.0,
        device_sample_s=0.0,
        client=naming.client,
        step=draft.step,
        imported=imported,
    )
    state, reason = _judged(draft)
    return Ready(
        run, tuple(copies), state, reason, _utc(draft.started_utc_s), _utc(draft.output.ended_utc_s)
    )


def _path(log: LogFile) -> Path:
    return log.source.path


def _result_name(draft: Draft) -> str:
    """Return what a result is called in the folder of its Run: its compression stays visible."""
    endings = [suffix for suffix in (".gz", ".xz", ".zst", ".bz2") if _ends(draft, suffix)]
    return f"fio.json{''.join(endings)}"


def _ends(draft: Draft, suffix: str) -> bool:
    return draft.file.source.inside.name.endswith(suffix)


def _section_names(draft: Draft) -> dict[tuple[str, int], str]:
    """Return what each section is called: as its Run where there is one, else as fio's job."""
    jobs = [job for job, _ in draft.sections]
    if len(jobs) == 1:
        return {(jobs[0].name, jobs[0].groupid): draft.naming.job}
    taken = Counter(plain_name(job) for job in jobs)
    return {
        (job.name, job.groupid): plain_name(job)
        + (f"-g{job.groupid}" if taken[plain_name(job)] > 1 else "")
        for job in jobs
    }


def _section(
    draft: Draft, job: JobResult, count: int, names: Mapping[tuple[str, int], str]
) -> Section:
    key = job.name, job.groupid
    options = dict(draft.told[key].options)
    if count > 1:
        options.setdefault("numjobs", str(count))
    return Section(name=names[key], options=options)


def _judged(draft: Draft) -> tuple[RunState, str]:
    """Return how a Run ended, as far as its result tells."""
    said = draft.output.diagnostics
    if stopped := _STOPPED.search(said):
        return RunState.INTERRUPTED, f"fio: {stopped.group()}"
    own = RunOutput(draft.output.tool_version, draft.part.jobs, diagnostics=said)
    problems = list(problems_of(own, exit_status=0, stderr="", expected=()))
    if not any(job.directions for job in draft.part.jobs):
        problems.append("No I/O was done.")
    return (RunState.FAILED, " ".join(problems)) if problems else (RunState.FINISHED, "")


def _utc(seconds: float | None) -> str | None:
    if not seconds:
        return None
    try:
        text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None
    return text.replace("+00:00", "Z")
