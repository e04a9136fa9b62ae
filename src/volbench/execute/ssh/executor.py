"""A host that is reached by SSH: programs and files enter as argument lists and paths, facts leave.

It needs sshd, a POSIX shell and the usual small tools there, of coreutils or busybox; no sftp, and
no Python. What only looks is repeated after the line broke. A program that was started is not.
"""

from __future__ import annotations

import hashlib
import math
import os
import posixpath
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from volbench.errors import (
    ArchiveError,
    AuthError,
    InputError,
    TransferError,
    TransportError,
    VolbenchError,
)
from volbench.execute.protocol import Completed, FileStat
from volbench.execute.ssh import scripts
from volbench.execute.ssh.asking import Answer, Question, ask
from volbench.execute.ssh.filestat import parse_stat
from volbench.execute.ssh.pool import ConnectionPool
from volbench.execute.ssh.retry import Patience, again
from volbench.execute.ssh.transfer import Incoming
from volbench.model.campaign.host import Host

_WORKDIR = ".volbench"
_KILLED_LATER_S = 2
"""The host ends a program this much later than we give up: its own clock decides."""

_QUIET_S = 60.0
_DAMAGED = Patience(tries=3)
_WRITE_S = 600.0
_LOOKS_AT_DEVICES = frozenset({"blkid", "blockdev", "fio", "fuser", "lsof", "nvme", "smartctl"})
_SUDO_REFUSES = re.compile(
    r"^sudo: (.*(?:password|terminal|not allowed|sudoers|setuid).*)$", re.MULTILINE
)
_REASON = re.compile(r"\[Errno \d+\] ([^:\n]+)")


