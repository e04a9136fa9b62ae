"""Rules on the contents of blocks: cold-blocks, never-written, compressible."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import (
    Evidence,
    Observation,
    explained,
    observed,
    percent,
    rule,
    tool_name,
)
from volbench.analyse.frames.run_view import (
    RunView,
    bytes_until_end,
    declared,
    device_rows,
    results_of,
    total,
)
from volbench.analyse.frames.workload_spec import WorkloadSpec
from volbench.model.profile.profile_model import Tool
from volbench.model.results.finding import Cause, Severity
from volbench.units import (
    format_capacity,
    format_count,
    format_duration,
    format_latency,
    format_rate,
)

_REACHED = 0.5
_OVER = 1.05
_MOSTLY_EMPTY = 0.5
_LEAST_EMPTY = 0.03
_REUSES = 16


@rule(
    "the volume was cold",
    looks_at=(
        "The cold-volume probe (`cold_probe`), if there was one and nothing prepared the volume"
        " after it: paired 4 KiB reads whose first pass takes more than 1.5 times as long as the"
        " second in the median, or 3 times in p99, beyond chance (Wilcoxon, p < 0.01). And a rate"
        " that starts at least 30 % below the plateau that it reaches over three intervals or"
        " more, on a volume that is no local drive and whose range earlier runs had not written."
    ),
    why=(
        "A fresh volume allocates at the first write, one from a snapshot fetches at the first"
        " read: up to 95 % slower than later. The mean is neither of the two speeds."
    ),
    advice="Warm it up first: volbench warmup VOLUME, or a warmup phase in the profile.",
)
def cold_blocks(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield that a probe found the volume cold, or that its rate rose from the start."""
    probe = view.cold
    if probe is not None and probe.cold and not context.earlier(view).is_prepared:
        yield Observation(
            f"Before the campaign, first reads of {probe.pairs} blocks took"
            f" {format_latency(probe.first_median_s)}, second reads"
            f" {format_latency(probe.second_median_s)} (median ratio {probe.median_ratio:.3g},"
            f" p99 ratio {probe.p99_ratio:.3g}); no run warmed the volume up since.",
            {
                "pairs": float(probe.pairs),
                "median_ratio": probe.median_ratio,
                "p99_ratio": probe.p99_ratio,
                "p_value": probe.p_value,
                "first_median_s": probe.first_median_s,
                "second_median_s": probe.second_median_s,
            },
        )
    for cause in explained(view, context, Cause.WARMING):
        plateau = cause.evidence.get("plateau_iops", 0.0)
        below = f", {percent(1 - cause.level / plateau)} below its plateau," if plateau else ""
        yield observed(
            cause,
            f"The rate started at {format_count(cause.level)} IOPS{below} and rose for"
            f" {format_duration(cause.to_s)}",
        )


