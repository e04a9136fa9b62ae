"""Executor for the controller's own machine.

Processes write standard output to an unlinked file: a slow reader never blocks them, and they get
no SIGPIPE when the controller dies.
"""

from __future__ import annotations

import codecs
import errno
import math
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from volbench.errors import InputError, RefusedError, TransportError, VolbenchError
from volbench.execute.local_base import LocalBase, LocalProcessBase
from volbench.execute.local_files import LocalHeldDevice, file_stat, remove_exact
from volbench.execute.protocol import FOREVER_S, Completed, FileStat
from volbench.model.campaign.planned_run import FileIdentity

# Directories of system tools such as blkid; not in every unprivileged user's PATH
_SYSTEM_PATH = ("/usr/sbin", "/sbin")

_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_KILL_PATIENCE_S = 5.0


class LocalProcess(LocalProcessBase):
    """A local process in a session of its own."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self._process = process
        self._output = output
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        weakref.finalize(self, os.close, output)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status (negative: signal number), or None while the process runs."""
        return self._process.poll()

    def read_output(self) -> str:
        """Return the standard output since the last call."""
        parts = []
        end = os.fstat(self._output).st_size  # ends the loop even if the process writes faster
        while self._offset < end:
            part = os.pread(self._output, 65536, self._offset)
            self._offset += len(part)
            parts.append(self._decoder.decode(part))
        return "".join(parts)

    def skip_output(self, count: int) -> None:
        """Skip the first bytes of the output."""
        self._offset = count

    def signal(self, number: int) -> None:
        """Send a signal to the process group, if the process is running."""
        if self.poll() is None:
            _signal_group(self._process, number)

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None if the process still runs after `timeout_s`."""
        return _wait(self._process, timeout_s)


class LocalExecutor(LocalBase):
    """The machine the controller runs on."""

    def __init__(self, host: str = "local") -> None:
        self.host = host

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Completed:
        """Run a program to completion with LC_ALL=C and no input."""
        with _unlinked_file() as stdout, _unlinked_file() as stderr:
            process = _spawn(argv, stdout=stdout, stderr=stderr, cwd=None, extra={})
            try:
                status = _wait(process, timeout_s)
            finally:
                _kill(process)
            if status is None:
                raise TransportError(
                    f"{argv[0]} did not end in {timeout_s:g} s and was killed",
                    hint="a hung program is often blocked on an unresponsive volume",
                )
            return Completed(tuple(argv), status, _text(stdout), _text(stderr))

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        stderr: str,
        longest_s: float = FOREVER_S,
        followed: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
    ) -> LocalProcess:
        """Start a program in its own session, with standard error redirected to the file `stderr`.

        TMPDIR is set to `cwd`, because fio reacts to a file named fio-dump-status there.
        """
        del longest_s, followed  # the process ends with its controller
        self.write_texts(files or {})
        extra = {"TMPDIR": os.path.abspath(cwd)}  # noqa: PTH100 - resolve() would follow symlinks
        try:
            errors = Path(stderr).open("wb")  # noqa: SIM115 - closed by the with below
        except OSError as error:
            raise TransportError(
                f"{stderr} cannot be written: {error.strerror}",
                hint="check permissions and free space",
            ) from error
        with errors, _unlinked_file() as stdout:
            process = _spawn(argv, stdout=stdout, stderr=errors, cwd=cwd, extra=extra)
            return LocalProcess(process, os.dup(stdout.fileno()))

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> LocalProcess:
        """Raise: only the controller that started a local process can read its output."""
        del followed
        raise _not_found(self.host, handle)

    def which(self, program: str) -> str | None:
        """Return the absolute path of a program, or None."""
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM_PATH])
        found = shutil.which(program, path=path)
        return None if found is None else str(Path(found).absolute())

    def read_text(self, path: str) -> str | None:
        """Return the text of a file, or None if unreadable."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return None
                return file.read().decode("utf-8", errors="replace")
        except OSError:
            return None

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory; empty if it does not exist."""
        try:
            return tuple(sorted(entry.name for entry in Path(path).iterdir()))
        except OSError:
            return ()

    def real_path(self, path: str) -> str:
        """Return the path with all symlinks resolved; nonexistent components are kept."""
        return os.path.realpath(path)

    def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
        """Return the stat result of a path, or None if it does not exist."""
        try:
            return file_stat(path, follow=follow)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise _not_examined(path, error) from error

    def hold(self, path: str, *, exclusive: bool) -> LocalHeldDevice:
        """Open a block device."""
        return LocalHeldDevice(path, exclusive=exclusive)

    def exclusive_error(self, path: str) -> str:
        """Return the error of opening a block device with O_EXCL, or "" on success."""
        try:
            if not stat.S_ISBLK(Path(path).stat().st_mode):
                return "not a block device"
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def free_bytes(self, path: str) -> int:
        """Return the bytes available to unprivileged users on the filesystem of `path`."""
        try:
            found = os.statvfs(path)
        except OSError as error:
            raise _not_examined(path, error) from error
        return found.f_bavail * found.f_frsize

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise VolbenchError(
                f"{path} cannot be removed: {error.strerror}",
                hint="remove it manually",
            ) from error

    def remove_exact(self, path: str, identity: FileIdentity) -> bool:
        """Remove a file or an empty directory if its identity matches."""
        try:
            return remove_exact(path, identity)
        except OSError as error:
            raise VolbenchError(
                f"{path} cannot be removed: {error.strerror}",
                hint="remove it manually",
            ) from error

    def make_private_folder(self, path: str) -> bool:
        """Create a directory with mode 0700; return False if the path exists."""
        try:
            Path(path).mkdir(mode=0o700)
        except FileExistsError:
            return False
        except OSError as error:
            raise RefusedError(
                f"{path} cannot be created: {error.strerror}",
                hint="check permissions and free space",
            ) from error
        return True

    def write_text(self, path: str, text: str) -> None:
        """Write a file atomically."""
        temporary = Path(f"{path}.{os.getpid()}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            raise TransportError(
                f"{path} cannot be written: {error.strerror}",
                hint="check permissions and free space",
            ) from error

    def write_texts(self, files: Mapping[str, str]) -> None:
        """Write small files atomically, creating their folders."""
        for path, text in files.items():
            Path(path if path.endswith("/") else os.path.dirname(path)).mkdir(  # noqa: PTH120 - text
                parents=True, exist_ok=True
            )
            if not path.endswith("/"):
                self.write_text(path, text)


def _not_found(host: str, handle: str) -> TransportError:
    return TransportError(
        f"cannot reattach to process {handle!r} on {host}",
        hint="repeat its run: volbench resume DIR --retry-failed",
    )


def _spawn(
    argv: Sequence[str],
    *,
    stdout: IO[bytes],
    stderr: IO[bytes],
    cwd: str | None,
    extra: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - an argument list, never a shell
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", **extra},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TransportError(
            f"{argv[0]} cannot be started: {reason}",
            hint=f"check that it is installed: command -v {argv[0]}",
        ) from error


def _unlinked_file() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise TransportError(
            f"no temporary file can be created: {error.strerror}",
            hint="free some space in /tmp, or set TMPDIR to a directory with free space",
        ) from error


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """Return the exit status as soon as a process ends, or None on timeout.

    `Popen.wait` with a timeout sleeps up to 50 ms between polls. A pidfd becomes readable when its
    process ends (pidfd_open(2), Linux 5.3).
    """
    if (status := process.poll()) is not None:
        return status
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # an older kernel, or a sandbox that forbids it
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout_s)
        return None
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        poller.poll(math.ceil(timeout_s * 1000))
    finally:
        os.close(descriptor)
    return process.poll()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and wait briefly: in uninterruptible sleep (D state) it cannot be killed."""
    if process.poll() is not None:
        return
    _signal_group(process, signal.SIGKILL)
    try:
        process.wait(_KILL_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:  # it ended after the poll
        return


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def _not_examined(path: str, error: OSError) -> InputError:
    return InputError(
        f"{path} cannot be examined: {error.strerror}",
        hint="check the path and its permissions",
    )
