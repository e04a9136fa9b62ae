"""A Run's folder in the campaign, and the folder on its machine in which its process works.

On the controller's own machine both are the same. Elsewhere files are put there before the start,
and what the process left is brought back after it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from volbench.execute.protocol import Executor, Process
from volbench.store.archive import write_atomic
from volbench.store.layout import RunFolder


class RunDirectory:
    """Where one Run works.

    Args:
        executor: its machine.
        folder: an existing folder of the campaign.
        name: what tells it from others on the machine.
    """

    def __init__(self, executor: Executor, folder: RunFolder, *, name: str = "") -> None:
        self.executor = executor
        self.folder = folder
        self.path = executor.make_work_folder(str(folder.path), name=name)

    @property
    def is_here(self) -> bool:
        """Whether the process works in the campaign's own folder."""
        return self.path == str(self.folder.path)

    def put(self, name: str, text: str) -> None:
        """Write a file that the process needs, and keep it in the campaign."""
        write_atomic(self.folder.path / name, text)
        if not self.is_here:
            self.executor.write_text(self.place_of(name), text)

    def place_of(self, name: str) -> str:
        """Return the path of a file on the machine."""
        return f"{self.path}/{name}"

    def start(self, argv: Sequence[str], *, stderr: str, longest_s: float) -> Process:
        """Start a program that works there.

        Args:
            argv: program and arguments.
            stderr: name of the file for standard error.
            longest_s: on another machine it is ended after this time, whoever is watching.

        Raises:
            TransportError: it could not be started.
        """
        place = self.place_of(stderr)
        return self.executor.start(argv, cwd=self.path, stderr=place, longest_s=longest_s)

    def bring_back(self) -> None:
        """Copy what the process left to the campaign; nothing happens where it already is.

        Raises:
            TransferError: a file did not arrive as it is there.
            ArchiveError: there is no room for it here.
        """
        if not self.is_here:
            self.executor.fetch_work_folder(self.path, str(self.folder.path))

    def discard(self) -> None:
        """Remove the files there once all is kept here; nothing happens where they are the same.

        Raises:
            TransportError: the machine can't be reached.
        """
        if not self.is_here:
            self.executor.remove_work_folder(self.path)