class SshExecutor:
    """A machine of the inventory; all but `Executor.start`, which outlives the line.

    Args:
        host: the machine; it is added to the pool.
        pool: of connections, shared with other machines.

    Raises:
        InputError: the way to it can't be found.
    """

    def __init__(self, host: Host, pool: ConnectionPool) -> None:
        self.host = host.name
        self.inventory_host = host
        self._pool = pool
        pool.add(host)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        stdin: bytes = b"",
        sudo: bool | None = None,
        repeat: bool = False,
    ) -> Completed:
        """Run a program to its end with LC_ALL=C.

        Its children must close its output if they live on. A program that was ended by a signal
        has 128 and the signal's number as its status.

        Args:
            argv: program and arguments.
            timeout_s: deadline; the host ends the program a little later.
            stdin: its input.
            sudo: whether `sudo -n` starts it, unless we are root. None: if the host has `sudo`
                set, and it is fio or looks at devices, or an argument is below ``/dev``.
            repeat: whether it may be run twice if the line breaks.

        Raises:
            TransportError: the program is missing, or did not end in `timeout_s` (it is killed).
            AuthError: sudo asks for a password.
        """
        by_sudo = self.needs_sudo(argv) if sudo is None else sudo
        seconds = str(math.ceil(timeout_s) + _KILLED_LATER_S)
        flags = seconds, "KILL", "sudo" if by_sudo else "", "input" if stdin else ""
        answer = self._ask(
            Question(
                scripts.RUN,
                (*flags, *argv),
                argv[0],
                stdin=stdin,
                timeout_s=timeout_s,
                repeat=repeat,
            )
        )
        self._check_begun(answer, argv, by_sudo=by_sudo)
        return Completed(tuple(argv), answer.status, _text(answer.stdout), answer.stderr)

    def needs_sudo(self, argv: Sequence[str]) -> bool:
        """Tell whether the inventory wants a program started by sudo."""
        looks = posixpath.basename(argv[0]) in _LOOKS_AT_DEVICES
        return self.inventory_host.sudo and (
            looks or any(argument.startswith("/dev/") for argument in argv[1:])
        )

    def which(self, program: str) -> str | None:
        """Return the absolute path of a program, or None."""
        answer = self._ask(Question(scripts.WHICH, (program,), "a search"))
        return os.fsdecode(answer.stdout).removesuffix("\n") if answer.status == 0 else None

    def read_text(self, path: str) -> str | None:
        """Return a file's text, or None when it can't be read."""
        answer = self._ask(Question(scripts.READ, (path,), f"reading {path}"))
        return _text(answer.stdout) if answer.status == 0 else None

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory; empty when there is none."""
        answer = self._ask(Question(scripts.LIST, (path,), f"listing {path}"))
        return tuple(sorted(os.fsdecode(answer.stdout).split("/")[:-1]))

    def real_path(self, path: str) -> str:
        """Return the path with every symlink resolved; parts that do not exist are kept."""
        answer = self._ask(Question(scripts.REAL, (path,), f"resolving {path}"))
        found = posixpath.normpath(os.fsdecode(answer.stdout).removesuffix("\n"))
        return "/" + found.lstrip("/") if found.startswith("/") else found

    def stat(self, path: str) -> FileStat | None:
        """Return what a path is, or None when nothing is there.

        Raises:
            InputError: the system does not let us look.
        """
        answer = self._ask(Question(scripts.STAT, (path,), f"examining {path}"))
        if answer.status == 0:
            return parse_stat(_text(answer.stdout))
        if answer.reason in {"No such file or directory", "Not a directory"}:
            return None
        raise self._not_examined(path, answer)

    def exclusive_error(self, path: str) -> str:
        """Open a block device with O_EXCL and close it; return "" or the system's reason."""
        sudo = "sudo" if self.inventory_host.sudo else ""
        programs = scripts.PERL, scripts.PYTHON
        answer = self._ask(Question(scripts.EXCLUSIVE, (path, sudo, *programs), f"opening {path}"))
        said = _text(answer.stdout).strip()
        if answer.status == 0 or said:
            return said
        found = _REASON.search(answer.stderr)
        return found[1] if found else answer.reason

    def free_bytes(self, path: str) -> int:
        """Return the bytes an ordinary user may still write to the filesystem of `path`.

        Raises:
            InputError: the system does not tell.
        """
        answer = self._ask(Question(scripts.FREE, (path,), f"examining {path}"))
        if answer.status:
            raise self._not_examined(path, answer)
        blocks, block_bytes = map(int, answer.stdout.split())
        return blocks * block_bytes

    def remove(self, path: str) -> None:
        """Remove one file; nothing happens when it is gone.

        Raises:
            VolbenchError: the system refused.
        """
        answer = self._ask(Question(scripts.REMOVE, (path,), f"removing {path}"))
        if answer.status:
            raise VolbenchError(
                f"{path} can't be removed from {self.host}: {answer.reason}",
                hint="remove it by hand",
                context={"path": path, "host": self.host},
            )

    def write_text(self, path: str, text: str) -> None:
        """Write a file so that a reader sees all of it or nothing.

        Raises:
            TransportError: the machine refused.
        """
        self.write_bytes(path, text.encode())

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file so that a reader sees all of it or nothing, and check that it arrived.

        Raises:
            TransferError: it did not arrive as it was sent.
            TransportError: the machine refused.
        """
        again(lambda: self._write(path, data), may_repeat=_was_damaged, patience=_DAMAGED)

    def _write(self, path: str, data: bytes) -> None:
        digest = hashlib.sha256(data).hexdigest()
        arguments = path, secrets.token_hex(4), digest
        name = f"writing {path}"
        answer = self._ask(Question(scripts.WRITE, arguments, name, stdin=data, timeout_s=_WRITE_S))
        if answer.status == scripts.DAMAGED:
            raise TransferError(
                f"{path} did not arrive on {self.host} as it was sent",
                hint="the host needs sha256sum, of coreutils or busybox; try again",
                context={"path": path, "host": self.host},
            )
        if answer.status:
            raise TransportError(
                f"{path} can't be written on {self.host}: {answer.reason}",
                hint="check permissions and free space there",
                context={"path": path, "host": self.host},
            )

    def fetch(self, path: str, into: Path, *, compressed: bool = True) -> None:
        """Copy a file from the machine, whole or not at all.

        Args:
            path: there.
            into: here; its folder exists. What is there is replaced.
            compressed: whether the machine compresses it on the way, if it can.

        Raises:
            TransferError: it did not arrive as it is there.
            TransportError: it can't be read there.
            ArchiveError: it can't be written here.
        """
        again(
            lambda: self._fetch(path, into, "gzip" if compressed else ""),
            may_repeat=_was_damaged,
            patience=_DAMAGED,
        )

    def _fetch(self, path: str, into: Path, how: str) -> None:
        with Incoming(f"{path} of {self.host}", into) as incoming:
            answer = self._ask(
                Question(
                    scripts.FETCH,
                    (path, how),
                    f"fetching {path}",
                    quiet_s=_QUIET_S,
                    sink=incoming.restart,
                )
            )
            if answer.status:
                raise TransportError(
                    f"{path} can't be fetched from {self.host}: {answer.reason}",
                    hint="check that it is there, and its permissions",
                    context={"path": path, "host": self.host},
                )
            incoming.keep()

    def workplace(self, folder: str, *, name: str) -> str:  # noqa: ARG002 - the controller's own has no meaning there
        """Return the folder on the machine that stands for one of the controller's.

        It is below the host's `workdir`, and exists when this returns.

        Raises:
            TransportError: it can't be made.
        """
        base = self.inventory_host.workdir or _WORKDIR
        answer = self._ask(Question(scripts.FOLDER, (f"{base}/{name}",), "making a folder"))
        if answer.status:
            raise TransportError(
                f"{base}/{name} can't be made on {self.host}: {answer.reason}",
                hint="set `workdir` in the inventory to a folder that your user may write to",
                context={"host": self.host},
            )
        return os.fsdecode(answer.stdout).removesuffix("\n")

    def bring_back(self, place: str, folder: str) -> None:
        """Copy every file of a workplace into its folder, each whole or not at all.

        Raises:
            TransportError: a file did not arrive as it is there.
            ArchiveError: it can't be written here.
        """
        answer = self._ask(Question(scripts.FILES, (place,), f"listing {place}"))
        if answer.status:
            raise TransportError(
                f"{place} can't be listed on {self.host}: {answer.reason}",
                hint="check that it is there, and its permissions",
                context={"path": place, "host": self.host},
            )
        for name in os.fsdecode(answer.stdout).splitlines():
            if not name.startswith("./") or ".." in name.split("/"):
                raise TransferError(
                    f"{self.host} names a file outside of {place}: {name!r}",
                    hint="do not trust this host",
                    context={"path": place, "host": self.host},
                )
            into = Path(folder, name.removeprefix("./"))
            _make_folder(into.parent)
            self.fetch(posixpath.join(place, name), into)

    def discard(self, place: str) -> None:
        """Remove a workplace with all that is in it, also what sudo has made there.

        Raises:
            VolbenchError: it is no workplace, or the system refused.
        """
        base = self.inventory_host.workdir or _WORKDIR
        sudo = "sudo" if self.inventory_host.sudo else ""
        arguments = base, place, sudo
        answer = self._ask(Question(scripts.REMOVE_TREE, arguments, f"removing {place}"))
        if answer.status:
            raise VolbenchError(
                f"{place} can't be removed from {self.host}: {answer.reason}",
                hint="remove it by hand",
                context={"path": place, "host": self.host},
            )

    def close(self) -> None:
        """Let the machine go; running programs are left alone, and the pool keeps its line."""

    def _ask(self, question: Question) -> Answer:
        return ask(self._pool, self.host, question)

    def _check_begun(self, answer: Answer, argv: Sequence[str], *, by_sudo: bool) -> None:
        """Raise when a program was not started."""
        told = answer.stderr.strip()
        if told == f"{answer.mark} {scripts.MISSING}":
            raise TransportError(
                f"{argv[0]} can't be started on {self.host}: No such file or directory",
                hint=f"check that it is installed there: command -v {argv[0]}",
                context={"argv": tuple(argv), "host": self.host},
            )
        refused = _SUDO_REFUSES.search(told) if by_sudo and answer.status else None
        if told == f"{answer.mark} {scripts.NO_SUDO}" or refused:
            reason = refused[1] if refused else "it is not installed"
            raise AuthError(
                f"sudo does not start {argv[0]} on {self.host}: {reason}",
                hint="let your user start it without a password (NOPASSWD in sudoers), "
                "log in as root, or drop `sudo` from the inventory",
                context={"argv": tuple(argv), "host": self.host},
            )

    def _not_examined(self, path: str, answer: Answer) -> InputError:
        return InputError(
            f"{path} can't be examined on {self.host}: {answer.reason}",
            hint="check the path and its permissions",
            context={"path": path, "host": self.host},
        )


def _was_damaged(error: TransportError) -> bool:
    return isinstance(error, TransferError)


def _text(output: bytes) -> str:
    return output.decode("utf-8", errors="replace")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArchiveError(
            f"{path} can't be made: {error.strerror}",
            hint="check permissions and free space, then go on with: volbench resume DIR",
            context={"path": str(path)},
        ) from error
