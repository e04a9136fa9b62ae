"""Clocks of the controller: its own time, and the time in which it was not stopped.

What did not arrive while it was stopped, as by SIGSTOP or with its machine, says nothing about a
host.
"""

from __future__ import annotations

import time
from threading import Lock

# A controller looks once a second; one that did not for so long could not have heard a host.
# Noticed by: test_start.py::test_a_controller_that_was_stopped_blames_no_host
_ABSENT_S = 5.0
# It goes on while the machine is suspended; macOS has none.
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LEAD_S = time.time() - time.clock_gettime(_UPTIME)


def own_time() -> float:
    """Return the time in seconds since 1970, which nobody sets while this process runs.

    Offsets of hosts and the starts announced to them are by the same clock.
    """
    return _LEAD_S + time.clock_gettime(_UPTIME)


class Presence:
    """Clock that stands while this process is stopped, as seen by those who look at it often."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._looked_s = time.monotonic()
        self._absent_s = 0.0
        self._back_s = self._looked_s

    def attended_s(self) -> float:
        """Return the monotonic time without the spans of absence, in seconds."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._looked_s > _ABSENT_S:
                self._absent_s += now_s - self._looked_s
                self._back_s = now_s
            self._looked_s = now_s
            return now_s - self._absent_s

    def silent_s(self, heard_s: float) -> float:
        """Return the seconds since a monotonic time, or since the end of a later absence."""
        self.attended_s()
        return time.monotonic() - max(heard_s, self._back_s)


PRESENCE = Presence()
"""Presence of this process."""
