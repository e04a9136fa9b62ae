"""Rules on job options without the intended effect, and on the length of runs and jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations, islice

import numpy as np

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import Evidence, Observation, rule, several
from volbench.analyse.frames.run_view import (
    Result,
    RunView,
    percentiles_of,
    results_of,
    runtime_s,
    total,
)
from volbench.analyse.frames.workload_spec import SYNCHRONOUS, WorkloadSpec
from volbench.analyse.significance import MIN_SAMPLES_ABOVE, needed_samples
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.profile.profile_model import Phase
from volbench.model.results.finding import Severity
from volbench.units import (
    format_capacity,
    format_count,
    format_duration,
    format_latency,
    format_percent,
)

# Share of the queue depth in flight: random waits of a full queue leave more.
# Noticed by: test_threshold_edges.py::test_a_queue_counts_as_empty_below_half_of_its_depth
_MIN_KEPT_DEPTH = 0.5
# Runtime from which filling and draining the queue does not count.
# Noticed by: test_threshold_edges.py::test_a_queue_counts_as_empty_below_half_of_its_depth
_MIN_DEPTH_RUNTIME_S = 2.0
# Share of the latency in submission that shows that libaio waited. Noticed by:
# test_threshold_edges.py::test_libaio_waited_if_half_of_the_latency_is_submission
_MIN_SUBMIT_SHARE = 0.5
_FILES = {VolumeKind.FILE: "a file", VolumeKind.DIRECTORY: "a directory"}
_ROOT_ROLE = "os"
# Percentile up to which too few samples are a warning: p99 is what people quote.
# Noticed by: test_jobs.py::test_too_few_samples_for_a_percentile_are_reported
_MAX_WARNED_PERCENTILE = 99.0
# Runtime below which caches and bursts may be all that is seen.
# Noticed by: test_jobs.py::test_a_run_of_a_few_seconds_is_reported
_MIN_RUNTIME_S = 30.0
# The same of imported runs whose size ended them, or that do not report what did.
# Noticed by: test_jobs.py::test_a_run_of_a_few_seconds_is_reported
_MIN_IMPORTED_S = 5.0
# Share of the runtime that fio may cut, as in the validation of its result.
# Noticed by: test_jobs.py::test_a_time_based_job_that_ended_before_its_time
_MIN_TIME_SHARE = 0.95
# Share of the bytes: fio rounds sizes down to whole blocks.
# Noticed by: test_jobs.py::test_fewer_bytes_than_size_are_reported
_MIN_BYTES_SHARE = 0.99
# Share of a range up to which jobs with random offsets hardly access the same blocks.
# Noticed by: test_jobs.py::test_random_jobs_on_a_large_disk_do_not_meet
_MAX_COVERED = 0.1
_MAX_NAMED = 4  # Sections that a message names before it counts the rest
_EARLY_ENDS = ("number_ios", "steadystate", "exitall")
_OTHER_ENDS = (*_EARLY_ENDS, "fill_device", "read_iolog", "verify", "ramp_time")


@rule(
    "the queue depth was not reached",
    looks_at=(
        "Sections with `iodepth` above 1 and an engine that waits for each I/O; `libaio` with"
        " `direct=0`, which completes the I/O during submission; and asynchronous direct I/O "
        "of at least 2 s without rate limits or flushes, with less than half of the depth in "
        "flight by Little's law."
    ),
    why=(
        "A volume completes 16 queued I/Os at a different rate than single I/Os, so the result"
        " does not belong to the configured depth."
    ),
    advice=(
        "Use ioengine: libaio or io_uring with direct: 1, or set iodepth: 1 and numjobs for"
        " parallel I/O."
    ),
)
def queue_depth(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield each section with a depth above 1 that cannot be or was not kept."""
    results = list(results_of(view))
    for workload in view.workloads:
        if workload.depth < 2:
            continue
        rows = [row for row in results if row.section == workload.section]
        if workload.engine in SYNCHRONOUS:
            yield Observation(
                f"iodepth={workload.depth} had no effect: {workload.engine} waits for each I/O, so"
                " the queue depth was 1.",
                {"asked_depth": float(workload.depth), "depth": 1.0, "ioengine": workload.engine},
            )
        elif workload.engine == "libaio" and workload.is_buffered:
            yield _buffered_queue(workload, rows)
        elif _must_be_full(workload) and runtime_s(view) >= _MIN_DEPTH_RUNTIME_S:
            yield from _shallow_queue(workload, rows)


