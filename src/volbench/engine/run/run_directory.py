"""Folder of a run in the campaign, and its work folder on the target machine.

On the controller's own machine both are the same. On other machines, files are written before the
start, and fetched after the process has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from volbench.execute.protocol import Executor, Process
from volbench.store.atomic_files import sync_files, write_atomic
from volbench.store.layout import RunFolder


class RunDirectory:
    """Campaign folder and work folder of a run."""

    def __init__(self, executor: Executor, folder: RunFolder, *, name: str = "") -> None:
        self.executor = executor
        self.folder = folder
        self.path = executor.work_folder(str(folder.path), name=name)
        self._unsynced: list[Path] = []
        self._unsent: dict[str, str] = {} if self.is_here else {f"{self.path}/": ""}

    @property
    def is_here(self) -> bool:
        """Whether the work folder is the campaign's own folder."""
        return self.path == str(self.folder.path)

    def keep(self, path: Path, text: str) -> None:
        """Write a file of the campaign; `sync` makes it durable."""
        write_atomic(path, text, durable=False)
        self._unsynced.append(path)

    def sync(self) -> None:
        """Flush written files to disk, which there is no time for between two runs."""
        sync_files(self._unsynced)
        self._unsynced.clear()

    def put(self, name: str, text: str) -> None:
        """Write a file for the process, with a copy in the campaign; `start` sends it."""
        self.keep(self.folder.path / name, text)
        if not self.is_here:
            self._unsent[self.path_of(name)] = text

    def make_folder(self, name: str) -> None:
        """Create a folder that the controller can write to, even if the process runs as root."""
        (self.folder.path / name).mkdir(exist_ok=True)
        if not self.is_here:
            self._unsent[f"{self.path_of(name)}/"] = ""

    def path_of(self, name: str) -> str:
        """Return the path of a file on the machine."""
        return f"{self.path}/{name}"

    def start(
        self,
        argv: Sequence[str],
        *,
        stderr: str,
        longest_s: float,
        followed: Sequence[str] = (),
    ) -> Process:
        """Start a program in the work folder, after its files were sent.

        Args:
            longest_s: time limit on another machine, enforced even without a controller.
        """
        process = self.executor.start(
            argv,
            cwd=self.path,
            stderr=self.path_of(stderr),
            longest_s=longest_s,
            followed=followed,
            files=self._unsent,
        )
        self._unsent = {}
        return process

    def send(self) -> None:
        """Send files that were put, before `start` does."""
        if self._unsent:
            self.executor.write_texts(self._unsent)
            self._unsent = {}

    def fetch(self) -> None:
        """Copy the process's files to the campaign, unless both folders are the same."""
        if not self.is_here:
            self.executor.fetch_work_folder(self.path, str(self.folder.path))

    def remove(self) -> None:
        """Remove the work folder after the fetch, unless both folders are the same."""
        if not self.is_here:
            self.executor.remove_work_folder(self.path, wait=False)
