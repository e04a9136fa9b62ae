"""Executor of the controller's own machine.

A started process writes its standard output to an unlinked file: a slow reader never holds it up,
and it does not die of a broken pipe when the controller does.
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
from volbench.model.campaign.target import FileIdentity

_SYSTEM_PATH = ("/usr/sbin", "/sbin")
"""Folders of blkid and the like; not on every ordinary user's PATH."""

_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_KILL_PATIENCE_S = 5.0


class LocalProcess(LocalProcessBase):
    """A process on this machine that leads its own session."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self._process = process
        self._output = output
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        weakref.finalize(self, os.close, output)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status (negative: ended by that signal), or None while it runs."""
        return self._process.poll()

    def read_output(self) -> str:
        """Return what it wrote to standard output since the last call."""
        parts = []
        end = os.fstat(self._output).st_size  # a fast writer must not keep us here
        while self._offset < end:
            part = os.pread(self._output, 65536, self._offset)
            self._offset += len(part)
            parts.append(self._decoder.decode(part))
        return "".join(parts)

    def skip_output(self, count: int) -> None:
        """Skip the first bytes of its output."""
        self._offset = count

    def signal(self, number: int) -> None:
        """Send a signal to its whole process group; nothing happens when it has ended."""
        if self.poll() is None:
            _signal_group(self._process, number)

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None when it still runs after `timeout_s`."""
        return _wait(self._process, timeout_s)


class LocalExecutor(LocalBase):
    """The machine that the controller runs on.

    Args:
        host: its name in the plan.
    """

    def __init__(self, host: str = "local") -> None:
        self.host = host

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Completed:
        """Run a program to its end with LC_ALL=C and no input.

        Raises:
            TransportError: the program is missing, or did not end in `timeout_s` (it is killed).
        """
        with _unlinked_file() as stdout, _unlinked_file() as stderr:
            process = _spawn(argv, stdout=stdout, stderr=stderr, cwd=None, extra={})
            try:
                status = _wait(process, timeout_s)
            finally:
                _kill(process)
            if status is None:
                raise TransportError(
                    f"{argv[0]} did not end in {timeout_s:g} s and was killed",
                    hint="a program that hangs often waits for a volume that does not respond",
                    context={"argv": tuple(argv)},
                )
            return Completed(tuple(argv), status, _text(stdout), _text(stderr))

    def start(
        self, argv: Sequence[str], *, cwd: str, stderr: str, longest_s: float = FOREVER_S
    ) -> LocalProcess:
        """Start a program in its own session, standard error to the file `stderr`.

        Its temporary directory is `cwd`: fio obeys a file named fio-dump-status there.

        Raises:
            TransportError: it can't be started.
        """
        del longest_s  # it ends with its controller
        extra = {"TMPDIR": os.path.abspath(cwd)}  # noqa: PTH100 - a path with .. stays as it is
        try:
            errors = Path(stderr).open("wb")  # noqa: SIM115 - closed by the with below
        except OSError as error:
            raise TransportError(
                f"{stderr} can't be written: {error.strerror}",
                hint="check permissions and free space",
                context={"path": stderr},
            ) from error
        with errors, _unlinked_file() as stdout:
            process = _spawn(argv, stdout=stdout, stderr=errors, cwd=cwd, extra=extra)
            return LocalProcess(process, os.dup(stdout.fileno()))

    def find(self, handle: str) -> LocalProcess:
        """Raise: only its own controller can read the output of a process here.

        Raises:
            TransportError: always.
        """
        raise _not_found(self.host, handle)

    def which(self, program: str) -> str | None:
        """Return the absolute path of a program, or None."""
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM_PATH])
        found = shutil.which(program, path=path)
        return None if found is None else str(Path(found).absolute())

    def read_text(self, path: str) -> str | None:
        """Return a file's text, or None when it can't be read."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return None
                return file.read().decode("utf-8", errors="replace")
        except OSError:
            return None

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory; empty when there is none."""
        try:
            return tuple(sorted(entry.name for entry in Path(path).iterdir()))
        except OSError:
            return ()

    def real_path(self, path: str) -> str:
        """Return the path with every symlink resolved; parts that do not exist are kept."""
        return os.path.realpath(path)

    def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
        """Return what a path is, or None when nothing is there.

        Raises:
            InputError: the system does not let us look.
        """
        try:
            return file_stat(path, follow=follow)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise _not_examined(path, error) from error

    def hold(self, path: str, *, exclusive: bool) -> LocalHeldDevice:
        """Open a block device.

        Raises:
            RefusedError: it can't be opened.
        """
        return LocalHeldDevice(path, exclusive=exclusive)

    def exclusive_error(self, path: str) -> str:
        """Open a block device with O_EXCL and close it; return "" or the system's reason."""
        try:
            if not stat.S_ISBLK(Path(path).stat().st_mode):
                return "not a block device"
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def free_bytes(self, path: str) -> int:
        """Return the bytes an ordinary user may still write to the filesystem of `path`.

        Raises:
            InputError: the system refuses.
        """
        try:
            found = os.statvfs(path)
        except OSError as error:
            raise _not_examined(path, error) from error
        return found.f_bavail * found.f_frsize

    def remove(self, path: str) -> None:
        """Remove one file; nothing happens when it is gone.

        Raises:
            VolbenchError: the system refused.
        """
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise VolbenchError(
                f"{path} can't be removed: {error.strerror}",
                hint="remove it by hand",
                context={"path": path},
            ) from error

    def remove_exact(self, path: str, identity: FileIdentity) -> bool:
        """Remove a file or an empty folder if it is the one with an identity.

        Raises:
            VolbenchError: the system refused.
        """
        try:
            return remove_exact(path, identity)
        except OSError as error:
            raise VolbenchError(
                f"{path} can't be removed: {error.strerror}",
                hint="remove it by hand",
                context={"path": path},
            ) from error

    def make_private_folder(self, path: str) -> bool:
        """Make a folder that only its owner may use; False when something is there already.

        Raises:
            RefusedError: the system refused.
        """
        try:
            Path(path).mkdir(mode=0o700)
        except FileExistsError:
            return False
        except OSError as error:
            raise RefusedError(
                f"{path} can't be made: {error.strerror}",
                hint="check permissions and free space",
                context={"path": path},
            ) from error
        return True

    def write_text(self, path: str, text: str) -> None:
        """Write a file so that a reader sees all of it or nothing.

        Raises:
            TransportError: the system refused.
        """
        aside = f"{path}.{os.getpid()}.tmp"
        try:
            Path(aside).write_text(text, encoding="utf-8")
            Path(aside).replace(path)
        except OSError as error:
            raise TransportError(
                f"{path} can't be written: {error.strerror}",
                hint="check permissions and free space",
                context={"path": path},
            ) from error


def _not_found(host: str, handle: str) -> TransportError:
    return TransportError(
        f"a process on {host} can't be found again by {handle!r}",
        hint="repeat its run: volbench resume DIR --retry-failed",
        context={"host": host},
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
            f"{argv[0]} can't be started: {reason}",
            hint=f"check that it is installed: command -v {argv[0]}",
            context={"argv": tuple(argv)},
        ) from error


def _unlinked_file() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise TransportError(
            f"no temporary file can be made: {error.strerror}",
            hint="free some space in /tmp, or set TMPDIR to a folder with room",
        ) from error


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """Return the exit status as soon as a process ends, or None when it still runs at the end.

    `Popen.wait` with a timeout sleeps up to 50 ms between two looks. A pidfd becomes readable when
    its process ends (pidfd_open(2), Linux 5.3).
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
    """Kill what still runs, and wait a little: a process in a system call can't be killed."""
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
    except ProcessLookupError:  # it ended since we looked
        return


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def _not_examined(path: str, error: OSError) -> InputError:
    return InputError(
        f"{path} can't be examined: {error.strerror}",
        hint="check the path and its permissions",
        context={"path": path},
    )