def _buffered_queue(workload: WorkloadSpec, rows: list[Result]) -> Observation:
    evidence: Evidence = {"asked_depth": float(workload.depth), "ioengine": "libaio"}
    shares = [row["slat_mean_s"] * workload.depth / row["lat_mean_s"] for row in rows]
    known = [share for share in shares if not math.isnan(share)]
    seen = ""
    if known and max(known) >= _MIN_SUBMIT_SHARE:
        slat_s = max(row["slat_mean_s"] for row in rows if not math.isnan(row["slat_mean_s"]))
        evidence["slat_mean_s"] = slat_s
        seen = f" (mean submission latency {format_latency(slat_s)})"
    return Observation(
        f"iodepth={workload.depth} had no effect: libaio with direct=0 completes each I/O while"
        f" submitting it{seen}, so the queue depth was 1.",
        evidence,
    )


def _must_be_full(workload: WorkloadSpec) -> bool:
    return not (
        workload.is_paced
        or workload.waits_for_sync
        or workload.is_buffered
        or any(name in workload.options for name in ("iodepth_low", "iodepth_batch_complete_min"))
    )


def _shallow_queue(workload: WorkloadSpec, rows: list[Result]) -> Iterator[Observation]:
    """Yield that Little's law gives far fewer I/Os in flight than asked for."""
    wanted = workload.depth * workload.numjobs
    in_flight = math.fsum(
        float(np.fmax(row["iops"], row["iops_overall"])) * row["lat_mean_s"] for row in rows
    )
    if in_flight < _MIN_KEPT_DEPTH * wanted:
        yield Observation(
            f"The mean queue depth was {in_flight:.3g} (IOPS times latency) instead of the"
            f" requested {wanted} (numjobs times iodepth).",
            {"asked_depth": float(wanted), "depth": in_flight, "ioengine": workload.engine},
        )


