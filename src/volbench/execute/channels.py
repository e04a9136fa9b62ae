"""Channels: a byte stream to a program on a machine, and nothing else.

Each way to reach a machine (ssh, pod, subprocess) is one channel. It starts a program, carries
bytes to its standard input, and reports what it prints and how it ends. The agent is the only
program that is started this way (`execute.client`): everything else is asked of the agent.
Transient errors of a channel are retried with growing waits and jitter.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from volbench.errors import ConnectError, TransportError, VolbenchError

STDERR_LIMIT_BYTES = 65_536  # Enough for the last lines of a traceback; the rest is dropped.

OnOutput = Callable[[bytes], None]
"""Receives standard output in chunks, as it arrives; must not block."""

T = TypeVar("T")
# Maximum time that a host may be unreachable before giving up; programs there continue
PATIENCE_S = 600.0


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended."""

    status: int  # exit status as its shell reports it
    stderr: str  # start of its standard error, at most `STDERR_LIMIT_BYTES`


OnEnd = Callable[[ProgramEnd | VolbenchError], None]
"""Receives the end of the program, or why that cannot be observed; called at most once."""


class Stream(Protocol):
    """Standard input of a running program."""

    def send(self, data: bytes) -> None:
        """Write to standard input, all of it; several threads never call it at the same time.

        Raises:
            ConnectError: the connection is broken.
        """

    def close(self, *, in_doubt: bool = False) -> None:
        """Close standard input and the stream, without a further call of its receivers.

        In doubt, the connection below may be dead, and is tested before it is used again.
        """


class Channel(Protocol):
    """Connection to one machine; thread-safe."""

    host: str  # name of the machine, for messages

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> Stream:
        """Start a program, over a connection that is opened if there is none or it is dead.

        Args:
            argv: program and arguments, which the channel quotes if a login shell parses them.
            on_output: receives standard output; called by a thread that may serve other hosts.
            on_end: receives the end; called by the same thread.
            within_s: time limit of the start.

        Raises:
            ConnectError: the connection cannot be opened, or was lost.
            DeadlineError: the program was not started in time.
            TransportError: the machine refuses to start it.
        """

    def close(self) -> None:
        """Release the connection; detached programs on the machine continue."""


def connection_lost(host: str, reason: str, *, sent: bool) -> ConnectError:
    """Return the error of a broken connection; unless a request was sent, it is safe to repeat."""
    return ConnectError(
        f"the connection to {host} was lost{f': {reason}' if reason else ''}",
        hint="check that the host is up; the command may have run there"
        if sent
        else "check the host and the network path to it",
        sent=sent,
    )


class SubprocessChannel:
    """Channel to this machine, or by a prefix of the arguments, such as to a container on it."""

    def __init__(self, host: str, *, prefix: Sequence[str] = ()) -> None:
        self.host, self._prefix = host, tuple(prefix)

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> SubprocessStream:
        """Start a program; see `Channel.open`."""
        del within_s
        try:
            process = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
                [*self._prefix, *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            on_end(ProgramEnd(127, f"{argv[0]}: {error.strerror}"))
            raise TransportError(f"{argv[0]} cannot be started: {error.strerror}") from error
        return SubprocessStream(self.host, process, on_output, on_end)

    def close(self) -> None:
        """Do nothing: there is no connection."""


class SubprocessStream:
    """Standard input of a child process, whose output two threads read."""

    def __init__(
        self, host: str, process: subprocess.Popen[bytes], on_output: OnOutput, on_end: OnEnd
    ) -> None:
        self.process = process
        self._host = host
        self._on_output = on_output
        self._on_end: OnEnd | None = on_end
        self._errors = bytearray()
        self._error_reader = threading.Thread(target=self._read_errors, daemon=True)
        self._error_reader.start()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, data: bytes) -> None:
        """Write to standard input, or raise ConnectError if the program has ended."""
        assert self.process.stdin is not None  # noqa: S101 - a pipe
        view = memoryview(data)
        try:
            while view:
                view = view[self.process.stdin.write(view) :]
        except (OSError, ValueError) as error:
            raise connection_lost(self._host, str(error), sent=True) from error

    def close(self, *, in_doubt: bool = False) -> None:
        """Close standard input, which ends an agent, without a further call of its receivers."""
        del in_doubt
        self._on_end = None
        self._close_input()

    def _close_input(self) -> None:
        assert self.process.stdin is not None  # noqa: S101 - a pipe
        with suppress(OSError):
            self.process.stdin.close()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None  # noqa: S101 - a pipe
        with self.process.stderr as stderr:
            while data := stderr.read(65_536):
                self._errors += data[: STDERR_LIMIT_BYTES - len(self._errors)]

    def _read(self) -> None:
        assert self.process.stdout is not None  # noqa: S101 - a pipe
        with self.process.stdout as stdout:
            while data := stdout.read(65_536):
                if self._on_end is not None:
                    self._on_output(data)
        status = self.process.wait()
        self._error_reader.join(1.0)  # a child of the program may keep it open
        self._close_input()
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(ProgramEnd(status, self._errors.decode("utf-8", "replace")))


@dataclass(frozen=True)
class Patience:
    """Retry policy: exponential backoff with jitter."""

    tries: int = 6  # maximum number of attempts, including the first
    begin_within_s: float = 12.0  # latest start of an attempt after the first
    first_s: float = 0.25  # maximum wait after the first attempt; doubled after each further one
    longest_s: float = 4.0  # upper limit of a wait
    # called after each attempt; True ends the retries
    unless: Callable[[], bool] = field(default=lambda: False)
    # called every other second while a request waits; True abandons it
    is_hung: Callable[[], bool] | None = None

    def wait_s(self, number: int) -> float:
        """Return the wait after an attempt (from 1): random, from half to all of its maximum."""
        longest_s = min(self.longest_s, self.first_s * 2 ** (number - 1))
        return random.SystemRandom().uniform(longest_s / 2, longest_s)


def retry(
    attempt: Callable[[], T], *, may_repeat: Callable[[TransportError], bool], patience: Patience
) -> T:
    """Return the result of the first successful attempt."""
    begun = time.monotonic()
    number = 1
    while True:
        try:
            return attempt()
        except TransportError as error:
            wait_s = patience.wait_s(number)
            is_late = time.monotonic() - begun + wait_s > patience.begin_within_s
            is_exhausted = is_late or number >= patience.tries or patience.unless()
            if is_exhausted or not may_repeat(error):
                raise
        time.sleep(wait_s)
        number += 1
