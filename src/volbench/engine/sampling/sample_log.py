"""Log ``device.log`` of the kernel's counters beside a run, sampled by the run's supervisor."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from volbench.analyse.frames.kernel_counters import SampleReader
from volbench.execute.agent.kernel_sampler import MAX_WAIT_S, SLACK_BYTES
from volbench.execute.protocol import Process
from volbench.fio.jobs.render_job import lays_out
from volbench.model.campaign.event import Listener, Notice
from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.profile.option_policy import changing_option
from volbench.plan.expansion.estimate import layout_bytes
from volbench.store.atomic_files import unwritable

_FIRST_POLL_S = 0.02  # A supervisor without dirty pages to follow ends within milliseconds.
_POLL_S = 0.2  # Shorter than a user notices after Ctrl-C.
_SILENCE_S = 30.0  # Additional wait for a sampler that runs without printing samples.
_END = "\n! tail "
_ENDED = "\n! ended\n"
_TOPIC = "write-back of dirty pages followed"
_HEAD = 65536  # Characters that hold the first sample, even on a host with many devices.


def sampling_of(run: Run, devices: tuple[str, ...], *, had_files: bool) -> dict[str, object] | None:
    """Return the sampling order for the supervisor of a run; None for no samples.

    A run without dirty pages, such as a run with ``direct=1``, is not delayed by their write-back.

    Args:
        had_files: whether its files existed: it lays none out, and dirty pages are those of others.
    """
    if run.device_sample_s <= 0:
        return None
    lays_little_out = had_files or layout_bytes(run) <= SLACK_BYTES
    may_be_dirty = may_leave_dirt(run) and (writes_buffered(run) or not lays_little_out)
    return {
        "devices": list(devices),
        "interval_s": run.device_sample_s,
        "is_tail_followed": may_be_dirty,
    }


def may_leave_dirt(run: Run) -> bool:
    """Return whether a run writes through the host's page cache."""
    is_network = run.volume.kind is VolumeKind.NBD
    return not is_network and (lays_out(run) or writes_buffered(run))


def writes_buffered(run: Run) -> bool:
    """Return whether the jobs of a run, apart from file layout, write through the page cache."""
    sections = [run.effective(section) for section in run.sections]
    return any(changing_option(options) and not is_direct(options) for options in sections)


def is_direct(options: Mapping[str, str]) -> bool:
    """Return whether a section bypasses the page cache."""
    return options.get("direct", "0") == "1"


class SampleLog:
    """Log of the samples of one run; output that is in it already is skipped after a takeover."""

    def __init__(self, path: Path, process: Process) -> None:
        self._path = path
        self._process = process
        self._head = self._tail = ""
        self._has_ended = self._is_complete = False
        if path.exists():
            process.skip(sample_bytes=path.stat().st_size)
            self._note(path.read_text(encoding="utf-8"))

    def collect(self) -> None:
        """Store the samples since the last call."""
        text = self._process.read_samples()
        if not text:
            return
        self._note(text)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def _note(self, text: str) -> None:
        self._head = (self._head + text)[:_HEAD]
        _, is_end, tail = text.partition(_ENDED)
        self._tail += tail if is_end else text * self._has_ended
        self._has_ended |= bool(is_end)
        self._is_complete |= _END in self._tail

    def follow_tail(
        self, run: Run, *, is_stop_requested: Callable[[], bool], listener: Listener
    ) -> None:
        """Store samples until the sampler ends, once the run's dirty pages are written back."""
        until_s = time.monotonic() + MAX_WAIT_S + _SILENCE_S
        poll_s, is_noticed, is_stopped = _FIRST_POLL_S, False, False
        while self._process.is_sampled and time.monotonic() < until_s:
            self.collect()
            if not is_noticed and (dirty_bytes := self._dirty_bytes()) > SLACK_BYTES:
                is_noticed = True
                words = f"{run.id}: {dirty_bytes / 1e6:.0f} MB of dirty pages left"
                listener(Notice(f"{words}; following their write-back", topic=_TOPIC))
            if not is_stopped and is_stop_requested():
                self._process.stop_sampling()
                is_stopped = True
            time.sleep(poll_s)
            poll_s = _POLL_S if is_noticed else min(_POLL_S, 2 * poll_s)
        self.collect()
        if run.device_sample_s > 0 and not self._is_complete:
            listener(Notice(f"{run.id}: the device was not sampled to the end"))

    def _dirty_bytes(self) -> float:
        """Return the growth of dirty pages from before the run to its end; NaN if unknown."""
        first, last = SampleReader().feed(self._head), SampleReader().feed(self._tail)
        if not first or not last or self._is_complete:
            return math.nan
        return last[-1].unwritten_bytes - first[0].unwritten_bytes
