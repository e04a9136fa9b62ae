"""Import of fio results from any source into a new campaign folder."""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from volbench import __version__
from volbench.api.many_campaigns import Dataset, open_campaign, store_tables
from volbench.errors import ArchiveError, InputError, OutputError, Problem, RefusedError, unwritten
from volbench.extensions.importer.log_matching import assign_logs, interval_s
from volbench.extensions.importer.orphan_logs import draft_orphan_logs
from volbench.extensions.importer.overlaps import mark_overlaps
from volbench.extensions.importer.run_drafts import (
    Draft,
    campaign_hosts,
    draft_runs,
    name_runs,
    order_runs,
    unreported_flags,
    volume_of,
)
from volbench.extensions.importer.run_names import parse_labels, parse_pattern, renamed_jobs
from volbench.extensions.importer.scan_folders import ResultFile, ScanResult, scan
from volbench.fio.results.merge_jobs import plain_name
from volbench.fio.results.validation import problems_of
from volbench.ingest.run_files import STATUS_FORMAT
from volbench.model.campaign.planned_run import (
    Campaign,
    Imported,
    ImportedJob,
    Run,
    RunState,
    Section,
    SourceFile,
)
from volbench.model.campaign.run_secrets import conceal
from volbench.model.profile.secret_values import mask_text
from volbench.model.results.result import JobResult, RunOutput
from volbench.store.archive import (
    Archive,
    Provenance,
    create_campaign,
    fresh_run_folder,
    hold_campaign,
    refuse_used,
)
from volbench.store.atomic_files import sync_folder, unwritable, write_atomic
from volbench.store.held_folder import has_mount, make_private_folder, refuse_foreign
from volbench.store.journal import Journal, utc_now
from volbench.store.layout import Layout
from volbench.store.worker_processes import NOBODY, Tell
from volbench.units import counted_noun

