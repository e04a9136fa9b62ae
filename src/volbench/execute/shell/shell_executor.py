"""Executor over a channel: programs run to completion, and detached programs.

The host needs a POSIX shell and coreutils or busybox, but neither sftp nor Python. A later
controller can reattach to detached programs.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from volbench.errors import AuthError, TransportError
from volbench.execute.protocol import FOREVER_S, ClockReading, Completed
from volbench.execute.retry import Patience, retry
from volbench.execute.session.kept_shell import OnEnd, OnFrame, Session
from volbench.execute.shell import posix_scripts
from volbench.execute.shell.channel import Channel
from volbench.execute.shell.detached import DetachedProcess, LaunchOrder, launch
from volbench.execute.shell.remote_script import ScriptAnswer, ScriptCall
from volbench.execute.shell.shell_files import ShellFiles, write_words

_CHECK_S = 60.0
_KILL_DELAY_S = 2  # Margin by which the timeout on the host exceeds the controller's

_DEVICE_TOOLS = frozenset({"blkid", "blockdev", "fio", "fuser", "lsof", "nvme", "smartctl"})
_DEVICE_FOLDERS = ("/dev/", "/sys/dev/block/")
_SUDO_REFUSAL = re.compile(
    r"^sudo: (.*(?:password|terminal|not allowed|sudoers|setuid).*)$", re.MULTILINE
)


class ShellExecutor(ShellFiles):
    """Executor of a host over a channel; see `ShellFiles` for the arguments."""

    def __init__(
        self,
        channel: Channel,
        *,
        sudo: bool = False,
        work_folder: str = "",
        patience: Patience | None = None,
    ) -> None:
        super().__init__(channel, sudo=sudo, work_folder=work_folder, patience=patience)
        self._starts: Counter[str] = Counter()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        stdin: bytes = b"",
        sudo: bool | None = None,
        repeatable: bool = True,
        files: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a program to completion with LC_ALL=C.

        Children that outlive it must close its output. The exit status after a signal is 128 plus
        the signal number.

        Args:
            timeout_s: limit; the host kills the program shortly after it.
            sudo: whether to run it by `sudo -n` if not root; None to follow `needs_sudo`.
            repeatable: whether it is idempotent and may be resent after a broken connection.
            files: small files to write before, in the same request; see `write_texts`.
        """
        by_sudo = self.needs_sudo(argv) if sudo is None else sudo
        seconds = str(math.ceil(timeout_s) + _KILL_DELAY_S)
        flags = seconds, "KILL", "sudo" if by_sudo else "", "input" if stdin else ""
        written = write_words(tuple(files.items())) if files else ()
        call = ScriptCall(
            posix_scripts.WRITE_AND_RUN if files else posix_scripts.RUN,
            (*written, *flags, *argv),
            argv[0],
            stdin=stdin,
            timeout_s=timeout_s,
            repeatable=repeatable,
        )
        answer = self._call(call)
        if files and answer.status == posix_scripts.DAMAGED:
            self.write_texts(files)
            answer = self._call(call)
        self._require_started(answer, argv, by_sudo=by_sudo)
        return Completed(tuple(argv), answer.status, answer.text, answer.stderr)

    def run_on_files(self, argv: Sequence[str], texts: Sequence[str]) -> Completed:
        """Run a program on temporary files, in a single request that also removes them."""
        argv = [*argv, *map(str, range(len(texts)))]
        by_sudo = self.needs_sudo(argv)
        flags = str(math.ceil(_CHECK_S) + _KILL_DELAY_S), "KILL", "sudo" if by_sudo else "", ""
        answer = self._call(
            ScriptCall(
                posix_scripts.RUN_ON_FILES,
                (self._work_folder, str(len(texts)), *texts, *flags, *argv),
                argv[0],
                timeout_s=_CHECK_S,
            )
        )
        if answer.status == posix_scripts.REFUSED:
            raise self._refusal(
                f"{self._work_folder} cannot be written on",
                answer,
                TransportError,
                path=self._work_folder,
                hint="set `workdir` in the inventory to a folder that your user may write to",
            )
        self._require_started(answer, argv, by_sudo=by_sudo)
        return Completed(tuple(argv), answer.status, answer.text, answer.stderr)

    def needs_sudo(self, argv: Sequence[str]) -> bool:
        """Return whether a program is fio, a device tool, or has an argument that is a device."""
        is_tool = posixpath.basename(argv[0]) in _DEVICE_TOOLS
        return bool(self._sudo) and (
            is_tool or any(argument.startswith(_DEVICE_FOLDERS) for argument in argv[1:])
        )

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        stderr: str,
        longest_s: float = FOREVER_S,
        followed: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
    ) -> DetachedProcess:
        """Start a program in its own session, with standard error redirected to the file `stderr`.

        Its control folder is hidden and beside that file, with the same stem.
        """
        self._starts[stderr] += 1
        count = self._starts[stderr]
        control = self.handle_of(stderr) + (f".{count}" if count > 1 else "")
        by_sudo = self.needs_sudo(argv)
        process = DetachedProcess(self, control, sudo=by_sudo, is_new=True, followed=followed)
        process.watch()  # its messages follow the launch without a further round trip
        order = LaunchOrder(argv, cwd, stderr, control, longest_s, files or {})
        launch(self, order, sudo=by_sudo)
        return process

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> DetachedProcess:
        """Reattach to a program that an earlier controller started."""
        return DetachedProcess(self, handle, sudo=bool(self._sudo), followed=followed)

    def subscribe(
        self, arguments: Sequence[str], on_frame: OnFrame, on_end: OnEnd, *, sudo: bool
    ) -> Session:
        """Start to push the state of a detached program; see `KeptShell.subscribe`."""
        return self._shell.subscribe(arguments, on_frame, on_end, sudo=sudo)

    def handle_of(self, stderr: str) -> str:
        """Return the control folder of the first program started with the file `stderr`."""
        path = PurePosixPath(stderr)
        return str(path.with_name(f".{path.stem}"))

    def was_started(self, handle: str) -> bool:
        """Return whether the program of a control folder was started."""
        return self.stat(f"{handle}/start") is not None

    def read_clock(self, count: int) -> tuple[ClockReading, ...]:
        """Return `count` readings of the host's clock, all from one running shell.

        A shell per reading would bias it by the start-up time before `date`.
        """
        return retry(
            lambda: self._shell.read_clock(count),
            may_repeat=lambda error: error.transient,
            patience=Patience(tries=3),
        )

    def close(self) -> None:
        """Release the host; running programs continue."""
        self._shell.close()
        self._channel.close()

    def _require_started(self, answer: ScriptAnswer, argv: Sequence[str], *, by_sudo: bool) -> None:
        stderr = answer.stderr.strip()
        if stderr == f"{answer.mark} {posix_scripts.MISSING}":
            raise TransportError(
                f"{argv[0]} cannot be started on {self.host}: no such program",
                hint=f"check that it is installed there: command -v {argv[0]}",
            )
        refusal = _SUDO_REFUSAL.search(stderr) if by_sudo and answer.status else None
        if stderr == f"{answer.mark} {posix_scripts.NO_SUDO}" or refusal:
            reason = refusal[1] if refusal else "it is not installed"
            raise AuthError(
                f"sudo does not start {argv[0]} on {self.host}: {reason}",
                hint="allow your user to run it without a password (NOPASSWD in sudoers), "
                "log in as root, or remove `sudo` from the inventory",
            )
