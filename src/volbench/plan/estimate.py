"""Runs in; time, bytes and deadlines out."""

from __future__ import annotations

from dataclasses import dataclass

from volbench.model.run import Campaign, Run, Section
from volbench.model.target import VolumeKind

LAYOUT_BYTES_PER_S = 20e6
"""Bandwidth a file is laid out with at least; a slower volume needs a longer grace."""

TRANSFER_BYTES_PER_S = 1e6
"""Bandwidth a Run without runtime has at least."""

START_S = 0.5
"""Overhead of a fio process (measured with 3.33: 0.4 to 0.5 s)."""

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Estimate:
    """What a campaign will take.

    Attributes:
        runs: how many.
        total_s: at least this long; None when nothing bounds any Run.
        bytes_written: at most as many, for Runs whose size bounds them; None when unbounded.
    """

    runs: int
    total_s: float | None
    bytes_written: int | None


def estimate(campaign: Campaign) -> Estimate:
    """Return time and bytes of a campaign, as far as the plan tells."""
    times = [expected_s(run) for run in campaign.runs]
    known = [time for time in times if time is not None]
    written = [_written_bytes(run) for run in campaign.runs]
    bounded = [count for count in written if count is not None]
    return Estimate(
        runs=len(campaign.runs),
        total_s=sum(known) + START_S * len(times) if known else None,
        bytes_written=sum(bounded) if len(bounded) == len(written) else None,
    )


def expected_s(run: Run) -> float | None:
    """Return how long a Run takes by its own runtime, ramp and delay; None without runtime."""
    times = []
    for section in run.sections:
        options = run.effective(section)
        runtime_s = _seconds(options.get("runtime"))
        if not runtime_s:
            return None
        ramp_s, delay_s = (_seconds(options.get(n)) or 0.0 for n in ("ramp_time", "startdelay"))
        times.append(runtime_s + ramp_s + delay_s)
    return max(times)


def deadline_s(run: Run, *, grace_s: float) -> float:
    """Return the seconds after which a Run is ended, from runtime, layout and grace."""
    transfer_s = expected_s(run)
    if transfer_s is None:
        transfer_s = (_transfer_bytes(run) or _device_bytes(run)) / TRANSFER_BYTES_PER_S
    return transfer_s + layout_bytes(run) / LAYOUT_BYTES_PER_S + grace_s


def layout_bytes(run: Run) -> int:
    """Return the bytes of files a Run may have to lay out; 0 for devices and exports."""
    if run.volume.kind not in {VolumeKind.DIRECTORY, VolumeKind.FILE}:
        return 0
    named: dict[str, int] = {}
    for section in run.sections:
        options = run.effective(section)
        own_files = "filename" not in options and run.volume.kind is VolumeKind.DIRECTORY
        clones = int(options.get("numjobs", "1")) if own_files else 1
        place = section.name if own_files else options.get("filename", "")
        named[place] = max(named.get(place, 0), _size(run, section) * clones)
    return sum(named.values())


def _size(run: Run, section: Section) -> int:
    text = run.effective(section).get("size", "0")
    return int(text) if text.isdecimal() else 0


def _device_bytes(run: Run) -> int:
    return run.volume.pin.size_bytes if run.volume.pin else 0


def _transfer_bytes(run: Run) -> int:
    """Return the bytes a Run moves when its size bounds it."""
    total = 0
    for section in run.sections:
        options = run.effective(section)
        clones, loops = (int(options.get(name, "1")) for name in ("numjobs", "loops"))
        size = options.get("io_size", options.get("size", "0"))
        total += (int(size) if size.isdecimal() else _device_bytes(run)) * clones * loops
    return total


def _written_bytes(run: Run) -> int | None:
    """Return the most bytes a Run writes, or None when only its runtime bounds it."""
    total = layout_bytes(run)
    for section in run.sections:
        options = run.effective(section)
        if options.get("rw", "read").partition(":")[0] in {"read", "randread"}:
            continue
        if options.get("time_based", "0") != "0":
            return None
        total += _transfer_bytes(run)
    return total


def _seconds(canonical: str | None) -> float | None:
    if canonical is None:
        return None
    digits = canonical.rstrip("mus")
    return float(digits) * _UNITS[canonical[len(digits) :] or "s"]
