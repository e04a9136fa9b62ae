"""Write-back after a run: sampling continues until its dirty pages have reached the device.

A buffered write completes for the program once it is in memory. The kernel writes it back within
about 35 s (vm.dirty_expire_centisecs and vm.dirty_writeback_centisecs, by default 30 s and 5 s;
Documentation/admin-guide/sysctl/vm.rst of Linux), or sooner when many pages are dirty.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from volbench.analyse.frames.kernel_counters import ENDED, Sample, SampleReader
from volbench.engine.run.process_watch import StopRequest
from volbench.engine.sampling.sampler import Sampler
from volbench.execute.protocol import Executor
from volbench.execute.waiting_work import Work
from volbench.fio.jobs.render_job import lays_out, section_writes
from volbench.model.campaign.event import Listener, Notice
from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.plan.expansion.estimate import layout_bytes

MAX_WAIT_S = 120.0  # Longest wait for the write-back of a run

# After this long without write-back the kernel is not expected to write the pages soon
QUIET_S = 40.0

# The same for a run shorter than `LONG_RUN_S`, or the run's own length if that is longer
MIN_QUIET_S = 5.0

LONG_RUN_S = 10.0  # A run of at least this length is followed to the end of its write-back

SLACK_BYTES = 8 * 1024**2  # Normal variation of a host's dirty pages

SLACK_SHARE = 0.05  # Maximum share of remaining dirty pages for a run to count as written back

_NOTICEABLE_BYTES = 1024**2  # A smaller decrease is background variation, not write-back

_STOPPED = "cut off: stopped by the user"
_POLL_S = 0.2
_SILENCE_S = 30.0  # Additional wait for a sampler that runs without printing samples


def follow_tail(
    executor: Executor,
    run: Run,
    sampler: Sampler,
    *,
    stop: StopRequest,
    listener: Listener,
    had_files: bool = False,
) -> Work[None]:
    """Continue sampling until a run's dirty pages are written back, and record the reason to end.

    A run without dirty pages, such as a run with ``direct=1``, is not delayed: its last sample is
    taken immediately.

    Args:
        had_files: whether its files existed: it laid none out, and dirty pages are those of others.
    """
    sampler.mark(ENDED)
    why = "none: no dirty pages left"
    lays_little_out = had_files or layout_bytes(run) <= SLACK_BYTES
    may_be_dirty = writes_buffered(run) or not lays_little_out
    may_be_dirty = may_be_dirty and may_leave_dirt(run)
    dirty_remaining_bytes = _dirty_bytes(executor, sampler) if may_be_dirty else 0.0
    if dirty_remaining_bytes > SLACK_BYTES and stop.requested:
        why = _STOPPED
    elif dirty_remaining_bytes > SLACK_BYTES and not sampler.problem:
        dirty = f"{dirty_remaining_bytes / 1e6:.0f} MB"
        listener(Notice(f"{run.id}: {dirty} of dirty pages left; following their write-back"))
        why = yield from _wait(sampler, stop)
    if sampler.problem:
        listener(Notice(f"{run.id}: the device was not sampled to the end: {sampler.problem}"))
    sampler.stop()
    sampler.mark(f"tail {why}")


def may_leave_dirt(run: Run) -> bool:
    """Return whether a run writes through the host's page cache."""
    is_network = run.volume.kind is VolumeKind.NBD and run.tool is Tool.FIO
    return not is_network and (lays_out(run) or writes_buffered(run))


def writes_buffered(run: Run) -> bool:
    """Return whether the jobs of a run, apart from file layout, write through the page cache."""
    return any(_writes_buffered(run, run.effective(section)) for section in run.sections)


def is_direct(options: Mapping[str, str]) -> bool:
    """Return whether a section bypasses the page cache."""
    flags = f"{options.get('oflag', '')},{options.get('iflag', '')}".split(",")
    return options.get("direct", "0") == "1" or "direct" in flags


def _writes_buffered(run: Run, options: Mapping[str, str]) -> bool:
    if run.tool is Tool.DD:
        return options.get("rw", "write") != "read" and not is_direct(options)
    return section_writes(dict(options)) and not is_direct(options)


def _wait(sampler: Sampler, stop: StopRequest) -> Work[str]:
    """Collect samples until the end of write-back, and return the reason to end."""
    until = time.monotonic() + MAX_WAIT_S + _SILENCE_S
    while not stop.requested:
        yield sampler.pause(_POLL_S)
        sampler.collect()
        if _is_settled(sampler.samples):
            return "settled"
        if _is_quiet(sampler.samples):
            return f"unchanged for {_patience_s(sampler.samples):.0f} s"
        if sampler.problem:
            return f"cut off: {sampler.problem}"
        if _length_s(sampler.samples) >= MAX_WAIT_S or time.monotonic() > until:
            return f"cut off after {MAX_WAIT_S:.0f} s"
    return _STOPPED


def _length_s(samples: list[Sample]) -> float:
    tail = [sample for sample in samples if sample.after_end]
    return tail[-1].uptime_s - tail[0].uptime_s if tail else 0.0


def _dirty_bytes(executor: Executor, sampler: Sampler) -> float:
    """Return the growth of dirty pages since before the run; NaN if unknown.

    The counters are read anew: the last sample may predate all writes of a short run.
    """
    meminfo = executor.read_text("/proc/meminfo") or ""
    now = SampleReader().feed(f"T 0 0\n{meminfo}\n.\n")
    return now[0].unwritten_bytes - sampler.samples[0].unwritten_bytes if sampler.samples else 0.0


def _is_settled(samples: list[Sample]) -> bool:
    """Return whether dirty pages are back to about the level before the run."""
    before, now = samples[0].unwritten_bytes, samples[-1].unwritten_bytes
    peak = max(sample.unwritten_bytes for sample in samples) - before
    return samples[-1].after_end and now - before <= max(SLACK_BYTES, SLACK_SHARE * peak)


def _patience_s(samples: list[Sample]) -> float:
    """Return the maximum pause of write-back before it counts as ended."""
    ran_s = next(sample.uptime_s for sample in samples if sample.after_end) - samples[0].uptime_s
    return QUIET_S if ran_s >= LONG_RUN_S else max(MIN_QUIET_S, ran_s)


def _is_quiet(samples: list[Sample]) -> bool:
    """Return whether nothing was written back for `_patience_s`."""
    tail = [sample for sample in samples if sample.after_end]
    since = tail[-1].uptime_s - _patience_s(samples) if tail else 0.0
    if not tail or tail[0].uptime_s > since:
        return False
    recent = [sample.unwritten_bytes for sample in tail if sample.uptime_s >= since]
    return recent[-1] > recent[0] - _NOTICEABLE_BYTES
