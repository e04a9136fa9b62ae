"""Watch of hosts: their samples into the logs of a campaign, until the end, Ctrl-C or a deadline.

A thread for each host receives its samples; all else happens in one loop. A host that is cut off
leaves a gap: counters are cumulative, so that the interval over it has the right mean.
"""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Thread
from typing import Any

from volbench.analyse.frames.kernel_counters import Sample, SampleReader, disk_rates
from volbench.engine.campaign.campaign_engine import outcome_of
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import CampaignError, VolbenchError, quoted
from volbench.execute.agent.kernel_sampler import sample_disks
from volbench.execute.agent.observation.process_io import sample_processes
from volbench.extensions.watching.disk_logs import DiskLog, WatchLog, split_sample
from volbench.extensions.watching.user_marks import MarkReader
from volbench.extensions.watching.watch_plan import WatchedDisk, WatchedHost
from volbench.ingest.run_files import STATUS_FORMAT
from volbench.ingest.watched_processes import Interval, parse_intervals
from volbench.model.campaign.event import (
    CampaignEnded,
    CampaignStarted,
    Event,
    Listener,
    Notice,
    Progress,
    RunEnded,
    RunProgress,
    RunStarted,
)
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.store.archive import fresh_run_folder
from volbench.store.atomic_files import write_atomic
from volbench.store.journal import Journal, read_history, utc_now
from volbench.store.layout import Layout
from volbench.store.log_files import raw_checksums
from volbench.units import counted_noun, format_duration

_POLL_S = 0.5  # Shorter than a user notices after Ctrl-C.
_RETRY_S = 5.0  # Between two attempts to reach a host.
# Rates of the live table's first line, for reads and writes
TOTALLED = ("read_iops", "write_iops", "read_bw_bytes_per_s", "write_bw_bytes_per_s")
# The same until a host is said not to answer; and since its agent was heard, which says something
# every 15 s. Noticed by: tests/fleet/test_watch.py
_LATE_S, _UNHEARD_S = 5.0, 20.0
_TOO_SHORT = "it ended before the second sample"
# Samples of the disks for one of the processes, whose rates are needed less often: a month of both
# at 10 s is to take 50 MB. Noticed by: benchmarks/watch.py
PROCESS_SAMPLES = 5
_MAX_PROCESSES_S = 60.0  # Longest interval of the agent


class _StopStreamError(Exception):
    """The watch is over."""


@dataclass
class LiveDisk:
    """A disk as it was in the last interval."""

    host: str
    device: str
    # of the device frame; empty before the second sample
    rates: dict[str, float] = field(default_factory=dict)
    # requests, bytes and seconds of all intervals until now
    moved: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("seconds", *TOTALLED), 0.0)
    )
    seen_s: float = 0.0  # when its last sample arrived, by the monotonic clock
    problem: str = ""  # why there are no samples now; empty where they arrive


@dataclass
class _HostState:
    """A host while it is watched."""

    watched: WatchedHost
    runs: list[Run] = field(default_factory=list)
    logs: list[DiskLog] = field(default_factory=list)
    reader: SampleReader = field(default_factory=SampleReader)
    before: Sample | None = None
    header: list[str] = field(default_factory=list)
    samples: int = 0
    lost_s: float = 0.0  # since when it does not answer, by the monotonic clock; 0 while it does
    processes: WatchLog | None = None


# Processes of each host in the last interval, or why there are none
LiveProcesses = Mapping[str, Interval | str]
Shown = Callable[[Sequence[LiveDisk], float, LiveProcesses], None]


