"""Files of a machine that is reached by a channel: looked at, written, fetched, removed."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from volbench.errors import (
    ArchiveError,
    ConnectError,
    DeadlineError,
    InputError,
    RefusedError,
    TransferError,
    TransportError,
    VolbenchError,
)
from volbench.execute.protocol import BLANK, EDGE_BYTES, FileStat
from volbench.execute.shell import posix_scripts
from volbench.execute.shell.channel import Channel
from volbench.execute.shell.file_facts import ShellHeldDevice, parse_stat
from volbench.execute.shell.incoming_file import Incoming
from volbench.execute.shell.remote_script import ScriptAnswer, ScriptCall, call_script
from volbench.execute.shell.retry import PATIENCE_S, Patience, retry
from volbench.model.campaign.target import FileIdentity

_WORK_FOLDER = ".volbench"
_SILENCE_S = 60.0
_DAMAGED = Patience(tries=3)
_WRITE_S = 600.0
_ERRNO = re.compile(r"\[Errno \d+\] ([^:\n]+)")
_WRITABLE_HINT = "check permissions and free space there"
_READABLE_HINT = "check that it is there, and its permissions"


_SHA256 = re.compile(r"[0-9a-f]{64}")


class ShellFiles:
    """The files of a machine.

    Args:
        channel: runs commands there.
        sudo: start fio, and programs that access devices, by ``sudo -n``.
        work_folder: folder there for what a run needs; empty for ``.volbench`` in the home folder.
        patience: with a machine that is out of reach.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        sudo: bool = False,
        work_folder: str = "",
        patience: Patience | None = None,
    ) -> None:
        self.host = channel.host
        self._channel = channel
        self._sudo = "sudo" if sudo else ""
        self._work_folder = work_folder or _WORK_FOLDER
        self._patience = Patience() if patience is None else patience
        self._heard_s = time.monotonic()

    @property
    def silent_s(self) -> float:
        """Seconds since the machine last answered."""
        return time.monotonic() - self._heard_s

    def which(self, program: str) -> str | None:
        """Return the absolute path of a program, or None."""
        answer = self._call(ScriptCall(posix_scripts.WHICH, (program,), f"finding {program}"))
        return os.fsdecode(answer.stdout).removesuffix("\n") if answer.status == 0 else None

    def read_text(self, path: str) -> str | None:
        """Return a file's text, or None when it can't be read."""
        answer = self._call(ScriptCall(posix_scripts.READ, (path,), f"reading {path}"))
        return answer.text if answer.status == 0 else None

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory; empty when there is none."""
        answer = self._call(ScriptCall(posix_scripts.LIST, (path,), f"listing {path}"))
        return tuple(sorted(os.fsdecode(answer.stdout).split("/")[:-1]))

    def real_path(self, path: str) -> str:
        """Return the path with every symlink resolved; parts that do not exist are kept."""
        answer = self._call(ScriptCall(posix_scripts.REAL, (path,), f"resolving {path}"))
        found = posixpath.normpath(os.fsdecode(answer.stdout).removesuffix("\n"))
        return "/" + found.lstrip("/") if found.startswith("/") else found

    def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
        """Return what a path is, or None when nothing is there.

        Raises:
            InputError: the system does not let us look.
        """
        arguments = path, "follow" if follow else ""
        answer = self._call(ScriptCall(posix_scripts.STAT, arguments, f"examining {path}"))
        if answer.status == 0:
            return parse_stat(answer.text)
        if answer.reason in {"No such file or directory", "Not a directory"}:
            return None
        raise self._refusal(f"{path} can't be examined on", answer, InputError, path=path)

    def hold(self, path: str, *, exclusive: bool) -> ShellHeldDevice:  # noqa: ARG002 - nothing stays open there
        """Look at a block device; nothing is kept open for a controller on another machine.

        Raises:
            RefusedError: it is no block device.
        """
        found = self.stat(path)
        if found is None or found.kind != "block":
            raise RefusedError(
                f"{path} on {self.host} is not a block device",
                hint="lsblk lists the devices",
                context={"path": path, "host": self.host},
            )
        return ShellHeldDevice(found.rdev, lambda size_bytes: self._digest(path, size_bytes))

    def _digest(self, path: str, size_bytes: int) -> str:
        arguments = path, str(size_bytes), self._sudo
        answer = self._call(ScriptCall(posix_scripts.EDGES, arguments, f"reading {path}"))
        digest = answer.text.partition(" ")[0]
        if answer.status or not _SHA256.fullmatch(digest):
            return ""
        length = min(EDGE_BYTES, size_bytes // 512 * 512)
        return BLANK if digest == hashlib.sha256(bytes(2 * length)).hexdigest() else digest

    def exclusive_error(self, path: str) -> str:
        """Open a block device with O_EXCL and close it; return "" or the system's reason."""
        arguments = path, self._sudo, posix_scripts.PERL, posix_scripts.PYTHON
        answer = self._call(ScriptCall(posix_scripts.EXCLUSIVE, arguments, f"opening {path}"))
        printed = answer.text.strip()
        if answer.status == 0 or printed:
            return printed
        found = _ERRNO.search(answer.stderr)
        return found[1] if found else answer.reason

    def free_bytes(self, path: str) -> int:
        """Return the bytes an ordinary user may still write to the filesystem of `path`.

        Raises:
            InputError: the system refuses.
        """
        call = ScriptCall(posix_scripts.FREE, (path,), f"examining {path}")
        answer = self._require(call, f"{path} can't be examined on", error=InputError)
        blocks, block_bytes = map(int, answer.stdout.split())
        return blocks * block_bytes

    def remove(self, path: str) -> None:
        """Remove one file, also one that root made; nothing happens when it is gone.

        Raises:
            VolbenchError: the system refused.
        """
        call = ScriptCall(posix_scripts.REMOVE, (path, self._sudo), f"removing {path}")
        self._require(
            call, f"{path} can't be removed from", hint="remove it by hand", error=VolbenchError
        )

    def remove_exact(self, path: str, identity: FileIdentity) -> bool:
        """Remove a file or an empty folder if it is the one with an identity.

        Raises:
            VolbenchError: the system refused.
        """
        found = self.stat(path, follow=False)
        if found is None:
            return True
        is_folder = found.kind == "directory"
        if found.identity != identity or (is_folder and self.list_directory(path)):
            return False
        script = posix_scripts.REMOVE_FOLDER if is_folder else posix_scripts.REMOVE
        self._require(
            ScriptCall(script, (path, self._sudo), f"removing {path}"),
            f"{path} can't be removed from",
            hint="remove it by hand",
            error=VolbenchError,
        )
        return True

    def make_private_folder(self, path: str) -> bool:
        """Make a folder that only its owner may use; False when something is there already.

        Raises:
            RefusedError: the system refused.
        """
        answer = self._call(
            ScriptCall(
                posix_scripts.PRIVATE, (path, self._sudo), f"making {path}", repeatable=False
            )
        )
        if answer.status == posix_scripts.EXISTS:
            return False
        if answer.status:
            problem = f"{path} can't be made on"
            raise self._refusal(problem, answer, RefusedError, path=path, hint=_WRITABLE_HINT)
        return True

    def write_text(self, path: str, text: str) -> None:
        """Write a file so that a reader sees all of it or nothing.

        Raises:
            TransportError: the machine refused.
        """
        self.write_bytes(path, text.encode())

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file so that a reader sees all of it or nothing, and verify it.

        Raises:
            TransferError: it was damaged on the way.
            TransportError: the machine refused.
        """
        retry(lambda: self._write(path, data), may_repeat=_is_damage, patience=_DAMAGED)

    def _write(self, path: str, data: bytes) -> None:
        arguments = path, secrets.token_hex(4), hashlib.sha256(data).hexdigest()
        name = f"writing {path}"
        answer = self._call(
            ScriptCall(posix_scripts.WRITE, arguments, name, stdin=data, timeout_s=_WRITE_S)
        )
        if answer.status == posix_scripts.DAMAGED:
            raise TransferError(
                f"{path} was damaged on the way to {self.host}",
                hint="the host needs sha256sum, of coreutils or busybox; try again",
                context={"path": path, "host": self.host},
            )
        if answer.status:
            problem = f"{path} can't be written on"
            raise self._refusal(problem, answer, TransportError, path=path, hint=_WRITABLE_HINT)

    def fetch(self, path: str, into: Path, *, compressed: bool = True) -> None:
        """Copy a file from the machine, whole or not at all.

        Args:
            path: there.
            into: here; its folder exists. What is there is replaced.
            compressed: whether the machine compresses it on the way, if it can.

        Raises:
            TransferError: it was damaged on the way.
            TransportError: it can't be read there.
            ArchiveError: it can't be written here.
        """
        encoding = "gzip" if compressed else ""
        retry(lambda: self._fetch(path, into, encoding), may_repeat=_is_damage, patience=_DAMAGED)

    def _fetch(self, path: str, into: Path, encoding: str) -> None:
        with Incoming(f"{path} of {self.host}", into) as incoming:
            call = ScriptCall(
                posix_scripts.FETCH,
                (path, encoding),
                f"fetching {path}",
                silence_s=_SILENCE_S,
                sink=incoming.restart,
            )
            self._require(call, f"{path} can't be fetched from", hint=_READABLE_HINT)
            incoming.keep()

    def make_work_folder(self, folder: str, *, name: str) -> str:  # noqa: ARG002 - the controller's own has no meaning there
        """Return the folder on the machine that stands for one of the controller's; it is made.

        Raises:
            TransportError: it can't be made.
        """
        path = f"{self._work_folder}/{name}"
        answer = self._require(
            ScriptCall(posix_scripts.FOLDER, (path,), "making a folder"),
            f"{path} can't be made on",
            hint="set `workdir` in the inventory to a folder that your user may write to",
        )
        return os.fsdecode(answer.stdout).removesuffix("\n")

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Copy every file of a work folder to the controller's, each whole or not at all.

        Raises:
            TransportError: a file can't be read there, or was damaged on the way.
            ArchiveError: it can't be written here.
        """
        call = ScriptCall(posix_scripts.FILES, (path,), f"listing {path}")
        answer = self._require(call, f"{path} can't be listed on", hint=_READABLE_HINT)
        for name in os.fsdecode(answer.stdout).splitlines():
            if not name.startswith("./") or ".." in name.split("/"):
                raise TransferError(
                    f"{self.host} lists a file outside of {path}: {name!r}",
                    hint="do not trust this host",
                    context={"path": path, "host": self.host},
                )
            into = Path(folder, name.removeprefix("./"))
            _make_folder(into.parent)
            self.fetch(posixpath.join(path, name), into)

    def remove_work_folder(self, path: str) -> None:
        """Remove a work folder with all that is in it, also what root made there.

        Raises:
            VolbenchError: it is no work folder, or the system refused.
        """
        arguments = self._work_folder, path, self._sudo
        self._require(
            ScriptCall(posix_scripts.REMOVE_TREE, arguments, f"removing {path}"),
            f"{path} can't be removed from",
            hint="remove it by hand",
            error=VolbenchError,
        )

    def wait_when_unreachable(self, *, unless: Callable[[], bool]) -> None:
        """From now on, wait long for the machine when it is out of reach."""
        self._patience = Patience(tries=10_000, begin_within_s=PATIENCE_S, unless=unless)

    def _call(self, call: ScriptCall) -> ScriptAnswer:
        """Run a script, again after errors that pass if it may be run twice or was never sent."""

        def may_repeat(error: TransportError) -> bool:
            if isinstance(error, ConnectError):
                return call.repeatable or not error.context.get("sent", True)
            return call.repeatable and isinstance(error, DeadlineError | TransferError)

        return retry(
            lambda: call_script(self._channel, call, on_output=self._hear),
            may_repeat=may_repeat,
            patience=self._patience,
        )

    def _hear(self) -> None:
        self._heard_s = time.monotonic()

    def _require(
        self,
        call: ScriptCall,
        problem: str,
        *,
        hint: str = "check the path and its permissions",
        error: type[VolbenchError] = TransportError,
    ) -> ScriptAnswer:
        """Run a script that must succeed."""
        answer = self._call(call)
        if answer.status:
            raise self._refusal(problem, answer, error, path=call.arguments[0], hint=hint)
        return answer

    def _refusal(
        self,
        problem: str,
        answer: ScriptAnswer,
        error: type[VolbenchError],
        *,
        path: str,
        hint: str = "check the path and its permissions",
    ) -> VolbenchError:
        return error(
            f"{problem} {self.host}: {answer.reason}",
            hint=hint,
            context={"path": path, "host": self.host},
        )


def _is_damage(error: TransportError) -> bool:
    return isinstance(error, TransferError)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArchiveError(
            f"{path} can't be made: {error.strerror}",
            hint="check permissions and free space, then continue with: volbench resume DIR",
            context={"path": str(path)},
        ) from error
