"""Checks that a run's files are on their volume and overwrite nothing without consent."""

from __future__ import annotations

from volbench.engine.guard.volume_targets import check_not_among_devices
from volbench.engine.hosts.described_volumes import DescribedFile, DescribedVolume
from volbench.errors import RefusedError
from volbench.fio.jobs.render_job import needed_file_bytes, removes_files
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind
from volbench.units import format_size

_KIND_NAMES = {"block": "a block device", "char": "a character device", "directory": "a folder"}
_STICKY = 0o1000
_WRITABLE_BY_OTHERS = 0o022


def folder_of(volume: Volume) -> str:
    """Return the folder that a directory or file volume needs."""
    if volume.kind is VolumeKind.DIRECTORY:
        return volume.target
    return volume.target.rpartition("/")[0] or "/"


def check_place(volume: Volume, seen: DescribedVolume, *, writes: bool) -> None:
    """Check that the folder of a directory or file volume exists and is mounted.

    Args:
        volume: a directory or file.
        seen: its description, with its folder.
        writes: whether files may be created or written.

    Raises:
        RefusedError: it is missing, is below /dev, or its file system is not mounted.
    """
    target, folder = volume.target, folder_of(volume)
    if seen.folder.kind != "directory":
        raise RefusedError(
            f"there is no folder {folder}: fio would create it and fill the disk of its parent",
            hint=f"mount the volume, or create the folder: mkdir -p {folder}",
        )
    check_not_among_devices(target, seen)
    if writes and (point := seen.unmounted):
        raise RefusedError(
            f"{point} is a mount point in /etc/fstab, but nothing is mounted there: "
            f"{target} would fill the disk that holds it",
            hint=f"mount it first: mount {point}",
        )


def check_not_shared(seen: DescribedVolume, *, user: int, by_sudo: bool) -> None:
    """Check that root does not write into a folder in which other users can replace files.

    A symlink planted between the check and fio's open could redirect root to any file.

    Args:
        seen: description of the volume, with its folder.
        user: who logged in.
        by_sudo: whether fio runs as root regardless of the login user.

    Raises:
        RefusedError: another user owns the folder or one of its parents, or may write to it.
    """
    if user and not by_sudo:
        return
    folders = seen.folder.parents
    for number, (path, owner, mode) in enumerate(folders):
        # In a sticky folder users cannot replace files of other users.
        is_open = mode & _WRITABLE_BY_OTHERS and (number == 0 or not mode & _STICKY)
        if not is_open and owner in {0, user}:
            continue
        whose = "can be written by other users" if is_open else f"belongs to user {owner}"
        is_sticky = mode & _STICKY and owner in {0, user}
        example = f"mkdir -m 700 {folders[0][0]}/mine" if is_sticky else "one below /root or /srv"
        raise RefusedError(
            f"{path} {whose}, who could plant a symlink to any file that root may overwrite",
            hint=f"measure in a folder that only root can write to, such as {example}; "
            "if you trust all who may write there: --allow-shared-folder",
        )


def check_file(volume: Volume, seen: DescribedVolume, path: str, file: DescribedFile) -> None:
    """Check that a path is a regular file on its volume, or does not exist yet.

    Raises:
        RefusedError: it resolves to a path outside, or to a device, a pipe or a folder.
    """
    is_inside = file.real == seen.real or file.real.startswith(seen.real.rstrip("/") + "/")
    if volume.kind is VolumeKind.DIRECTORY and not is_inside:
        raise RefusedError(
            f"{path} leads outside its volume, to {file.real}",
            hint="remove the symlink, or choose another filename",
        )
    if file.stat is not None and file.stat.kind != "file":
        raise RefusedError(
            f"{path} is {_KIND_NAMES.get(file.stat.kind, 'not a regular file')}",
            hint="choose another filename, or name a device as the volume itself",
        )


def check_overwrite(run: Run, path: str, file: DescribedFile, *, is_ours: bool) -> None:
    """Check that a file may be created or overwritten.

    Raises:
        RefusedError: it is a symlink, in use by the kernel, or was not created by volbench and is
            not named, or is named but fio would not keep it.
    """
    if file.real != file.placed:
        raise RefusedError(
            f"{path} is a symlink to {file.real}", hint=f"name the file itself: {file.real}"
        )
    if file.stat is None:
        return
    kind, _, user = file.user.partition(" ")
    if kind == "swap":
        raise RefusedError(f"{path} is in use as swap", hint=f"release it first: swapoff {user}")
    if kind:
        raise RefusedError(
            f"{path} is in use by the loop device {user}",
            hint=f"release it first: losetup -d /dev/{user}",
        )
    if is_ours:
        return
    if not file.named:
        raise RefusedError(
            f"{path} exists and was not created by volbench: it would be overwritten",
            hint=f"move it away, or allow it: --allow-destroy {path}",
        )
    _check_kept(run, path, size_bytes=file.stat.size_bytes)


def _check_kept(run: Run, path: str, *, size_bytes: int) -> None:
    """Check that a run keeps a file that volbench did not create, though it may overwrite it."""
    needed_bytes = needed_file_bytes(run)
    if removes_files(run):
        problem, hint = "would be removed", "leave out unlink, and engines that delete files"
    elif size_bytes < needed_bytes:
        problem = f"is shorter than the {format_size(needed_bytes)} of the job, and fio would "
        problem += "replace it by another"
        hint = f"make it longer: truncate -s {needed_bytes} {path}; or decrease the size"
    else:
        return
    raise RefusedError(f"{path} was not created by volbench, and {problem}", hint=hint)
