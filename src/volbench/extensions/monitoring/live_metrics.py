"""Metrics of a running campaign for Prometheus: progress, fio's rates, and counters of devices.

Progress comes from the events of the engine. Counters of a host are those of the last sample in the
campaign folder, which is read when Prometheus asks: between two scrapes nothing is done.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from volbench.analyse.frames.kernel_counters import SampleReader
from volbench.extensions.monitoring.node_metrics import (
    BANDWIDTH,
    IOPS,
    JOB,
    MEMORY,
    ON_DEVICE,
    ON_HOST,
    RUN,
    Counter,
    Family,
    Reading,
    fit_label,
)
from volbench.model.campaign.event import CampaignStarted, Event, HostBack, HostSilent, Progress
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.present.terminal.progress import Clock, Tally
from volbench.store.layout import Layout

# Part of a log that is read: its last sample, also of a host with many devices. Noticed by:
# tests/test_live_metrics.py::test_devices_have_the_names_and_values_of_the_node_exporter
_TAIL_BYTES = 64 << 10
_HEAD_BYTES = 256
# Age of a log, beyond the sample interval, from which its host counts as silent. Noticed by:
# tests/extensions/monitoring/test_live_metrics.py::test_a_silent_host_has_no_counters
_STALE_S = 30.0
_DIRECTIONS = ("read", "write", "trim")
# Option to its label, and to fio's default where that is known
_OPTIONS = {
    "rw": ("rw", None),
    "bs": ("block_bytes", None),
    "iodepth": ("iodepth", "1"),
    "numjobs": ("numjobs", "1"),
    "ioengine": ("ioengine", None),
}

_INFO = Family(f"{RUN.name}_info", "gauge", "", RUN.meaning)
_RUNS = Family("volbench_runs", "gauge", "", "Runs of the campaign by state.")
_LEFT = Family(
    "volbench_left_seconds", "gauge", "seconds", "Expected time to the end of the campaign."
)
_ELAPSED = Family(
    "volbench_run_elapsed_seconds", "gauge", "seconds", "Time since the start of a run."
)
_EXPECTED = Family("volbench_run_expected_seconds", "gauge", "seconds", "Expected length of a run.")
_STATE = Family("volbench_run_state", "gauge", "", "1 for the current state of a run.")
_SILENT = Family("volbench_host_silent", "gauge", "", "1 for a host that has stopped answering.")

Labels = Mapping[str, str]


@dataclass(frozen=True)
class _Active:
    """A run in progress at the moment of a scrape."""

    run: Run
    elapsed_s: float
    total_s: float | None
    progress: Progress


@dataclass
class _Families:
    """Metrics of one scrape, by name, in the order of their first value."""

    by_name: dict[str, Metric] = field(default_factory=dict)

    def add(self, family: Family, labels: Labels, value: float | None) -> None:
        """Add a value; unknown ones are left out."""
        if value is None or math.isnan(value):
            return
        if family.name not in self.by_name:
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            self.by_name[family.name] = kind(family.name, family.meaning)
        suffix = "_total" if family.kind == "counter" else ""
        self.by_name[family.name].add_sample(family.name + suffix, dict(labels), value)


class LiveMetrics(Collector):
    """Listener of a campaign's events that Prometheus scrapes."""

    def __init__(
        self, layout: Layout, cpus: Mapping[str, int], *, clock: Clock = time.monotonic
    ) -> None:
        self._layout = layout
        self._cpus = cpus
        self._tally = Tally(clock)
        self._silent: set[str] = set()
        self._campaign: Campaign | None = None
        self._lock = Lock()

    def __call__(self, event: Event, /) -> None:
        """Take an event into account."""
        with self._lock:
            self._tally.note(event)
            if isinstance(event, CampaignStarted):
                self._campaign = event.campaign
            elif isinstance(event, HostSilent):
                self._silent.add(event.host)
            elif isinstance(event, HostBack):
                self._silent.discard(event.host)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of this moment; none before the campaign has started."""
        families = _Families()
        with self._lock:
            campaign, tally, silent = self._campaign, self._tally, {*self._silent}
            if campaign is None:
                return
            _add_campaign(families, campaign, tally)
            active = [
                _Active(seen.run, tally.elapsed_s(name), tally.total_s(name), seen.progress)
                for name, seen in tally.active.items()
            ]
        for host in sorted(silent):
            families.add(_SILENT, {"job": JOB, "campaign": campaign.name, "instance": host}, 1)
        for seen in active:
            _add_run(families, campaign, seen)
        by_host: dict[str, list[Run]] = {}
        for seen in active:
            by_host.setdefault(seen.run.host, []).append(seen.run)
        for host, runs in by_host.items():
            self._add_host(families, campaign, host, runs)
        yield from families.by_name.values()

    def _add_host(
        self, families: _Families, campaign: Campaign, host: str, runs: Sequence[Run]
    ) -> None:
        """Add the counters of a host and its devices, each once.

        Where several runs share a device, only labels that are the same for all of them remain.
        """
        samples = {run.id: _last_sample(self._layout, run) for run in runs}
        known = {name: last for name, last in samples.items() if last is not None}
        sampled = [run for run in runs if run.id in known]
        if not sampled:
            return
        newest = max(known.values(), key=lambda last: last.sample.utc_s)
        labels, cpus = _shared_labels(campaign, sampled), self._cpus.get(host, 1)
        _add_counters(families, ON_HOST, labels, replace(newest, cpus=cpus))
        for _, name, family in MEMORY:
            families.add(family, labels, newest.sample.memory.get(name))
        for device in sorted({name for last in known.values() for name in last.sample.disks}):
            users = [run for run in sampled if device in known[run.id].sample.disks]
            last = max((known[run.id].sample for run in users), key=lambda sample: sample.utc_s)
            labels = {**_shared_labels(campaign, users), "device": device}
            _add_counters(families, ON_DEVICE, labels, Reading(last, last.disks[device], device))


def _add_counters(
    families: _Families, counters: Sequence[Counter], labels: Labels, reading: Reading
) -> None:
    for counter in counters:
        families.add(counter.family, {**labels, **counter.more}, counter.total(reading))


def _add_campaign(families: _Families, campaign: Campaign, tally: Tally) -> None:
    """Add the counts of runs, and the time left."""
    counts = {
        "waiting": tally.total - tally.ended - len(tally.active),
        "running": len(tally.active),
        "finished": tally.ended - tally.failed,
        "failed": tally.failed,
    }
    common = {"job": JOB, "campaign": campaign.name}
    for state, count in counts.items():
        families.add(_RUNS, {**common, "state": state}, count)
    families.add(_LEFT, common, tally.left_s())


def _add_run(families: _Families, campaign: Campaign, seen: _Active) -> None:
    """Add the facts of a run, its progress, and the rates that fio reports."""
    labels, progress = _run_labels(campaign, seen.run), seen.progress
    families.add(_INFO, _option_labels(labels, campaign, seen.run), 1)
    families.add(_STATE, {**labels, "state": progress.state}, 1)
    families.add(_ELAPSED, labels, seen.elapsed_s)
    families.add(_EXPECTED, labels, seen.total_s)
    for direction in _DIRECTIONS:
        direction_labels = {**labels, "direction": direction}
        families.add(IOPS, direction_labels, getattr(progress, f"{direction}_iops"))
        families.add(BANDWIDTH, direction_labels, getattr(progress, f"{direction}_bw_bytes_per_s"))


def _run_labels(campaign: Campaign, run: Run) -> dict[str, str]:
    return {
        "job": JOB,
        "campaign": campaign.name,
        "instance": run.host,
        "run": run.id,
        "fio_job": run.job,
        "role": run.volume.role,
        "volume": run.volume.target,
    }


def _shared_labels(campaign: Campaign, runs: Sequence[Run]) -> dict[str, str]:
    first, *others = (_run_labels(campaign, run) for run in runs)
    return {name: text for name, text in first.items() if all(o[name] == text for o in others)}


def _option_labels(labels: Labels, campaign: Campaign, run: Run) -> dict[str, str]:
    """Return what a run is: the options that all its sections share, and the labels of its host."""
    facts = {
        **labels,
        "profile": run.profile,
        "repeat": str(run.repeat),
        "phase": run.phase.value,
        "tool": run.tool.value,
    }
    for option, (label, default) in _OPTIONS.items():
        first, *others = {run.effective(section).get(option, default) for section in run.sections}
        if first is not None and not others:
            facts[label] = first
    host = next((host for host in campaign.hosts if host.name == run.host), None)
    for name, text in ({} if host is None else host.labels).items():
        facts[fit_label(f"{LABEL_PREFIX}{name}", facts)] = text
    return facts


def _last_sample(layout: Layout, run: Run) -> Reading | None:
    """Return the last whole sample of a run; None without one, and of a host that went silent."""
    path = layout.run(run.id).samples
    try:
        with path.open("rb") as log:
            status = os.fstat(log.fileno())
            if time.time() - status.st_mtime > _STALE_S + 2 * run.device_sample_s:
                return None
            head = log.read(_HEAD_BYTES).decode("utf-8", "replace")
            log.seek(max(0, status.st_size - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except FileNotFoundError:  # not sampled
        return None
    reader = SampleReader()
    reader.feed(head.partition("\n")[0] + "\n")
    samples = reader.feed(text[text.rfind("\nT ", 0, text.rfind("\n.\n")) + 1 :])
    return Reading(samples[-1], page_bytes=reader.page_bytes) if samples else None
