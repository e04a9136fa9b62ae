"""Part of an executor that is the same for every machine that the controller itself runs on."""

from __future__ import annotations

import time
from collections.abc import Callable

from volbench.execute.protocol import ClockReading


class LocalBase:
    """A machine that is always in reach: what is started there ends with its controller."""

    def handle_of(self, stderr: str) -> str:
        """Return nothing: no process is found again."""
        del stderr
        return ""

    def was_started(self, handle: str) -> bool:
        """Return False: there are no handles."""
        del handle
        return False

    def make_work_folder(self, folder: str, *, name: str) -> str:
        """Return the controller's own folder."""
        del name
        return folder

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Do nothing: everything is in its folder already."""

    def remove_work_folder(self, path: str) -> None:
        """Do nothing: it is the controller's own folder."""

    def wait_when_unreachable(self, *, unless: Callable[[], bool]) -> None:
        """Do nothing: it is always in reach."""

    def read_clock(self, count: int) -> tuple[ClockReading, ...]:
        """Return the controller's own clock."""
        now_s = time.time()
        return (ClockReading(now_s, now_s, now_s),) * count

    @property
    def silent_s(self) -> float:
        """Zero: it always answers."""
        return 0.0

    def close(self) -> None:
        """Release the machine; running processes are left alone."""


class LocalProcessBase:
    """A process whose state is always known."""

    @property
    def handle(self) -> str:
        """Empty: it is not found again."""
        return ""

    @property
    def lost(self) -> str:
        """Empty: its end is always observed."""
        return ""

    @property
    def silent_s(self) -> float:
        """Zero: its machine always answers."""
        return 0.0
