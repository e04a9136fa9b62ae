"""Base classes of executors whose host is always reachable: the controller itself."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from volbench.execute.protocol import ClockReading, Completed, SharedLocks
from volbench.model.campaign.planned_run import FileIdentity


class _Host(Protocol):
    """What the base needs of a host."""

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Completed:
        """Run a program to completion."""

    def remove_exact(self, path: str, identity: FileIdentity) -> bool:
        """Remove a file or an empty directory if its identity matches."""


class LocalBase:
    """An always reachable host, whose processes end with their controller."""

    identity = ""
    shared_locks: SharedLocks | None = None

    def run_on_files(self: _Host, argv: Sequence[str], texts: Sequence[str]) -> Completed:
        """Run a program on temporary files, which are removed when it ends."""
        with tempfile.TemporaryDirectory(prefix="volbench-") as folder:
            paths = [Path(folder, str(number)) for number in range(len(texts))]
            for path, text in zip(paths, texts, strict=True):
                path.write_text(text, encoding="utf-8")
            return self.run([*argv, *map(str, paths)])

    def handle_of(self, stderr: str) -> str:
        """Return an empty handle: processes cannot be reattached."""
        del stderr
        return ""

    def was_started(self, handle: str) -> bool:
        """Return False: processes have no handles."""
        del handle
        return False

    def remove_exactly(self: _Host, files: Sequence[tuple[str, FileIdentity]]) -> list[bool]:
        """Remove files and empty directories in order."""
        return [self.remove_exact(path, identity) for path, identity in files]

    def work_folder(self, folder: str, *, name: str) -> str:
        """Return the controller's own directory."""
        del name
        return folder

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Do nothing: all files are already in place."""

    def remove_work_folder(self, path: str, *, wait: bool = True) -> None:
        """Do nothing: the directory belongs to the controller."""

    def wait_when_unreachable(self, *, unless: Callable[[], bool]) -> None:
        """Do nothing: the host is always reachable."""

    def read_clock(self, count: int) -> tuple[ClockReading, ...]:
        """Return readings of the controller's own clock."""
        now_s = time.time()
        return (ClockReading(now_s, now_s, now_s),) * count

    def snapshot(self, paths: Sequence[str]) -> AbstractContextManager[None]:
        """Do nothing: every look is answered at once."""
        del paths
        return nullcontext()

    @property
    def silent_s(self) -> float:
        """Zero: the host always responds."""
        return 0.0

    def close(self) -> None:
        """Release the host; running processes continue."""


class LocalProcessBase:
    """A process whose state is always known."""

    @property
    def handle(self) -> str:
        """Empty: the process cannot be reattached."""
        return ""

    def first_line(self, path: str) -> str | None:
        """Return None: the executor reads files without delay."""
        del path
        return None

    def notify(self, wake: Callable[[], None]) -> None:
        """Do nothing: the process is polled."""

    @property
    def lost(self) -> str:
        """Empty: its exit is always observed."""
        return ""

    @property
    def silent_s(self) -> float:
        """Zero: its host always responds."""
        return 0.0
