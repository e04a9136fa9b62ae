"""Channel to this machine by a subprocess: all that a new kind of machine must provide."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from threading import Thread, Timer

from volbench.execute.shell.channel import CommandEnd, Input, Sink, TimeLimit


class LoopbackChannel:
    """Runs each command as a child process.

    Args:
        host: name of the machine that this one pretends to be.
    """

    poll_s = 0.05

    def __init__(self, host: str = "loopback") -> None:
        self.host = host

    def execute(
        self, argv: Sequence[str], stdin: Input, sink: Sink, *, limit: TimeLimit
    ) -> CommandEnd:
        """Run a command to its end."""
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

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _feed(child: subprocess.Popen[bytes], stdin: Input) -> None:
    """Send the input part by part; a child that reads none of it is no error."""
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin:
        for part in [stdin] if isinstance(stdin, bytes) else stdin:
            child.stdin.write(part)
