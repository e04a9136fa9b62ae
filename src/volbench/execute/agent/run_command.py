"""Programs that run to their end, each in a session of its own with a time limit."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import threading
import typing

from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.files import search_path

MAX_OUTPUT_BYTES = 64 * 1024 * 1024  # fio prints at most a few MB; a reply has to fit in memory.
_KILL_PATIENCE_S = 5.0  # In uninterruptible sleep (D state) a process cannot be killed.

_running = set()  # type: set[subprocess.Popen[bytes]]
_lock = threading.Lock()


class Output(typing.NamedTuple):
    """Output of a completed program; undecodable bytes are replaced."""

    status: int  # negative after a signal
    stdout: str
    stderr: str


def run(
    argv: "list[str]", timeout_s: float = 60.0, stdin: str = "", files: "typing.Sequence[int]" = ()
) -> Output:
    """Run a program to completion with LC_ALL=C.

    It inherits the descriptors `files`. The group of the program is killed after `timeout_s`.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = spawn(argv, stdout=output, stderr=errors, stdin=stdin, files=files)
        with _lock:
            _running.add(process)
        try:
            status = wait(process, timeout_s)
        finally:
            kill(process)
            with _lock:
                if process.returncode is not None:  # else it waits for a volume
                    _running.discard(process)
        if status is None:
            raise AgentError("timeout", "no end in {:g} s".format(timeout_s))
        return Output(status, _content_of(output), _content_of(errors))


def run_on_files(argv: "list[str]", texts: "list[str]", timeout_s: float = 60.0) -> Output:
    """Run a program on files without names, whose paths follow its arguments."""
    with contextlib.ExitStack() as stack:
        numbers = []
        for text in texts:
            file = stack.enter_context(tempfile.TemporaryFile())
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()
            numbers.append(file.fileno())
        paths = ["/proc/self/fd/{}".format(number) for number in numbers]
        return run([*argv, *paths], timeout_s, files=numbers)


def spawn(
    argv: "list[str]",
    stdout: "typing.IO[bytes] | int",
    stderr: "typing.IO[bytes] | int",
    stdin: str = "",
    files: "typing.Sequence[int]" = (),
    extra: "dict[str, str] | None" = None,
) -> "subprocess.Popen[bytes]":
    """Start a program in its own session; an error is `missing` if there is no such program."""
    environment = dict(os.environ, LC_ALL="C", PATH=search_path(), **(extra or {}))
    with tempfile.TemporaryFile() as given:
        given.write(stdin.encode("utf-8", "surrogateescape"))
        given.seek(0)
        try:
            return subprocess.Popen(
                argv,
                stdin=given if stdin else subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=files,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise of_os_error(error) from error
        except ValueError as error:  # such as a NUL byte
            raise AgentError("failed", str(error)) from error


def wait(process: "subprocess.Popen[bytes]", timeout_s: float) -> "int | None":
    """Return the exit status as soon as a process ends, or None on timeout.

    `Popen.wait` with a timeout sleeps up to 50 ms between polls. A pidfd becomes readable when its
    process ends (pidfd_open(2), Linux 5.3, Python 3.9).
    """
    try:
        descriptor = getattr(os, "pidfd_open")(process.pid)  # noqa: B009 - not in Python 3.6
    except (AttributeError, OSError):  # older, or a sandbox that forbids it
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        poller.poll(max(0, int(timeout_s * 1000) + 1))
    finally:
        os.close(descriptor)
    return process.poll()


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the group of a process that still runs, and wait briefly."""
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(_KILL_PATIENCE_S)


def kill_all() -> None:
    """Kill all programs of `run`, at the end of the agent."""
    with _lock:
        processes = list(_running)
    for process in processes:
        kill(process)


def _content_of(file: "typing.IO[bytes]") -> str:
    file.seek(0)
    content = file.read(MAX_OUTPUT_BYTES + 1)
    if len(content) > MAX_OUTPUT_BYTES:
        raise AgentError("failed", "it printed more than {} bytes".format(MAX_OUTPUT_BYTES))
    return content.decode("utf-8", "replace")
