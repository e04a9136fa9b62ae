"""Scratch files on volumes: recorded in the journal before they exist, removed at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Protocol

from volbench.execute.protocol import Executor


class Log(Protocol):
    """Record of scratch files: a Journal, or a thread-safe writer to one."""

    def write(self, kind: str, **facts: object) -> None:
        """Append an entry."""


class Scratch:
    """Scratch files of one campaign on one machine, shared by its clients.

    A file counts as volbench's own when its path did not exist before the first run that names it,
    and it is still the file that this run left (same device and inode).

    Args:
        executor: the machine.
        log: records them across a crash.
        known: from an earlier journal: path to ``[major, minor, inode]``, empty when its run had
            not ended.
    """

    def __init__(self, executor: Executor, log: Log, known: Mapping[str, Sequence[int]]) -> None:
        self._executor = executor
        self._log = log
        self._lock = RLock()
        self._known = {path: list(identity) for path, identity in known.items()}

    def owns(self, path: str) -> bool:
        """Return whether the file at `path` was created by this campaign."""
        if path not in self._known:
            return False
        identity = self._known[path]
        return not identity or identity == self._identity(path)

    def expect(self, paths: Sequence[str]) -> None:
        """Record the files that a run is about to create; existing ones are left out."""
        for path in paths:
            if self._executor.stat(path) is None:
                with self._lock:
                    self._note(path, [])

    def settle(self, paths: Sequence[str]) -> None:
        """Record the identity of the files that a run has created."""
        for path in paths:
            if path in self._known and (identity := self._identity(path)):
                with self._lock:
                    self._note(path, identity)

    def remove(self) -> tuple[str, ...]:
        """Remove the files that volbench created, and nothing else.

        Returns:
            Paths that were kept because another file is there now.
        """
        kept = []
        for path in sorted(self._known):
            if not self.owns(path):
                kept.append(path)
                continue
            self._executor.remove(path)
            self._log.write("scratch-removed", host=self._executor.host, path=path)
            del self._known[path]
        return tuple(kept)

    @property
    def paths(self) -> tuple[str, ...]:
        """All recorded paths, sorted."""
        return tuple(sorted(self._known))

    def _note(self, path: str, identity: list[int]) -> None:
        if self._known.get(path) == identity and identity:
            return
        self._log.write("scratch", host=self._executor.host, path=path, identity=identity)
        self._known[path] = identity

    def _identity(self, path: str) -> list[int]:
        found = self._executor.stat(path)
        return [] if found is None else [*found.device, found.inode]
