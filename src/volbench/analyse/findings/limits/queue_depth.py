"""queue-depth: the depth that was asked for was not kept."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import Result, results_of, runtime_s
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.frames.workload_spec import SYNCHRONOUS, WorkloadSpec
from volbench.model.profile.profile_model import Tool
from volbench.model.results.finding import Finding, Severity

_KEPT = 0.5
_LEAST_RUNTIME_S = 2.0
_IN_SUBMIT = 0.5


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for each section with a depth above 1 that can't be or was not kept."""
    del context
    results = list(results_of(view))
    for workload in view.workloads:
        if workload.tool is Tool.DD or workload.depth < 2:
            continue
        rows = [row for row in results if row.section == workload.section]
        if workload.engine in SYNCHRONOUS:
            yield _synchronous(view, workload)
        elif workload.engine == "libaio" and workload.is_buffered:
            yield _buffered(view, workload, rows)
        elif _must_be_full(workload) and runtime_s(view) >= _LEAST_RUNTIME_S:
            yield from _not_kept(view, workload, rows)


def _synchronous(view: RunView, workload: WorkloadSpec) -> Finding:
    return RULE.finding(
        view,
        f"iodepth={workload.depth} was asked for, but {workload.engine} waits for each I/O: the"
        " depth was 1.",
        {"asked_depth": float(workload.depth), "depth": 1.0, "ioengine": workload.engine},
    )


def _buffered(view: RunView, workload: WorkloadSpec, rows: list[Result]) -> Finding:
    """Return that libaio without O_DIRECT submits and waits, with the latencies that show it."""
    evidence: dict[str, float | str] = {"asked_depth": float(workload.depth), "ioengine": "libaio"}
    shares = [row["slat_mean_s"] * workload.depth / row["lat_mean_s"] for row in rows]
    known = [share for share in shares if not math.isnan(share)]
    seen = ""
    if known and max(known) >= _IN_SUBMIT:
        slat_s = max(row["slat_mean_s"] for row in rows if not math.isnan(row["slat_mean_s"]))
        evidence["slat_mean_s"] = slat_s
        seen = f" (each submission took {slat_s * 1e6:.3g} us, which is the I/O itself)"
    return RULE.finding(
        view,
        f"iodepth={workload.depth} was asked for, but libaio with direct=0 does each I/O while it"
        f" is submitted{seen}: the depth was 1.",
        evidence,
    )


def _must_be_full(workload: WorkloadSpec) -> bool:
    """Return whether nothing asks the section to leave its queue half empty."""
    return not (
        workload.is_paced
        or workload.waits_for_sync
        or workload.is_buffered
        or any(name in workload.options for name in ("iodepth_low", "iodepth_batch_complete_min"))
    )


def _not_kept(view: RunView, workload: WorkloadSpec, rows: list[Result]) -> Iterator[Finding]:
    """Yield a finding when Little's law gives far fewer I/Os in flight than asked for."""
    wanted = workload.depth * workload.numjobs
    in_flight = math.fsum(row["iops"] * row["lat_mean_s"] for row in rows)
    if in_flight < _KEPT * wanted:
        yield RULE.finding(
            view,
            f"{wanted} I/Os were to be in flight, but IOPS times latency gives"
            f" {in_flight:.3g} on average.",
            {"asked_depth": float(wanted), "depth": in_flight, "ioengine": workload.engine},
        )


RULE = Rule(
    id="queue-depth",
    title="the queue depth was not kept",
    severity=Severity.WARNING,
    looks_at=(
        "Sections with `iodepth` above 1: an engine that waits for each I/O (psync and its kin);"
        " `libaio` with `direct=0`, which does the I/O inside the submission (io_submit(2); fio's"
        " own iodepth_level still shows the full depth); and, for asynchronous direct I/O of at"
        " least 2 s that nothing paces, less than half of the depth in flight by Little's law:"
        " IOPS times mean latency."
    ),
    why="A volume answers a queue of 16 at another rate than single I/Os; the label is wrong.",
    advice=(
        "Use ioengine: libaio or io_uring with direct: 1, or set iodepth: 1 and numjobs for"
        " parallel I/O."
    ),
    check=check,
)
