"""Paths in, a campaign folder out: what was read of it, and what was not, is returned."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path

from volbench import __version__
from volbench.errors import ArchiveError, InputError, OutputError, Problem
from volbench.importer.folder_labels import parse_pattern, unfitting
from volbench.importer.log_matching import share_out
from volbench.importer.orphan_logs import draft_logs
from volbench.importer.run_assembly import Ready, finish_run
from volbench.importer.run_drafts import Draft, draft_runs, hosts_of, order_runs
from volbench.importer.run_identity import name_runs
from volbench.importer.scan_folders import Found, scan
from volbench.ingest.run_files import STATUS_FORMAT
from volbench.model.campaign.planned_run import Campaign
from volbench.store.archive import (
    Archive,
    Provenance,
    create_campaign,
    fresh_run_folder,
    hold_campaign,
    refuse_used,
    sync_folder,
    write_atomic,
)
from volbench.store.journal import Journal, utc_now
from volbench.store.layout import Layout

_SHOWN = 20
_UNTOLD = "the result does not tell the options of its jobs"
_UNTOLD_LOGS = "logs without a result: they become a series, without totals and options"


@dataclass(frozen=True)
class Wanted:
    """What is to be imported.

    Attributes:
        paths: files and folders.
        into: the new campaign folder.
        name: of the campaign; empty to call it as the folder.
        labels: of all hosts.
        pattern: of labels in paths; empty for none.
        host: name of the host where nothing tells one.
        fio_version: that wrote logs without a result; empty where it is not known.
        strict: refuse everything when a file is malformed.
        command: the command line, for the record.
    """

    paths: tuple[Path, ...]
    into: Path
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""
    host: str = ""
    fio_version: str = ""
    strict: bool = False
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Intake:
    """What became of it.

    Attributes:
        into: the campaign folder.
        runs: every run with its state.
        files: how many files held results.
        logs: how many logs were taken.
        malformed: files that should hold a result and do not.
        remarks: what was left out, or is not as it may look.
        others: files that are something else.
    """

    into: Path
    runs: tuple[Ready, ...]
    files: int
    logs: int
    malformed: tuple[Problem, ...]
    remarks: tuple[Problem, ...]
    others: int


def import_results(wanted: Wanted) -> Intake:
    """Read results that others measured, and write them as a campaign.

    Raises:
        InputError: a path does not exist, the pattern fits no result, or the version is none.
        OutputError: nothing can be imported; or a file is malformed and that was to be refused.
        ArchiveError: the folder can't be written.
    """
    pattern = parse_pattern(wanted.pattern) if wanted.pattern else None
    found = scan(wanted.paths, leave_out=wanted.into)
    if wanted.strict:
        _refuse_malformed(found)
    drafts = draft_runs(found.results)
    claims = list({id(draft.claim): draft.claim for draft in drafts}.values())
    left = share_out(found.logs, claims)
    alone = draft_logs(found, left, fio_version=wanted.fio_version)
    drafts += alone.drafts
    _require_any(drafts, found, alone.left)
    strays = name_runs(drafts, pattern=pattern, labels=wanted.labels, host=wanted.host)
    if pattern is not None and len(strays) == len(drafts):
        source = drafts[0].file.source
        raise unfitting(pattern, "/".join((*source.inside.parts[:-1], source.stem)))
    runs = _finished(order_runs(drafts))
    _write(wanted, runs, drafts)
    return Intake(
        into=wanted.into,
        runs=tuple(runs),
        files=len(found.results),
        logs=sum(len(claim.logs) for claim in (*claims, *(draft.claim for draft in alone.drafts))),
        malformed=tuple(found.malformed),
        remarks=(*alone.left, *_remarks(drafts, strays)),
        others=found.others,
    )


def _require_any(drafts: Sequence[Draft], found: Found, left: Sequence[Problem]) -> None:
    """Refuse when there is nothing to import."""
    if not drafts:
        raise OutputError(
            f"there is no result of fio to import ({found.others} other files)"
            f"{_listed((*found.malformed, *left))}",
            hint="volbench reads fio's JSON: run fio with --output-format=json+",
        )


def _refuse_malformed(found: Found) -> None:
    """Refuse when anything is malformed."""
    if found.malformed:
        raise OutputError(
            f"{len(found.malformed)} files are malformed, so nothing was imported"
            f"{_listed(found.malformed)}",
            hint="mend or remove them, or leave out --strict",
        )


def _listed(problems: Sequence[Problem]) -> str:
    return "".join(f"\n  {problem}" for problem in problems[:_SHOWN])


def _finished(drafts: Sequence[Draft]) -> list[Ready]:
    logs = {log.source.path for draft in drafts for log in draft.claim.logs}
    digests = {path: _digest(path) for path in sorted(logs)}
    return [
        finish_run(draft, number=number, digests=digests)
        for number, draft in enumerate(drafts, start=1)
    ]


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _uncopied(path, error) from error


def _remarks(drafts: Sequence[Draft], strays: Sequence[Draft]) -> list[Problem]:
    """Return what a reader of the results should know, each file once."""
    remarks = [
        Problem("--labels does not fit this path; it has no labels of it", draft.file.source.shown)
        for draft in strays
    ]
    for draft in drafts:
        shown = draft.file.source.shown
        for section in draft.reported.values():
            remarks += [
                Problem(f"the option {option} can't be read and is left out", shown)
                for option in section.left_out
            ]
        if not any(section.is_whole or section.left_out for section in draft.reported.values()):
            remarks.append(Problem(_UNTOLD_LOGS if draft.read_as else _UNTOLD, shown))
    return list(dict.fromkeys(remarks))


def _write(wanted: Wanted, runs: Sequence[Ready], drafts: Sequence[Draft]) -> None:
    campaign = Campaign(
        name=wanted.name or wanted.into.resolve().name,
        created_utc=utc_now(),
        runs=tuple(ready.run for ready in runs),
        seed=0,
        command=wanted.command,
        hosts=hosts_of(order_runs(drafts)),
    )
    provenance = Provenance(volbench_version=__version__, python_version=platform.python_version())
    with built_beside(wanted.into) as folder:
        layout = create_campaign(folder, Archive(campaign=campaign, provenance=provenance))
        _fill_all(layout, runs)


def _fill_all(layout: Layout, runs: Sequence[Ready]) -> None:
    copied: dict[Path, Path] = {}
    with Journal(layout.journal) as journal:
        for ready in runs:
            _fill(layout, ready, copied)
            journal.write("run", run=ready.run.id, state=ready.state, reason=ready.reason)


def _fill(layout: Layout, ready: Ready, copied: dict[Path, Path]) -> None:
    """Copy the files of a run into its folder, and write how it ended."""
    folder = fresh_run_folder(layout, ready.run.id)
    for path, name in ready.copies:
        _copy(path, folder.path / name, copied)
    content = {
        "format": STATUS_FORMAT,
        "state": ready.state,
        "reason": ready.reason,
        "started_utc": ready.started_utc,
        "ended_utc": ready.ended_utc,
        "imported": True,
    }
    write_atomic(folder.status, json.dumps(content, indent=1) + "\n")


def _copy(path: Path, target: Path, copied: dict[Path, Path]) -> None:
    """Copy a file; one that several runs share takes its room once where links can be made."""
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
        raise _uncopied(path, error) from error


def _uncopied(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path} can't be copied: {error.strerror or error}",
        hint="check permissions and free space",
        context={"path": str(path)},
    )


@contextmanager
def built_beside(target: Path) -> Iterator[Path]:
    """Give a folder to fill, and let it become the target when nothing went wrong.

    Args:
        target: does not exist, or is an empty folder.

    Yields:
        A path that does not exist yet.

    Raises:
        ArchiveError: the target is in use, another import is writing it, or it can't be written.
    """
    refuse_used(target)
    place = target.resolve()
    if place == Path.cwd() or place.is_mount():
        raise ArchiveError(
            f"{target} can't be replaced: it is the current folder or a filesystem of its own",
            hint="name a new folder with --output",
            context={"path": str(target)},
        )
    aside = place.with_name(f".{place.name}.importing")
    fresh = aside / "whole"
    try:
        aside.mkdir(parents=True, exist_ok=True)
        with hold_campaign(Layout(aside)):
            if fresh.exists():
                shutil.rmtree(fresh)
            try:
                yield fresh
                _sync_all(fresh)
                fresh.rename(place)
                sync_folder(place.parent)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise ArchiveError(
            f"{target} can't be written: {error.strerror or error}",
            hint="check permissions and free space, or choose another folder with --output",
            context={"path": str(target)},
        ) from error


def _sync_all(root: Path) -> None:
    """Make every file and every name below a folder durable."""
    for folder, _, files in os.walk(root):
        for name in files:
            with (Path(folder) / name).open("rb") as stream:
                os.fsync(stream.fileno())
        sync_folder(Path(folder))
