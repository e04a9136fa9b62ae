"""Checks of paths: not below /dev, not on a file system that is not mounted, not shared."""

from __future__ import annotations

import difflib

from volbench.engine.hosts.mounts import is_inside, mount_of, unmounted_above
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor

_DEVICES = "/dev"
_STICKY = 0o1000


def parent_of(path: str) -> str:
    """Return the folder of a path."""
    return path.rpartition("/")[0] or "/"


def nearest_existing(executor: Executor, path: str) -> str:
    """Return a path, or its nearest existing parent."""
    while path != "/" and executor.stat(path) is None:
        path = parent_of(path)
    return path


def check_not_among_devices(executor: Executor, path: str) -> None:
    """Check that a path other than a block device is not below /dev.

    For a mistyped device name, fio creates a file in memory and exits with 0. File systems mounted
    below /dev, such as /dev/shm, are accepted.
    """
    real = executor.real_path(path)
    if not is_inside(real, _DEVICES):
        return
    mount = mount_of(executor, real)
    if mount is not None and mount.mount_point.startswith(_DEVICES + "/"):
        return
    exists = executor.stat(real) is not None
    raise RefusedError(
        f"{path} is not a block device but a file in memory below /dev"
        if exists
        else f"{path} does not exist: fio would create a file in memory there",
        hint=_similar(executor, real) or "lsblk lists the devices",
    )


def _similar(executor: Executor, path: str) -> str:
    names = [name.replace("!", "/") for name in executor.list_directory("/sys/class/block")]
    close = difflib.get_close_matches(path.removeprefix(f"{_DEVICES}/"), names, n=3)
    return f"did you mean {' or '.join(f'{_DEVICES}/{name}' for name in close)}?" if close else ""


def check_mounted(executor: Executor, path: str) -> None:
    """Check that a path is not at or below a mount point of /etc/fstab that is not mounted."""
    if point := unmounted_above(executor, path):
        raise RefusedError(
            f"{point} is a mount point in /etc/fstab, but nothing is mounted there: "
            f"{path} would fill the disk that holds it",
            hint=f"mount it first: mount {point}",
        )


def check_not_shared(executor: Executor, folder: str, *, by_sudo: bool) -> None:
    """Check that root does not write into a folder in which other users can replace files.

    A symlink planted between the check and fio's open could redirect root to any file.

    Args:
        by_sudo: whether fio runs as root regardless of the login user.
    """
    process = executor.stat("/proc/self")
    user = 0 if process is None else process.owner
    if user and not by_sudo:
        return
    here = real = executor.real_path(folder)
    while True:
        found = executor.stat(here)
        # In a sticky folder users cannot replace files of other users.
        is_open = (
            found is not None and found.mode & 0o022 and (here == real or not found.mode & _STICKY)
        )
        if found is not None and (is_open or found.owner not in {0, user}):
            whose = "can be written by other users" if is_open else f"belongs to user {found.owner}"
            is_sticky = found.mode & _STICKY and found.owner in {0, user}
            own = f"mkdir -m 700 {real}/mine" if is_sticky else "one below /root or /srv"
            raise RefusedError(
                f"{here} {whose}, who could plant a symlink to any file that root may overwrite",
                hint=f"measure in a folder that only root can write to, such as {own}; "
                "if you trust all who may write there: --allow-shared-folder",
            )
        if here == "/":
            return
        here = parent_of(here)
