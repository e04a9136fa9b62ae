"""Channel to this machine by a subprocess: all that a new kind of machine must provide."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from threading import Thread, Timer

from volbench.execute.shell.channel import CommandEnd, OnEnd, Sink, TimeLimit, connection_lost


class LoopbackChannel:
    """Runs each command as a child process.

    Args:
        host: name of the machine that this one pretends to be.
    """

    def __init__(self, host: str = "loopback") -> None:
        self.host = host
        self.sessions = 0
        self.streams: list[LoopbackStream] = []

    def execute(
        self, argv: Sequence[str], stdin: bytes, sink: Sink, *, limit: TimeLimit
    ) -> CommandEnd:
        """Run a command to its end."""
        self.sessions += 1
        with TemporaryFile() as errors:
            child = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
            with child:
                feeder = Thread(target=_feed, args=[child, stdin])
                feeder.start()
                ender = Timer(limit.seconds, child.kill)
                ender.start()
                assert child.stdout is not None
                while part := child.stdout.read(65536):
                    sink(part)
                status = child.wait()
                timed_out = not ender.is_alive()
                ender.cancel()
                feeder.join()
            if timed_out:
                raise limit.exceeded(self.host)
            errors.seek(0)
            return CommandEnd(status, errors.read())

    def open(
        self, argv: Sequence[str], on_output: Sink, on_end: OnEnd, *, limit: TimeLimit
    ) -> LoopbackStream:
        """Start a command whose input stays open."""
        del limit
        self.sessions += 1
        self.streams.append(LoopbackStream(argv, on_output, on_end))
        return self.streams[-1]

    def close(self) -> None:
        """Do nothing: there is no connection."""


class LoopbackStream:
    """A child process that is read by a thread of its own."""

    def __init__(self, argv: Sequence[str], on_output: Sink, on_end: OnEnd) -> None:
        self.child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._on_output = on_output
        self._on_end: OnEnd | None = on_end
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, data: bytes) -> None:
        """Write to its input."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(data)
        except OSError as error:
            raise connection_lost("loopback", str(error), sent=True) from error

    def close(self, *, in_doubt: bool = False) -> None:
        """End it: a shell ends with its input."""
        del in_doubt
        self._on_end = None
        assert self.child.stdin is not None
        with suppress(OSError):
            self.child.stdin.close()

    def kill(self) -> None:
        """Kill all of its processes, as if the link broke; detached programs have left them."""
        os.killpg(self.child.pid, signal.SIGKILL)

    def _read(self) -> None:
        assert self.child.stdout is not None
        with self.child.stdout as output:
            while part := output.read(65536):
                self._on_output(part)
        status = self.child.wait()
        assert self.child.stdin is not None
        with suppress(OSError):
            self.child.stdin.close()
        if self._on_end is not None:
            self._on_end(CommandEnd(status, b""))


def _feed(child: subprocess.Popen[bytes], stdin: bytes) -> None:
    """Send the input; a child that reads none of it is no error."""
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin:
        child.stdin.write(stdin)
