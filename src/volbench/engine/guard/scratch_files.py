"""Files that volbench made on volumes: written down before they exist, removed at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Protocol

from volbench.execute.protocol import Executor


class Log(Protocol):
    """What remembers: a Journal, or whoever writes to one for several threads."""

    def write(self, kind: str, **facts: object) -> None:
        """Append an entry."""


class Scratch:
    """The scratch files of one campaign.

    A file counts as volbench's own when nothing stood at its path before the first Run that names
    it, and what stands there now is what that Run left (same device and inode). Clients on one
    machine share one of these.

    Args:
        executor: the machine they are on.
        log: remembers them across a crash.
        known: what an earlier journal says: path to ``[major, minor, inode]``, empty before its
            Run ended.
    """

    def __init__(self, executor: Executor, log: Log, known: Mapping[str, Sequence[int]]) -> None:
        self._executor = executor
        self._log = log
        self._lock = RLock()
        self._known = {path: list(identity) for path, identity in known.items()}

    def owns(self, path: str) -> bool:
        """Tell whether the file at `path` was made by this campaign."""
        if path not in self._known:
            return False
        identity = self._known[path]
        return not identity or identity == self._identity(path)

    def expect(self, paths: Sequence[str]) -> None:
        """Write down files that a Run is about to make, where nothing stands yet."""
        for path in paths:
            if self._executor.stat(path) is None:
                with self._lock:
                    self._note(path, [])

    def settle(self, paths: Sequence[str]) -> None:
        """Write down what a Run left at the paths it was expected to make."""
        for path in paths:
            if path in self._known and (identity := self._identity(path)):
                with self._lock:
                    self._note(path, identity)

    def remove(self) -> tuple[str, ...]:
        """Remove what volbench made, and nothing else.

        Returns:
            Paths that were left because something else stands there now.
        """
        left = []
        for path in sorted(self._known):
            if not self.owns(path):
                left.append(path)
                continue
            self._executor.remove(path)
            self._log.write("scratch-removed", host=self._executor.host, path=path)
            del self._known[path]
        return tuple(left)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is written down, sorted."""
        return tuple(sorted(self._known))

    def _note(self, path: str, identity: list[int]) -> None:
        if self._known.get(path) == identity and identity:
            return
        self._log.write("scratch", host=self._executor.host, path=path, identity=identity)
        self._known[path] = identity

    def _identity(self, path: str) -> list[int]:
        found = self._executor.stat(path)
        return [] if found is None else [*found.device, found.inode]
