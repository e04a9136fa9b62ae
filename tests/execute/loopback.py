"""Channel to this machine by a subprocess: all that a new kind of machine must provide."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from volbench.execute.shell.channel import CommandEnd, Sink, TimeLimit


class LoopbackChannel:
    """Runs each command as a child process."""

    host = "loopback"
    poll_s = 0.05

    def execute(
        self, argv: Sequence[str], stdin: bytes, sink: Sink, *, limit: TimeLimit
    ) -> CommandEnd:
        """Run a command to its end."""
        try:
            done = subprocess.run(
                argv, input=stdin, capture_output=True, check=False, timeout=limit.seconds
            )
        except subprocess.TimeoutExpired as error:
            raise limit.exceeded(self.host) from error
        sink(done.stdout)
        return CommandEnd(done.returncode, done.stderr)

    def close(self) -> None:
        """Do nothing: there is no connection."""
