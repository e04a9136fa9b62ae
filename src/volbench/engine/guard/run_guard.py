"""Guard that refuses runs which would destroy data without the user's consent.

A run is destructive when it may write or trim a block device or an NBD export, or overwrite a file
that volbench did not create. That needs the user's consent for exactly this target; devices in use
are refused even with consent. The guard itself only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volbench.engine.guard.device_guard import (
    LAYERED,
    OpenDevice,
    check_content,
    check_identity,
    check_unused,
    consent_option,
)
from volbench.engine.guard.scratch_files import displaces
from volbench.engine.guard.volume_targets import check_not_among_devices
from volbench.engine.hosts.described_volumes import Content, HostState, content_of, free_bytes_at
from volbench.errors import NoSpaceError, RefusedError, quoted
from volbench.execute.agent.volumes import DescribedFile, DescribedVolume, VolumeQuestion
from volbench.execute.protocol import Executor
from volbench.fio.jobs.render_job import lays_out, writes
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_files import file_ranges
from volbench.model.campaign.planned_run import Consent, Run, Volume, VolumeKind
from volbench.model.profile.option_policy import filling_option
from volbench.model.results.provenance import VolumeFacts
from volbench.plan.expansion.expand import missing_size
from volbench.units import format_capacity, format_size

_MIB = 1024**2
# Free space always left to other programs: a trade-off, small against a volume worth measuring.
# Noticed by: test_file_guard.py::test_space_is_checked_with_a_reserve
RESERVE_BYTES = 64 * _MIB

# Free space for the result and logs of a run on another machine, besides the reserve: hours of logs
# at one line a second fit. Noticed by: tests/fleet/test_campaigns.py
RESULT_BYTES = 16 * _MIB

# Additional free space for the metadata of new files: a margin.
# Noticed by: test_file_guard.py::test_space_is_checked_with_a_reserve
RESERVE_SHARE = 0.05

OPTION_CONSENT = "fio:"
"""Prefix of an option or engine of fio among what the user allows to destroy data."""

_KIND_NAMES = {"block": "a block device", "char": "a character device", "directory": "a folder"}
_FILE_USES = {  # by kind, as in `DescribedFile.user`
    "swap": ("is in use as swap", "release it first: swapoff {}"),
    "loop": ("is in use by the loop device {}", "release it first: losetup -d /dev/{}"),
    "hidden": ("cannot be compared with the file of the loop device {}", LAYERED),
    "program": (
        "is open in another campaign, a program or the kernel",
        "find what uses it, and end it: volbench status; fuser -v {}; lsblk",
    ),
}
_STICKY = 0o1000
_WRITABLE_BY_OTHERS = 0o022


class RunConsent(Consent):
    """Consent of the user, for the runs of one host; paths are those of the host."""

    campaign_dir: str  # absolute path of the campaign folder; it may not exist yet
    by_sudo: bool = False  # fio runs as root regardless of the login user
    asked: str = ""  # target of the run as the user gave it, of which a path may be a part


def question_about(
    run: Run, files: Sequence[str], consent: RunConsent, opened: OpenDevice | None = None
) -> VolumeQuestion:
    """Return the guard's question about the volume of a run, except an NBD export."""
    volume, details = run.volume, ["content"]
    if may_write(run):
        details.append("use")
    if opened is None:
        details.append("access")
    elif opened.edges:
        details.append("edges")
    return VolumeQuestion(
        volume.target,
        files=tuple(files),
        allow=tuple(consent.allow_destroy),
        folder=volume.place,
        private_folder=volume.folder if volume.private_folder else "",
        details=tuple(details),
    )


def check_run(
    run: Run,
    state: HostState,
    *,
    files: Sequence[str],
    consent: RunConsent,
    ours: Callable[[str], bool],
    opened: OpenDevice | None = None,
) -> None:
    """Check that a run destroys only data that the user agreed to lose, and nothing in use.

    Args:
        state: of its host, with what `question_about` asks.
        files: absolute paths of the files that it may create or overwrite.
        ours: returns whether this campaign created a file.
        opened: its device, open for the run; None if the run is not about to start.
    """
    volume, writing = run.volume, may_write(run)
    if volume.kind is VolumeKind.NBD:
        if writing and volume.target not in consent.allow_destroy:
            raise _needs_consent(run, consent.asked)
        return
    seen = state.volumes[volume.target]
    if volume.kind is VolumeKind.DEVICE:
        _check_device(run, seen, consent if writing else None, opened=opened)
    else:
        check_place(volume, seen, writes=writing)
    if writing and not consent.allow_shared_folder:
        check_not_shared(seen, user=state.user, by_sudo=consent.by_sudo)
    if seen.access:
        raise RefusedError(seen.access, hint="check its permissions, or run as another user")
    if volume.kind is VolumeKind.DEVICE:
        return
    if writing:
        _check_bounds(run, consent)
    for path in files:
        file = state.files[path]
        check_file(volume, seen, path, file)
        if writing:
            check_overwrite(run, path, file, consent, is_ours=ours(path))


