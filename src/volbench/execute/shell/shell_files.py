"""File operations on a remote host over a channel: stat, read, write, fetch, remove."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from volbench.errors import (
    InputError,
    RefusedError,
    TransferError,
    TransportError,
    VolbenchError,
)
from volbench.execute.agent.held_device import BLANK, EDGE_BYTES
from volbench.execute.protocol import FileStat
from volbench.execute.retry import Patience, retry
from volbench.execute.shell import posix_scripts
from volbench.execute.shell.file_facts import ShellHeldDevice, parse_stat
from volbench.execute.shell.incoming_file import Incoming
from volbench.execute.shell.incoming_folder import IncomingFolder
from volbench.execute.shell.remote_script import ScriptCall
from volbench.execute.shell.shell_host import ShellHost
from volbench.model.campaign.planned_run import FileIdentity

_SILENCE_S = 60.0
_DAMAGED = Patience(tries=3)
_WRITE_S = 600.0
_TEXTS_AT_ONCE = 50
# Folders up to this size are fetched by the kept shell, without a session of their own
_SMALL_KIB = "1024"
_ERRNO = re.compile(r"\[Errno \d+\] ([^:\n]+)")
_WRITABLE_HINT = "check permissions and free space there"
_READABLE_HINT = "check that it exists, and its permissions"


_SHA256 = re.compile(r"[0-9a-f]{64}")


class ShellFiles(ShellHost):
    """The files of a host; see `ShellHost` for the arguments."""

    def which(self, program: str) -> str | None:
        """Return the absolute path of a program, or None."""
        if program not in self._look_ahead.programs:
            answer = self._call(ScriptCall(posix_scripts.WHICH, (program,), f"finding {program}"))
            if answer.status:
                return None
            self._look_ahead.programs[program] = os.fsdecode(answer.stdout).removesuffix("\n")
        return self._look_ahead.programs[program]

    def read_text(self, path: str) -> str | None:
        """Return the text of a file, or None if unreadable."""
        answer = self._call(ScriptCall(posix_scripts.READ, (path,), f"reading {path}"))
        return answer.text if answer.status == 0 else None

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory; empty if it does not exist."""
        answer = self._call(ScriptCall(posix_scripts.LIST, (path,), f"listing {path}"))
        return tuple(sorted(os.fsdecode(answer.stdout).split("/")[:-1]))

    def real_path(self, path: str) -> str:
        """Return the path with all symlinks resolved; nonexistent components are kept."""
        answer = self._call(ScriptCall(posix_scripts.REAL, (path,), f"resolving {path}"))
        found = posixpath.normpath(os.fsdecode(answer.stdout).removesuffix("\n"))
        return "/" + found.lstrip("/") if found.startswith("/") else found

    def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
        """Return the stat result of a path, or None if it does not exist."""
        arguments = path, "follow" if follow else ""
        answer = self._call(ScriptCall(posix_scripts.STAT, arguments, f"examining {path}"))
        if answer.status == 0:
            return parse_stat(answer.text)
        if answer.reason in {"No such file or directory", "Not a directory"}:
            return None
        raise self._refusal(f"{path} cannot be examined on", answer, InputError, path=path)

    def hold(self, path: str, *, exclusive: bool) -> ShellHeldDevice:  # noqa: ARG002 - a shell cannot open with O_EXCL
        """Check a block device; on a remote host, the run's program holds it open (``hold.sh``)."""
        found = self.stat(path)
        if found is None or found.kind != "block":
            raise RefusedError(
                f"{path} on {self.host} is not a block device",
                hint="lsblk lists the devices",
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
        """Return the error of opening a block device with O_EXCL, or "" on success."""
        blind = "container" if self.is_container else ""
        arguments = path, self._sudo, posix_scripts.PERL, posix_scripts.PYTHON, blind
        answer = self._call(ScriptCall(posix_scripts.EXCLUSIVE, arguments, f"opening {path}"))
        printed = answer.text.strip()
        if answer.status == 0 or printed:
            return printed
        found = _ERRNO.search(answer.stderr)
        return found[1] if found else answer.reason

    def free_bytes(self, path: str) -> int:
        """Return the bytes available to unprivileged users on the filesystem of `path`."""
        call = ScriptCall(posix_scripts.FREE, (path,), f"examining {path}")
        answer = self._require(call, f"{path} cannot be examined on", error=InputError)
        blocks, block_bytes = map(int, answer.stdout.split())
        return blocks * block_bytes

    def remove(self, path: str) -> None:
        """Remove a file, even if owned by root, if it exists."""
        call = ScriptCall(posix_scripts.REMOVE, (path, self._sudo), f"removing {path}")
        self._require(
            call, f"{path} cannot be removed from", hint="remove it manually", error=VolbenchError
        )

    def remove_exact(self, path: str, identity: FileIdentity) -> bool:
        """Remove a file or an empty directory if its identity matches."""
        return self.remove_exactly([(path, identity)])[0]

    def remove_exactly(self, files: Sequence[tuple[str, FileIdentity]]) -> list[bool]:
        """Remove files and empty directories in order, each if its identity matches."""
        found = {path: self.stat(path, follow=False) for path, _ in files}
        same = [
            (path, f"{os.makedev(*identity[:2])}:{identity[2]}")
            for path, identity in files
            if (seen := found[path]) is not None and seen.identity == identity
        ]
        if not same:
            return [found[path] is None for path, _ in files]
        words = (word for pair in same for word in pair)
        answer = self._require(
            ScriptCall(posix_scripts.REMOVE_SAME, (self._sudo, *words), f"removing {same[0][0]}"),
            f"{same[0][0]} cannot be removed from",
            hint="remove it manually",
            error=VolbenchError,
        )
        gone = dict(zip((path for path, _ in same), answer.text.split(), strict=False))
        return [found[path] is None or gone.get(path) == "gone" for path, _ in files]

    def make_private_folder(self, path: str) -> bool:
        """Create a directory with mode 0700; return False if the path exists."""
        answer = self._call(
            ScriptCall(
                posix_scripts.PRIVATE, (path, self._sudo), f"creating {path}", repeatable=False
            )
        )
        if answer.status == posix_scripts.EXISTS:
            return False
        if answer.status:
            problem = f"{path} cannot be created on"
            raise self._refusal(problem, answer, RefusedError, path=path, hint=_WRITABLE_HINT)
        return True

    def write_text(self, path: str, text: str) -> None:
        """Write a file atomically."""
        self.write_bytes(path, text.encode())

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file atomically and verify its SHA-256."""
        retry(lambda: self._write(path, data), may_repeat=_is_damage, patience=_DAMAGED)

    def write_texts(self, files: Mapping[str, str]) -> None:
        """Write small files atomically, creating their folders, in few requests."""
        listed = list(files.items())
        for first in range(0, len(listed), _TEXTS_AT_ONCE):
            self._write_some(listed[first : first + _TEXTS_AT_ONCE])

    def _write_some(self, files: Sequence[tuple[str, str]]) -> None:
        path = files[0][0]
        call = ScriptCall(posix_scripts.WRITE_ALL, write_words(files), f"writing {path}")
        retry(lambda: self._put(path, call), may_repeat=_is_damage, patience=_DAMAGED)

    def _write(self, path: str, data: bytes) -> None:
        arguments = path, secrets.token_hex(4), hashlib.sha256(data).hexdigest()
        name = f"writing {path}"
        self._put(
            path, ScriptCall(posix_scripts.WRITE, arguments, name, stdin=data, timeout_s=_WRITE_S)
        )

    def _put(self, path: str, call: ScriptCall) -> None:
        answer = self._call(call)
        if answer.status == posix_scripts.DAMAGED:
            raise TransferError(
                f"{path} was damaged on the way to {self.host}",
                hint="the host needs sha256sum, of coreutils or busybox; try again",
            )
        if answer.status:
            problem = f"{path} cannot be written on"
            raise self._refusal(problem, answer, TransportError, path=path, hint=_WRITABLE_HINT)

    def fetch(self, path: str, into: Path, *, compressed: bool = True) -> None:
        """Fetch a file from the host atomically.

        Args:
            into: local path in an existing directory; an existing file is replaced.
            compressed: whether to compress the transfer, if the host has gzip.
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
            self._require(call, f"{path} cannot be fetched from", hint=_READABLE_HINT)
            incoming.keep()

    def work_folder(self, folder: str, *, name: str) -> str:  # noqa: ARG002 - local paths have no meaning on the host
        """Return a work folder on the host, created with its first file."""
        self._work_base = self._work_base or self.real_path(self._work_folder)
        return f"{self._work_base}/{name}"

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Fetch all files of a work folder into the controller's, each atomically."""
        into = Path(folder)
        retry(lambda: self._fetch_folder(path, into), may_repeat=_is_damage, patience=_DAMAGED)

    def _fetch_folder(self, path: str, into: Path) -> None:
        with IncomingFolder(self.host, path, into) as incoming:
            small = ScriptCall(posix_scripts.FILES, (path, "gzip", _SMALL_KIB), f"fetching {path}")
            answer = self._call(small)
            if answer.status == 0 and answer.stdout != b"large\n":
                incoming(answer.stdout)
                if incoming.is_whole:
                    return
            call = ScriptCall(
                posix_scripts.FILES,
                (path, "gzip", ""),
                f"fetching {path}",
                silence_s=_SILENCE_S,
                sink=incoming.restart,
            )
            answer = self._require(call, f"{path} cannot be fetched from", hint=_READABLE_HINT)
            if answer.stderr.strip() and not incoming.is_whole:
                raise self._refusal(
                    f"{path} cannot be fetched from",
                    answer,
                    TransportError,
                    path=path,
                    hint=_READABLE_HINT,
                )
            incoming.check_whole()

    def remove_work_folder(self, path: str, *, wait: bool = True) -> None:
        """Remove a work folder recursively, including files owned by root."""
        arguments = self._work_folder, path, self._sudo
        call = ScriptCall(posix_scripts.REMOVE_TREE, arguments, f"removing {path}")
        problem = f"{path} cannot be removed from"
        if not wait:
            self._post(call)
            return
        is_posted = any(call == posted for posted, _ in self._posted)
        self._settle_posted(problem, VolbenchError)
        if not is_posted:
            self._require(call, problem, hint="remove it manually", error=VolbenchError)


def write_words(files: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the arguments of `posix_scripts.WRITE_ALL` for some paths and texts."""
    words = (
        word
        for path, text in files
        for word in (path, text, hashlib.sha256(text.encode()).hexdigest())
    )
    return (secrets.token_hex(4), str(len(files)), *words)


def _is_damage(error: TransportError) -> bool:
    return isinstance(error, TransferError)
