"""Checks that a run's files are on their volume and overwrite nothing without consent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volbench.engine.guard.path_checks import (
    check_mounted,
    check_not_among_devices,
    check_not_shared,
    parent_of,
)
from volbench.engine.hosts.mounts import is_inside, read_loop_files, read_swaps, stat_visible
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor, FileStat
from volbench.fio.jobs.render_job import needed_file_bytes, removes_files
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind
from volbench.units import format_size

_KIND_NAMES = {"block": "a block device", "char": "a character device", "directory": "a folder"}


def check_place(
    executor: Executor, volume: Volume, *, writes: bool, by_sudo: bool, allow_shared: bool
) -> None:
    """Check that the folder of a directory or file volume exists, is mounted, and is not shared.

    Args:
        writes: whether files may be created or written.
        by_sudo: whether fio runs as root regardless of the login user.
    """
    target = volume.target
    folder = target if volume.kind is VolumeKind.DIRECTORY else parent_of(target)
    found = executor.stat(folder)
    if found is None or found.kind != "directory":
        raise RefusedError(
            f"there is no folder {folder}: fio would create it and fill the disk of its parent",
            hint=f"mount the volume, or make the folder: mkdir -p {folder}",
        )
    check_not_among_devices(executor, target)
    if writes:
        check_mounted(executor, target)
        if not allow_shared:
            check_not_shared(executor, folder, by_sudo=by_sudo)


def check_file(executor: Executor, volume: Volume, path: str) -> FileStat | None:
    """Check that a path is a regular file on its volume, or does not exist yet.

    Returns:
        The existing file.
    """
    real = executor.real_path(path)
    root = executor.real_path(volume.target)
    if volume.kind is VolumeKind.DIRECTORY and not is_inside(real, root):
        raise RefusedError(
            f"{path} leads outside its volume, to {real}",
            hint="remove the symlink, or choose another filename",
        )
    found = executor.stat(path)
    if found is not None and found.kind != "file":
        raise RefusedError(
            f"{path} is {_KIND_NAMES.get(found.kind, 'not a regular file')}",
            hint="choose another filename, or name a device as the volume itself",
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
    """Check that a file may be created or overwritten.

    Args:
        found: the existing file; None if there is none.
        ours: returns whether this campaign created a file.
    """
    real = executor.real_path(path)
    if real != _with_real_parent(executor, path):
        raise RefusedError(
            f"{path} is a symlink to {real}",
            hint=f"name the file itself: {real}",
        )
    if found is None:
        return
    _check_kernel_file(executor, path, found)
    if not ours(path) and not is_allowed_file(executor, real, allow_destroy):
        raise RefusedError(
            f"{path} exists and was not created by volbench: it would be overwritten",
            hint=f"move it away, or allow it: --allow-destroy {path}",
        )


def check_kept(run: Run, path: str, found: FileStat) -> None:
    """Check that a run keeps a file that volbench did not create, though it may overwrite it."""
    needed_bytes = needed_file_bytes(run)
    if removes_files(run):
        problem, hint = "would be removed", "leave out unlink, and engines that delete files"
    elif found.size_bytes < needed_bytes:
        problem = f"is shorter than the {format_size(needed_bytes)} of the job, and fio would "
        problem += "replace it by another"
        hint = f"make it longer: truncate -s {needed_bytes} {path}; or decrease the size"
    else:
        return
    raise RefusedError(
        f"{path} was not created by volbench, and {problem}",
        hint=hint,
    )


def _with_real_parent(executor: Executor, path: str) -> str:
    """Return a path with its folder resolved and its last component unresolved."""
    return executor.real_path(parent_of(path)).rstrip("/") + "/" + path.rpartition("/")[2]


def _check_kernel_file(executor: Executor, path: str, found: FileStat) -> None:
    """Check that a file is neither swap nor the backing file of a loop device."""
    uses = [(place, "swap", f"swapoff {place}") for place in read_swaps(executor)]
    uses += [
        (place, f"the loop device {loop}", f"losetup -d /dev/{loop}")
        for loop, place in read_loop_files(executor).items()
    ]
    for place, user, release in uses:
        used = stat_visible(executor, place)
        if used is not None and (used.device, used.inode) == (found.device, found.inode):
            raise RefusedError(
                f"{path} is in use as {user}" if user == "swap" else f"{path} is in use by {user}",
                hint=f"release it first: {release}",
            )


def is_allowed_file(executor: Executor, path: str, allow_destroy: Sequence[str]) -> bool:
    """Return whether the user named this file, by its resolved path."""
    return bool(allow_destroy) and executor.real_path(path) in map(
        executor.real_path, allow_destroy
    )
