"""Assembly of imported runs: plan, files and end state from a draft."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from volbench.fio.results.merge_jobs import plain_name
from volbench.fio.results.validation import problems_of
from volbench.importer.log_matching import interval_s
from volbench.importer.run_drafts import Draft, unreported_flags, volume_of
from volbench.importer.scan_folders import LogFile
from volbench.model.campaign.planned_run import (
    Imported,
    ImportedJob,
    Run,
    RunState,
    Section,
    SourceFile,
)
from volbench.model.results.result import JobResult, RunOutput

PROFILE = "imported"
_STOPPED = re.compile(r"terminating on signal \d+")


@dataclass(frozen=True)
class AssembledRun:
    """Imported run with its files and end state."""

    run: Run  # the plan
    # path of each imported file, with its name in the run's folder, and the content that takes its
    # place where it has secrets
    copies: tuple[tuple[Path, str, bytes | None], ...]
    state: RunState  # finished, failed or interrupted
    reason: str  # why; empty when finished
    started_utc: str | None  # ISO 8601; None where it is not reported
    ended_utc: str | None  # as `started_utc`


def assemble_run(draft: Draft, *, number: int, digests: Mapping[Path, str]) -> AssembledRun:
    """Return the run of a draft, with its files and end state.

    Args:
        number: position in the campaign, from 1.
        digests: SHA-256 of each log.
    """
    sections = _section_names(draft)
    by_name = {sections[key]: draft.reported[key] for key in sections}
    first = 1 + draft.part.jobs_before
    last = first + sum(count for _, count in draft.sections)
    logs = [log for log in draft.process.logs if first <= (log.job_number or 1) < last]
    name, source = _result_name(draft), draft.file.source
    copies: list[tuple[Path, str, bytes | None]] = [
        *([] if draft.read_as else [(source.path, name, draft.file.masked)]),
        *((_path(log), log.name, None) for log in logs),
    ]
    result = SourceFile(name=name, source=source.shown, sha256=draft.file.digest)
    files = [] if draft.read_as else [result]
    files += [
        SourceFile(name=log.name, source=log.source.shown, sha256=digests[_path(log)])
        for log in logs
    ]
    imported = Imported(
        files=tuple(files),
        document=draft.document,
        hostname=draft.part.hostname,
        port=draft.part.port,
        jobs=tuple(
            ImportedJob(
                name=plain_name(job),
                groupid=job.groupid,
                section=sections[job.name, job.groupid],
                numjobs=count,
            )
            for job, count in draft.sections
        ),
        first_job_number=first,
        incomplete_sections=tuple(
            name for name, section in by_name.items() if not section.is_whole
        ),
        unreported_flags=unreported_flags(draft.output),
        read_as=draft.read_as,
        folder=draft.naming.folder,
        labels=dict(draft.naming.labels),
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
        note="; ".join(dict.fromkeys(section.note for section in by_name.values() if section.note)),
        sample_s=interval_s(draft.process) if logs else 0.0,
        device_sample_s=0.0,
        client=naming.client,
        step=draft.step,
        imported=imported,
    )
    state, reason = _end_state(draft)
    return AssembledRun(
        run, tuple(copies), state, reason, _utc(draft.started_utc_s), _utc(draft.output.ended_utc_s)
    )


def _path(log: LogFile) -> Path:
    return log.source.path


def _result_name(draft: Draft) -> str:
    """Return the result's name in the run's folder, with the ending of its compression."""
    if draft.file.masked is not None:
        return "fio.json"
    endings = [suffix for suffix in (".gz", ".xz", ".zst", ".bz2") if _ends(draft, suffix)]
    return f"fio.json{''.join(endings)}"


def _ends(draft: Draft, suffix: str) -> bool:
    return draft.file.source.inside.name.endswith(suffix)


def _section_names(draft: Draft) -> dict[tuple[str, int], str]:
    """Return a name for each section: that of the run if there is only one, else fio's jobname."""
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
    options = dict(draft.reported[key].options)
    if count > 1:
        options.setdefault("numjobs", str(count))
    return Section(name=names[key], options=options)


def _end_state(draft: Draft) -> tuple[RunState, str]:
    """Return the end state of a run and the reason, as far as its result reports them."""
    if draft.read_as:
        # Logs do not show how fio ended.
        return RunState.FINISHED, ""
    diagnostics = draft.output.diagnostics
    if stopped := _STOPPED.search(diagnostics):
        return RunState.INTERRUPTED, f"fio: {stopped.group()}"
    own = RunOutput(draft.output.tool_version, draft.part.jobs, diagnostics=diagnostics)
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
