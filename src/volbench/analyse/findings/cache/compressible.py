"""compressible: the data written was zeros or repeats itself."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import amount
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import results_of
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.frames.workload_spec import WorkloadSpec
from volbench.model.profile.profile_model import Tool
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_size

_REUSES = 16


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for each section that wrote data a volume could store for less."""
    del context
    written = {
        result.section: result["io_bytes"]
        for result in results_of(view)
        if result.direction == "write"
    }
    for workload in view.workloads:
        bytes_ = written.get(workload.section, math.nan)
        if workload.writes and bytes_ > 0:
            yield from _of_section(view, workload, bytes_)


def _of_section(view: RunView, workload: WorkloadSpec, written: float) -> Iterator[Finding]:
    source = workload.options.get("if", "/dev/zero")
    evidence: dict[str, float | str] = {"written_bytes": written, "section": workload.section}
    repeats = workload.number("buffer_compress_percentage", default=0)
    duplicates = workload.number("dedupe_percentage", default=0)
    if workload.tool is Tool.DD:
        if source == "/dev/zero":
            yield RULE.finding(
                view,
                f"dd wrote {amount(written)} of zeros (if=/dev/zero).",
                evidence | {"source": source},
                direction="write",
            )
    elif workload.is_on("zero_buffers") or repeats == 100:
        yield RULE.finding(
            view, f"{amount(written)} of zeros were written.", evidence, direction="write"
        )
    elif "buffer_pattern" in workload.options:
        yield RULE.finding(
            view,
            f"{amount(written)} of one repeated pattern were written (buffer_pattern).",
            evidence,
            direction="write",
        )
    elif repeats or duplicates:
        yield RULE.finding(
            view,
            f"The data was asked to be {repeats} % compressible and {duplicates} % duplicates.",
            evidence | {"compress_percent": float(repeats), "dedupe_percent": float(duplicates)},
            direction="write",
            severity=Severity.NOTE,
        )
    elif not (
        workload.is_on("refill_buffers")
        or "refill_buffers" in workload.unreported_flags
        or "verify" in workload.options
    ):
        yield from _reused(view, workload, written, evidence)


def _reused(
    view: RunView, workload: WorkloadSpec, written: float, evidence: dict[str, float | str]
) -> Iterator[Finding]:
    """Yield a note when few buffers were written many times over."""
    buffers = workload.block_bytes * workload.depth * workload.numjobs
    if written < _REUSES * buffers:
        return
    yield RULE.finding(
        view,
        f"{amount(written)} were written out of {format_size(buffers)} of buffers, again and again"
        " (no refill_buffers).",
        evidence | {"buffer_bytes": float(buffers)},
        direction="write",
        severity=Severity.NOTE,
    )


RULE = Rule(
    id="compressible",
    title="the data written can be stored for less",
    severity=Severity.WARNING,
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
    check=check,
)
