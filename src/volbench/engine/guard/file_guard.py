"""Whether files may be made or overwritten: paths enter, nothing or a refusal leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volbench.engine.guard.path_checks import check_mounted, check_not_among_devices, parent_of
from volbench.engine.hosts.mounts import is_inside, look, read_loop_files, read_swaps
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor, FileStat
from volbench.model.campaign.target import Volume, VolumeKind

_WHAT = {"block": "a block device", "char": "a character device", "directory": "a folder"}


def check_place(executor: Executor, volume: Volume, *, writes: bool) -> None:
    """Check that the folder of a directory or file volume is there, and that it is the right one.

    Raises:
        RefusedError: it is missing, lies among devices, or its filesystem is not mounted.
    """
    target = volume.target
    folder = target if volume.kind is VolumeKind.DIRECTORY else parent_of(target)
    found = executor.stat(folder)
    if found is None or found.kind != "directory":
        raise RefusedError(
            f"there is no folder {folder}: fio would create it and fill the disk beneath",
            hint=f"mount the volume, or make the folder: mkdir -p {folder}",
            context={"path": folder},
        )
    check_not_among_devices(executor, target)
    if writes:
        check_mounted(executor, target)


def check_file(executor: Executor, volume: Volume, path: str) -> FileStat | None:
    """Check that a path is a regular file inside its volume, or nothing yet.

    Returns:
        What stands there.

    Raises:
        RefusedError: it leads outside, or to a device, a pipe or a folder.
    """
    real = executor.real_path(path)
    root = executor.real_path(volume.target)
    if volume.kind is VolumeKind.DIRECTORY and not is_inside(real, root):
        raise RefusedError(
            f"{path} leads out of its volume, to {real}",
            hint="remove the symlink, or choose another filename",
            context={"path": path},
        )
    found = executor.stat(path)
    if found is not None and found.kind != "file":
        raise RefusedError(
            f"{path} is {_WHAT.get(found.kind, 'no regular file')}",
            hint="choose another filename, or name a device as the volume itself",
            context={"path": path},
        )
    return found


def check_overwrite(
    executor: Executor,
    path: str,
    found: FileStat | None,
    *,
    allow_destroy: Sequence[str],
    ours: Callable[[str], bool],
) -> None:
    """Check that a file may be made or overwritten.

    Args:
        executor: the machine.
        path: the file.
        found: what stands there, None for nothing.
        allow_destroy: what the user allowed to be overwritten.
        ours: whether volbench made a file in this campaign.

    Raises:
        RefusedError: it is a symlink, in use by the kernel, or somebody's file.
    """
    real = executor.real_path(path)
    if real != _beside(executor, path):
        raise RefusedError(
            f"{path} is a symlink to {real}",
            hint=f"name the file itself: {real}",
            context={"path": path},
        )
    if found is None:
        return
    _check_kernel_file(executor, path, found)
    if not ours(path) and not _is_allowed(executor, real, allow_destroy):
        raise RefusedError(
            f"{path} exists and volbench did not make it: it would be overwritten",
            hint=f"move it away, or allow it: --allow-destroy {path}",
            context={"path": path},
        )


def _beside(executor: Executor, path: str) -> str:
    """Return a path with its folder resolved and its last name as it stands."""
    return executor.real_path(parent_of(path)).rstrip("/") + "/" + path.rpartition("/")[2]


def _check_kernel_file(executor: Executor, path: str, found: FileStat) -> None:
    """Check that a file is neither swap nor behind a loop device."""
    uses = [(place, "swap", f"swapoff {place}") for place in read_swaps(executor)]
    uses += [
        (place, f"the loop device {loop}", f"losetup -d /dev/{loop}")
        for loop, place in read_loop_files(executor).items()
    ]
    for place, user, way_out in uses:
        used = look(executor, place)
        if used is not None and (used.device, used.inode) == (found.device, found.inode):
            raise RefusedError(
                f"{path} is in use as {user}" if user == "swap" else f"{path} is in use by {user}",
                hint=f"end that first: {way_out}",
                context={"path": path},
            )


def _is_allowed(executor: Executor, real: str, allow_destroy: Sequence[str]) -> bool:
    return any(executor.real_path(entry) == real for entry in allow_destroy)
