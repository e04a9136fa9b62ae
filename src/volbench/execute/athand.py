"""The part of an Executor that is the same for every machine whose controller is on it."""

from __future__ import annotations

from collections.abc import Callable


class AtHand:
    """A machine that is never out of reach: what is started there ends with its controller."""

    def handle_of(self, stderr: str) -> str:
        """Return nothing: what is started here ends with its controller."""
        del stderr
        return ""

    def was_started(self, handle: str) -> bool:
        """Return False: nothing here has a handle."""
        del handle
        return False

    def workplace(self, folder: str, *, name: str) -> str:
        """Return the folder itself."""
        del name
        return folder

    def bring_back(self, place: str, folder: str) -> None:
        """Do nothing: everything is in its folder already."""

    def be_patient(self, *, unless: Callable[[], bool]) -> None:
        """Do nothing: it is never out of reach."""

    def discard(self, place: str) -> None:
        """Do nothing: the workplace is the controller's own folder."""

    def close(self) -> None:
        """Let the machine go; running processes are left alone."""
