"""Paths below a folder that is held open, so that nobody can put another folder in its place."""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PosixPath

from volbench.errors import ArchiveError, RefusedError, VolbenchError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOBODY = 65534  # Owner of what root makes on NFS with root_squash
# Without /proc (macOS) no path can start at a descriptor; the folder is checked at the end only
_HAS_DESCRIPTOR_PATHS = Path("/proc/self/fd").is_dir()

_held: dict[str, list[int]] = {}  # text of a folder's path -> its open descriptors

Identity = tuple[int, int]  # device and inode


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
        for root, descriptors in tuple(_held.items()) if _HAS_DESCRIPTOR_PATHS else ():
            if text == root or text.startswith(f"{root}/"):
                return f"/proc/{os.getpid()}/fd/{descriptors[-1]}{text[len(root) :]}"
        return text


def known_paths(text: str) -> str:
    """Return a message in which files of held folders have the paths that their user knows."""
    for root, descriptors in tuple(_held.items()):
        for descriptor in tuple(descriptors):
            place = rf"/proc/{os.getpid()}/fd/{descriptor}\b"
            text = re.sub(place, root.replace("\\", r"\\"), text)
    return text


def make_private_folder(path: Path) -> Identity:
    """Create a folder, and its parents, that only this user can use, or take an own one.

    Returns:
        The identity of the folder, by which `hold_folder` knows it again.
    """
    refuse_foreign_links(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = True
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        is_new = False
    try:
        descriptor = os.open(path, _FOLDER)
    except NotADirectoryError:
        refuse_link(path)
        raise
    try:
        refuse_foreign_links(path)  # somebody may have planted one meanwhile
        status = os.fstat(descriptor)
        if not (is_new and status.st_uid == _NOBODY):
            refuse_foreign(path, status)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)
    return status.st_dev, status.st_ino


def checked_results_folder(path: Path) -> Path:
    """Return a default folder for new campaigns; refuse a folder that another user made."""
    if path.exists() and (whose := foreign_words(path)):
        raise RefusedError(
            f"the folder for results, {whose}, who could replace campaigns in it",
            hint="choose a folder for this campaign with --output",
        )
    return path


def foreign_words(folder: Path) -> str:
    """Return the owner of a folder in which others could replace files; "" for a trusted one."""
    status = folder.stat()
    trusted = {"0", str(os.geteuid()), os.environ.get("SUDO_UID")}
    is_open = os.geteuid() == 0 and _others_write(status) and not status.st_mode & stat.S_ISVTX
    return f"{folder} {_whose(status)}" if is_open or str(status.st_uid) not in trusted else ""


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link in the place of a new folder, wherever it leads."""
    if os.path.islink(str(path)):  # noqa: PTH114 - not the held folder
        message = f"{path} is a symbolic link, which is not followed to create a folder"
        raise RefusedError(message, hint="name the intended folder, or a new one, with --output")


def refuse_foreign(path: Path, status: os.stat_result) -> None:
    """Refuse a folder in which another user could plant links, if this process runs as root.

    An ordinary user decides alone whose folders to trust; root's files are everybody's.
    """
    if os.geteuid() != 0 or (status.st_uid == 0 and not _others_write(status)):
        return
    raise RefusedError(
        f"{path} {_whose(status)}, who could redirect root to other files while it writes there",
        hint="choose another place with --output, or run volbench as that user",
    )


def refuse_foreign_links(path: Path) -> None:
    """Refuse a path that a link of another user leads elsewhere, if this process runs as root.

    The last part of the path may be a link: writers do not follow it.
    """
    if os.geteuid() != 0:
        return
    for place in reversed(Path(str(path)).absolute().parents):
        if not place.is_symlink():
            continue
        if owner := place.lstat().st_uid:
            raise RefusedError(
                f"{place} is a symbolic link of the user {login_of(owner)}, who could redirect what"
                f" root writes to {path}",
                hint="name the folder that it leads to, if you trust it, with --output",
            )
        if place.exists():  # a circle has no end
            refuse_foreign_links(place.parent / place.readlink() / "file")


def has_mount(folder: Path) -> bool:
    """Return whether a filesystem is mounted on a folder or below it, as far as Linux says."""
    mounts = Path("/proc/self/mountinfo")
    place = str(folder.resolve()).translate({32: r"\040", 92: r"\134"})  # as the kernel writes it
    return mounts.exists() and bool(re.search(f" {re.escape(place)}[/ ]", mounts.read_text()))


def login_of(uid: int) -> str:
    """Return the login of a user; the UID if there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _whose(status: os.stat_result) -> str:
    if _others_write(status):
        return "can be written by other users"
    return f"belongs to the user {login_of(status.st_uid)}"


def _others_write(status: os.stat_result) -> bool:
    """Return whether others than the owner, and the group of root, may write."""
    by_group = status.st_gid != 0 and status.st_mode & stat.S_IWGRP
    return bool(by_group or status.st_mode & stat.S_IWOTH)


@contextmanager
def hold_folder(
    path: Path, *, made: Identity | None = None, is_moved: bool = False
) -> Iterator[None]:
    """Hold a folder open: system calls on `HeldPath` below it stay in it whatever its path becomes.

    Root refuses a folder that others can write to. A path that leads elsewhere at the start or at
    the end is an ArchiveError; all files are in the held folder.

    Args:
        made: identity of a folder that this process made.
        is_moved: whether the block itself moves the folder.
    """
    if os.geteuid() == 0 and not _HAS_DESCRIPTOR_PATHS:
        raise RefusedError(
            f"root does not write to {path} without /proc: other users could replace the folder",
            hint="mount /proc, or run volbench as an ordinary user",
        )
    descriptor = os.open(os.path.realpath(path), _FOLDER)
    try:
        status = os.fstat(descriptor)
        if made is None:
            refuse_foreign(path, status)
        elif made != (status.st_dev, status.st_ino):
            raise _replaced(path)
        _held.setdefault(str(path), []).append(descriptor)
        try:
            yield
        except VolbenchError as error:
            error.message, error.hint = known_paths(error.message), known_paths(error.hint)
            raise
        finally:
            _held[str(path)].remove(descriptor)
            if not _held[str(path)]:
                del _held[str(path)]
        if not is_moved:
            _check_place(path, status)
    finally:
        os.close(descriptor)


def _check_place(path: Path, held: os.stat_result) -> None:
    with suppress(OSError):
        if os.path.samestat(os.stat(str(path)), held):  # noqa: PTH116 - not the held folder
            return
    raise _replaced(path)


def _replaced(path: Path) -> ArchiveError:
    return ArchiveError(
        f"{path} was moved or replaced while volbench wrote to it; all files are in the folder"
        " that originally had this name",
        hint="find where it was moved, and check what is there now before you trust it",
        path=str(path),
    )