PROFILE = "imported"
_STOPPED = re.compile(r"terminating on signal \d+")
_LOG = logging.getLogger(__name__)
_MAX_LISTED = 20
_SYNCED_AT_A_TIME = 16
_FROM_TEXT = "fio's {} output: values are rounded; most options and histograms are missing"
_LOGS_ALONE = "imported as a series without totals and options: logs without a result"
_OTHER_IOS = "volbench does not know {} of this fio: their I/Os are of the direction other"
_OPTIONS_NOT_REPORTED = "the result does not report the options of its jobs"


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
        *((log.source.path, log.name, None) for log in logs),
    ]
    result = SourceFile(name=name, source=source.shown, sha256=draft.file.digest)
    files = [
        *([] if draft.read_as else [result]),
        *(
            SourceFile(name=log.name, source=log.source.shown, sha256=digests[log.source.path])
            for log in logs
        ),
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
                is_merged=draft.reported[job.name, job.groupid].is_merged,
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
        beside=draft.beside,
    )
    naming = draft.naming
    notes = [section.note for section in by_name.values()]
    notes += [
        f"{ios:,} I/Os under {name!r}"
        for name, ios in sum((Counter(job.other_ios) for job in draft.part.jobs), Counter()).items()
    ]
    if draft.beside:
        notes.append(f"at the same time as {counted_noun(draft.beside, 'other result')}")
    if draft.output.form != "json":
        notes.append(f"from fio's {draft.output.form} output")
    run = Run(
        id=f"{number:04}-{naming.job}-r{naming.repeat}",
        profile=naming.variant or PROFILE,
        job=naming.job,
        volume=volume_of(by_name),
        repeat=1 if naming.repeat is None else naming.repeat,
        host=naming.host,
        sections=tuple(_section(draft, job, count, sections) for job, count in draft.sections),
        note="; ".join(dict.fromkeys(filter(None, notes))),
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


def _result_name(draft: Draft) -> str:
    """Return the result's name in the run's folder, with the ending of its compression."""
    name = "fio.json" if draft.output.form == "json" else "fio.txt"
    if draft.file.masked is not None:
        return name
    ending = draft.file.source.inside.suffix
    return name + (ending if ending in {".gz", ".xz", ".zst", ".bz2"} else "")


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
    if draft.read_as:  # logs do not show how fio ended
        return RunState.FINISHED, ""
    diagnostics = draft.output.diagnostics
    if stopped := _STOPPED.search(diagnostics):
        return RunState.INTERRUPTED, f"fio: {stopped.group()}"
    output = RunOutput(draft.output.tool_version, draft.part.jobs, diagnostics=diagnostics)
    problems = list(problems_of(output, exit_status=0, stderr="", expected=()))
    if not any(job.directions or job.damage for job in draft.part.jobs):
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


@dataclass(frozen=True)
class ImportRequest:
    """Request to import results."""

    paths: tuple[Path, ...]  # files and folders to search
    into: Path  # the new campaign folder
    name: str = ""  # of the campaign; empty for the name of the folder
    labels: Mapping[str, str] = field(default_factory=dict)  # of all hosts
    patterns: tuple[str, ...] = ()  # of labels in paths; the first that matches a path applies
    host: str = ""  # name of the host of results that name none
    fio_version: str = ""  # that wrote logs without a result; empty if unknown
    strict: bool = False  # import nothing when a file is malformed
    command: tuple[str, ...] = ()  # the command line, for the record
    tell: Tell = NOBODY  # is called with the progress


@dataclass(frozen=True)
class ImportReport:
    """Outcome of an import."""

    into: Path  # the campaign folder
    folder: Path  # that will become it
    runs: tuple[AssembledRun, ...]  # every run with its state
    files: int  # number of files with results
    logs: int  # number of imported logs
    malformed: tuple[Problem, ...]  # files that were expected to contain a result and do not
    remarks: tuple[Problem, ...]  # what was omitted or needs care
    others: int  # number of other files


def import_results(
    *paths: str | os.PathLike[str],
    output: str | os.PathLike[str],
    labels: str | Sequence[str] = (),
    label: Mapping[str, str] = MappingProxyType({}),
    on_note: Callable[[str], None] = _LOG.warning,
    **options: Any,  # noqa: ANN401 - fields of `ImportRequest`
) -> Dataset:
    """Import fio results as ``volbench import`` does.

    Args:
        paths: files and folders with results.
        output: the new campaign folder.
        labels: one or several patterns, such as ``"{provider}/{host}"``; the first that matches a
            path applies.
        label: labels of all hosts.
        on_note: is called with each file that is not imported, and each thing to know.
        options: name, host, fio_version and strict, as of `ImportRequest`.

    Raises:
        InputError: a path, a pattern or a version is wrong.
        OutputError: there is no result, or a malformed one and `strict`.
        ArchiveError: the output folder is in use or cannot be written.
    """
    request = ImportRequest(
        paths=tuple(map(Path, paths)),
        into=Path(output),
        labels=parse_labels(tuple(f"{key}={value}" for key, value in label.items())),
        patterns=(labels,) if isinstance(labels, str) else tuple(labels),
        **options,
    )
    with staged_import(request) as report:
        for problem in (*report.malformed, *report.remarks):
            on_note(str(problem))
        folder = report.folder
        del report  # its runs would stay in memory beside those of the opened campaign
        store_tables(open_campaign(folder))
    return open_campaign(request.into)


@contextmanager
def staged_import(request: ImportRequest) -> Iterator[ImportReport]:
    """Read results and write them as a campaign, which appears when the block ends well.

    So an import that is interrupted, also while the block makes tables, can be repeated.
    """
    prepared = [_read_drafts(request)]
    with staged_folder(request.into) as folder:
        # Its drafts take more memory than the tables: nothing here holds them any longer.
        yield _write_campaign(request, folder, *prepared.pop())


def _read_drafts(request: ImportRequest) -> tuple[ScanResult, list[Draft], list[Problem]]:
    """Return the files found, drafts of runs from them, and remarks; nothing is written."""
    patterns = [parse_pattern(text) for text in request.patterns]
    scanned = scan(request.paths, leave_out=request.into, tell=request.tell)
    if request.strict and scanned.malformed:
        raise OutputError(
            f"malformed files: {len(scanned.malformed)}, so nothing was imported"
            f"{_listed(scanned.malformed)}",
            hint="repair or remove them, or omit --strict",
        )
    results, copies = _without_copies(scanned.results)
    drafts = draft_runs(results)
    processes = list({id(draft.process): draft.process for draft in drafts}.values())
    left = assign_logs(scanned.logs, processes)
    orphans, left = draft_orphan_logs(scanned, left, fio_version=request.fio_version)
    drafts += orphans
    if not drafts:
        raise OutputError(
            f"there is no result of fio to import (other files: {scanned.others})"
            f"{_listed((*scanned.malformed, *left))}",
            hint="fio writes a result that has everything with --output-format=json+; CSV is not"
            " read; a page with output of fio is imported if PATH is the page itself",
        )
    beside = mark_overlaps(drafts, host=request.host)
    unmatched = name_runs(drafts, patterns=patterns, labels=request.labels, host=request.host)
    remarks = [*copies, *left, *beside, *_remarks(drafts, unmatched if patterns else [])]
    return scanned, drafts, remarks


def _without_copies(files: Sequence[ResultFile]) -> tuple[list[ResultFile], list[Problem]]:
    """Return the first of the files with the same content, and a remark on each of the others."""
    first: dict[str, ResultFile] = {}
    copies = []
    for file in files:
        original = first.setdefault(file.digest, file)
        if original is not file:
            reason = f"left out: a copy of {original.source.shown}"
            copies.append(Problem(reason, file.source.shown))
    return list(first.values()), copies


def _listed(problems: Sequence[Problem]) -> str:
    return "".join(f"\n  {problem}" for problem in problems[:_MAX_LISTED])


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _copy_error(path, error) from error


def _remarks(drafts: Sequence[Draft], unmatched: Sequence[Draft]) -> list[Problem]:
    remarks = [
        Problem(
            "--labels does not match this path, so its results have no labels",
            draft.file.source.shown,
        )
        for draft in unmatched
    ]
    remarks += [
        Problem(
            "--labels can split this name in other ways; it is read as "
            + ", ".join(f"{name}={value}" for name, value in draft.labels.items()),
            draft.file.source.shown,
        )
        for draft in drafts
        if draft.splits_otherwise
    ]
    if renamed := renamed_jobs([draft.naming for draft in drafts]):
        remarks.append(Problem(renamed))
    for draft in drafts:
        path = draft.file.source.shown
        unknown = sorted({name for job in draft.part.jobs for name in job.other_ios})
        if unknown:
            remarks.append(Problem(_OTHER_IOS.format(", ".join(unknown)), path))
        for section in draft.reported.values():
            remarks += [
                Problem(f"the option {option} cannot be parsed and is omitted", path)
                for option in section.left_out
            ]
            remarks += [Problem(section.note, path)] if section.is_merged else []
        if draft.output.form != "json":
            remarks.append(Problem(_FROM_TEXT.format(draft.output.form), path))
        elif not any(
            section.is_whole or section.left_out or section.is_merged
            for section in draft.reported.values()
        ):
            remarks.append(Problem(_LOGS_ALONE if draft.read_as else _OPTIONS_NOT_REPORTED, path))
    return list(dict.fromkeys(remarks))


def _write_campaign(
    request: ImportRequest,
    folder: Path,
    scanned: ScanResult,
    drafts: Sequence[Draft],
    remarks: Sequence[Problem],
) -> ImportReport:
    """Write the campaign of drafts into a folder."""
    ordered = order_runs(drafts)
    logs = {log.source.path for draft in ordered for log in draft.process.logs}
    digests = {path: _digest(path) for path in sorted(logs)}
    runs = tuple(
        assemble_run(draft, number=number, digests=digests)
        for number, draft in enumerate(ordered, start=1)
    )
    campaign = Campaign(
        name=request.name or request.into.resolve().name,
        created_utc=utc_now(),
        runs=tuple(assembled.run for assembled in runs),
        seed=0,
        command=tuple(map(mask_text, request.command)),
        hosts=campaign_hosts(ordered),
    )
    campaign, _ = conceal(campaign)
    provenance = Provenance(volbench_version=__version__, python_version=platform.python_version())
    layout = create_campaign(folder, Archive(campaign=campaign, provenance=provenance))
    _fill_all(layout, runs, tell=request.tell)
    processes = {id(draft.process): draft.process for draft in drafts}
    return ImportReport(
        into=request.into,
        folder=folder,
        runs=runs,
        files=len(scanned.results),
        logs=sum(len(process.logs) for process in processes.values()),
        malformed=tuple(scanned.malformed),
        remarks=tuple(remarks),
        others=scanned.others,
    )


def _fill_all(layout: Layout, runs: Sequence[AssembledRun], *, tell: Tell) -> None:
    copied: dict[Path, Path] = {}
    with Journal(layout.journal, durable=False) as journal:  # the whole folder is synced later
        for number, assembled in enumerate(runs, start=1):
            status_sha256 = _fill(layout, assembled, copied)
            journal.write(
                "run",
                run=assembled.run.id,
                state=assembled.state,
                reason=assembled.reason,
                status_sha256=status_sha256,
            )
            tell("copying", number, len(runs))


def _fill(layout: Layout, assembled: AssembledRun, copied: dict[Path, Path]) -> str:
    """Copy the files of a run into its folder, and write its status, whose SHA-256 is returned.

    The checksums of the files are those of the sources, so that `volbench check --files`
    finds a copy that differs from them.
    """
    folder = fresh_run_folder(layout, assembled.run.id, durable=False)
    for path, name, masked in assembled.copies:
        if masked is None:
            _copy(path, folder.path / name, copied)
        else:
            write_atomic(folder.path / name, masked, durable=False)
    imported = assembled.run.imported
    digests = {file.name: file.sha256 for file in imported.files} if imported else {}
    content = {
        "format": STATUS_FORMAT,
        "state": assembled.state,
        "reason": assembled.reason,
        "started_utc": assembled.started_utc,
        "ended_utc": assembled.ended_utc,
        "imported": True,
        "files": {name: digests[name] for name in sorted(digests)},
    }
    text = (json.dumps(content, indent=1) + "\n").encode()
    folder.status.write_bytes(text)
    return sha256(text).hexdigest()


def _copy(path: Path, target: Path, copied: dict[Path, Path]) -> None:
    """Copy a file; later copies of the same file are hard links where the filesystem has them."""
    try:
        if path in copied:
            try:
                os.link(copied[path], target)
            except OSError:
                shutil.copyfile(path, target)
        else:
            shutil.copyfile(path, target)
            copied[path] = target
    except OSError as error:
        raise _copy_error(path, error) from error


def _copy_error(path: Path, error: OSError) -> InputError:
    message, hint = unwritten(path, error, hint="check permissions", verb="copied")
    return InputError(message, hint=hint)


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield a staging folder that becomes the target when the block ends without an error.

    Args:
        target: does not exist, or is an empty folder.

    Yields:
        A path that does not exist yet.
    """
    refuse_used(target)
    folder = target.parent.resolve() / target.name  # a link planted meanwhile is not followed
    if folder == Path.cwd() or folder.is_mount():
        message = f"{target} cannot be replaced: it is the current folder or a mount point"
        raise ArchiveError(message, hint="name a new folder with --output", path=str(target))
    aside = folder.with_name(f".{folder.name}.importing")
    try:
        if folder.exists():
            refuse_foreign(target, folder.lstat())
        if aside.is_dir() and not aside.is_symlink() and not _is_of_import(aside):
            raise RefusedError(f"{aside} is of no import that was killed", hint="move it away")
        layout = Layout(aside, made=(made := make_private_folder(aside)))
        fresh = layout.root / f"whole-{made[1]}"
        with hold_campaign(layout, is_moved=True):
            if fresh.exists():
                shutil.rmtree(fresh)
            try:
                yield fresh
                _sync_tree(fresh)
                fresh.rename(folder)
                sync_folder(folder.parent)
            finally:
                if not has_mount(aside):
                    shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise unwritable(target, error) from error


def _is_of_import(aside: Path) -> bool:
    names = {path.name for path in aside.iterdir()}
    return names <= {".lock", f"whole-{aside.stat().st_ino}"} and not has_mount(aside)


def _sync_tree(root: Path) -> None:
    """Flush every file and folder below a folder to disk, many at a time."""
    paths = [root, *root.rglob("*")]
    # A part for each thread: to hand over paths one by one takes as much CPU as to sync them.
    parts = [paths[first::_SYNCED_AT_A_TIME] for first in range(_SYNCED_AT_A_TIME)]
    with ThreadPoolExecutor(_SYNCED_AT_A_TIME) as threads:
        for _ in threads.map(_sync, parts):
            pass


def _sync(paths: Sequence[Path]) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
