"""The journal: one line for each state change, appended and synced before anybody relies on it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from volbench.errors import ArchiveError
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_run import RunState


def utc_now() -> str:
    """Return the present instant as ISO 8601 with milliseconds and ``Z``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class History:
    """What a journal says.

    Attributes:
        states: run id to its last state; runs never started are absent.
        reasons: run id to the reason of its last state.
        processes: run id to what identifies the process it was last started as.
        scratch: host and path to identity of files that volbench made and has not removed.
    """

    states: dict[str, RunState] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    processes: dict[str, dict[str, object]] = field(default_factory=dict)
    scratch: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def scratch_of(self, host: str) -> dict[str, list[int]]:
        """Return path to identity of what was made on one host."""
        return {path: identity for (at, path), identity in self.scratch.items() if at == host}


class Journal:
    """An open journal; every `write` is durable when it returns.

    Args:
        path: ``journal.jsonl``; made when missing. An entry that a crash cut off is removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            _mend_tail(self._descriptor)
        except OSError as error:
            raise _unwritable(path, error) from error

    def write(self, kind: str, **facts: object) -> None:
        """Append one entry.

        Args:
            kind: ``run``, ``runs`` of one state, ``scratch`` or ``scratch-removed``.
            facts: values that JSON knows.

        Raises:
            ArchiveError: the filesystem refused; nothing more should be started.
        """
        line = json.dumps({"utc": utc_now(), "kind": kind, **facts}, ensure_ascii=False)
        try:
            _write_all(self._descriptor, f"{line}\n".encode())
            os.fsync(self._descriptor)
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def _mend_tail(descriptor: int) -> None:
    """End the last line, or take it away when a crash cut it off."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    tail_start = os.pread(descriptor, size, 0).rfind(b"\n") + 1
    tail = os.pread(descriptor, size - tail_start, tail_start)
    if not tail:
        return
    try:
        json.loads(tail)
    except ValueError:
        os.ftruncate(descriptor, tail_start)
        os.lseek(descriptor, 0, os.SEEK_END)
    else:
        _write_all(descriptor, b"\n")


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def read_history(path: Path) -> History:
    """Read what has happened so far; a missing journal is an empty history.

    A last line that a crash cut off is passed over: what it would have said had not happened yet.

    Raises:
        ArchiveError: an entry other than the last can't be read.
    """
    history = History()
    for entry in _entries(path):
        match entry:
            case {"kind": "run", "run": str(run), "state": str(state)}:
                history.states[run] = RunState(state)
                history.reasons[run] = str(entry.get("reason", ""))
                if isinstance(process := entry.get("process"), dict):
                    history.processes[run] = process
            case {"kind": "runs", "runs": list(runs), "state": str(state)}:
                history.states.update(dict.fromkeys(map(str, runs), RunState(state)))
                history.reasons.update(dict.fromkeys(map(str, runs), str(entry.get("reason", ""))))
            case {"kind": "scratch", "path": str(name), "identity": list(identity)}:
                place = str(entry.get("host", LOCAL)), name
                history.scratch[place] = [int(number) for number in identity]
            case {"kind": "scratch-removed", "path": str(name)}:
                history.scratch.pop((str(entry.get("host", LOCAL)), name), None)
            case _:
                pass  # an entry of a later volbench: it can't change what these mean
    return history


def _entries(path: Path) -> Iterator[Mapping[str, object]]:
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise ArchiveError(f"{path} can't be read: {error}", hint="check permissions") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            if not any(later.strip() for later in lines[number:]):
                continue
            raise ArchiveError(
                f"{path}:{number}: not a journal entry: {error}",
                hint="restore the journal from a copy",
                context={"path": str(path), "line": number},
            ) from error
        if isinstance(entry, dict):
            yield entry


def _unwritable(path: Path, error: OSError) -> ArchiveError:
    return ArchiveError(
        f"{path} can't be written: {error.strerror or error}",
        hint="check permissions and free space; nothing more is started without a journal",
        context={"path": str(path)},
    )
