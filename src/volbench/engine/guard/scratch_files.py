"""Scratch files on volumes: only files created by volbench are overwritten or removed.

In a directory they are in a private folder. The identity of a file (device, inode, time of birth)
is recorded as soon as fio has created it; any other file at its path counts as foreign.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from threading import RLock
from typing import Protocol

from volbench.engine.guard.file_guard import is_allowed_file
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor, FileStat
from volbench.fio.jobs.render_job import planned_files
from volbench.model.campaign.planned_run import FileIdentity, Run, VolumeKind

_POLL_S = 0.1  # Poll interval for new files on this machine, in seconds
_REMOTE_POLL_S = 2.0  # Poll interval on another machine, in seconds
_REMOTE_FILES_PER_POLL = 8  # Files checked per poll on another machine

_Identities = Mapping[str, FileIdentity | None]


class Log(Protocol):
    """Record that survives a crash: a Journal, or a thread-safe writer to one."""

    def write(self, kind: str, **facts: object) -> None:
        """Append an entry."""


_MAX_PATHS = 50  # Files of a run looked at together; more are looked at one by one


class Scratch:
    """Scratch files of one campaign on one machine, shared by its clients.

    Args:
        files: from an earlier journal: path to identity, None where no file was seen.
        folders: from an earlier journal: directory volume to its private folder and identity.
    """

    def __init__(
        self,
        executor: Executor,
        log: Log,
        *,
        key: str,
        allowed: Callable[[Run], Sequence[str]],
        files: _Identities,
        folders: Mapping[str, tuple[str, FileIdentity]],
    ) -> None:
        self._executor = executor
        self._log = log
        self._key = key
        self._allowed = allowed
        self._lock = RLock()
        self._files = dict(files)
        self._folders = dict(folders)
        self._abandoned: dict[str, FileIdentity] = {}
        self._made: set[str] = set()
        self._awaited: set[str] = set()
        self._is_remote = bool(executor.handle_of("stderr"))

    def place(self, run: Run, *, make: bool = True) -> Run | None:
        """Return a run whose files are in the private folder of their volume.

        Files that the user agreed to overwrite are used in place.

        Args:
            make: create the folder if it is missing.

        Returns:
            The run; None if the folder is missing and is not to be created.
        """
        files = planned_files(run)
        allowed = self._allowed(run)
        named = any(is_allowed_file(self._executor, path, allowed) for path in files)
        if run.volume.kind is not VolumeKind.DIRECTORY or not files or named:
            return run
        with self._lock:
            folder = self._usable_folder(run.volume.target)
            if folder is None and make:
                folder = self._make_folder(run.volume.target)
        if folder is None:
            return None
        return _in_folder(run, folder)

    def misses_files(self, run: Run) -> bool:
        """Return whether a file of a run is missing."""
        placed = self.place(run, make=False)
        paths = () if placed is None else planned_files(placed)
        return placed is None or any(self._identity(path) is None for path in paths)

    def _usable_folder(self, target: str) -> str | None:
        """Return the private folder of a volume, unless it was replaced."""
        if target not in self._folders:
            return None
        path, identity = self._folders[target]
        above, found = self._executor.stat(target), self._executor.stat(path, follow=False)
        if above is None or above.device != identity[:2]:
            raise RefusedError(
                f"{target} is on a different file system than before: its volume is unmounted",
                hint="mount it again, then continue with: volbench resume DIR",
            )
        if found is not None and found.identity == identity:
            if path in self._made:
                return path
            names = self._executor.list_directory(path)
            if all(self.owns(f"{path}/{name}") for name in names):
                self._made.add(path)
                return path
            self._abandoned[path] = identity
        del self._folders[target]
        return None

    def _make_folder(self, target: str) -> str:
        names = (f"volbench-{self._key}" + (f"-{number}" if number else "") for number in count())
        paths = (f"{target.rstrip('/')}/{name}" for name in names)
        path = next(path for path in paths if self._executor.make_private_folder(path))
        found = self._executor.stat(path, follow=False)
        if found is None:
            raise RefusedError(
                f"{path} was removed right after its creation",
                hint="end the program that removes files there",
            )
        self._log.write(
            "folder", host=self._executor.host, target=target, path=path, identity=found.identity
        )
        self._folders[target] = path, found.identity
        self._made.add(path)
        return path

    def owns(self, path: str) -> bool:
        """Return whether this campaign created the file at a path."""
        identity = self._files.get(path)
        return identity is not None and identity == self._identity(path) and self._is_certain(path)

    def _is_certain(self, path: str) -> bool:
        """Return whether an identity is certain: has a time of birth, or was recorded just now."""
        identity = self._files[path]
        return identity is not None and (bool(identity[-1]) or path in self._made)

    def expect(self, paths: Sequence[str]) -> None:
        """Record the files that a run is about to create; existing files are skipped."""
        with self._lock:
            absent = [path for path in paths if self._identity(path) is None]
            self._awaited.update(path for path in paths if path in absent or self.owns(path))
            self._record(dict.fromkeys(absent))

    def watcher(self, paths: Sequence[str]) -> Callable[[float], None]:
        """Return a function that polls for new files, called with the seconds since the start."""
        interval_s = _REMOTE_POLL_S if self._is_remote else _POLL_S
        polled_s = 0.0

        def look(elapsed_s: float) -> None:
            nonlocal polled_s
            if elapsed_s - polled_s < interval_s * (1 + len(paths) // 100):
                return
            polled_s = elapsed_s
            unseen = [path for path in paths if self._files.get(path) is None]
            self.settle(unseen[:_REMOTE_FILES_PER_POLL] if self._is_remote else paths)

        return look

    def settle(self, paths: Iterable[str]) -> None:
        """Record the identity of files that a run has created.

        fio replaces a file that is too short, so each identity may change once in a run.
        """
        with self._lock:
            seen = {path: self._identity(path) for path in paths if path in self._awaited}
            changed = {
                path: identity
                for path, identity in seen.items()
                if identity is not None and identity != self._files.get(path)
            }
            self._awaited -= {path for path in changed if self._files.get(path) is not None}
            self._made.update(changed)
            self._record(changed)

    def claim_open(self, run: Run, *, pid: int) -> None:
        """Record the files of a run that its orphaned process holds open."""
        folder = f"/proc/{pid}/fd"
        links = (f"{folder}/{name}" for name in self._executor.list_directory(folder))
        opened = {found.identity for link in links if (found := self._executor.stat(link))}
        self._claim(run, lambda found: found.identity in opened)

    def claim_born(self, run: Run, *, handle: str) -> None:
        """Record the files of a run created while its process ran without a controller."""
        began = self._executor.stat(f"{handle}/start")
        ended = self._executor.stat(f"{handle}/rc")
        if began is not None and began.born_ns:
            last_ns = math.inf if ended is None else ended.born_ns
            self._claim(run, lambda found: began.born_ns <= found.born_ns <= last_ns)

    def _claim(self, run: Run, is_made: Callable[[FileStat], bool]) -> None:
        """Record the expected files of a run that pass a test."""
        if run.volume.target in self._folders:
            run = _in_folder(run, self._folders[run.volume.target][0])
        with self._lock:
            paths = [path for path in planned_files(run) if path in self._files]
            seen = {path: self._executor.stat(path, follow=False) for path in paths}
            made = {
                path: found.identity for path, found in seen.items() if found and is_made(found)
            }
            self._record({path: mark for path, mark in made.items() if mark != self._files[path]})

    def remove(self) -> tuple[str, ...]:
        """Remove the files and folders that volbench created, and nothing else.

        Returns:
            Paths that were kept because volbench did not create their content.
        """
        with self._lock:
            folders = [*self._folders.values(), *self._abandoned.items()]
            with self._executor.snapshot([*self._files, *(path for path, _ in folders)]):
                certain = [
                    (path, identity)
                    for path in sorted(self._files)
                    if (identity := self._files[path]) is not None and self._is_certain(path)
                ]
                free = {path for path in self._files if self._identity(path) is None}
                removed = self._executor.remove_exactly([*certain, *folders])
            listed = [path for path, _ in (*certain, *folders)]
            free |= {path for path, is_gone in zip(listed, removed, strict=True) if is_gone}
            if gone := [path for path in self._files if path in free]:
                self._log.write("scratch-removed", host=self._executor.host, paths=gone)
            for target, (path, _) in tuple(self._folders.items()):
                if path in free:
                    self._log.write("folder-removed", host=self._executor.host, target=target)
                    del self._folders[target]
            self._files = {path: self._files[path] for path in self._files if path not in free}
            return tuple(sorted({path for path in (*self._files, *listed) if path not in free}))

    @property
    def paths(self) -> tuple[str, ...]:
        """All recorded paths, sorted."""
        return tuple(sorted(self._files))

    def _record(self, files: _Identities) -> None:
        if files:
            self._log.write("scratch", host=self._executor.host, files=dict(files))
            self._files.update(files)

    def _identity(self, path: str) -> FileIdentity | None:
        found = self._executor.stat(path, follow=False)
        return None if found is None else found.identity


def _in_folder(run: Run, folder: str) -> Run:
    """Return a run whose files are in a private folder of its volume."""
    volume = run.volume.model_copy(update={"private_folder": posixpath.basename(folder)})
    return run.model_copy(update={"volume": volume})


def paths_before(run: Run, *, key: str) -> list[str]:
    """Return the paths that are looked at before a run, for `Executor.snapshot`."""
    target, files = run.volume.target, planned_files(run)[:_MAX_PATHS]
    folder = f"{target.rstrip('/')}/volbench-{key}"
    placed = (f"{folder}{path.removeprefix(target)}" for path in files)
    return [path for path in (target, *files, folder, *placed) if path.startswith("/")]
