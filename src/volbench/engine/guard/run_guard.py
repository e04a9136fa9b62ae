"""Guard that refuses runs which would destroy data without the user's consent.

A run is destructive when it may write or trim a block device or an NBD export, or overwrite a file
that volbench did not create. That needs the user's consent for exactly this target; devices in use
are refused even with consent. The guard itself only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volbench.engine.guard.device_guard import check_content, check_identity, check_unused
from volbench.engine.guard.file_guard import (
    check_file,
    check_not_shared,
    check_overwrite,
    check_place,
    folder_of,
)
from volbench.engine.guard.held_devices import OpenDevice
from volbench.engine.hosts.described_volumes import (
    Content,
    DescribedVolume,
    HostState,
    VolumeQuestion,
    free_bytes_at,
)
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor
from volbench.fio.dd import dd_argv
from volbench.fio.jobs.render_job import lays_out, writes
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_run import Consent, Run, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import VolumeFacts
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


class RunConsent(Consent):
    """Consent of the user, for the runs of one host; paths are those of the host."""

    campaign_dir: str  # absolute path of the campaign folder; it may not exist yet
    by_sudo: bool = False  # fio runs as root regardless of the login user


def question_about(
    run: Run, files: Sequence[str], consent: RunConsent, opened: OpenDevice | None = None
) -> VolumeQuestion:
    """Return what the guard must know of a run's volume, which is no NBD export."""
    volume, details = run.volume, ["content"]
    if may_write(run):
        details.append("use")
    if opened is not None and opened.edges:
        details.append("edges")
    return VolumeQuestion(
        volume.target,
        files=files,
        allow=consent.allow_destroy,
        folder="" if volume.kind is VolumeKind.DEVICE else folder_of(volume),
        private_folder=volume.folder if volume.private_folder else "",
        details=details,
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
        run: the run.
        state: of its host, with what `question_about` asks.
        files: absolute paths of the files that it may create or overwrite.
        consent: consent of the user.
        ours: returns whether this campaign created a file.
        opened: its device, open for the run; None if the run is not about to start.

    Raises:
        RefusedError: with the reason and a hint.
        InputError: dd cannot do what the run requests.
    """
    volume, writing = run.volume, may_write(run)
    if volume.kind is VolumeKind.NBD:
        if writing and volume.target not in consent.allow_destroy:
            raise _needs_consent(run)
        return
    seen = state.volumes[volume.target]
    if volume.kind is VolumeKind.DEVICE:
        _check_device(run, seen, consent if writing else None, opened=opened)
        return
    check_place(volume, seen, writes=writing)
    if writing and not consent.allow_shared_folder:
        check_not_shared(seen, user=state.user, by_sudo=consent.by_sudo)
    for path in files:
        file = state.files[path]
        check_file(volume, seen, path, file)
        if writing:
            check_overwrite(run, path, file, is_ours=ours(path))


def may_write(run: Run) -> bool:
    """Return whether a run may write to its volume.

    A dd run writes by its command line: dd has no --readonly to prevent it.
    """
    dd_writes = run.tool is Tool.DD and "of=/dev/null" not in dd_argv(run)
    return writes(run) or lays_out(run) or dd_writes


def _check_device(
    run: Run, seen: DescribedVolume, consent: RunConsent | None, *, opened: OpenDevice | None
) -> None:
    """Check a device that a run reads, or overwrites with the user's consent."""
    target, is_start = run.volume.target, opened is not None
    opened = opened or OpenDevice()
    held = opened.held
    device = check_identity(run.volume, seen, held=held, edges=opened.edges)
    if consent is None:
        return
    check_unused(target, device, is_held=held is not None and held.is_exclusive)
    if not device.named:
        raise _needs_consent(run)
    content = seen.content
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


def _needs_consent(run: Run) -> RefusedError:
    target = run.volume.target
    if run.host == LOCAL:
        hint = f"examine it with volbench probe {target}; to allow the loss of its data: "
        hint += f"--allow-destroy {target}"
    else:
        serial = run.volume.pin.serial if run.volume.pin is not None else ""
        inventory = f"allow_destroy: [serial:{serial}] in the inventory, or " if serial else ""
        hint = (
            f"examine it with volbench probe --inventory FILE; to allow the loss of its data: "
            f"{inventory}--allow-destroy {run.host}:{target}"
        )
    return RefusedError(
        f"job {run.job} would overwrite {target}"
        + (f" on {run.host}" if run.host != LOCAL else ""),
        hint=hint,
    )


def check_space(path: str, *, free_bytes: int, needed_bytes: int) -> None:
    """Check that a file system has room for new files and a reserve.

    The reserve is 64 MiB plus 5 % of the needed space.

    Args:
        path: a file or folder; it may not exist yet.
        free_bytes: free on its file system.
        needed_bytes: number of bytes to write.

    Raises:
        RefusedError: there is too little space.
    """
    reserve = RESERVE_BYTES + round(needed_bytes * RESERVE_SHARE)
    if needed_bytes and free_bytes < needed_bytes + reserve:
        fits = int((free_bytes - RESERVE_BYTES) / (1 + RESERVE_SHARE)) // _MIB * _MIB
        less = f", or write less: there is room for {format_size(fits)}, see --set size"
        raise RefusedError(
            f"{path} needs {format_size(needed_bytes)} and a reserve of {format_size(reserve)}, "
            f"but only {format_size(free_bytes)} are free",
            hint="free some space" + (less if fits >= _MIB else ""),
        )


def check_room(executor: Executor, path: str, *, needed_bytes: int) -> None:
    """Look up the free space at a path, and check it; see `check_space`."""
    free_bytes = free_bytes_at(executor, path)
    check_space(path, free_bytes=free_bytes, needed_bytes=needed_bytes)


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