def may_write(run: Run) -> bool:
    """Return whether a run may write to its volume."""
    return writes(run) or lays_out(run)


def _check_device(
    run: Run, seen: DescribedVolume, consent: RunConsent | None, *, opened: OpenDevice | None
) -> None:
    """Check a device that a run reads, or overwrites with the user's consent."""
    target, is_start = run.volume.target, opened is not None
    opened = opened or OpenDevice()
    held = opened.held
    device = check_identity(run.volume, seen, host=run.host, held=held, edges=opened.edges)
    if consent is None:
        return
    check_unused(target, device, is_held=held is not None)
    if not device.named:
        raise _needs_consent(run, consent.asked)
    content = content_of(seen)
    if not (is_start and _is_agreed(content, run, opened)):
        check_content(target, content, may_wipe=consent.wipe_signatures)
    if opened.refusal is not None:
        raise opened.refusal


def _is_agreed(content: Content, run: Run, opened: OpenDevice) -> bool:
    """Return whether content was agreed to when the device was pinned, or was written since."""
    pin = run.volume.pin
    if content.unreadable or pin is None:
        return False
    is_written = bool(opened.edges) and opened.edges != pin.edges
    return opened.is_shared or is_written or content.mark == pin.signature


def _needs_consent(run: Run, asked: str) -> RefusedError:
    target = asked or run.volume.target
    if run.host == LOCAL:
        hint = (
            f"examine it with volbench hosts --on {quoted(target)}; to allow the loss of its data: "
        )
    else:
        serial = run.volume.pin.serial if run.volume.pin is not None else ""
        inventory = f"allow_destroy: [serial:{serial}] in the inventory, or " if serial else ""
        hint = (
            "examine it with volbench hosts --inventory FILE; to allow the loss of its data: "
            + inventory
        )
    return RefusedError(
        f"job {run.job} would overwrite {target}"
        + (f" on {run.host}" if run.host != LOCAL else ""),
        hint=hint + consent_option(run.host, target),
    )


def check_space(
    path: str,
    *,
    free_bytes: int,
    needed_bytes: int,
    jobs: float = 1,
    options: str = "--set size={}",
    others: Sequence[str] = (),
) -> None:
    """Check that a file system has room for new files and a reserve.

    The reserve is 64 MiB plus 5 % of the needed space.

    Args:
        path: a file or folder, or words for several; it may not exist yet.
        jobs: how often fio's `size` is written.
        options: of the command that write less, with a place for the size.
        others: keys of other campaigns whose announced bytes are not free.
    """
    reserve = RESERVE_BYTES + round(needed_bytes * RESERVE_SHARE)
    if needed_bytes and free_bytes < needed_bytes + reserve:
        fits = int((free_bytes - RESERVE_BYTES) / (1 + RESERVE_SHARE) / jobs) // _MIB * _MIB
        less = f", or write less: {options.format(format_size(fits))}"
        other = f", or name a larger folder: {format_capacity(RESERVE_BYTES)} must stay free"
        raise NoSpaceError(
            f"{path} needs {format_capacity(needed_bytes)} and a reserve of "
            f"{format_capacity(reserve)}, but only {format_capacity(free_bytes)} are free"
            + (f" besides what other campaigns write ({', '.join(others)})" if others else ""),
            hint=("free some space" if free_bytes else "free space or inodes (df -h, df -i)")
            + (less if fits >= _MIB else other),
        )


def check_room(executor: Executor, path: str, *, needed_bytes: int) -> None:
    """Look up the free space at a path, and check it; see `check_space`."""
    check_space(path, free_bytes=free_bytes_at(executor, path), needed_bytes=needed_bytes)


