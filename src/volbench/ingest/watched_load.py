"""Results and series of a watched run, from the counters of its disk.

A watched run has no program: its log of samples is all there is. Counters are cumulative, so that
samples of a long run can be left out of its series without an error in any mean. Minimum, maximum
and standard deviation in the summary are of all intervals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from volbench.analyse.frames.kernel_counters import Sample, SampleReader, disk_rates
from volbench.fio.logs.direction_series import DirectionSeries
from volbench.ingest.run_files import read_facts
from volbench.ingest.series_rows import Samples, max_sample_bytes
from volbench.model.campaign.planned_run import Run
from volbench.model.frames.columns import Row
from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency, RunOutput
from volbench.store.journal import utc_at
from volbench.store.layout import RunFolder
from volbench.store.log_files import log_path, open_log
from volbench.units import SECTOR_BYTES

# Intervals of a series up to which none is joined to its neighbour: more cannot be told apart in
# a chart. Noticed by: tests/extensions/watching/test_disk_logs.py::test_a_long_watch_is_thinned
MAX_POINTS = 20_000
_TIME = re.compile(r"\d{1,11}\.\d{3}")


@dataclass(frozen=True)
class Watched:
    """Results and samples of a watched disk."""

    device: str  # kernel name of the disk
    output: RunOutput  # results by direction
    samples: Samples  # of its series


def read_watched(run: Run, folder: RunFolder, *, elapsed_s: float) -> Watched:
    """Read the log of a watched run; its length limits the size of the log."""
    facts = read_facts(folder)
    device = "" if facts is None else facts.device
    max_bytes = max_sample_bytes(run, elapsed_s=elapsed_s)
    path = log_path(folder.samples)
    size_bytes = path.stat().st_size if path else 0
    return _watched(path, size_bytes, run.sections[0].name, device, max_bytes)


@lru_cache(maxsize=1)
def _watched(
    path: Path | None, _size_bytes: int, section: str, device: str, max_bytes: int
) -> Watched:
    reader, totals = SampleReader(), _Totals(device)
    kept: list[Sample] = []
    stride, last = 1, None
    taken = _samples(reader, path, max_bytes) if path else iter(())
    for count, sample in enumerate(taken):
        totals.add(sample)
        last = sample
        if count % stride == 0:
            kept.append(sample)
        if len(kept) > MAX_POINTS:
            kept, stride = kept[::2], 2 * stride
    if last is not None and kept[-1] is not last:
        kept.append(last)
    job = JobResult(
        name=section,
        groupid=0,
        error=0,
        directions=tuple(totals.results()),
        elapsed_s=totals.elapsed_s,
        start_utc_s=kept[0].utc_s if kept else None,
    )
    output = RunOutput("", (job,), ended_utc_s=last.utc_s if last else None)
    return Watched(device, output, Samples(kept, reader.page_bytes, tuple(reader.marks)))


def _samples(reader: SampleReader, path: Path, max_bytes: int) -> Iterator[Sample]:
    """Yield samples on one monotonic clock, even if the host was restarted."""
    before: Sample | None = None
    shift_s = 0.0
    with open_log(path, max_bytes=max_bytes) as stream:
        for line in stream:
            for sample in reader.feed(line.decode("utf-8", errors="replace")):
                if before is not None and sample.uptime_s + shift_s <= before.uptime_s:
                    gap_s = sample.utc_s - before.utc_s
                    if gap_s <= 0:
                        continue
                    shift_s = before.uptime_s + gap_s - sample.uptime_s
                before = replace(sample, uptime_s=sample.uptime_s + shift_s)
                yield before


@dataclass
class _Totals:
    """Sums over the intervals of a disk."""

    device: str
    elapsed_s: float = 0.0
    before: Sample | None = None
    ios: dict[str, int] = field(default_factory=lambda: {"read": 0, "write": 0})
    sectors: dict[str, int] = field(default_factory=lambda: {"read": 0, "write": 0})
    ticks: dict[str, int] = field(default_factory=lambda: {"read": 0, "write": 0})
    rates: dict[str, list[float]] = field(default_factory=lambda: {"read": [], "write": []})

    def add(self, sample: Sample) -> None:
        """Add the interval that a sample ends; one in which the counters were reset is left out."""
        before, self.before = self.before, sample
        if before is None:
            return
        interval_s = sample.uptime_s - before.uptime_s
        self.elapsed_s += interval_s
        old, new = before.disks.get(self.device), sample.disks.get(self.device)
        if old is None or new is None or interval_s <= 0:
            return
        rates = disk_rates(old, new, interval_s=interval_s)
        if rates is None:
            return
        for way in self.ios:
            ios = getattr(new, f"{way}s") - getattr(old, f"{way}s")
            self.ios[way] += ios
            self.sectors[way] += getattr(new, f"{way}_sectors") - getattr(old, f"{way}_sectors")
            mean_s = rates[f"{way}_lat_s"]
            self.ticks[way] += 0 if math.isnan(mean_s) else round(1000 * mean_s * ios)
            self.rates[way].append(rates[f"{way}_iops"])

    def results(self) -> Iterator[DirectionResult]:
        """Yield the result of each direction with I/O."""
        for way, ios in self.ios.items():
            if not ios or self.elapsed_s <= 0:
                continue
            rates, moved = np.array(self.rates[way]), self.sectors[way] * SECTOR_BYTES
            unknown = math.nan
            yield DirectionResult(
                direction=Direction(way),
                io_bytes=moved,
                total_ios=ios,
                runtime_s=self.elapsed_s,
                iops=ios / self.elapsed_s,
                bw_bytes_per_s=moved / self.elapsed_s,
                iops_min=float(rates.min()),
                iops_max=float(rates.max()),
                iops_stddev=float(rates.std()),
                lat=Latency(
                    ios, unknown, unknown, self.ticks[way] / 1000 / ios or unknown, unknown
                ),
            )


def watched_series(watched: Watched) -> list[DirectionSeries]:
    """Return the intervals of each direction of a watched disk that has I/O."""
    device, taken = watched.device, watched.samples.taken
    points: list[tuple[float, float, dict[str, float]]] = []
    known = [sample for sample in taken if device in sample.disks]
    for before, now in pairwise(known):
        interval_s = now.uptime_s - before.uptime_s
        rates = disk_rates(before.disks[device], now.disks[device], interval_s=interval_s)
        if rates is not None:
            points.append((now.uptime_s - taken[0].uptime_s, now.utc_s, rates))
    if not points:
        return []
    nothing = np.full(len(points), np.nan)

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([rates[name] for _, _, rates in points])

    return [
        DirectionSeries(
            direction=result.direction,
            t_s=np.array([t_s for t_s, _, _ in points]),
            utc_s=np.array([utc_s for _, utc_s, _ in points]),
            iops=column(f"{result.direction}_iops"),
            bw_bytes_per_s=column(f"{result.direction}_bw_bytes_per_s"),
            lat_mean_s=column(f"{result.direction}_lat_s"),
            lat_p50_s=nothing,
            lat_p99_s=nothing,
            lat_p999_s=nothing,
            lat_max_s=nothing,
            clat_mean_s=nothing,
            slat_mean_s=nothing,
            jobs_running=nothing,
        )
        for result in watched.output.jobs[0].directions
    ]


def mark_rows(marks: Iterable[str], *, begun_s: float) -> Iterator[Row]:
    """Yield time and text of the marks of a run, without its identity."""
    for mark in marks:
        word, _, rest = mark.partition(" ")
        at, _, text = rest.partition(" ")
        if word == "mark" and _TIME.fullmatch(at):
            yield {"t_s": float(at) - begun_s, "utc": utc_at(float(at)), "text": text}
