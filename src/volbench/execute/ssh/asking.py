"""Running one of the scripts on a host: a script and its arguments enter, its answer leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from volbench.errors import TransportError
from volbench.execute.ssh.command import Command
from volbench.execute.ssh.pool import ConnectionPool
from volbench.execute.ssh.scripts import line

_TALK_LIMIT_BYTES = 64 * 1024
_OUTPUT_LIMIT_BYTES = 256 * 1024**2

Sink = Callable[[bytes], None]


@dataclass(frozen=True)
class Question:
    """A script with its arguments.

    Attributes:
        script: one of ours.
        arguments: of any content.
        name: for messages.
        stdin: its input.
        timeout_s: deadline.
        quiet_s: instead of a deadline, the longest time without any output.
        repeat: whether it may be run twice.
        sink: makes what takes the output, once for each try; None to collect it.
    """

    script: str
    arguments: tuple[str, ...]
    name: str
    stdin: bytes = b""
    timeout_s: float = 60.0
    quiet_s: float | None = None
    repeat: bool = True
    sink: Callable[[], Sink] | None = None


@dataclass(frozen=True)
class Answer:
    """What a script said, the mark and all before it left out."""

    status: int
    stdout: bytes
    stderr: str
    mark: str

    @property
    def reason(self) -> str:
        """The first thing it complained of, in a few words."""
        first = self.stderr.strip().splitlines() or [f"status {self.status}"]
        return first[0].rpartition(": ")[2]


class _Marked:
    """Passes on what follows a mark."""

    def __init__(self, mark: bytes, sink: Sink) -> None:
        self._mark = mark + b"\n"
        self._sink = sink
        self._before = b""
        self.found = False

    def __call__(self, part: bytes) -> None:
        """Take a part of the output."""
        if self.found:
            self._sink(part)
            return
        self._before += part
        before, mark, rest = self._before.partition(self._mark)
        self.found = bool(mark)
        self._before = before[-_TALK_LIMIT_BYTES:]
        if rest:
            self._sink(rest)

    @property
    def talk(self) -> str:
        """What came before the mark."""
        return self._before.decode("utf-8", "replace").strip()


class _Collected:
    """All of the output, up to a limit."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._bytes = 0

    def __call__(self, part: bytes) -> None:
        """Take a part of the output."""
        self._bytes += len(part)
        if self._bytes > _OUTPUT_LIMIT_BYTES:
            raise TransportError(
                f"a program printed more than {_OUTPUT_LIMIT_BYTES} bytes and was given up",
                hint="let it write to a file, and fetch that",
            )
        self.parts.append(part)


def ask(pool: ConnectionPool, host: str, question: Question) -> Answer:
    """Run a script on a host and return its answer.

    Raises:
        TransportError: it could not be run to its end.
    """
    sent = line(question.script, *question.arguments)
    collected = _Collected()
    marked = _Marked(sent.mark, collected)

    def fresh() -> Sink:
        nonlocal collected, marked
        collected = _Collected()
        marked = _Marked(sent.mark, collected if question.sink is None else question.sink())
        return marked

    command = Command(
        sent.text,
        question.name,
        stdin=question.stdin,
        timeout_s=question.timeout_s,
        quiet_s=question.quiet_s,
    )
    ended = pool.execute(host, command, fresh, repeat=question.repeat)
    before, mark, errors = ended.stderr.partition(sent.mark + b"\n")
    if not marked.found:
        said = " ".join((marked.talk, before.decode("utf-8", "replace"))).strip()
        raise TransportError(
            f"the login shell on {host} did not run {question.name}: "
            f"{said[:500] or f'it ended with status {ended.status}'}",
            hint="log in there with ssh and see; it must be a shell, such as /bin/sh",
            context={"host": host},
        )
    stderr = (errors if mark else before).decode("utf-8", "replace")
    return Answer(ended.status, b"".join(collected.parts), stderr, sent.mark.decode("ascii"))
