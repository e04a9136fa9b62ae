"""Scratch files on volumes: only what is known to be volbench's is overwritten or removed.

In a directory they lie in a private folder. The identity of a file (device, inode, time of birth)
is recorded as soon as fio has made it; whatever else is found at its path is somebody's.
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
from volbench.fio.jobs.output_files import planned_files
from volbench.model.campaign.planned_run import Run
from volbench.model.campaign.target import FileIdentity, VolumeKind

_LOOK_S = 0.1
"""Between two looks for new files here."""
_FAR_LOOK_S = 2.0
"""The same on another machine."""
_FAR_FILES = 8
"""Files looked at in one go on another machine."""

_Identities = Mapping[str, FileIdentity | None]


class Log(Protocol):
    """Record that survives a crash: a Journal, or a thread-safe writer to one."""

    def write(self, kind: str, **facts: object) -> None:
        """Append an entry."""


class Scratch:
    """Scratch files of one campaign on one machine, shared by its clients.

    Args:
        executor: the machine.
        log: records them across a crash.
        key: of the campaign, for the names of private folders.
        allowed: returns what a run may overwrite, as the user named it.
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
        self._is_far = bool(executor.handle_of("stderr"))

    def place(self, run: Run, *, make: bool = True) -> Run | None:
        """Return a run with the private folder that its files lie in.

        Files that the user allowed to be overwritten are used where they are.

        Args:
            run: as planned.
            make: make the folder where there is none.

        Returns:
            The run; None where there is no folder yet and none is to be made.

        Raises:
            RefusedError: the folder can't be made, or the volume is not mounted any more.
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
        """Return whether a file of a run is not there yet, or no more."""
        placed = self.place(run, make=False)
        paths = () if placed is None else planned_files(placed)
        return placed is None or any(self._identity(path) is None for path in paths)

    def _usable_folder(self, target: str) -> str | None:
        """Return the private folder of a volume, unless something else is there now."""
        if target not in self._folders:
            return None
        path, identity = self._folders[target]
        above, found = self._executor.stat(target), self._executor.stat(path, follow=False)
        if above is None or above.device != identity[:2]:
            raise RefusedError(
                f"{target} is another file system than before: its volume is not mounted any more",
                hint="mount it again, then continue with: volbench resume DIR",
                context={"path": target},
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
                f"{path} was removed as soon as it was made",
                hint="end the program that removes files there",
                context={"path": path},
            )
        self._log.write(
            "folder", host=self._executor.host, target=target, path=path, identity=found.identity
        )
        self._folders[target] = path, found.identity
        self._made.add(path)
        return path

    def owns(self, path: str) -> bool:
        """Return whether the file at a path is one that this campaign made."""
        identity = self._files.get(path)
        return identity is not None and identity == self._identity(path) and self._is_full(path)

    def _is_full(self, path: str) -> bool:
        """Return whether a file's identity is sure: without a time of birth only in one go."""
        identity = self._files[path]
        return identity is not None and (bool(identity[-1]) or path in self._made)

    def expect(self, paths: Sequence[str]) -> None:
        """Record the files that a run is about to make; existing ones are left out."""
        with self._lock:
            absent = [path for path in paths if self._identity(path) is None]
            self._awaited.update(path for path in paths if path in absent or self.owns(path))
            self._note(dict.fromkeys(absent))

    def watcher(self, paths: Sequence[str]) -> Callable[[float], None]:
        """Return a function that looks for new files, given the seconds since the start."""
        interval_s = _FAR_LOOK_S if self._is_far else _LOOK_S
        looked_s = 0.0

        def look(elapsed_s: float) -> None:
            nonlocal looked_s
            if elapsed_s - looked_s < interval_s * (1 + len(paths) // 100):
                return
            looked_s = elapsed_s
            unseen = [path for path in paths if self._files.get(path) is None]
            self.settle(unseen[:_FAR_FILES] if self._is_far else paths)

        return look

    def settle(self, paths: Iterable[str]) -> None:
        """Record the identity of files that a run has made.

        fio replaces a file that is too short, so that each may change once in a run.
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
            self._note(changed)

    def claim_open(self, run: Run, *, pid: int) -> None:
        """Record the files of a run that its process, left by a controller, still has open."""
        folder = f"/proc/{pid}/fd"
        links = (f"{folder}/{name}" for name in self._executor.list_directory(folder))
        opened = {found.identity for link in links if (found := self._executor.stat(link))}
        self._claim(run, lambda found: found.identity in opened)

    def claim_born(self, run: Run, *, handle: str) -> None:
        """Record the files of a run that were made while its process ran without a controller.

        Args:
            run: as planned.
            handle: of its process; its folder says when that began and ended.
        """
        began = self._executor.stat(f"{handle}/start")
        ended = self._executor.stat(f"{handle}/rc")
        if began is not None and began.born_ns:
            last_ns = math.inf if ended is None else ended.born_ns
            self._claim(run, lambda found: began.born_ns <= found.born_ns <= last_ns)

    def _claim(self, run: Run, is_made: Callable[[FileStat], bool]) -> None:
        """Record those of a run's expected files that it made, by a test."""
        if run.volume.target in self._folders:
            run = _in_folder(run, self._folders[run.volume.target][0])
        with self._lock:
            paths = [path for path in planned_files(run) if path in self._files]
            seen = {path: self._executor.stat(path, follow=False) for path in paths}
            made = {
                path: found.identity for path, found in seen.items() if found and is_made(found)
            }
            self._note({path: mark for path, mark in made.items() if mark != self._files[path]})

    def remove(self) -> tuple[str, ...]:
        """Remove the files and folders that volbench made, and nothing else.

        Returns:
            Paths that were kept because volbench did not make what is there now.
        """
        with self._lock:
            kept = [path for path in sorted(self._files) if not self._remove(path)]
            gone = [path for path in self._files if path not in kept]
            if gone:
                self._log.write("scratch-removed", host=self._executor.host, paths=gone)
            self._files = {path: self._files[path] for path in kept}
            for target, (path, identity) in tuple(self._folders.items()):
                if self._executor.remove_exact(path, identity):
                    self._log.write("folder-removed", host=self._executor.host, target=target)
                    del self._folders[target]
                else:
                    kept += [path]
            kept += [
                path
                for path, identity in self._abandoned.items()
                if not self._executor.remove_exact(path, identity)
            ]
            return tuple(sorted(set(kept)))

    def _remove(self, path: str) -> bool:
        """Remove a file if it is surely volbench's; return whether nothing is there now."""
        identity = self._files[path]
        if identity is None or not self._is_full(path):
            return self._identity(path) is None
        return self._executor.remove_exact(path, identity)

    @property
    def paths(self) -> tuple[str, ...]:
        """All recorded paths, sorted."""
        return tuple(sorted(self._files))

    def _note(self, files: _Identities) -> None:
        if files:
            self._log.write("scratch", host=self._executor.host, files=dict(files))
            self._files.update(files)

    def _identity(self, path: str) -> FileIdentity | None:
        found = self._executor.stat(path, follow=False)
        return None if found is None else found.identity


def _in_folder(run: Run, folder: str) -> Run:
    """Return a run whose files lie in a private folder of its volume."""
    volume = run.volume.model_copy(update={"private_folder": posixpath.basename(folder)})
    return run.model_copy(update={"volume": volume})
