"""Slices of a shared volume, one per client of a host.

In a directory each client has its own files, prefixed with its name. A device is divided into
equal slices of whole MiB. A file or an export cannot be shared without overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass

from volbench.errors import InputError
from volbench.model.campaign.planned_run import Run, Section
from volbench.model.campaign.target import Volume, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.plan.expansion.expand import EXAMPLE_BYTES

# Slices of a device begin at whole MiB, as partitions do (parted's optimal alignment)
ALIGNMENT_BYTES = 1 << 20

# Default file names of fio (fio HOWTO, filename_format)
_USUAL_FORMAT = "$jobname.$jobnum.$filenum"

# Options that a job cannot have on a shared device, with the reason
_OWN: dict[str, str] = {
    "offset": "volbench sets it",
    "offset_increment": "jobs in parallel would leave the slice of their client",
    "fill_device": "it would continue beyond the slice",
    "read_iolog": "a replay follows its log",
}


@dataclass(frozen=True)
class Share:
    """A client's share of a volume."""

    volume: Volume  # the shared volume
    index: int  # index of the share, from 0
    count: int  # number of shares; 1 where the volume is not shared
    label: str  # name of the client in file names

    @property
    def size_bytes(self) -> int:
        """Size of a slice of a device; of an example device in plans that are only shown."""
        whole_bytes = self.volume.pin.size_bytes if self.volume.pin else EXAMPLE_BYTES
        return whole_bytes // self.count // ALIGNMENT_BYTES * ALIGNMENT_BYTES


def own_part(run: Run, share: Share) -> Run:
    """Return a run that stays within its client's share of the volume."""
    if share.count == 1:
        return run
    if run.tool is Tool.DD:
        raise _refusal(run, share, "dd cannot be limited to a part of it", "write the job for fio")
    if share.volume.kind is VolumeKind.DIRECTORY:
        return _with_own_files(run, share)
    if share.volume.kind is not VolumeKind.DEVICE:
        what = "a file" if share.volume.kind is VolumeKind.FILE else "an export"
        hint = "name a directory, in which each client makes its own file, or a block device"
        raise _refusal(run, share, f"{what} cannot be shared", hint)
    # A device is warmed completely by a single client.
    return run if run.extent is not None else _with_own_slice(run, share)


def _refusal(run: Run, share: Share, reason: str, hint: str) -> InputError:
    return InputError(
        f"job {run.job}: {share.count} clients on {run.host} cannot share {share.volume.target}: "
        f"{reason}",
        hint=hint,
    )


def _with_own_files(run: Run, share: Share) -> Run:
    """Return a run whose files in a directory are prefixed with the client's name."""
    sections = [
        section.model_copy(
            update={"options": section.options | _names(run.effective(section), share.label)}
        )
        for section in run.sections
    ]
    return run.model_copy(update={"sections": tuple(sections)})


def _names(options: dict[str, str], label: str) -> dict[str, str]:
    if "filename" in options:
        names = options["filename"].split(":")
        return {"filename": ":".join(f"{label}-{name}" for name in names)}
    return {"filename_format": f"{label}.{options.get('filename_format', _USUAL_FORMAT)}"}


def _with_own_slice(run: Run, share: Share) -> Run:
    if not share.size_bytes:
        raise _refusal(run, share, "less than 1 MiB for each", "use fewer clients")
    sections = [_sliced(run, section, share) for section in run.sections]
    return run.model_copy(update={"sections": tuple(sections)})


def _sliced(run: Run, section: Section, share: Share) -> Section:
    options = run.effective(section)
    for name, reason in _OWN.items():
        if options.get(name, "0") not in {"0", "0%"}:
            hint = f"remove {name}, or give each client a volume of its own"
            raise _refusal(run, share, f"the job sets {name}, and {reason}", hint)
    own = {
        "offset": str(share.index * share.size_bytes),
        "size": str(_size_bytes(run, options, share)),
    }
    return section.model_copy(update={"options": section.options | own})


def _size_bytes(run: Run, options: dict[str, str], share: Share) -> int:
    """Return the size for a client: that of the job, a percentage of the slice, or the slice."""
    text = options.get("size", "100%")
    if text.endswith("%"):
        size_bytes = share.size_bytes * int(text[:-1]) // 100
        return max(size_bytes // ALIGNMENT_BYTES, 1) * ALIGNMENT_BYTES
    if not text.isdecimal() or int(text) > share.size_bytes:
        raise _refusal(
            run,
            share,
            f"size {text} does not fit a slice of {share.size_bytes} bytes",
            "decrease size, or use fewer clients",
        )
    return int(text)
