"""Watch of a supervised program: pushes its events until it and its sampler have ended."""

import codecs
import contextlib
import fcntl
import os
import select
import time
import typing

from volbench.execute.agent.supervisor import boot_id, is_running, is_supervised, read_json

_TICK_S = 0.5  # fio prints a status line that often. Noticed by: fleet.py
_SOON_S = 0.05  # A supervisor is started within a second.
# A machine that pushed nothing for 20 s counts as lost, and is reachable for 1.5 s.
# Noticed by: test_start.py::test_a_hung_host_delays_the_others_only_briefly
_ALIVE_S = 1.0
_CHUNK_BYTES = 32 * 1024  # Small enough for a slow link to carry other replies between.
# In which the agent of a controller that has ended ends too. Noticed by: test_lost_hosts.py
_LEAVING_S = 10.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_attended = {}  # type: dict[str, int]  # work folder of a campaign to its descriptor, which is locked
_MAX_LINE = 1000  # Of a followed file, whose first line is a time or the counters of a device.


class ProgramEvent(typing.NamedTuple):
    """Event of a program.

    running                 once
    output, samples         more of its standard output or samples: text, bytes in all
    line                    the first line of a followed file has changed: text, its number
    status                  it has ended: exit status (negative: by a signal)
    lost                    it has ended, how is unknown: ``reboot``, ``died`` or ``none``
    quiet                   nothing has changed for a second
    """

    kind: str
    text: str = ""
    number: int = 0


def watch(
    control: str,
    output_bytes: int = 0,
    sample_bytes: int = 0,
    followed: "list[str] | None" = None,
    patience_s: float = 0.0,
) -> "typing.Iterator[ProgramEvent | None]":
    """Yield the events of a program, and at last its end.

    Args:
        output_bytes: bytes of its standard output that are known already.
        sample_bytes: the same of its samples.
        patience_s: time to wait for a start that is under way.
    """
    return _Watch(control, output_bytes, sample_bytes, followed or [], patience_s).events()


def _attend(folder: str) -> None:
    """Mark the work folder of a campaign as attended, until this process ends."""
    if folder not in _attended:
        with contextlib.suppress(OSError):  # it is gone, or cannot be locked there
            _attended[folder] = os.open(folder, _FOLDER)
            fcntl.flock(_attended[folder], fcntl.LOCK_SH | fcntl.LOCK_NB)


def is_attended(folder: str) -> bool:
    """Return whether a controller that has watched a program in a work folder is connected."""
    until_s = time.monotonic() + _LEAVING_S
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, _FOLDER)
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() >= until_s:
                    return True
                time.sleep(_SOON_S)
        finally:
            os.close(descriptor)
    return False


class _Watch:
    """State of a program."""

    def __init__(
        self, control: str, output: int, samples: int, followed: "list[str]", patience_s: float
    ) -> None:
        self._control = control
        self._files = [
            _Follower(control + "/out", output),
            _Follower(control + "/samples", samples),
        ]
        self._followed = [_FirstLine(path) for path in followed]
        self._until_s = time.monotonic() + patience_s
        self._news = -1
        self._is_running = False
        self._has_ended = False

    def events(self) -> "typing.Iterator[ProgramEvent | None]":
        """Yield events until the program and its sampler have ended."""
        pushed_s = time.monotonic()
        try:
            while True:
                end = self._end()
                is_over = end is not None and not is_running(self._control, "supervisor_")
                is_quiet = True
                for event in self._changes(end):
                    is_quiet = False
                    yield event
                if is_over:
                    return
                if not is_quiet:
                    pushed_s = time.monotonic()
                elif time.monotonic() - pushed_s >= _ALIVE_S:
                    pushed_s = time.monotonic()
                    yield ProgramEvent("quiet")
                else:
                    yield None
                self._sleep()
        finally:
            if self._news >= 0:
                os.close(self._news)

    def _changes(self, end: "ProgramEvent | None") -> "typing.Iterator[ProgramEvent]":
        """Yield all that has changed since the last call."""
        if not self._is_running and not end and is_running(self._control):
            self._is_running = True
            _attend(os.path.dirname(os.path.dirname(self._control)))
            yield ProgramEvent("running")
        for name, file in zip(("output", "samples"), self._files):  # noqa: B905 - not in Python 3.6
            while True:
                text = file.read(is_last=end is not None)
                if not text:
                    break
                yield ProgramEvent(name, text, file.offset)
        for number, line in enumerate(self._followed):
            if line.has_changed():
                yield ProgramEvent("line", line.text, number)
        if end and not self._has_ended:
            self._has_ended = True
            yield end

    def _end(self) -> "ProgramEvent | None":
        """Return the end of the program; None while it runs."""
        ended = self._recorded_end()
        if ended is not None:
            return ended
        state = read_json(self._control + "/state")
        if state.get("boot", "") not in ("", boot_id()):
            return ProgramEvent("lost", "reboot")
        if not state.get("pid"):
            if time.monotonic() < self._until_s or is_supervised(self._control):
                return None
            is_claimed = os.path.isdir(self._control + "/start")
            return ProgramEvent("lost", "died" if is_claimed else "none")
        if is_running(self._control) or is_running(self._control, "supervisor_"):
            return None
        return self._recorded_end() or ProgramEvent("lost", "died")

    def _recorded_end(self) -> "ProgramEvent | None":
        status = read_json(self._control + "/end").get("status")
        return ProgramEvent("status", number=status) if isinstance(status, int) else None

    def _sleep(self) -> None:
        """Wait for news, or for the next look."""
        if self._news < 0:
            try:
                path = self._control + "/news"
                self._news = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                time.sleep(_TICK_S if self._is_running or self._has_ended else _SOON_S)
                return
        poller = select.poll()
        poller.register(self._news, select.POLLIN)
        if not poller.poll(_TICK_S * 1000):
            return
        try:
            content = os.read(self._news, 65536)
        except BlockingIOError:  # another watch was faster
            return
        if not content:  # the supervisor has ended
            os.close(self._news)
            self._news = -1
            time.sleep(_SOON_S)


class _Follower:
    """Reads a growing file of text."""

    def __init__(self, path: str, offset: int) -> None:
        self._path = path
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read_bytes = offset
        self.offset = offset

    def read(self, *, is_last: bool) -> str:
        """Return the next part, without the bytes of a character that is not complete yet."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read_bytes)
                content = file.read(_CHUNK_BYTES)
        except OSError:
            return ""
        text = self._decoder.decode(content, is_last and not content)
        self._read_bytes += len(content)
        self.offset = self._read_bytes - len(self._decoder.getstate()[0])
        return text


class _FirstLine:
    """First line of a small file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.text = ""

    def has_changed(self) -> bool:
        """Read it; return whether it differs from before."""
        try:
            with open(self._path, "rb") as file:
                line = file.readline(_MAX_LINE).decode("utf-8", "replace").strip()
        except OSError:
            return False
        before, self.text = self.text, line or self.text
        return self.text != before