class Watch:
    """A watched campaign that is under way.

    Args:
        show: called with all disks, the seconds since the start, and the processes of each host
            after each sample.
        say: called with a sentence when a host does not answer, and when it does again.
        listeners: receive the events of a campaign, for metrics.
    """

    def __init__(
        self,
        layout: Layout,
        campaign: Campaign,
        hosts: Sequence[WatchedHost],
        *,
        show: Shown,
        say: Callable[[str], None],
        listeners: Sequence[Listener],
        stop: StopRequest,
    ) -> None:
        self._layout = layout
        self._campaign = campaign
        self._hosts = [_HostState(host) for host in hosts]
        self._show, self._say = show, say
        self._listeners = listeners
        self._stop = stop
        self._is_over = False
        self._interval_s = campaign.runs[0].device_sample_s
        self._arrived: queue.SimpleQueue[tuple[_HostState, bool, str | VolbenchError]] = (
            queue.SimpleQueue()
        )
        self._processes: dict[str, Interval | str] = {}
        self._marks = MarkReader(layout)
        self._began_s = time.monotonic()
        self.disks = [
            LiveDisk(at.watched.host.name, disk.facts.device)
            for at in self._hosts
            for disk in at.watched.disks
        ]

    def run(self, journal: Journal, for_s: float | None) -> None:
        """Watch for some seconds; None for no end."""
        self._tell(CampaignStarted(self._campaign, self._campaign.runs))
        for state in self._hosts:
            for is_of_processes in (False, True):
                Thread(target=self._follow, args=(state, is_of_processes), daemon=True).start()
        try:
            with self._recorded(journal):
                self._watch(for_s)
        finally:
            self._is_over = True
        ended = [run.id for run in self._campaign.runs]
        self._tell(CampaignEnded(tuple(ended), (), ()))

    def _watch(self, for_s: float | None) -> None:
        began_s = time.monotonic()
        while not self._stop.requested:
            left_s = _POLL_S if for_s is None else began_s + for_s - time.monotonic()
            if left_s <= 0:
                break
            self._take(min(left_s, _POLL_S))
            for state in self._hosts:
                self._check_link(state)
            for mark in self._marks.fresh():
                self._mark(*mark)
            if all(disk.problem and not disk.rates for disk in self.disks):
                break
        while not self._arrived.empty():
            self._take(0.0)

    def _check_link(self, state: _HostState) -> None:
        """Say that a host does not answer before its connection is given up."""
        mine, now_s = self._disks_of(state), time.monotonic()
        late_s = now_s - mine[0].seen_s
        unheard_s = state.watched.host.executor.silent_s
        is_late = late_s > self._interval_s + _LATE_S or unheard_s > _UNHEARD_S
        if is_late and any(disk.rates for disk in mine) and not state.lost_s:
            self._lose(state, f"{state.watched.host.name} does not answer")

    def _lose(self, state: _HostState, reason: str) -> None:
        mine = self._disks_of(state)
        if not state.lost_s:
            state.lost_s = mine[0].seen_s or time.monotonic()
            self._tell(Notice(reason))
            self._say(reason)
        for disk in mine:
            disk.problem = reason
        self._show(self.disks, time.monotonic() - self._began_s, self._processes)

    def _disks_of(self, state: _HostState) -> list[LiveDisk]:
        return [disk for disk in self.disks if disk.host == state.watched.host.name]

    def _follow(self, state: _HostState, is_of_processes: bool) -> None:  # noqa: FBT001 - of a thread
        """Receive samples of a host, in a thread of its own, until there are none any more."""

        def take(part: str | None) -> None:
            if self._is_over or self._stop.requested:
                raise _StopStreamError
            if part is not None:
                self._arrived.put((state, is_of_processes, part))

        while not (self._is_over or self._stop.requested):
            error = self._receive_samples(state, take, is_of_processes=is_of_processes)
            if error is None or not error.transient:
                return  # the watch is over, or the user is not root
            time.sleep(_RETRY_S)

    def _receive_samples(
        self, state: _HostState, take: Callable[[str | None], None], *, is_of_processes: bool
    ) -> VolbenchError | None:
        """Pass samples of a host to a function until it stops the stream; return the error."""
        executor = state.watched.host.executor
        try:
            with suppress(_StopStreamError):
                if is_of_processes:
                    rarer_s = min(PROCESS_SAMPLES * self._interval_s, _MAX_PROCESSES_S)
                    executor.stream(sample_processes, take, rarer_s)
                else:
                    names = [name for disk in state.watched.disks for name in disk.devices]
                    devices = list(dict.fromkeys(names))
                    executor.stream(sample_disks, take, devices, self._interval_s)
        except VolbenchError as error:
            self._arrived.put((state, is_of_processes, error))
            return error
        return None

    def _take(self, wait_s: float) -> None:
        with suppress(queue.Empty):
            self._handle(*self._arrived.get(timeout=wait_s))

    def _handle(
        self,
        state: _HostState,
        is_of_processes: bool,  # noqa: FBT001 - as it arrived
        part: str | VolbenchError,
    ) -> None:
        """Record a sample, or why there is none."""
        if is_of_processes:
            self._take_processes(state, part)
            return
        mine = self._disks_of(state)
        if isinstance(part, VolbenchError):
            self._lose(state, part.message)
            return
        if state.lost_s:
            away = format_duration(round(time.monotonic() - state.lost_s))
            answers = f"{state.watched.host.name} answers again after {away}"
            self._tell(Notice(answers))
            self._say(answers)
            state.lost_s = 0.0
        host_lines, disk_lines = split_sample(part)
        if host_lines[:1] and host_lines[0].startswith("volbench-samples"):
            state.header = [host_lines.pop(0)]
        for log in state.logs:
            log.add([*(state.header if not state.samples else ()), *host_lines], disk_lines)
        state.samples += 1
        self._update(state, mine, part)

    def _take_processes(self, state: _HostState, part: str | VolbenchError) -> None:
        """Record the processes of an interval, in the folder of the host's first disk."""
        name = state.watched.host.name
        if isinstance(part, VolbenchError):
            if not isinstance(self._processes.get(name), str):
                self._tell(Notice(f"{name}: processes: {part.message}"))
            self._processes[name] = part.message
            return
        if state.processes is None:
            state.processes = WatchLog(self._layout.run(state.runs[0].id).processes)
        state.processes.write(part)
        for interval in parse_intervals(part.splitlines()):
            self._processes[name] = interval

    def _update(self, state: _HostState, mine: Sequence[LiveDisk], text: str) -> None:
        """Compute the rates of the last interval, for the table and for metrics."""
        for sample in state.reader.feed(text):
            before, state.before = state.before, sample
            for disk, run in zip(mine, state.runs, strict=True):
                old = before.disks.get(disk.device) if before else None
                new = sample.disks.get(disk.device)
                interval_s = sample.uptime_s - before.uptime_s if before else 0.0
                if old and new and interval_s > 0:
                    rates = disk_rates(old, new, interval_s=interval_s) or {}
                    for name in TOTALLED if rates else ():
                        disk.moved[name] += rates[name] * interval_s
                    disk.moved["seconds"] += interval_s if rates else 0.0
                    dirty = {"dirty_bytes": sample.unwritten_bytes}
                    disk.rates = {**rates, **dirty} if rates else {}
                disk.seen_s, disk.problem = time.monotonic(), ""
                if self._listeners and disk.rates:
                    self._tell(RunProgress(run, self._progress(disk)))
        self._show(self.disks, time.monotonic() - self._began_s, self._processes)

    def _progress(self, disk: LiveDisk) -> Progress:
        rates: Any = {name: disk.rates[name] for name in TOTALLED}
        return Progress(time.monotonic() - self._began_s, **rates)

    def _mark(self, text: str, utc_s: float) -> None:
        """Record an event in the logs of all disks, by the clock of their host."""
        for state in self._hosts:
            at_s = utc_s + state.watched.clock.offset_s
            for log in state.logs:
                log.mark(f"mark {at_s:.3f} {text}")

    @contextmanager
    def _recorded(self, journal: Journal) -> Iterator[None]:
        """Open the logs; close and record them in the end, whatever ended the watch."""
        runs = self._campaign.runs
        started_utc, began_s = utc_now(), time.monotonic()
        for state in self._hosts:
            state.runs = [run for run in runs if run.host == state.watched.host.name]
            state.logs = [
                self._opened(run, disk)
                for run, disk in zip(state.runs, state.watched.disks, strict=True)
            ]
        journal.write("runs", runs=[run.id for run in runs], state=RunState.RUNNING)
        for run in runs:
            self._tell(RunStarted(run, None))
        try:
            yield
        finally:
            elapsed_s = time.monotonic() - began_s
            for state in self._hosts:
                logs, state.logs = state.logs, []
                processes, state.processes = state.processes, None
                if processes is not None:
                    processes.close()
                for run, log in zip(state.runs, logs, strict=True):
                    log.close()
                    problems = (disk.problem for disk in self._disks_of(state))
                    reason = next(filter(None, problems), _TOO_SHORT) if state.samples < 2 else ""
                    outcome = RunState.FAILED if reason else RunState.FINISHED
                    offset_s = state.watched.clock.offset_s
                    ending = Ending(outcome, reason, started_utc, elapsed_s, offset_s)
                    conclude_run(journal, self._layout, run, ending)
                    self._tell(RunEnded(run, outcome, reason))

    def _opened(self, run: Run, disk: WatchedDisk) -> DiskLog:
        folder = fresh_run_folder(self._layout, run.id)
        write_atomic(folder.facts, disk.facts.model_dump_json(indent=1) + "\n", durable=False)
        return DiskLog(folder, disk.devices)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)


