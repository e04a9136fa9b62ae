"""Folder of a run in the campaign, and the work folder on its machine.

On the controller's own machine both are the same. Elsewhere, files are written there before the
start, and fetched after the process has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from volbench.execute.protocol import Executor, Process
from volbench.store.archive import sync_files, write_atomic
from volbench.store.layout import RunFolder


class RunDirectory:
    """Where a run works.

    Args:
        executor: its machine.
        folder: an existing folder of the campaign.
        name: unique on the machine.
    """

    def __init__(self, executor: Executor, folder: RunFolder, *, name: str = "") -> None:
        self.executor = executor
        self.folder = folder
        self._name = name
        self.path = executor.make_work_folder(str(folder.path), name=name)
        self._unsynced: list[Path] = []

    @property
    def is_here(self) -> bool:
        """Whether the process works in the campaign's own folder."""
        return self.path == str(self.folder.path)

    def keep(self, path: Path, text: str) -> None:
        """Write a file of the campaign; `sync` makes it durable."""
        write_atomic(path, text, durable=False)
        self._unsynced.append(path)

    def sync(self) -> None:
        """Make what was written durable: between two runs there is no time for it."""
        sync_files(self._unsynced)
        self._unsynced.clear()

    def put(self, name: str, text: str) -> None:
        """Write a file that the process needs, and keep it in the campaign."""
        self.keep(self.folder.path / name, text)
        if not self.is_here:
            self.executor.write_text(self.path_of(name), text)

    def make_folder(self, name: str) -> None:
        """Make a folder that the controller can write to, also where the process runs as root."""
        path = self.folder.path / name
        path.mkdir(exist_ok=True)
        if not self.is_here:
            self.executor.make_work_folder(str(path), name=f"{self._name}/{name}")

    def path_of(self, name: str) -> str:
        """Return the path of a file on the machine."""
        return f"{self.path}/{name}"

    def start(self, argv: Sequence[str], *, stderr: str, longest_s: float) -> Process:
        """Start a program that works there.

        Args:
            argv: program and arguments.
            stderr: name of the file for standard error.
            longest_s: on another machine it is ended after this time, whoever is watching.

        Raises:
            TransportError: it can't be started.
        """
        path = self.path_of(stderr)
        return self.executor.start(argv, cwd=self.path, stderr=path, longest_s=longest_s)

    def fetch(self) -> None:
        """Copy what the process left to the campaign; nothing happens where it already is.

        Raises:
            TransferError: a file was damaged on the way.
            ArchiveError: there is no room for it here.
        """
        if not self.is_here:
            self.executor.fetch_work_folder(self.path, str(self.folder.path))

    def remove(self) -> None:
        """Remove the work folder once all is kept here; nothing happens where they are the same.

        Raises:
            TransportError: the machine is out of reach.
        """
        if not self.is_here:
            self.executor.remove_work_folder(self.path)
