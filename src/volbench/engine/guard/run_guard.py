"""Guard that refuses runs which would destroy data without the user's consent.

A run is destructive when it may write or trim a block device or an NBD export, or overwrite a file
that volbench did not create. That needs the user's consent for exactly this target; devices in use
are refused even with consent. The guard itself only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from volbench.engine.guard.device_content import Content, read_content
from volbench.engine.guard.device_guard import (
    check_content,
    check_unused,
    is_allowed_device,
)
from volbench.engine.guard.device_identity import check_identity
from volbench.engine.guard.file_guard import check_file, check_kept, check_overwrite, check_place
from volbench.engine.guard.held_devices import OpenDevice
from volbench.engine.guard.path_checks import nearest_existing
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor
from volbench.fio.dd import dd_argv
from volbench.fio.jobs.render_job import lays_out, writes
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import VolumeFacts
from volbench.units import format_capacity, format_size

_MIB = 1024**2
RESERVE_BYTES = 64 * _MIB  # Free space always reserved for other programs on the file system

# Free space required on another machine for a run's result and logs, besides the reserve
RESULT_BYTES = 16 * _MIB

# Additional free space for metadata, as a share of the space needed by the run
RESERVE_SHARE = 0.05


@dataclass(frozen=True)
class Consent:
    """Consent of the user, for the runs of one host."""

    campaign_dir: str  # absolute path of the campaign folder; it may not exist yet
    # devices, files and NBD URIs that may be overwritten, as the user named them
    allow_destroy: Sequence[str] = ()
    allow_shared: bool = False  # root may write into a folder that other users can write to
    by_sudo: bool = False  # fio runs as root regardless of the login user
    # named devices may hold a filesystem, partition table, LUKS, swap area, or be members of larger
    # volumes at rest
    wipe_signatures: bool = False


def check_run(
    executor: Executor,
    run: Run,
    *,
    files: Sequence[str],
    consent: Consent,
    ours: Callable[[str], bool],
    opened: OpenDevice | None = None,
) -> None:
    """Check that a run destroys only data that the user agreed to lose, and nothing in use.

    Args:
        files: absolute paths of the files it may create or overwrite.
        ours: returns whether this campaign created a file.
        opened: its device, open for the run; None if the run is not about to start.
    """
    volume, may_write = run.volume, writes(run) or lays_out(run) or _dd_writes(run)
    match volume.kind:
        case VolumeKind.DEVICE:
            agreed = consent if may_write else None
            _check_device(executor, run, agreed, opened=opened)
        case VolumeKind.NBD:
            if may_write and volume.target not in consent.allow_destroy:
                raise _needs_consent(run)
        case VolumeKind.DIRECTORY | VolumeKind.FILE:
            check_place(
                executor,
                volume,
                writes=may_write,
                by_sudo=consent.by_sudo,
                allow_shared=consent.allow_shared,
            )
            for path in files:
                found = check_file(executor, volume, path)
                if may_write:
                    allowed = consent.allow_destroy
                    check_overwrite(executor, path, found, allow_destroy=allowed, ours=ours)
                    if found is not None and not ours(path):
                        check_kept(run, path, found)


def _check_device(
    executor: Executor, run: Run, consent: Consent | None, *, opened: OpenDevice | None
) -> None:
    """Check a device that a run reads, or overwrites with the user's consent."""
    target, is_start = run.volume.target, opened is not None
    opened = opened or OpenDevice()
    held = opened.held
    device = check_identity(executor, run.volume, held=held, edges=opened.edges)
    if consent is None:
        return
    is_held = held is not None and held.is_exclusive
    check_unused(executor, target, device, campaign_dir=consent.campaign_dir, is_held=is_held)
    if not is_allowed_device(executor, target, device, consent.allow_destroy):
        raise _needs_consent(run)
    content = read_content(executor, device)
    if not (is_start and _is_agreed(content, run, opened)):
        check_content(target, content, may_wipe=consent.wipe_signatures)
    if opened.refusal is not None:
        raise opened.refusal


def _is_agreed(content: Content, run: Run, opened: OpenDevice) -> bool:
    """Return whether content was agreed to when the device was pinned, or was written since."""
    pin = run.volume.pin
    if content.unreadable or pin is None:
        return False
    is_shared = opened.held is not None and opened.edges is None
    is_written = bool(opened.edges) and opened.edges != pin.edges
    return is_shared or is_written or content.mark == pin.signature


def _dd_writes(run: Run) -> bool:
    """Return whether a dd run writes, by its command line: dd has no --readonly to prevent it."""
    return run.tool is Tool.DD and "of=/dev/null" not in dd_argv(run)


def _needs_consent(run: Run) -> RefusedError:
    target = run.volume.target
    if run.host == LOCAL:
        hint = f"examine it with volbench probe {target}; to allow the loss of its data: "
        hint += f"--allow-destroy {target}"
    else:
        serial = run.volume.pin.serial if run.volume.pin is not None else ""
        own = f"allow_destroy: [serial:{serial}] in the inventory, or " if serial else ""
        hint = (
            f"examine it with volbench probe --inventory FILE; to allow the loss of its data: "
            f"{own}--allow-destroy {run.host}:{target}"
        )
    return RefusedError(
        f"job {run.job} would overwrite {target}"
        + (f" on {run.host}" if run.host != LOCAL else ""),
        hint=hint,
    )


def check_space(executor: Executor, path: str, *, needed_bytes: int) -> None:
    """Check that a file system has room for new files and a reserve.

    The reserve is 64 MiB plus 5 % of the needed space.

    Args:
        path: a file or folder; it may not exist yet.
        needed_bytes: number of bytes to write.
    """
    free = executor.free_bytes(nearest_existing(executor, path))
    reserve = RESERVE_BYTES + round(needed_bytes * RESERVE_SHARE)
    if needed_bytes and free < needed_bytes + reserve:
        fits = int((free - RESERVE_BYTES) / (1 + RESERVE_SHARE)) // _MIB * _MIB
        less = f", or write less: there is room for {format_size(fits)}, see --set size"
        raise RefusedError(
            f"{path} needs {format_size(needed_bytes)} and a reserve of {format_size(reserve)}, "
            f"but only {format_size(free)} are free",
            hint="free some space" + (less if fits >= _MIB else ""),
        )


def describe_device(facts: VolumeFacts, *, host: str) -> str:
    """Return the facts to show before a device is overwritten, one per line."""
    size = "unknown"
    if facts.size_bytes is not None:
        size = f"{format_capacity(facts.size_bytes)} ({facts.size_bytes} bytes)"
    lines = {
        "host": host,
        "device": facts.target if facts.target == facts.path else f"{facts.target} -> {facts.path}",
        "model": facts.model or "unknown",
        "size": size,
        "serial": facts.serial or "unknown",
        "on it": facts.content or "unknown",
    }
    return "\n".join(f"{name + ':':8} {_printable(text)}" for name, text in lines.items())


def _printable(text: str) -> str:
    """Return text without control characters, which labels may contain."""
    return "".join(c if c.isprintable() else "?" for c in text)
