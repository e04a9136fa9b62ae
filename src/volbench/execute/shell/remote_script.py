"""Script calls on a remote host: script, arguments, limits and result.

Each script first prints a marker to both outputs. Preceding output, such as a greeting from shell
start-up files, is dropped. A missing marker means that the login shell did not run the script.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from volbench.errors import TransportError
from volbench.execute.shell.channel import Channel, Sink, TimeLimit

_PREAMBLE_LIMIT_BYTES = 64 * 1024
_OUTPUT_LIMIT_BYTES = 256 * 1024**2

_BEGIN = (
    "m=$1; shift; LC_ALL=C; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export LC_ALL PATH; "
    'echo "$m"; echo "$m" >&2; '
)


@dataclass(frozen=True)
class ScriptCall:
    """A script with its arguments."""

    script: str  # one of `posix_scripts`
    arguments: tuple[str, ...]  # positional parameters, of any content
    name: str  # name of the action, for messages
    stdin: bytes = b""  # standard input
    timeout_s: float = 60.0  # limit of the whole call
    silence_s: float | None = None  # limit of the time without output, which replaces `timeout_s`
    repeatable: bool = True  # whether it is idempotent and may be resent after a broken connection
    # creates the receiver of the output for each attempt; None to collect the output
    sink: Callable[[], Sink] | None = None

    @property
    def limit(self) -> TimeLimit:
        """Time limit of the call."""
        if self.silence_s is not None:
            return TimeLimit(self.name, self.silence_s, of_silence=True)
        return TimeLimit(self.name, self.timeout_s)


@dataclass(frozen=True)
class ScriptAnswer:
    """Exit status of a script, and its output after the marker."""

    status: int
    stdout: bytes
    stderr: str
    mark: str

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode("utf-8", errors="replace")

    @property
    def reason(self) -> str:
        """Last part of the first line of standard error."""
        first = self.stderr.strip().splitlines() or [f"status {self.status}"]
        return first[0].rpartition(": ")[2]


class _AfterMark:
    """Sink that forwards the output after a marker, and reports any output."""

    def __init__(self, mark: bytes, sink: Sink, on_output: Callable[[], None]) -> None:
        self._mark = mark + b"\n"
        self._sink = sink
        self._on_output = on_output
        self._before = b""
        self.found = False

    def __call__(self, part: bytes) -> None:
        """Process a chunk of the output."""
        self._on_output()
        if self.found:
            self._sink(part)
            return
        self._before += part
        before, mark, rest = self._before.partition(self._mark)
        self.found = bool(mark)
        self._before = before[-_PREAMBLE_LIMIT_BYTES:]
        if rest:
            self._sink(rest)

    @property
    def preamble(self) -> str:
        """Output before the marker."""
        return self._before.decode("utf-8", "replace").strip()


class Collected:
    """Sink that collects the output, up to a limit."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._bytes = 0

    def __call__(self, part: bytes) -> None:
        """Process a chunk of the output."""
        self._bytes += len(part)
        if self._bytes > _OUTPUT_LIMIT_BYTES:
            raise TransportError(
                f"a program printed more than {_OUTPUT_LIMIT_BYTES} bytes and was abandoned",
                hint="redirect its output to a file and fetch that",
            )
        self.parts.append(part)

    @property
    def content(self) -> bytes:
        """All chunks so far."""
        return b"".join(self.parts)


def script_argv(script: str, mark: str, *arguments: str) -> list[str]:
    """Return the command that runs a script with arguments."""
    argv = ["sh", "-c", _BEGIN + script, "sh", mark, *arguments]
    check_words(argv)
    return argv


def check_words(words: Sequence[str]) -> None:
    """Check that a shell can receive some words."""
    if any("\0" in word for word in words):
        raise TransportError(
            "a command that contains a NUL byte cannot be sent",
            hint="correct the name or argument",
        )


def call_script(
    channel: Channel, call: ScriptCall, *, on_output: Callable[[], None] = lambda: None
) -> ScriptAnswer:
    """Run a script once and return its result."""
    mark = f"volbench-{secrets.token_hex(8)}"
    collected = Collected()
    marked = _AfterMark(mark.encode(), collected if call.sink is None else call.sink(), on_output)
    argv = script_argv(call.script, mark, *call.arguments)
    end = channel.execute(argv, call.stdin, marked, limit=call.limit)
    before, found, errors = end.stderr.partition(f"{mark}\n".encode())
    if not marked.found:
        printed = f"{marked.preamble} {before.decode('utf-8', 'replace')}".strip()
        raise TransportError(
            f"the login shell on {channel.host} did not run {call.name}: "
            f"{printed[:500] or f'it ended with status {end.status}'}",
            hint="log in there and try a command; the login shell must be a shell, such as /bin/sh",
        )
    stderr = (errors if found else before).decode("utf-8", "replace")
    return ScriptAnswer(end.status, collected.content, stderr, mark)
