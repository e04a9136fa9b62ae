"""Paths below a folder that is held open, so that nobody can put another folder in its place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PosixPath

from volbench.errors import ArchiveError, RefusedError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_held: dict[str, list[int]] = {}  # text of a folder's path -> its open descriptors
_made: set[tuple[int, int]] = set()  # device and inode of the folders that this process made


class HeldPath(PosixPath):
    """A path whose system calls start at the open descriptor of the folder that holds it.

    Its text is the path as its user knows it, for messages. While `hold_folder` holds a folder, all
    paths below it reach the kernel relative to the descriptor: a user who may rename the folder or
    its parents cannot lead a write to other files. Elsewhere it is an ordinary path. Programs that
    this process starts can use the path as long as this process lives.
    """

    __slots__ = ()

    def __fspath__(self) -> str:
        """Return the path for a system call."""
        text = str(self)
        for root, descriptors in tuple(_held.items()):
            if text == root or text.startswith(f"{root}/"):
                return f"/proc/{os.getpid()}/fd/{descriptors[-1]}{text[len(root) :]}"
        return text


def make_private_folder(path: Path) -> None:
    """Create a folder, and its parents, that only this user can use, or take an own one.

    Raises:
        RefusedError: the folder exists, belongs to another user, and this process runs as root.
        OSError: it cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
        made = path.lstat()
        _made.add((made.st_dev, made.st_ino))
    descriptor = os.open(os.path.realpath(path), _FOLDER)
    try:
        _refuse_foreign(path, os.fstat(descriptor), others_write=0)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def is_own_folder(path: Path) -> bool:
    """Return whether this user may write to a folder; root writes to its own only."""
    return os.access(path, os.W_OK) and (os.geteuid() != 0 or path.stat().st_uid == 0)


def checked_results_folder(path: Path) -> Path:
    """Return a default folder for new campaigns, unless another user made it.

    Raises:
        RefusedError: it belongs to neither this user nor root, nor to the user of sudo.
    """
    own = {0, os.geteuid(), int(os.environ.get("SUDO_UID") or 0)}
    if path.exists() and (owner := path.stat().st_uid) not in own:
        raise RefusedError(
            f"the folder for results, {path}, belongs to the user {owner}, who could replace"
            " campaigns in it",
            hint="choose a folder for this campaign with --output",
        )
    return path


def _refuse_foreign(path: Path, status: os.stat_result, *, others_write: int) -> None:
    """Refuse a folder in which another user could plant links, if this process runs as root.

    An ordinary user decides alone whose folders to trust; root's files are everybody's.
    """
    if os.geteuid() != 0 or (status.st_dev, status.st_ino) in _made:
        return
    if status.st_uid != 0:
        reason = f"belongs to the user {status.st_uid}"
    elif status.st_mode & others_write & ~(0 if status.st_gid else stat.S_IWGRP):
        reason = "can be written by other users"
    else:
        return
    raise RefusedError(
        f"{path} {reason}, who could lead root to other files while it writes there",
        hint="choose a new folder with --output, or run volbench as that user",
    )


@contextmanager
def hold_folder(path: Path, *, is_moved: bool = False) -> Iterator[None]:
    """Hold a folder open: system calls on `HeldPath` below it stay in it whatever its path becomes.

    Args:
        is_moved: the block itself moves the folder.

    Raises:
        RefusedError: other users can write to it, and this process runs as root.
        ArchiveError: at the end, its path leads elsewhere; what was written is in the held folder.
        OSError: it cannot be opened.
    """
    descriptor = os.open(os.path.realpath(path), _FOLDER)
    try:
        status = os.fstat(descriptor)
        _refuse_foreign(path, status, others_write=stat.S_IWGRP | stat.S_IWOTH)
        _held.setdefault(str(path), []).append(descriptor)
        try:
            yield
        finally:
            _held[str(path)].remove(descriptor)
            if not _held[str(path)]:
                del _held[str(path)]
        if not is_moved:
            _check_place(path, status)
    finally:
        os.close(descriptor)


def _check_place(path: Path, held: os.stat_result) -> None:
    """Say that the path of a folder leads elsewhere now."""
    try:
        now: os.stat_result | None = os.stat(str(path))  # noqa: PTH116 - not the held folder
    except OSError:
        now = None
    if now is None or not os.path.samestat(now, held):
        raise ArchiveError(
            f"{path} was moved or replaced while volbench wrote to it; all files are in the folder"
            " that had this name at first",
            hint="find where it was moved, and check what is there now before you trust it",
            path=str(path),
        )
