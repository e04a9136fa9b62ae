"""Readers of the raw files in a run's folder: output, facts, status, standard error.

An imported result may hold many runs, with a copy in the folder of each: it is parsed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from volbench.analyse.time.cold_volume import describe
from volbench.errors import ArchiveError, OutputError, VolbenchError
from volbench.fio.jobs.render_job import planned_logs
from volbench.fio.results.decode_text import decode
from volbench.fio.results.embedded_results import find_results
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.merge_jobs import select_part
from volbench.model.campaign.planned_run import Campaign, Imported, Run, RunState
from volbench.model.frozen_model import Frozen
from volbench.model.results.provenance import ColdProbe, VolumeFacts
from volbench.model.results.result import RunOutput
from volbench.store.atomic_files import (
    content_of,
    damaged_file,
    first_error,
    parse_json,
    read_bytes,
    read_model,
    read_text,
)
from volbench.store.consent import seal_of
from volbench.store.journal import History, check_journal
from volbench.store.layout import COMPRESSED, UNCHECKED, Layout, ProbeFolder, RunFolder
from volbench.store.log_files import checksum, plain_checksum, unpack

STATUS_FORMAT = 1  # Version of status.json
_Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e12, le=1e12)]


def _text_with_zone(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("must be a time with its time zone")
    return text


_Instant = Annotated[str, AfterValidator(_text_with_zone)]


class Start(BaseModel):
    """Synchronised start of a run; in seconds."""

    start_s: _Finite | None = None
    late_s: _Finite | None = None
    clock_offset_s: _Finite | None = None  # of the host's clock ahead of the controller's
    clock_bound_s: _Finite | None = None
    clock_moved_s: _Finite | None = None  # by which the host's clock was set since its survey


class Status(BaseModel):
    """Keys of status.json that are read; others are for people."""

    model_config = ConfigDict(strict=True, extra="allow")

    format: int = STATUS_FORMAT
    state: Annotated[RunState | None, Field(strict=False)] = None
    reason: str = ""
    started_utc: _Instant | None = None
    ended_utc: _Instant | None = None
    elapsed_s: Annotated[_Finite, Field(ge=0)] = 0.0
    tool_version: str = ""
    start: Start | None = None  # None for a run that started alone
    files: dict[str, str] = Field(default_factory=dict)


def read_run_output(run: Run, folder: RunFolder) -> RunOutput:
    """Read the result of a run."""
    if run.imported is not None:
        return read_imported(run.imported, folder)
    return parse_output(read_text(folder.fio_output), path=str(folder.fio_output))


def read_facts(folder: RunFolder) -> VolumeFacts | None:
    """Return the facts of the volume right before a run; None if not recorded."""
    return read_model(folder.facts, VolumeFacts)


def read_status(folder: RunFolder) -> Status | None:
    """Return status.json of a run; None when it has not ended yet."""
    content = read_bytes(folder.status)
    if not content and not folder.status.exists():
        return None
    try:
        status = Status.model_validate(parse_json(content))
    except ValueError as error:
        reason = first_error(error) if isinstance(error, ValidationError) else error
        raise damaged_file(folder.status, reason) from error
    if status.format > STATUS_FORMAT:
        raise OutputError(
            f"{folder.status} has format {status.format}; this volbench reads up to"
            f" {STATUS_FORMAT}",
            hint="update volbench",
            path=str(folder.status),
        )
    return status


def read_imported(imported: Imported, folder: RunFolder) -> RunOutput:
    """Return the result of an imported run; of logs without a result, only their version."""
    if imported.read_as:
        return RunOutput(imported.read_as, ())
    source = imported.files[0]
    path = folder.path / source.name
    try:
        content = content_of(path)
    except OSError as error:
        reason = error.strerror or error  # Its path may be that of an open folder in /proc
        raise OutputError(f"{path} cannot be read: {reason}", hint="restore a copy") from error
    if sha256(content).hexdigest() != source.sha256:
        raise OutputError(
            f"{path} differs from what was imported",
            hint="restore a copy, or import it again",
            path=str(path),
        )
    results = _results(_Content(content, source.sha256, source.name))
    if imported.document >= len(results):
        raise OutputError(f"{path} lacks a result that was imported", hint="import it again")
    return select_part(results[imported.document], imported)


class _Content:
    """Bytes that compare by their digest, so that each content is parsed once."""

    def __init__(self, content: bytes, digest: str, name: str) -> None:
        self.content = content
        self.name = name
        self._digest = digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and other._digest == self._digest


@lru_cache(maxsize=2)
def _results(content: _Content) -> tuple[RunOutput, ...]:
    return find_results(decode(unpack(content.content)), path=content.name).results


class Change(StrEnum):
    """What happened to a file since it was recorded."""

    CHANGED = "changed"
    ADDED = "added"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class Difference:
    """A file that is not as it was recorded."""

    file: str  # path within the campaign folder
    change: Change  # what happened to it
    reason: str = ""  # more about it; may be empty


@dataclass
class Verification:
    """Result for one campaign folder."""

    layout: Layout  # paths of the campaign
    # files that are not as they were recorded
    differences: list[Difference] = field(default_factory=list)
    files: int = 0  # number of files whose checksum was compared
    # IDs of runs without checksums: ended before volbench recorded them
    unrecorded: list[str] = field(default_factory=list)
    signature: str = ""  # why plan and journal could not be verified; empty if they were

    def note(self, path: Path, change: Change, reason: str = "") -> None:
        """Add a difference."""
        file, text = str(path.relative_to(self.layout.root)), reason.replace(f"{path}", path.name)
        self.differences.append(Difference(file, change, text))

    def compare(
        self, file: Path, digest: object, *, checksum_of: Callable[[Path], str] = checksum
    ) -> None:
        """Compare a file with its recorded checksum."""
        self.files += 1
        try:
            if not file.is_file():
                self.note(file, Change.MISSING)
            elif checksum_of(file) != digest:
                self.note(file, Change.CHANGED)
        except VolbenchError as error:
            self.note(file, Change.DAMAGED, error.message)

    @contextmanager
    def unreadable_noted(self, folder: Path) -> Iterator[None]:
        """Note a folder that cannot be read, and go on."""
        try:
            yield
        except OSError as error:
            self.note(folder, Change.DAMAGED, f"cannot be read: {error.strerror}")


def verify_files(layout: Layout, campaign: Campaign, history: History) -> Verification:
    """Compare every raw file of a campaign with its checksum."""
    verification = Verification(layout)
    _verify_signatures(layout, campaign, verification)
    for run in campaign.runs:
        state, folder = history.states.get(run.id), layout.run(run.id)
        with verification.unreadable_noted(folder.path):
            if state is not None and state.has_ended:
                _verify_run(folder, history.checksums.get(run.id), verification)
            elif folder.status.exists():
                reason = f"{run.id} has a status file, but its end is not in the journal"
                verification.note(layout.journal, Change.CHANGED, reason)
    for role in campaign.cold_probe_roles:
        with verification.unreadable_noted(layout.probe(role).path):
            _verify_probe(layout.probe(role), verification)
    _verify_others(layout, campaign, history, verification)
    planned = {run.id for run in campaign.runs}
    with verification.unreadable_noted(layout.runs):
        for path in sorted(layout.runs.iterdir()) if layout.runs.is_dir() else ():
            if path.name not in planned:
                verification.note(path, Change.ADDED, "not a run of the plan")
    return verification


def _verify_signatures(layout: Layout, campaign: Campaign, verification: Verification) -> None:
    """Verify plan and journal, which only the user who planned the campaign can."""
    if campaign.is_imported or campaign.is_watched:
        kind = "imported" if campaign.is_imported else "watched"
        verification.signature = f"{kind} campaigns are not signed"
        return
    try:
        seal = seal_of(layout)
    except ArchiveError as error:
        verification.signature = error.message.removeprefix(f"{layout.root} is read-only: ")
        if "modified" in verification.signature:
            verification.note(layout.campaign, Change.CHANGED, "not as it was signed")
        return
    try:
        check_journal(layout.journal, seal)
    except ArchiveError as error:
        reason = error.message.replace(f"{layout.journal}:", "line ")
        verification.note(layout.journal, Change.CHANGED, reason)


def _verify_run(folder: RunFolder, recorded: str | None, verification: Verification) -> None:
    """Compare the status of a run with the journal, and its files with the status."""
    if not folder.status.exists():
        if recorded:
            verification.note(folder.status, Change.MISSING)
        return
    verification.files += 1
    try:
        status = read_status(folder)
    except OutputError as error:
        verification.note(folder.status, Change.DAMAGED, error.message)
        return
    if recorded is None:
        verification.unrecorded.append(folder.path.name)
    elif checksum(folder.status) != recorded:
        verification.note(folder.status, Change.CHANGED, "differs from the journal")
    if status is not None and "files" in status.model_fields_set:
        _verify_listed(folder.path, status.files, verification)


def _verify_others(
    layout: Layout, campaign: Campaign, history: History, verification: Verification
) -> None:
    """Compare the files outside the folders of runs: the plan of a watch, and replayed logs."""
    expected = {
        layout.inputs / digest: digest for run in campaign.runs for digest in planned_logs(run)
    }
    for name, digest in history.files.items():
        if Path(name).is_absolute() or ".." in Path(name).parts:
            reason = "names a file outside the campaign folder"
            verification.note(layout.journal, Change.DAMAGED, reason)
        else:
            expected[layout.root / name] = digest
    for file, digest in sorted(expected.items()):
        verification.compare(file, digest)
    folders = {file.parent for file in expected} - {layout.root}
    found = {path for folder in folders if folder.is_dir() for path in folder.iterdir()}
    for file in sorted(found - {*expected, *folders}):
        verification.note(file, Change.ADDED)


def _verify_probe(folder: ProbeFolder, verification: Verification) -> None:
    if not folder.result.exists():
        return
    try:
        content = parse_json(read_bytes(folder.result))
    except (OutputError, ValueError) as error:
        verification.note(folder.result, Change.DAMAGED, str(error))
        return
    files = content.get("files") if isinstance(content, dict) else None
    for step in sorted(path for path in folder.path.iterdir() if path.is_dir()):
        listed = {
            name.removeprefix(f"{step.name}/"): digest
            for name, digest in (files or {}).items()
            if name.startswith(f"{step.name}/")
        }
        if listed:
            _verify_listed(step, listed, verification)


def _verify_listed(folder: Path, files: Mapping[str, object], verification: Verification) -> None:
    present = {path.name for path in folder.iterdir() if not path.is_dir()} - UNCHECKED
    for name, digest in sorted(files.items()):
        # Logs are compressed when the campaign ends, after their checksum was taken.
        packed = name not in present and name + COMPRESSED in present
        file = folder / (name + COMPRESSED if packed else name)
        present.discard(file.name)
        verification.compare(file, digest, checksum_of=plain_checksum if packed else checksum)
    for name in sorted(present):
        if not (name.startswith(".") and name.endswith(".tmp")):  # volbench's own
            verification.note(folder / name, Change.ADDED)


class Probed(Frozen):
    """Result of a probe."""

    role: str  # of the volume
    target: str  # device, file, directory or NBD URI
    started_utc: str  # ISO 8601 with ``Z``
    ended_utc: str  # the same
    seed: int | None = None  # of the offsets; None when nothing was read
    cold: ColdProbe | None = None  # None when there is no result
    reason: str = ""  # reason for the missing result; empty otherwise
    # path within the folder to SHA-256 of each raw file
    files: dict[str, str] = Field(default_factory=dict)

    @property
    def words(self) -> str:
        """Description of the result."""
        return self.reason if self.cold is None else describe(self.cold)


def read_probe(folder: ProbeFolder) -> Probed | None:
    """Return the result of a probe; None when there was none."""
    return read_model(folder.result, Probed)
