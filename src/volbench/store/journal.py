"""Journal of a campaign: write-ahead log with one line per state change, synced on each write."""

from __future__ import annotations

import ctypes
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from volbench.errors import ArchiveError, quoted
from volbench.model.campaign.planned_run import DevicePin, FileIdentity, RunState
from volbench.store.atomic_files import content_of, parse_json, unwritable
from volbench.units import utc_text

if TYPE_CHECKING:
    from volbench.store.consent import Seal

# Of the disk for later entries: thousands of runs.
# Noticed by: test_journal.py::test_a_full_disk_tears_no_line
RESERVE_BYTES = 1 << 20
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of fallocate(2)

# Rates of reads and writes, or queue depth: a journal that was changed adds no other to a run
_CHOSEN = {"rate_iops": re.compile(r"[0-9]{1,12}(,[0-9]{1,12})?"), "iodepth": re.compile("[0-9]+")}
_MAC_START, _MAC_END = ', "mac": "', '"}'


def utc_now() -> str:
    """Return the current time in ISO 8601 with milliseconds and ``Z``."""
    return utc_at(time.time())


def utc_at(utc_s: float) -> str:
    """Return a time, in seconds since 1970, in the same form."""
    return utc_text(datetime.fromtimestamp(utc_s, UTC))


@dataclass
class History:
    """State of a campaign, replayed from its journal."""

    # run id to last state; runs never started are absent
    states: dict[str, RunState] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # run id to the reason of the last state
    # run id to the identity of the last process
    processes: dict[str, dict[str, object]] = field(default_factory=dict)
    # run id to the control folder of its last process on the controller's machine
    controls: dict[str, str] = field(default_factory=dict)
    # host to path to identity of files that volbench created and has not removed; None for files
    # that a run was about to create
    scratch: dict[str, dict[str, FileIdentity | None]] = field(default_factory=dict)
    # host to head to count of files that a run was about to create, numbered from 0
    families: dict[str, dict[str, int]] = field(default_factory=dict)
    # host to path to identity, and last mark of the content, of files of the user, as runs found
    # them; None for a mark that was not looked up
    found: dict[str, dict[str, tuple[FileIdentity, str | None]]] = field(default_factory=dict)
    # host to target to path and identity of the private directory created there
    folders: dict[str, dict[str, tuple[str, FileIdentity]]] = field(default_factory=dict)
    # host to target to path of one that was about to be created there
    begun: dict[str, dict[str, str]] = field(default_factory=dict)
    inodes: dict[str, dict[str, int]] = field(default_factory=dict)  # of these targets
    # host to target to the digest of the device's edges after the last run; empty while a run
    # writes
    edges: dict[str, dict[str, str]] = field(default_factory=dict)
    # host to target to the device identity that the user confirmed again
    pins: dict[str, dict[str, DevicePin]] = field(default_factory=dict)
    # run id to the SHA-256 of its status.json, which has those of its raw files; runs of campaigns
    # before checksums are absent
    checksums: dict[str, str] = field(default_factory=dict)
    # path below the campaign folder to the SHA-256 of each file that is not in the folder of a run
    files: dict[str, str] = field(default_factory=dict)
    # hosts on which the campaign may hold locks, files or a work folder
    in_use: set[str] = field(default_factory=set)
    silent: dict[str, str] = field(default_factory=dict)  # host to the time of its last answer
    imprecise: list[str] = field(default_factory=list)  # workloads that missed `repeat.until`
    # run id to the options that were chosen when it began
    chosen: dict[str, dict[str, str]] = field(default_factory=dict)
    # host to its best speeds, in the order of `columns.CALIBRATION`
    speeds: dict[str, list[float]] = field(default_factory=dict)

    def forget_folder(self, host: str, target: str) -> None:
        """Forget a private folder that was removed, with all that was in it."""
        folder, _ = self.folders.get(host, {}).pop(target, ("", None))
        for paths in (self.scratch.get(host, {}), self.families.get(host, {})) if folder else ():
            for path in [path for path in paths if path.startswith(f"{folder}/")]:
                paths.pop(path)