def describe_device(facts: VolumeFacts, *, host: str) -> str:
    """Return the facts to show before a device is overwritten, one per line."""
    number = facts.size_bytes
    size = "unknown" if number is None else f"{format_capacity(number)} ({number} bytes)"
    lines = {
        "host": host,
        "device": facts.target if facts.target == facts.path else f"{facts.target} -> {facts.path}",
        "model": facts.model or "unknown",
        "size": size,
        "serial": facts.serial or "unknown",
        "on it": facts.content or "unknown",
    }
    for name, text in lines.items():  # labels may contain control characters
        lines[name] = "".join(c if c.isprintable() else "?" for c in text)
    return "\n".join(f"{name + ':':8} {text}" for name, text in lines.items())


def check_place(volume: Volume, seen: DescribedVolume, *, writes: bool) -> None:
    """Check that the folder of a directory or file volume exists and is mounted."""
    target, folder = volume.target, volume.place
    if seen.folder.kind != "directory":
        raise RefusedError(
            f"there is no folder {folder}: fio would create it and fill the disk of its parent",
            hint=f"mount the volume, or create the folder: mkdir -p {quoted(folder)}",
        )
    check_not_among_devices(target, seen)
    if writes and (point := seen.unmounted):
        raise RefusedError(
            f"{point} is a mount point in /etc/fstab, but nothing is mounted there: "
            f"{target} would fill the disk that holds it",
            hint=f"mount it first: mount {quoted(point)}",
        )


def check_not_shared(seen: DescribedVolume, *, user: int, by_sudo: bool) -> None:
    """Check that root does not write into a folder in which other users can replace files.

    A symlink planted between the check and fio's open could redirect root to any file.
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
        example = (
            f"mkdir -m 700 {quoted(f'{folders[0][0]}/mine')}"
            if is_sticky
            else "one below /root or /srv"
        )
        raise RefusedError(
            f"{path} {whose}, who could plant a symlink to any file that root may overwrite",
            hint=f"measure in a folder that only root can write to, such as {example}; "
            "if you trust all who may write there: --allow-shared-folder",
        )


def check_file(volume: Volume, seen: DescribedVolume, path: str, file: DescribedFile) -> None:
    """Check that a path is a regular file on its volume, or does not exist yet."""
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


def check_overwrite(
    run: Run, path: str, file: DescribedFile, consent: RunConsent, *, is_ours: bool
) -> None:
    """Check that a file may be created or overwritten."""
    if file.real != file.placed:
        raise RefusedError(
            f"{path} is a symlink to {file.real}", hint=f"name the file itself: {file.real}"
        )
    if file.stat is None:
        if run.volume.kind is VolumeKind.DIRECTORY and not writes(run) and missing_size(run):
            raise RefusedError(
                f"job {run.job} has no size, and {path} does not exist",
                hint="check its path, or write its size: --set size=1g",
            )
        return
    if file.user:
        kind, _, user = file.user.partition(" ")
        problem, hint = _FILE_USES[kind]
        hint = hint.format(user or quoted(path))
        raise RefusedError(f"{path} {problem.format(user)}", hint=hint)
    if is_ours:
        return
    if not file.named and writes(run):
        raise RefusedError(
            f"{path} exists and was not created by volbench: it would be overwritten",
            hint=f"move it away, or allow it: {consent_option(run.host, path)}",
        )
    _check_kept(run, path, consent, size_bytes=file.stat.size_bytes)


def _check_kept(run: Run, path: str, consent: RunConsent, *, size_bytes: int) -> None:
    """Check that a run keeps a file that volbench did not create, though it may overwrite it."""
    if (name := displaces(run)) and f"{OPTION_CONSENT}{name}" not in consent.allow_destroy:
        raise RefusedError(
            f"{path} was not created by volbench, and {name} may remove it, or change its length",
            hint=f"leave out {name}, or measure a new file; if the file may be lost: "
            f"--allow-destroy {OPTION_CONSENT}{name}",
        )
    _, end = file_ranges(run, {path: size_bytes}).get(path, (0, 0))
    if size_bytes < end:
        raise RefusedError(
            f"{path} was not created by volbench, and is shorter than the {format_size(end)} of "
            "the job: fio would replace it by another",
            hint=f"make it longer: truncate -s {end} {quoted(path)}; or decrease the size",
        )


def _check_bounds(run: Run, consent: RunConsent) -> None:
    """Check that the sizes of a run bound what it writes to a filesystem."""
    for name in map(filling_option, map(run.effective, run.sections)):
        if name and f"{OPTION_CONSENT}{name}" not in consent.allow_destroy:
            raise RefusedError(
                f"job {run.job} would fill the filesystem of {run.volume.target}: {name} has no "
                "limit",
                hint="leave it out, and give a size; if the filesystem may be filled: "
                f"--allow-destroy {OPTION_CONSENT}{name}",
            )