@rule(
    "several jobs access the same blocks",
    looks_at=(
        "Sections with `numjobs` above 1 on one file or device without an `offset_increment` of at"
        " least `size`, and sections on the same range if one of them writes. Sections at the same"
        " time are a note. Random offsets are a note; direct random I/O on a disk counts only if it"
        " covers more than 10 % of the range."
    ),
    why=(
        "Blocks that are accessed several times are cached after the first time. A volume to be"
        " filled is filled once, but takes the time of several passes."
    ),
    advice=(
        "Give each job its own range: size: 25% and offset_increment: 25% for numjobs: 4, or"
        " omit filename in a directory, so that each job has its own file."
    ),
)
def overlapping_jobs(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield parallel jobs, and pairs of sections, that access the same blocks."""
    sections = [a for a in view.workloads if a.reads or a.writes]
    sections = [each for each in sections if "read_iolog" not in each.options]
    for workload in sections:
        overlap = workload.numjobs > 1 and _jobs_overlap(workload, view.size_bytes)
        if overlap and _meet(view, workload):
            yield _shared_range(workload)
    by_name = {workload.section: workload for workload in sections}
    pairs = [
        (first, other)
        for first, other in combinations(sections, 2)
        if not _runs_after(first, other, by_name)
    ]
    if pairs:
        names = [*dict.fromkeys(each.section for pair in pairs for each in pair)]
        yield Observation(
            f"{len(names)} sections ran at the same time ({several(names, _MAX_NAMED)}):"
            " each has a share of what the volume does.",
            {"at_once": float(len(names))},
            severity=Severity.NOTE,
        )
    found = (
        pair
        for pair in pairs
        if (pair[0].writes or pair[1].writes)
        and _ranges_meet(*pair, view.size_bytes)
        and _meet(view, *pair)
    )
    for first, other in islice(found, 25 * _MAX_NAMED):
        yield Observation(
            f"Sections {first.section} and {other.section} access the same blocks at the same"
            " time, and at least one of them writes.",
            {"sections": f"{first.section}, {other.section}"},
            severity=_weight(first, other),
        )


def _meet(view: RunView, *sections: WorkloadSpec) -> bool:
    """Return whether jobs on one range meet so often that the result differs.

    Random direct I/O on a disk does only where it covers a good part of the range.
    """
    kinds = {VolumeKind.DEVICE, VolumeKind.NBD}
    is_free = all(each.is_random and not each.may_be_buffered for each in sections)
    on_disks = all(
        each.kind in kinds or each.options.get("filename", "").startswith("/dev/")
        for each in sections
    )
    if not (is_free and on_disks):
        return True
    moved = total(view, "io_bytes")
    size = min(each.size_of("size", view.size_bytes) for each in sections)
    return moved > _MAX_COVERED * size  # false where the size is unknown


def _runs_after(
    first: WorkloadSpec, other: WorkloadSpec, by_name: Mapping[str, WorkloadSpec]
) -> bool:
    seen: set[str] = set()
    before: WorkloadSpec | None = other
    while before is not None and before.section not in seen:
        seen.add(before.section)
        before = by_name.get(before.options.get("wait_for", ""))
    return first.section in seen


def _shared_range(workload: WorkloadSpec) -> Observation:
    verb, done = ("write", "written") if workload.writes else ("read", "read")
    blocks = "random blocks of " if workload.is_random else ""
    times = "" if workload.is_random else f": each block is {done} {workload.numjobs} times"
    return Observation(
        f"{workload.numjobs} jobs {verb} {blocks}the same range{times}.",
        {"numjobs": float(workload.numjobs), "section": workload.section},
        None if workload.reads and workload.writes else verb,
        severity=_weight(workload),
    )


def _weight(*sections: WorkloadSpec) -> Severity:
    """Return a note for random I/O: it meets itself rarely on a large volume."""
    return Severity.NOTE if all(workload.is_random for workload in sections) else Severity.WARNING


def _shares_files(workload: WorkloadSpec) -> bool:
    if workload.kind in {VolumeKind.DIRECTORY, VolumeKind.UNKNOWN}:
        return "filename" in workload.options
    return True


def _jobs_overlap(workload: WorkloadSpec, volume_bytes: float) -> bool:
    if not _shares_files(workload):
        return False
    step, size = workload.options.get("offset_increment", "0"), workload.options.get("size", "%")
    if step in {"0", "0%"}:
        return True
    # Shares of an unknown size can be compared with each other.
    unit = 1.0 if step.endswith("%") and size.endswith("%") else volume_bytes
    return workload.size_of("offset_increment", unit) < workload.size_of("size", unit)


def _ranges_meet(first: WorkloadSpec, other: WorkloadSpec, volume_bytes: float) -> bool:
    if not (_shares_files(first) and _shares_files(other)):
        return False
    if first.options.get("filename") != other.options.get("filename"):
        return False
    (start, end), (other_start, other_end) = (
        _byte_range(workload, volume_bytes) for workload in (first, other)
    )
    return (start, end) == (other_start, other_end) or (start < other_end and other_start < end)


def _byte_range(workload: WorkloadSpec, volume_bytes: float) -> tuple[float, float]:
    unit = 1.0 if math.isnan(volume_bytes) else volume_bytes
    start = workload.size_of("offset", unit, unset="0")
    step = workload.size_of("offset_increment", unit, unset="0")
    return start, start + workload.size_of("size", unit) + step * (workload.numjobs - 1)


@rule(
    "a file was measured, not the device",
    severity=Severity.NOTE,
    looks_at="Volumes that are a file or a directory, in any role but `os`.",
    why=(
        "A filesystem allocates blocks, writes a journal, and answers reads of unwritten blocks"
        " itself. The result is that of filesystem and device together."
    ),
    advice=(
        "To measure the disk itself, pass an empty device: --on data=/dev/... The root disk can"
        " only be tested through a file."
    ),
)
def file_not_device(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield that a volume other than the root disk was tested through a filesystem."""
    volume = view.run.volume
    if volume.kind not in _FILES or volume.role == _ROOT_ROLE:
        return
    filesystem = view.volume.filesystem if view.volume is not None else ""
    on = f" on {filesystem}" if filesystem else ""
    yield Observation(
        f"Volume {volume.role} is {_FILES[volume.kind]}{on}: the result includes the filesystem.",
        {"kind": volume.kind.value, "filesystem": filesystem or "not known"},
    )


@rule(
    "too short for the reported statistics",
    looks_at=(
        "I/Os of a direction against 10 / (1 - p) for each reported percentile p (1,000 for "
        "p99, 100,000 for p99.99). A warning if p99 or a lower percentile has too few, "
        "otherwise a note. A time-based run of less than 30 s is a note, and any imported one"
        " of less than 5 s."
    ),
    why=(
        "A percentile of too few samples varies between runs. A short run measures caches and"
        " bursts, not the volume."
    ),
    advice="Increase runtime, and do not report the percentiles named here.",
)
def too_short(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield percentiles that rest on too few I/Os, and runs of few seconds."""
    for direction in dict.fromkeys(view.percentiles["direction"]):
        if direction != "sync":
            reported = np.unique(percentiles_of(view, direction).percentile)
            yield from _weak_percentiles(view, direction, reported.tolist())
    runtime = runtime_s(view)
    is_time_based = any(workload.is_time_based for workload in view.workloads)
    least_s = _MIN_RUNTIME_S if is_time_based else _MIN_IMPORTED_S if view.run.imported else 0.0
    if runtime < least_s:
        yield Observation(
            f"The runtime was {format_duration(runtime)}: caches and burst credits of cloud volumes"
            " last longer.",
            {"runtime_s": runtime, "least_s": least_s},
            severity=Severity.NOTE,
        )


def _weak_percentiles(
    view: RunView, direction: str, percentiles: list[float]
) -> Iterator[Observation]:
    ios = total(view, "total_ios", direction=direction)
    weak = [p for p in percentiles if 50 <= p < 100 and ios < needed_samples(p) * (1 - 1e-9)]
    if weak:
        yield Observation(
            f"{ios:,.0f} {direction}s leave fewer than {MIN_SAMPLES_ABOVE} samples above"
            f" {several([f'p{p:g}' for p in weak])}; p{weak[0]:g} needs"
            f" {needed_samples(weak[0]):,.0f}.",
            {"ios": ios, "least_percentile": weak[0], "needed_ios": needed_samples(weak[0])},
            direction,
            severity=Severity.WARNING if weak[0] <= _MAX_WARNED_PERCENTILE else Severity.NOTE,
        )


@rule(
    "shorter than requested",
    looks_at=(
        "Runtime of time-based jobs against the requested one (at least 95 %), and bytes of "
        "other jobs against `size` or `io_size` (at least 99 %). A job that finished its size"
        " before a `runtime` without `time_based` is a note. Jobs that may end for other "
        "reasons are left out: `until: steady`, `steadystate`, `number_ios`, `exitall`."
    ),
    why=(
        "A shorter run is a different test: it may have used only the cache, or only part of"
        " the volume."
    ),
    advice=(
        "Add time_based: 1 to run for the whole runtime. Make size fit the volume, or omit it"
        " to use all of a device."
    ),
    phases=(Phase.PRECONDITION, Phase.WARMUP, Phase.MEASURED),
)
def ended_early(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield each section that ended before its time or before its bytes."""
    results = list(results_of(view))
    for workload in view.workloads:
        rows = [row for row in results if row.section == workload.section]
        if not rows or view.run.until is not None or workload.engine in {"null", "cpuio"}:
            continue
        ran_s = max(row["runtime_s"] for row in rows)
        too_soon = bool(workload.runtime_s) and ran_s < _MIN_TIME_SHARE * workload.runtime_s
        is_search = workload.is_on("latency_target") and not workload.is_on("latency_run")
        if is_search and workload.runtime_s:
            if too_soon:
                yield _search_end(workload, ran_s)
        elif not workload.is_time_based and not _repeats_its_size(view, workload, rows):
            if too_soon or not workload.runtime_s:
                yield from _size_end(view, workload, rows, ran_s)
        elif too_soon and not any(workload.is_on(name) for name in _EARLY_ENDS):
            yield Observation(
                f"The job ran for {format_duration(ran_s)} of the requested"
                f" {format_duration(workload.runtime_s)}.",
                {
                    "runtime_s": ran_s,
                    "asked_runtime_s": workload.runtime_s,
                    "section": workload.section,
                },
            )


def _search_end(workload: WorkloadSpec, ran_s: float) -> Observation:
    return Observation(
        f"The job ran for {format_duration(ran_s)} of the allowed"
        f" {format_duration(workload.runtime_s)}: fio ends a job with latency_target when it has"
        " found the queue depth.",
        {"runtime_s": ran_s, "asked_runtime_s": workload.runtime_s, "section": workload.section},
        severity=Severity.NOTE,
    )


@rule(
    "the requested rate was not reached",
    looks_at=(
        "IOPS of each direction against `rate_iops` times `numjobs`, below 95 %, in runs of at"
        " least 5 s. A job with `thinktime` is left out."
    ),
    why=(
        "The volume or the host limited the run, not the requested rate, so the latency is that of"
        " a full queue."
    ),
    advice="Ask for less, or read the result as the limit of the volume at this queue depth.",
)
def rate_not_reached(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield each direction that was slower than asked."""
    rows: dict[str, list[Result]] = {}
    for row in results_of(view):
        rows.setdefault(row.section, []).append(row)
    for workload in view.workloads:
        for row in rows.get(workload.section, ()):
            asked = workload.asked_iops.get(row.direction, 0.0)
            is_judged = row["runtime_s"] >= _MIN_IMPORTED_S
            if not is_judged or workload.pauses or not row["iops"] < _MIN_TIME_SHARE * asked:
                continue
            yield Observation(
                f"{format_count(row['iops'])} {row.direction} IOPS were done of"
                f" {format_count(asked)} requested ({format_percent(row['iops'] / asked)}).",
                {"iops": row["iops"], "asked_iops": asked, "section": workload.section},
                row.direction,
            )


def _size_end(
    view: RunView, workload: WorkloadSpec, rows: list[Result], ran_s: float
) -> Iterator[Observation]:
    moved, wanted = math.fsum(row["io_bytes"] for row in rows), _wanted_bytes(view, workload)
    evidence: Evidence = {"moved_bytes": moved, "section": workload.section}
    ends = (*_EARLY_ENDS, "fill_device", "read_iolog")
    if math.isnan(wanted) and (
        not workload.runtime_s or any(workload.is_on(name) for name in ends)
    ):
        return
    if moved < _MIN_BYTES_SHARE * wanted:
        yield Observation(
            f"The job moved {format_capacity(moved)} of the requested {format_capacity(wanted)}"
            f" ({format_percent(moved / wanted)}).",
            evidence | {"asked_bytes": wanted},
        )
    elif workload.runtime_s:
        share = "all " if moved <= wanted / _MIN_BYTES_SHARE else ""
        is_open = math.isnan(wanted) and "time_based" in workload.unreported_flags
        is_known = is_open or "time_based" in workload.options
        why = "" if is_known else " (runtime without time_based)"
        yield Observation(
            f"The job moved {share}{format_capacity(moved)} in {format_duration(ran_s)} of the"
            f" allowed {format_duration(workload.runtime_s)}{why}.",
            evidence | {"runtime_s": ran_s, "asked_runtime_s": workload.runtime_s},
            severity=Severity.NOTE,
        )


def _repeats_its_size(view: RunView, workload: WorkloadSpec, rows: list[Result]) -> bool:
    moved = math.fsum(row["io_bytes"] for row in rows)
    is_open = "time_based" in workload.unreported_flags
    return is_open and moved * _MIN_BYTES_SHARE > _wanted_bytes(view, workload)


def _wanted_bytes(view: RunView, workload: WorkloadSpec) -> float:
    if any(workload.is_on(name) for name in _OTHER_ENDS):
        return math.nan
    option = "io_size" if "io_size" in workload.options else "size"
    each = workload.size_of(option, view.size_bytes)
    return each * workload.numjobs * workload.number("loops", default=1)