class Journal:
    """An open journal; every `write` is durable when it returns.

    Args:
        path: ``journal.jsonl``, created if missing. A truncated last entry is removed.
        seal: signs each line, chained to the previous one; None for an unsigned journal, which
            cannot be resumed.
        durable: whether to fsync each entry; if not, the caller syncs the file in the end.
    """

    def __init__(self, path: Path, seal: Seal | None = None, *, durable: bool = True) -> None:
        self._path = path
        self._durable = durable
        self._seal = seal
        self._reserved = 0
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            _repair_tail(self._descriptor)
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            self._mac = "" if seal is None else check_journal(path, seal)
        except ArchiveError:
            self.close()
            raise
        self._reserve()

    def write(self, kind: str, **facts: object) -> None:
        """Append one entry."""
        line = json.dumps({"utc": utc_now(), "kind": kind, **facts}, ensure_ascii=False)
        mac = ""
        if self._seal is not None:
            mac = self._seal.follow(self._mac, line)
            line = f"{line[:-1]}{_MAC_START}{mac}{_MAC_END}"
        end = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            _write_all(self._descriptor, f"{line}\n".encode())
            if self._durable:
                os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, end)  # for the next line not to be glued to a torn one
            raise unwritable(self._path, error) from error
        self._mac = mac
        self._reserve()

    def _reserve(self) -> None:
        """Allocate the blocks of later entries, so that a full disk does not end the record."""
        end = os.lseek(self._descriptor, 0, os.SEEK_END)
        if self._durable and end + RESERVE_BYTES // 2 > self._reserved:
            self._reserved = end + RESERVE_BYTES
            fallocate = getattr(ctypes.CDLL(None), "fallocate64", None)
            if fallocate is not None:  # where it fails, entries take what is free
                size = ctypes.c_int64(end), ctypes.c_int64(RESERVE_BYTES)
                fallocate(self._descriptor, _KEEP_SIZE, *size)

    def close(self) -> None:
        """Free what was reserved, and close the file."""
        with suppress(OSError):
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size)
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Return the journal."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def check_journal(path: Path, seal: Seal) -> str:
    """Return the signature of the last line, or of the plan if there is none."""
    return [seal.plan, *(mac for _, _, mac in _signed_lines(path, seal))][-1]


def _signed_lines(path: Path, seal: Seal) -> Iterator[tuple[int, str, str]]:
    """Yield number, content and signature of each line; raise at the first that is not signed."""
    mac = seal.plan
    *lines, tail = _lines_of(path)
    lines += [tail] if _is_json(tail) else []  # else a crash truncated it
    for number, content in enumerate(lines, start=1):
        if not content:
            continue
        body, mark, rest = content.decode("utf-8", errors="replace").rpartition(_MAC_START)
        mac = seal.follow(mac, body + "}")
        if not mark or rest != mac + _MAC_END:
            raise ArchiveError(
                f"{path}:{number} was not signed with your key, or earlier lines are missing",
                hint=f"its results are readable; to end it, {_after_damage(path)}",
                path=str(path),
            )
        yield number, body + "}", mac


def read_signed_history(path: Path, seal: Seal) -> tuple[History, ArchiveError | None]:
    """Replay the lines up to the first that is not signed, and return its error, if any."""
    history = History()
    try:
        if path.exists():
            for number, line, _ in _signed_lines(path, seal):
                _replay(history, parse_json(line.encode()), path, number)
    except ArchiveError as damage:
        return history, damage
    return history, None


def _after_damage(path: Path) -> str:
    return (
        f"clean up its machines: volbench status {quoted(path.parent)} --clean; then measure"
        f" again: volbench run --like {quoted(path.parent)}"
    )


