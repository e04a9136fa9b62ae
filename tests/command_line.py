"""Command line called in the test process: starting Python and pandas costs a second of CPU."""

import io
import os
import pty
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, CompletedProcess, Popen
from typing import Any, TextIO
from unittest import mock

from volbench.cli.main import main

Volbench = Callable[..., CompletedProcess[str]]

COMMAND = [sys.executable, "-m", "volbench"]
"""Starts a process, for tests of signals, crashes, the environment and interleaved output."""


def start(*arguments: object, **options: Any) -> Popen[str]:  # noqa: ANN401 - any option of Popen
    """Start volbench in a process of its own, which says to a pipe what it says."""
    piped = {"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE, "text": True}
    process: Popen[str] = Popen([*COMMAND, *map(str, arguments)], **{**piped, **options})
    return process


def settings(*pairs: str) -> Sequence[str]:
    """Return ``--set`` arguments."""
    return [argument for pair in pairs for argument in ("--set", pair)]


class _Captured(io.TextIOWrapper):
    """A text stream kept in memory; like a pipe it has a buffer and is no terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    @property
    def text(self) -> str:
        """Everything that was written."""
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


@contextmanager
def _input(stdin: TextIO | None) -> Iterator[None]:
    with Path(os.devnull).open(encoding="utf-8") as empty, mock.patch("sys.stdin", stdin or empty):
        yield


def call(
    *arguments: str | Path, cwd: Path | None = None, columns: int = 200, stdin: TextIO | None = None
) -> CompletedProcess[str]:
    """Call volbench with arguments and return its exit status and what it printed.

    Neither output is a terminal. Tests of what only a process
    shows (signals, a kill, a broken pipe, imports) start one.

    Args:
        arguments: of the command line, without the program's name.
        cwd: working directory; the present one when None.
        columns: width of tables.
        stdin: standard input; an empty one that is no terminal when None.
    """
    stdout, stderr = _Captured(), _Captured()
    command = list(map(str, arguments))
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, {"COLUMNS": str(columns)}))
        stack.enter_context(chdir(cwd or Path.cwd()))
        stack.enter_context(_input(stdin))
        stack.enter_context(redirect_stdout(stdout))
        stack.enter_context(redirect_stderr(stderr))
        try:
            main(command)
        except SystemExit as ended:
            status = ended.code
    assert isinstance(status, int), status
    return CompletedProcess(["volbench", *command], status, stdout.text, stderr.text)


def everything_from(descriptor: int) -> bytes:
    """Read a terminal until its other side is closed: one read returns what is there by then."""
    chunks = []
    with suppress(OSError):  # Linux reports the end with EIO
        while chunk := os.read(descriptor, 4096):
            chunks.append(chunk)
    return b"".join(chunks)


def at_a_terminal(arguments: list[str], typed: str) -> tuple[int, str]:
    """Call volbench with a terminal as standard input, and answer its question."""
    controller, terminal = pty.openpty()
    try:
        os.write(controller, f"{typed}\n".encode())
        with open(terminal, encoding="utf-8", closefd=False) as stdin:
            done = call(*arguments, stdin=stdin)
    finally:
        os.close(controller)
        os.close(terminal)
    return done.returncode, done.stderr
