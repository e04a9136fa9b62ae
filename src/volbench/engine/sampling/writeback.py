"""After a Run: its sampler goes on until what is left in memory has reached the device.

A buffered write is done for the program when it is in memory. The kernel writes it within about
35 s (vm.dirty_expire_centisecs and vm.dirty_writeback_centisecs, 30 s and 5 s unless the host is
told otherwise; Documentation/admin-guide/sysctl/vm.rst of Linux), or sooner when much is waiting.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from volbench.analyse.device.kernel_counters import ENDED, Sample, SampleReader
from volbench.engine.run.stop_request import Stop
from volbench.engine.sampling.sampler import Sampler
from volbench.execute.protocol import Executor
from volbench.fio.jobs.output_files import lays_out, section_writes
from volbench.model.campaign.event import Listener, Notice
from volbench.model.campaign.planned_run import Run
from volbench.model.campaign.target import VolumeKind
from volbench.model.profile.profile_model import Tool

CAP_S = 120.0
"""Longest a Run is followed."""

QUIET_S = 40.0
"""So long without a byte less the kernel does not hold back what it means to write."""

LEAST_QUIET_S = 5.0
"""A Run shorter than `LONG_RUN_S` is waited for as long as it took, yet so long at least."""

LONG_RUN_S = 10.0
"""A Run from this length on is followed to the end of its tail, as long as that takes."""

SLACK_BYTES = 8 * 1024**2
"""Bytes in memory that any host has more at one time than at another."""

SLACK_SHARE = 0.05
"""Share of what a Run left in memory that may stay: "about what it was before"."""

_NOTICEABLE_BYTES = 1024**2
"""Less than this is no write-back, but the host's own comings and goings."""

_STOPPED = "cut off: stopped by the user"
_POLL_S = 0.1
_SILENCE_S = 30.0
"""How much longer a sampler is waited for that lives and says nothing."""


def follow_tail(
    executor: Executor, run: Run, sampler: Sampler, *, stop: Stop, listener: Listener
) -> None:
    """Sample on until what a Run left in memory has settled, and note why the tail ended.

    A Run that leaves nothing in memory, as one with ``direct=1``, is not held up: its last sample
    is taken at once.

    Args:
        executor: the machine.
        run: what ran.
        sampler: still sampling, or not.
        stop: ends the tail at once.
        listener: told of a tail to wait for, and of samples that are missing.
    """
    sampler.mark(ENDED)
    why = "none: nothing is left in memory"
    dirty_remaining_bytes = _left_bytes(executor, sampler) if may_leave_dirt(run) else 0.0
    if dirty_remaining_bytes > SLACK_BYTES and stop.requested:
        why = _STOPPED
    elif dirty_remaining_bytes > SLACK_BYTES and not sampler.problem:
        left = f"{dirty_remaining_bytes / 1e6:.0f} MB"
        listener(Notice(f"{run.id}: {left} are in memory only; watching the device write them"))
        why = _wait(sampler, stop)
    if sampler.problem:
        listener(Notice(f"{run.id}: the device was not sampled to the end: {sampler.problem}"))
    sampler.stop()
    sampler.mark(f"tail {why}")


def may_leave_dirt(run: Run) -> bool:
    """Tell whether a Run writes through the host's page cache."""
    if run.volume.kind is VolumeKind.NBD and run.tool is Tool.FIO:
        return False
    return lays_out(run) or any(
        _writes_buffered(run, run.effective(section)) for section in run.sections
    )


def is_direct(options: Mapping[str, str]) -> bool:
    """Tell whether a section goes around the page cache."""
    flags = f"{options.get('oflag', '')},{options.get('iflag', '')}".split(",")
    return options.get("direct", "0") == "1" or "direct" in flags


def _writes_buffered(run: Run, options: Mapping[str, str]) -> bool:
    if run.tool is Tool.DD:
        return options.get("rw", "write") != "read" and not is_direct(options)
    return section_writes(dict(options)) and not is_direct(options)


def _wait(sampler: Sampler, stop: Stop) -> str:
    """Collect samples until nothing more is to come; return why it ended."""
    until = time.monotonic() + CAP_S + _SILENCE_S
    while not stop.requested:
        sampler.collect(wait_s=_POLL_S)
        if _is_settled(sampler.samples):
            return "settled"
        if _is_quiet(sampler.samples):
            return f"unchanged for {_patience_s(sampler.samples):.0f} s"
        if sampler.problem:
            return f"cut off: {sampler.problem}"
        if _length_s(sampler.samples) >= CAP_S or time.monotonic() > until:
            return f"cut off after {CAP_S:.0f} s"
    return _STOPPED


def _length_s(samples: list[Sample]) -> float:
    tail = [sample for sample in samples if sample.after_end]
    return tail[-1].uptime_s - tail[0].uptime_s if tail else 0.0


def _left_bytes(executor: Executor, sampler: Sampler) -> float:
    """Return how much more is in memory only than before the Run; NaN when nobody knows.

    It is looked up now: the last sample may be older than all that a short Run wrote.
    """
    meminfo = executor.read_text("/proc/meminfo") or ""
    now = SampleReader().feed(f"T 0 0\n{meminfo}\n.\n")
    return now[0].unwritten_bytes - sampler.samples[0].unwritten_bytes if sampler.samples else 0.0


def _is_settled(samples: list[Sample]) -> bool:
    """Tell whether about as much is in memory only as before, after the Run ended."""
    before, now = samples[0].unwritten_bytes, samples[-1].unwritten_bytes
    peak = max(sample.unwritten_bytes for sample in samples) - before
    return samples[-1].after_end and now - before <= max(SLACK_BYTES, SLACK_SHARE * peak)


def _patience_s(samples: list[Sample]) -> float:
    """Return how long nothing may be written before the tail is given up."""
    ran_s = next(sample.uptime_s for sample in samples if sample.after_end) - samples[0].uptime_s
    return QUIET_S if ran_s >= LONG_RUN_S else max(LEAST_QUIET_S, ran_s)


def _is_quiet(samples: list[Sample]) -> bool:
    """Tell whether nothing was written for as long as there is patience."""
    tail = [sample for sample in samples if sample.after_end]
    since = tail[-1].uptime_s - _patience_s(samples) if tail else 0.0
    if not tail or tail[0].uptime_s > since:
        return False
    recent = [sample.unwritten_bytes for sample in tail if sample.uptime_s >= since]
    return recent[-1] > recent[0] - _NOTICEABLE_BYTES
