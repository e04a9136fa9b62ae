"""Rules on where data came from and what it holds: caches, memory, contents of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.bottleneck.use_method import write_back_tail
from volbench.analyse.bottleneck.volume_context import (
    MIN_EMPTY,
    MIN_INVALID_EMPTY,
    DeviceKind,
    device_kind,
    holds_data,
)
from volbench.analyse.findings.host_rules import MIN_SAMPLES
from volbench.analyse.findings.rule import Evidence, Observation, observed, rule
from volbench.analyse.frames.run_view import (
    RunView,
    bytes_until_end,
    declared,
    device_rows,
    host_rows,
    results_of,
    runtime_s,
    total,
    within_run,
)
from volbench.analyse.frames.workload_spec import WorkloadSpec
from volbench.model.results.finding import WORDS, Cause, Severity
from volbench.units import (
    format_capacity,
    format_count,
    format_duration,
    format_latency,
    format_percent,
    format_rate,
)

# Share of direct reads that reach the device: from a sparse file hardly any do.
# Noticed by: test_memory.py::test_direct_reads_that_never_reached_the_device_are_reported
_MIN_READ_SHARE = 0.5
# Rate over the declared limit that a provider may allow; more is not a read of stored blocks.
# Noticed by: test_threshold_edges.py::test_reads_of_an_empty_volume_are_too_fast_above_105_percent
_MAX_LIMIT_RATIO = 1.05
# Writes of the same buffers from which deduplication pays.
# Noticed by: test_threshold_edges.py::test_buffers_are_repetitive_from_sixteen_uses
_MIN_REUSES = 16
# Share of the bytes from which the page cache kept none: counters of devices agree within 2 %.
# Noticed by: test_memory.py::test_the_share_that_arrived_determines_the_severity
_MIN_COUNTED_SHARE = 0.98
# Share of the bytes below which a rate is that of memory.
# Noticed by: test_memory.py::test_the_share_that_arrived_determines_the_severity
_MIN_DEVICE_SHARE = 0.5
# Share from which bytes of the device are those of other load too: a filesystem writes a journal.
# Noticed by: test_memory.py::test_the_share_that_arrived_determines_the_severity
_MAX_OWN_SHARE = 1.25
# Dirty pages and write-back that are worth a sentence.
# Noticed by: test_threshold_edges.py::test_dirty_pages_are_named_from_one_megabyte
_MIN_REPORTED_BYTES = 1e6
_VERBS, CACHED_RATE = {"read": "read", "write": "wrote"}, "The rate is that of the page cache"
# Bandwidth that single I/Os hardly reach on a disk, whatever their size: a fast NVMe drive of 2026
# reads 1.5 GB/s at depth 1 in blocks of 128k. Noticed by:
# test_memory.py::test_fast_results_that_may_have_been_buffered_are_questioned
_MAX_DISK_BYTES_PER_S_AT_DEPTH_1 = 2e9
_NO_DISK = frozenset({"null", "cpuio"})


@rule(
    "the volume was cold",
    looks_at=(
        "The cold-volume probe, unless a run prepared the volume after it: first reads take "
        "more than 1.5 times as long as second reads in the median, or 3 times in p99 "
        "(Wilcoxon, p < 0.01). Also a rate that starts at least 30 % below its plateau and "
        "takes three intervals or more to reach it, on a volume that is not a local drive and"
        " that earlier runs had not written; undecided after one step or on a host busier"
        " before; not of imported runs."
    ),
    why=(
        "A fresh volume allocates blocks at the first write, and a volume from a snapshot"
        " fetches them at the first read. Both are up to 95 % slower than later I/O. The mean"
        " mixes the two speeds."
    ),
    advice="Warm it up first: volbench warmup --on VOLUME, or a warmup phase in the profile.",
)
def cold_blocks(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield that a probe found the volume cold, or that its rate rose from the start."""
    probe = view.cold
    if probe is not None and probe.cold and not context.earlier(view).is_prepared:
        yield Observation(
            f"Before the campaign, first reads of {probe.pairs} blocks took"
            f" {format_latency(probe.first_median_s)}, second reads"
            f" {format_latency(probe.second_median_s)} (median ratio {probe.median_ratio:.3g},"
            f" p99 ratio {probe.p99_ratio:.3g}); no run has warmed the volume up since.",
            {
                "pairs": float(probe.pairs),
                "median_ratio": probe.median_ratio,
                "p99_ratio": probe.p99_ratio,
                "p_value": probe.p_value,
                "first_median_s": probe.first_median_s,
                "second_median_s": probe.second_median_s,
            },
        )
    for cause in context.explanations(view):
        is_open = WORDS[Cause.WARMING] in cause.candidates and view.run.imported is None
        if is_open or cause.cause is Cause.WARMING:
            below = format_percent(1 - cause.level / cause.evidence["plateau_iops"])
            open_causes = " or ".join(cause.candidates)
            whether = f"undecided whether from {open_causes}" if is_open else ""
            yield observed(
                cause,
                f"The rate started at {format_count(cause.level)} IOPS, {below} below its plateau,"
                f" and rose for {format_duration(cause.to_s)}{whether and f'; {whether}'}",
                {**cause.evidence, "cause": whether or "as a cold volume does"},
            )