@rule(
    "reads of blocks that were never written",
    looks_at=(
        "Reads with `direct=1` of which less than half reached the device: a filesystem answers"
        " for holes and unwritten extents by itself, and the number is invalid. Reads of a volume"
        " that nothing in the campaign wrote to: when the cold-volume probe found more than 1 % of"
        " its blocks all zero (invalid from half of them on), or when they beat the declared"
        " limits. Right before a run that reads, up to 64 blocks of what it reads are sampled, and"
        " the filesystem, the file of a loop device, a thin pool or an NBD server is asked: from"
        " 3 % of zero blocks or of unmapped space on, invalid from half on."
    ),
    why=(
        "A block that was never written needs no lookup: storage returns zeros at once, far faster"
        " than it can read."
    ),
    advice=(
        "Write every block first: add a precondition phase that writes the whole file or device,"
        " or run volbench warmup."
    ),
)
def never_written(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield that a run likely read blocks that were never written."""
    read = total(view, "io_bytes", direction="read")
    if view.is_buffered or not read > 0:
        return
    rows = device_rows(view)
    if not rows.empty and view.is_counted:
        device = bytes_until_end(rows, "read_bw_bytes_per_s", runtime=math.inf)
        if device < _REACHED * read:
            yield Observation(
                f"fio read {format_capacity(read)} past the page cache; the device read"
                f" {format_capacity(device)} ({percent(device / read)}).",
                {"tool_bytes": read, "device_bytes": device},
                "read",
                severity=Severity.INVALID,
            )
            return
    if seen := list(_sampled(view)):
        yield from seen
        return
    if context.earlier(view).is_written:
        return
    if view.cold is not None and view.cold.never_written:
        share = view.cold.zero_share or 0.0
        yield Observation(
            f"Before the campaign {percent(share)} of the sampled blocks held only zeros, and no"
            " earlier run wrote to the volume.",
            {"zero_share_percent": 100 * share},
            "read",
            severity=Severity.INVALID if share >= _MOSTLY_EMPTY else None,
        )
    elif not view.writes:
        yield from _too_fast(view)


def _sampled(view: RunView) -> Iterator[Observation]:
    """Yield what the sample right before the run found, if it found empty blocks."""
    blocks = view.volume.blocks if view.volume is not None else None
    if blocks is None:
        return
    zeros = blocks.zeros / blocks.sampled if blocks.sampled else 0.0
    unmapped = blocks.unmapped_share or 0.0
    if max(zeros, unmapped) < _LEAST_EMPTY:
        return
    words = []
    if blocks.zeros:
        words.append(f"{blocks.zeros} of {blocks.sampled} sampled blocks held only zeros")
    if unmapped >= _LEAST_EMPTY:
        words.append(f"{blocks.reported_by} has no data for {percent(unmapped)} of the range")
    yield Observation(
        f"Right before the run {' and '.join(words)}: such reads need no look at the disk.",
        {
            "sampled_blocks": float(blocks.sampled),
            "zero_blocks": float(blocks.zeros),
            "unmapped_percent": 100 * unmapped,
        },
        "read",
        severity=Severity.INVALID if max(zeros, unmapped) >= _MOSTLY_EMPTY else None,
    )


def _too_fast(view: RunView) -> Iterator[Observation]:
    """Yield reads of a volume without data that exceed its declared limits."""
    iops, rate = total(view, "iops"), total(view, "bw_bytes_per_s")
    above = [
        value > _OVER * max(limit, burst)
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
    "the data written can be stored for less",
    looks_at=(
        "Options of what writes: `zero_buffers`, `buffer_pattern`, a `buffer_compress_percentage`"
        " of 100, and dd from `/dev/zero` are a warning. A lower `buffer_compress_percentage`, a"
        " `dedupe_percentage`, and no `refill_buffers` when at least 16 times the buffers were"
        " written are a note. (4 MiB written by fio 3.33 in 4k blocks without refill_buffers"
        " shrink to 7 % under deflate, with it to 99.5 %.)"
    ),
    why=(
        "Storage that compresses, removes duplicates or skips zeros does less work for such data"
        " than for real data, so the rates are too good."
    ),
    advice="Set refill_buffers: 1 and no zero_buffers. Use fio instead of dd from /dev/zero.",
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
        if workload.writes and moved > 0:
            yield from _of_section(workload, moved, tool_name(view.run))


def _of_section(workload: WorkloadSpec, written: float, tool: str) -> Iterator[Observation]:
    source = workload.options.get("if", "/dev/zero")
    evidence: Evidence = {"written_bytes": written, "section": workload.section}
    repeats = workload.number("buffer_compress_percentage", default=0)
    duplicates = workload.number("dedupe_percentage", default=0)
    wrote = f"{tool} wrote {format_capacity(written)}"
    if workload.tool is Tool.DD:
        if source == "/dev/zero":
            seen = evidence | {"source": source}
            yield Observation(f"{wrote} of zeros (if=/dev/zero).", seen, "write")
    elif workload.is_on("zero_buffers") or repeats == 100:
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
        if written >= _REUSES * buffers:
            yield Observation(
                f"{wrote} out of {format_capacity(buffers)} of buffers, {written / buffers:.0f}"
                " times over (no refill_buffers).",
                evidence | {"buffer_bytes": float(buffers)},
                "write",
                severity=Severity.NOTE,
            )