def _repair_tail(descriptor: int) -> None:
    """Terminate the last line, or remove it if a crash truncated it."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    tail_start = os.pread(descriptor, size, 0).rfind(b"\n") + 1
    tail = os.pread(descriptor, size - tail_start, tail_start)
    if not tail:
        return
    if _is_json(tail):
        _write_all(descriptor, b"\n")
    else:
        os.ftruncate(descriptor, tail_start)
        os.lseek(descriptor, 0, os.SEEK_END)


def _is_json(line: bytes) -> bool:
    with suppress(ValueError):
        parse_json(line)
        return True
    return False


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def read_history(path: Path) -> History:
    """Replay a journal; a missing one is an empty history.

    A truncated last line is skipped: entries are written before the action they announce.
    """
    history = History()
    for number, entry in _numbered_entries(path):
        _replay(history, entry, path, number)
    return history


def _replay(history: History, entry: object, path: Path, number: int) -> None:
    if not isinstance(entry, dict):
        return
    try:
        _apply_entry(history, entry)
    except ValueError as error:
        raise _damaged_line(path, number, error) from error


def _apply_entry(history: History, entry: Mapping[str, object]) -> None:
    match entry:
        case {"kind": str(kind), "run": str(run)}:
            _apply_run_entry(history, kind, run, entry)
        case {"kind": "runs", "runs": list(runs), "state": str(state)}:
            history.states.update(dict.fromkeys(map(str, runs), RunState(state)))
            history.reasons.update(dict.fromkeys(map(str, runs), str(entry.get("reason", ""))))
        case {"kind": "in-use", "hosts": list(hosts)}:
            history.in_use.update(map(str, hosts))
            silent = entry.get("silent")
            history.silent = silent if isinstance(silent, dict) else {}
        case {"kind": "files", "files": dict(files)}:
            history.files.update({str(name): str(digest) for name, digest in files.items()})
        case {"kind": "found", "host": str(host), "files": dict(files)}:
            seen = {str(path): (_identity_of(of[:4]), of[4:]) for path, of in files.items()}
            history.found[host] = {p: (of, m and m[0]) for p, (of, m) in seen.items() if of}
        case {"kind": "imprecise", "workloads": list(workloads)}:
            history.imprecise = [*map(str, workloads)]
        case {"kind": "calibrated", "host": str(host), "speeds": [cpu, timer, wakeup]}:
            speeds = [float(str(speed)) for speed in (cpu, timer, wakeup)]
            # The better of both ends: a slow moment does not make a slow host.
            pairs = zip(speeds, history.speeds.get(host, speeds), strict=True)
            history.speeds[host] = [max(pair) for pair in pairs]
        case {"kind": str(kind), "host": str(host)}:
            _apply_host_entry(history, kind, host, entry)
        case _:
            pass  # an entry of a later volbench: ignored


def _apply_run_entry(history: History, kind: str, run: str, entry: Mapping[str, object]) -> None:
    match {**entry, "kind": kind}:
        case {"kind": "run", "state": str(state)}:
            history.states[run] = RunState(state)
            history.reasons[run] = str(entry.get("reason", ""))
            history.checksums.pop(run, None)
            if isinstance(checksum := entry.get("status_sha256"), str):
                history.checksums[run] = checksum
            if isinstance(process := entry.get("process"), dict):
                history.processes[run] = process
        case {"kind": "control", "path": str(path)}:
            history.controls[run] = path
        case {"kind": "chosen", "options": dict(options)}:
            found = {name: str(options.get(name, "")) for name in _CHOSEN}
            history.chosen[run] = {n: v for n, v in found.items() if _CHOSEN[n].fullmatch(v)}


def _apply_host_entry(history: History, kind: str, host: str, entry: Mapping[str, object]) -> None:
    match {**entry, "kind": kind}:
        case {"kind": "released"}:
            history.in_use.discard(host)
        case {"kind": "scratch", "files": dict(files)}:
            known = history.scratch.setdefault(host, {})
            heads = entry.get("families")
            history.families.setdefault(host, {}).update(heads if isinstance(heads, dict) else {})
            known.update((str(path), _identity_of(numbers)) for path, numbers in files.items())
        case {"kind": "scratch-removed", "paths": list(paths)}:
            for path in paths:
                history.scratch.get(host, {}).pop(str(path), None)
        case {"kind": "folder", "target": str(target), "path": str(path), "identity": numbers}:
            history.begun.setdefault(host, {})[target] = path
            if (identity := _identity_of(numbers)) is not None:
                history.begun[host].pop(target)
                history.folders.setdefault(host, {})[target] = path, identity
                history.inodes.setdefault(host, {})[target] = int(str(entry.get("inode", 0)))
        case {"kind": "folder-removed", "target": str(target)}:
            history.forget_folder(host, str(target))
        case {"kind": "edges", "target": str(target), "digest": str(digest)}:
            history.edges.setdefault(host, {})[target] = digest
        case {"kind": "pin", "target": str(target), "pin": dict(pin)}:
            allowed = DevicePin.model_validate(pin)
            history.pins.setdefault(host, {})[target] = allowed
            history.edges.get(host, {}).pop(f"{allowed.major}:{allowed.minor}", None)


def _identity_of(numbers: object) -> FileIdentity | None:
    match numbers:
        case [int(major), int(minor), int(inode), int(born_ns)]:
            return major, minor, inode, born_ns
    return None


def _damaged_line(path: Path, number: int, error: Exception) -> ArchiveError:
    message = f"{path}:{number}: not a journal entry: {error}"
    hint = f"restore the journal from a backup, or {_after_damage(path)}"
    return ArchiveError(message, hint=hint, path=str(path))


def _lines_of(path: Path) -> list[bytes]:
    try:
        return content_of(path).split(b"\n")
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise ArchiveError(message, hint="restore it from a backup", path=str(path)) from error


def _numbered_entries(path: Path) -> Iterator[tuple[int, object]]:
    lines = _lines_of(path) if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = parse_json(line)
        except ValueError as error:
            if not any(later.strip() for later in lines[number:]):
                continue
            raise _damaged_line(path, number, error) from error
        yield number, entry