@rule(
    "reads of blocks without data",
    looks_at=(
        "Before a run that reads, up to 64 blocks of its range are sampled, and the "
        "filesystem, loop device, thin pool or NBD server is queried: 3 % of zero blocks or "
        "of unmapped space is reported, half is invalid, but not zeros in mapped blocks that the "
        "device read. Also direct reads of which less than half reached the device (invalid), "
        "more than 1 % of zero blocks in the cold-volume probe, and, without a sample, reads "
        "above the declared limits."
    ),
    why=(
        "A block that was never written needs no lookup, nor one with zeros on storage that keeps"
        " none: both are returned far faster than data can be read."
    ),
    advice=(
        "Write data to every block first: add a precondition phase that writes the whole file or"
        " device, or run volbench warmup."
    ),
)
def never_written(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield that a run likely read blocks that were never written."""
    read = total(view, "io_bytes", direction="read")
    if view.is_buffered or not read > 0:
        return
    rows, device = device_rows(view), 0.0
    if not rows.empty and view.is_counted:
        device = bytes_until_end(rows, "read_bw_bytes_per_s", runtime=math.inf)
        if device < _MIN_READ_SHARE * read:
            yield Observation(
                f"fio read {format_capacity(read)} past the page cache; the device read"
                f" {format_capacity(device)} ({format_percent(device / read)}).",
                {"tool_bytes": read, "device_bytes": device},
                "read",
                severity=Severity.INVALID,
            )
            return
    if seen := list(_empty_samples(view, device)):
        yield from seen
        return
    earlier = context.earlier(view)
    if earlier.is_written or earlier.holds_data or holds_data(view):
        return
    if view.cold is not None and view.cold.never_written:
        share = view.cold.zero_share or 0.0
        yield Observation(
            f"Before the campaign, {format_percent(share)} of the sampled blocks held only zeros,"
            " and no earlier run wrote to the volume.",
            {"zero_share_percent": 100 * share},
            "read",
            severity=Severity.INVALID if share >= MIN_INVALID_EMPTY else None,
        )
    elif not view.writes:
        yield from _rates_above_limit(view)


def _empty_samples(view: RunView, device: float) -> Iterator[Observation]:
    """Yield empty blocks in the sample right before a run of which the device read some bytes."""
    blocks = view.volume.blocks if view.volume is not None else None
    if blocks is None or blocks.empty_share < MIN_EMPTY:
        return
    unmapped, parts = blocks.unmapped_share or 0.0, []
    if blocks.zeros:
        parts.append(f"{blocks.zeros} of {blocks.sampled} sampled blocks held only zeros")
    if unmapped >= MIN_EMPTY:
        parts.append(
            f"{blocks.reported_by} has no data for {format_percent(unmapped)} of the range"
        )
    end, severity = "such reads need no disk access.", Severity.WARNING
    if device:
        end = f"the device read {format_capacity(device)}, but storage below it may keep no zeros."
    if not device or blocks.unmapped_share is None or unmapped >= MIN_EMPTY:
        severity = Severity.INVALID if blocks.empty_share >= MIN_INVALID_EMPTY else severity
    yield Observation(
        f"Right before the run {' and '.join(parts)}: {end}",
        {
            "sampled_blocks": float(blocks.sampled),
            "zero_blocks": float(blocks.zeros),
            "unmapped_percent": 100 * unmapped,
        },
        "read",
        severity=severity,
    )


def _rates_above_limit(view: RunView) -> Iterator[Observation]:
    iops, rate = total(view, "iops"), total(view, "bw_bytes_per_s")
    above = [
        value > _MAX_LIMIT_RATIO * max(limit, burst)
        for value, (limit, burst) in (
            (iops, declared(view.run, "iops")),
            (rate, declared(view.run, "bw_bytes_per_s")),
        )
        if limit
    ]
    if any(above):
        yield Observation(
            f"Reads ran at {format_count(iops)} IOPS and {format_rate(rate)}, above the declared"
            " limit, and no earlier run wrote to the volume.",
            {"iops": iops, "bw_bytes_per_s": rate},
            "read",
        )


@rule(
    "the written data is compressible or repetitive",
    looks_at=(
        "Jobs that write: `zero_buffers`, `buffer_pattern` and a `buffer_compress_percentage`"
        " of 100 are a warning. A lower one, a `dedupe_percentage`, and no `refill_buffers` "
        "when at least 16 times the buffers were written are a note (4 MiB of fio 3.33 in 4k "
        "blocks compress to 7 % without refill_buffers, to 99.5 % with it)."
    ),
    why=(
        "Storage that compresses, deduplicates or skips zeros does less work for such data than"
        " for real data, so the rates are too high."
    ),
    advice="Set refill_buffers: 1 and no zero_buffers.",
)
def compressible(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield each section that wrote data a volume could store for less."""
    written = {
        result.section: result["io_bytes"]
        for result in results_of(view)
        if result.direction == "write"
    }
    for workload in view.workloads:
        moved = written.get(workload.section, math.nan)
        if workload.writes and moved > 0 and not workload.syncs_each_write:  # the syncs take long
            yield from _section_data(workload, moved)


def _section_data(workload: WorkloadSpec, written: float) -> Iterator[Observation]:
    evidence: Evidence = {"written_bytes": written, "section": workload.section}
    repeats = workload.number("buffer_compress_percentage", default=0)
    duplicates = workload.number("dedupe_percentage", default=0)
    wrote = f"fio wrote {format_capacity(written)}"
    if workload.is_on("zero_buffers") or repeats == 100:
        yield Observation(f"{wrote} of zeros.", evidence, "write")
    elif "buffer_pattern" in workload.options:
        yield Observation(f"{wrote} of one repeated pattern (buffer_pattern).", evidence, "write")
    elif repeats or duplicates:
        yield Observation(
            f"{wrote} of data set to be {repeats} % compressible and {duplicates} % duplicates.",
            evidence | {"compress_percent": float(repeats), "dedupe_percent": float(duplicates)},
            "write",
            severity=Severity.NOTE,
        )
    elif not (
        workload.is_on("refill_buffers")
        or "refill_buffers" in workload.unreported_flags
        or "verify" in workload.options
    ):
        buffers = workload.block_bytes * workload.depth * workload.numjobs
        if written >= _MIN_REUSES * buffers:
            yield Observation(
                f"{wrote} from {format_capacity(buffers)} of buffers, {written / buffers:,.0f}"
                " times over (no refill_buffers).",
                evidence | {"buffer_bytes": float(buffers)},
                "write",
                severity=Severity.NOTE,
            )


@rule(
    "the page cache affected the result",
    looks_at=(
        "Runs without `direct=1`: bytes of fio against bytes of the device until fio ended. From 98"
        " % on it is a note; below it, or with bytes of other load, a warning, below half invalid"
        " unless the job says `direct=0`; without samples a warning. Also direct writes of which"
        " less than half reached the device. Engines outside the block layer are left out;"
        " mmap always uses the page cache. Also imported results that do not report `direct`, with"
        " more than 2 GB/s for each I/O in flight."
    ),
    why=(
        "Memory is hundreds of times faster than a volume. What has not reached the device when"
        " the clock stops was not measured."
    ),
    advice=(
        "Set direct: 1 to measure the volume. Writes through the cache need end_fsync: 1, which"
        " counts until everything is written."
    ),
)
def page_cache(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the effect of the page cache on each direction of a run."""
    rows, runtime = device_rows(view), runtime_s(view)
    yield from _cached_by_default(view)
    directions = {result.direction for result in results_of(view)} & {"read", "write"}
    if math.isnan(runtime) or not runtime or not view.is_counted:
        return
    for direction in sorted(directions):
        if view.is_cached and rows.empty:
            yield _unsampled_cache(view, direction)
        elif not rows.empty and (view.is_buffered or direction == "write"):
            yield from _device_share(view, direction, runtime)


def _cached_by_default(view: RunView) -> Iterator[Observation]:
    """Yield that a rate may be that of the page cache, where nothing says that it was bypassed."""
    loads = [load for load in view.workloads if load.may_be_buffered and not load.is_buffered]
    if not loads or view.run.imported is None:
        return
    at_once = max(load.depth * load.numjobs for load in loads)
    for row in results_of(view):
        each = row["bw_bytes_per_s"] / at_once
        if row.direction in _VERBS and each > _MAX_DISK_BYTES_PER_S_AT_DEPTH_1:
            deep = "depth 1" if at_once == 1 else f"{at_once} I/Os in flight"
            yield Observation(
                f"{format_rate(row['bw_bytes_per_s'])} at {deep}, and the result does not say that"
                " direct=1 was set: without it, this is the rate of the page cache.",
                {"tool_bw_bytes_per_s": row["bw_bytes_per_s"], "in_flight": float(at_once)},
                row.direction,
            )


def _unsampled_cache(view: RunView, direction: str) -> Observation:
    synced = all(workload.is_synced for workload in view.workloads) and direction == "write"
    end = ", flushed at the end," if synced else ""
    is_mapped = any(workload.engine == "mmap" for workload in view.workloads)
    option = "ioengine=mmap" if is_mapped else "direct=0"
    rate = total(view, "bw_bytes_per_s", direction=direction)
    return Observation(
        f"I/O went through the page cache ({option}){end} and the device was not sampled:"
        f" {format_rate(rate)} is the rate that fio saw.",
        {"tool_bw_bytes_per_s": rate},
        direction,
        severity=Severity.NOTE if synced else Severity.WARNING,
    )


def _device_share(view: RunView, direction: str, runtime: float) -> Iterator[Observation]:
    rows, column = device_rows(view), f"{direction}_bw_bytes_per_s"
    moved = total(view, "io_bytes", direction=direction)
    # What is flushed before the clock stops, or was never cached, may count in full.
    prompt = not view.is_buffered or all(workload.is_synced for workload in view.workloads)
    device = bytes_until_end(rows, column, runtime=math.inf if prompt else runtime)
    if not moved > 0 or (not view.is_cached and device >= _MIN_DEVICE_SHARE * moved):
        return
    share = device / moved
    evidence: Evidence = {
        "tool_bytes": moved,
        "device_bytes": device,
        "share_percent": 100 * share,
        "tool_bw_bytes_per_s": total(view, "bw_bytes_per_s", direction=direction),
        "device_bw_bytes_per_s": device / runtime,
    }
    verb = _VERBS[direction]
    message = (
        f"fio {verb} {format_capacity(moved)}; the device {verb}"
        f" {format_capacity(device)} ({format_percent(share)}, {format_rate(device / runtime)})"
        " during the run."
    )
    if direction == "write":
        message += _write_back(view, runtime, evidence)
    if not view.is_buffered:
        message += " O_DIRECT was set: a layer below it caches or compresses."
    is_shared = share > _MAX_OWN_SHARE or bool(view.volume and view.volume.other_campaigns)
    is_sampled = len(within_run(rows, runtime=runtime)) >= MIN_SAMPLES
    is_low = share < _MIN_DEVICE_SHARE
    is_meant = is_low and all(load.options.get("direct") == "0" for load in view.workloads)
    if is_meant:
        message = f"{CACHED_RATE}, as direct=0 asks for: {message}"
    elif is_shared and share < 1:  # bytes of others only add to those of the device
        message = f"At least {format_percent(1 - share)} stayed in the cache: {message}"
    elif is_shared:
        who = "moved" if is_sampled else "may have moved"
        message = f"Other load {who} some of the bytes, so what was cached is unknown: {message}"
    is_whole = share >= _MIN_COUNTED_SHARE and not is_shared
    severity = Severity.NOTE if is_whole else Severity.WARNING
    severity = Severity.INVALID if is_low and not is_meant else severity
    advice = "Set direct: 1 to measure the volume." if prompt or direction == "read" else ""
    if is_shared and not (is_low or is_meant):
        longer = "" if is_sampled else ", with a longer runtime"
        advice = f"Measure again without other load on the disk{longer}."
    yield Observation(message, evidence, direction, severity=severity, advice=advice)


def _write_back(view: RunView, runtime: float, evidence: Evidence) -> str:
    tail_s, tail_bytes = write_back_tail(device_rows(view), end_s=runtime)
    grown, peak = _dirty_growth(view)
    evidence |= {
        "tail_bytes": tail_bytes,
        "tail_s": tail_s,
        "dirty_growth_bytes": grown,
        "dirty_peak_bytes": peak,
    }
    sentence = ""
    if grown >= _MIN_REPORTED_BYTES:
        sentence = f" Dirty pages grew by {format_capacity(grown)}."
    elif peak >= _MIN_REPORTED_BYTES:
        sentence = f" Dirty pages peaked at {format_capacity(peak)}."
    if tail_s > 0:
        sentence += (
            f" {format_capacity(tail_bytes)} followed in the {format_duration(tail_s)} after it."
        )
    return sentence


def _dirty_growth(view: RunView) -> tuple[float, float]:
    """Return by how much dirty pages grew, NaN from a single sample, and their peak."""
    dirty = host_rows(view)["dirty_bytes"].dropna()
    if dirty.empty:
        return math.nan, math.nan
    peak = float(dirty.max())
    return peak - float(dirty.iloc[0]) if len(dirty) > 1 else math.nan, peak


@rule(
    "a buffered test that fits in memory",
    looks_at=(
        "Runs without `direct=1`, unless each write is synced: the size of all files or regions"
        " that they access against the memory of the host, or the memory limit of the container."
    ),
    why=(
        "A file that fits in memory is read from memory after the first pass, so the result"
        " says little about the volume."
    ),
    advice="Set direct: 1, or make size at least twice the memory of the host.",
)
def smaller_than_memory(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield that all that buffered sections touch fits in memory."""
    host = view.host
    memory = None if host is None else host.usable_memory_bytes
    buffered = [workload for workload in view.workloads if workload.is_cached]
    if host is None or memory is None or not buffered:
        return
    touched = math.fsum(
        min(workload.size_of("size", view.size_bytes), view.size_bytes) * workload.numjobs
        for workload in buffered
    )
    has = "the host has" if memory == host.memory_bytes else "its container may use"
    if touched < memory:  # never true for NaN, an unknown size
        yield Observation(
            f"The test touches {format_capacity(touched)}; {has} {format_capacity(memory)}"
            " of memory, so all of it can be cached.",
            {"touched_bytes": touched, "memory_bytes": float(memory)},
        )


@rule(
    "the volume is in memory",
    severity=Severity.INVALID,
    looks_at=(
        "Filesystem and block device of the volume, and the devices below it: tmpfs, ramfs, "
        "ram (brd) and zram. Imported results of the engines null and cpuio."
    ),
    why="Rates of memory say nothing about a disk, with or without `direct`.",
    advice="Name a directory, a file or a device on the disk to be measured.",
)
def memory_volume(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield that a volume is in the memory of the host."""
    if device_kind(view) is DeviceKind.MEMORY:
        facts = view.volume
        where = "" if facts is None else facts.in_memory
        where = where or view.run.volume.target
        yield Observation(
            f"{view.run.volume.role} is in the memory of the host ({where}): its rates are not"
            " those of a disk.",
            {"backed_by": where},
        )
    elif view.run.imported is not None and not view.is_buffered:
        yield from _without_io(view)


def _without_io(view: RunView) -> Iterator[Observation]:
    engines = {load.engine for load in view.workloads}.intersection(_NO_DISK)
    if engines:
        engine = min(engines)
        yield Observation(
            f"The engine {engine} does no I/O: the rates are those of fio alone.",
            {"ioengine": engine},
        )
