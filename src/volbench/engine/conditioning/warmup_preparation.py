"""Preparation of a warm-up: size of the volume, room for its file, number of parallel jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volbench.engine.conditioning.warmup_verification import IsDone, Outcomes, is_same_pass
from volbench.engine.guard.run_guard import check_room
from volbench.engine.hosts.described_volumes import DescribedFile
from volbench.errors import InputError, RefusedError
from volbench.execute.protocol import Executor
from volbench.fio.jobs.render_job import planned_files, writes
from volbench.model.campaign.planned_run import Campaign, Run, Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.plan.expansion.extents import LADDER, with_numjobs
from volbench.units import format_size

# Speed-up by which doubling numjobs pays off; less is noise on a cloud volume.
# Noticed by: test_warmup_preparation.py::test_numjobs_double_until_that_gains_too_little
GAIN = 0.1


def sizes_of(
    executor: Executor, profiles: Sequence[Profile], volumes: Mapping[str, Volume]
) -> dict[str, int]:
    """Return the sizes of the volumes that jobs warm up, by role, if they can be detected."""
    found = {}
    for job in (job for profile in profiles for job in profile.jobs if job.warming):
        if job.role not in volumes:
            continue
        volume = volumes[job.role]
        size_bytes = _size_of(executor, volume)
        if size_bytes:
            found[job.role] = size_bytes
        elif not job.options.get("size"):
            raise InputError(
                f"job {job.name}: the size of {volume.target} cannot be detected",
                hint="give it: --size 10g, or size: 10g in the job",
            )
    return found


def _size_of(executor: Executor, volume: Volume) -> int:
    """Return the size of a volume; 0 when it cannot be detected."""
    if volume.pin is not None:
        return volume.pin.size_bytes
    if volume.kind is VolumeKind.FILE:
        found = executor.stat(volume.target)
        return found.size_bytes if found else 0
    if volume.kind is VolumeKind.NBD and executor.which("nbdinfo"):
        done = executor.run(["nbdinfo", "--size", volume.target])
        if done.exit_status == 0 and done.stdout.strip().isdecimal():
            return int(done.stdout)
    return 0


def make_room(executor: Executor, run: Run, files: Mapping[str, DescribedFile]) -> bool:
    """Extend the file of a warm-up to its full length without writing data.

    fio replaces a file that is shorter than the range of a job, which would lose earlier extents.

    Returns:
        Whether a file was made or extended.
    """
    if run.extent is None:
        return False
    size_bytes, is_changed = run.extent.volume_bytes, False
    for path in planned_files(run):
        file = files[path].stat
        if file is not None and file.size_bytes >= size_bytes:
            continue
        if not writes(run):
            raise RefusedError(
                f"{path} is shorter than the {format_size(size_bytes)} to read",
                hint="write it first (mode write-read), or give a smaller size",
            )
        check_room(executor, path, needed_bytes=size_bytes)
        done = executor.run(["truncate", "-s", str(size_bytes), "--", path])
        if done.exit_status:
            raise RefusedError(
                f"{path} cannot be extended to {size_bytes} bytes: {done.stderr.strip()}",
                hint="check its file system and permissions",
            )
        is_changed = True
    return is_changed


def with_parallelism(outcomes: Outcomes, campaign: Campaign, run: Run, *, is_done: IsDone) -> Run:
    """Return a run with the numjobs derived from the throughput of earlier extents.

    Only finished runs count, in the order of the plan, so that a resumed campaign decides like an
    uninterrupted one.

    Args:
        outcomes: bytes moved by finished runs.
        is_done: returns whether a run is finished.
    """
    if run.extent is None or not run.extent.auto:
        return run
    rates = []
    for other in campaign.runs:
        if other.id == run.id:
            break
        if other.extent and other.extent.auto and is_same_pass(other, run) and is_done(other):
            rates.append(outcomes.of(other).rate_bytes_per_s)
    section, limit = run.sections[0], int(run.effective(run.sections[0])["numjobs"])
    numjobs = min(choose_numjobs(rates, limit=limit), limit)
    return run.model_copy(update={"sections": (with_numjobs(section, run.extent, numjobs),)})


def choose_numjobs(rates_bytes_per_s: Sequence[float], *, limit: int) -> int:
    """Return the numjobs of the next extent: doubled until the gain is below `GAIN`.

    Args:
        rates_bytes_per_s: throughput of the extents so far, in order.
    """
    ladder = [numjobs for numjobs in LADDER if numjobs <= limit]
    best = 0
    for step in range(1, len(ladder)):
        if step > len(rates_bytes_per_s) - 1:
            return ladder[min(step, len(rates_bytes_per_s))]
        if rates_bytes_per_s[step] < (1 + GAIN) * rates_bytes_per_s[best]:
            return ladder[best]
        best = step
    return ladder[best]
