"""Verification of a campaign folder: raw files against checksums, plan and journal against keys.

The journal has the SHA-256 of each run's status.json, and that has those of the run's other files.
The plan and each line of the journal are signed with the key of the user who planned the campaign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from volbench.errors import ArchiveError, OutputError, VolbenchError
from volbench.ingest.run_files import read_status
from volbench.model.campaign.planned_run import Campaign
from volbench.store.consent import seal_of
from volbench.store.journal import History, check_journal
from volbench.store.layout import COMPRESSED, UNCHECKED, Layout, ProbeFolder, RunFolder
from volbench.store.log_files import checksum, plain_checksum
from volbench.store.small_files import parse_json, read_bytes


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

    # files that are not as they were recorded
    differences: list[Difference] = field(default_factory=list)
    files: int = 0  # number of files whose checksum was compared
    # IDs of runs without checksums: ended before volbench recorded them
    unrecorded: list[str] = field(default_factory=list)
    signature: str = ""  # why plan and journal could not be verified; empty if they were


def verify_files(layout: Layout, campaign: Campaign, history: History) -> Verification:
    """Compare every raw file of a campaign with its checksum."""
    found = Verification()
    _verify_signatures(layout, campaign, found)
    for run in campaign.runs:
        state = history.states.get(run.id)
        if state is not None and state.has_ended:
            _verify_run(layout, layout.run(run.id), history.checksums.get(run.id), found)
        elif layout.run(run.id).status.exists():
            reason = f"no line says that {run.id} ended, but it has a status"
            _note(found, layout, layout.journal, Change.CHANGED, reason)
    for role in campaign.cold_probe_roles:
        _verify_probe(layout, layout.probe(role), found)
    planned = {run.id for run in campaign.runs}
    for path in sorted(layout.runs.iterdir()) if layout.runs.is_dir() else ():
        if path.name not in planned:
            _note(found, layout, path, Change.ADDED, "no run of the plan")
    return found


def _verify_signatures(layout: Layout, campaign: Campaign, found: Verification) -> None:
    """Verify plan and journal, which only the user who planned the campaign can."""
    if campaign.is_imported:
        found.signature = "imported campaigns are not signed"
        return
    try:
        seal = seal_of(layout)
    except ArchiveError as error:
        found.signature = error.message.removeprefix(f"{layout.root} is read-only: ")
        if "modified" in found.signature:
            _note(found, layout, layout.campaign, Change.CHANGED, "not as it was signed")
        return
    try:
        check_journal(layout.journal, seal)
    except ArchiveError as error:
        reason = error.message.replace(f"{layout.journal}:", "line ")
        _note(found, layout, layout.journal, Change.CHANGED, reason)


def _verify_run(
    layout: Layout, folder: RunFolder, recorded: str | None, found: Verification
) -> None:
    """Compare the status of a run with the journal, and its files with the status."""
    if not folder.status.exists():
        if recorded:
            _note(found, layout, folder.status, Change.MISSING)
        return
    if recorded is None:
        found.unrecorded.append(folder.path.name)
    elif checksum(folder.status) != recorded:
        _note(found, layout, folder.status, Change.CHANGED, "not as the journal says")
    found.files += 1
    try:
        files = read_status(folder).get("files")
    except OutputError as error:
        _note(found, layout, folder.status, Change.DAMAGED, error.message)
        return
    if isinstance(files, Mapping):
        _verify_listed(layout, folder.path, files, found)


def _verify_probe(layout: Layout, folder: ProbeFolder, found: Verification) -> None:
    if not folder.result.exists():
        return
    try:
        content = parse_json(read_bytes(folder.result))
    except (OutputError, ValueError) as error:
        _note(found, layout, folder.result, Change.DAMAGED, str(error))
        return
    files = content.get("files") if isinstance(content, dict) else None
    for step in sorted(path for path in folder.path.iterdir() if path.is_dir()):
        listed = {
            name.removeprefix(f"{step.name}/"): digest
            for name, digest in (files or {}).items()
            if name.startswith(f"{step.name}/")
        }
        if listed:
            _verify_listed(layout, step, listed, found)


def _verify_listed(
    layout: Layout, folder: Path, files: Mapping[str, object], found: Verification
) -> None:
    present = {path.name for path in folder.iterdir() if path.is_file()} - UNCHECKED
    for name, digest in sorted(files.items()):
        found.files += 1
        # Logs are compressed when the campaign ends, after their checksum was taken.
        packed = name not in present and name + COMPRESSED in present
        place = folder / (name + COMPRESSED if packed else name)
        present.discard(place.name)
        try:
            if not place.is_file():
                _note(found, layout, place, Change.MISSING)
            elif (plain_checksum if packed else checksum)(place) != digest:
                _note(found, layout, place, Change.CHANGED)
        except VolbenchError as error:
            _note(found, layout, place, Change.DAMAGED, error.message)
    for name in sorted(_unlisted(present)):
        _note(found, layout, folder / name, Change.ADDED)


def _unlisted(names: set[str]) -> Iterator[str]:
    """Yield the files that nobody listed, without volbench's own temporary ones."""
    return (name for name in names if not (name.startswith(".") and name.endswith(".tmp")))


def _note(
    found: Verification, layout: Layout, path: Path, change: Change, reason: str = ""
) -> None:
    place = str(path.relative_to(layout.root))
    words = reason.replace(f"{path}", path.name)
    found.differences.append(Difference(place, change, words))