def check_recorded(layout: Layout, campaign: Campaign) -> None:
    """Check that each disk of a watch that has ended has at least two samples."""
    history = read_history(layout.journal)
    failed = outcome_of(campaign, history.states).failed
    if failed:
        raise CampaignError(
            f"{len(failed)} of {counted_noun(len(campaign.runs), 'run')} recorded nothing",
            hint=f"see the reasons: volbench show {quoted(layout.root)}; rates need two samples: "
            "watch for longer, or shorten --every",
        )


@dataclass(frozen=True)
class Ending:
    """How a watched run ended."""

    state: RunState
    reason: str  # empty if it finished
    started_utc: str  # ISO 8601 with Z
    elapsed_s: float
    clock_offset_s: float  # of the host's clock from the controller's


def conclude_run(journal: Journal, layout: Layout, run: Run, ending: Ending) -> None:
    """Write status.json, the last file of a run, and its end into the journal."""
    folder = layout.run(run.id)
    content = {
        "format": STATUS_FORMAT,
        "state": ending.state,
        "reason": ending.reason,
        "started_utc": ending.started_utc,
        "ended_utc": utc_now(),
        "elapsed_s": round(ending.elapsed_s, 3),
        "start": {"clock_offset_s": ending.clock_offset_s},
        "files": raw_checksums(folder.path),
    }
    text = json.dumps(content, indent=1) + "\n"
    write_atomic(folder.status, text)
    digest = sha256(text.encode()).hexdigest()
    ended = {"run": run.id, "state": ending.state, "reason": ending.reason}
    journal.write("run", **ended, status_sha256=digest)
