"""smaller-than-memory: a buffered test whose data fits in the memory of the host."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.frames.workload_spec import WorkloadSpec
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_size


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding when all that buffered sections touch fits in memory."""
    del context
    memory = view.host.memory_bytes if view.host is not None else None
    buffered = [workload for workload in view.workloads if workload.is_buffered]
    if memory is None or not buffered:
        return
    touched = math.fsum(_touched_bytes(workload, _volume_bytes(view)) for workload in buffered)
    if touched < memory:  # never true for NaN, an unknown size
        yield RULE.finding(
            view,
            f"The test touches {format_size(touched)} and the host has {format_size(memory)} of"
            " memory: all of it can stay there.",
            {"touched_bytes": touched, "memory_bytes": float(memory)},
        )


def _volume_bytes(view: RunView) -> float:
    pin = view.run.volume.pin
    return math.nan if pin is None else float(pin.size_bytes)


def _touched_bytes(workload: WorkloadSpec, volume_bytes: float) -> float:
    """Return the bytes that the jobs of a section touch at most; NaN when unknown."""
    size = workload.options.get("size", "")
    each = volume_bytes
    if size.isdecimal():
        each = float(size) if math.isnan(volume_bytes) else min(float(size), volume_bytes)
    elif size.endswith("%"):
        each = volume_bytes * float(size[:-1]) / 100
    return each * workload.numjobs


RULE = Rule(
    id="smaller-than-memory",
    title="a buffered test that fits in memory",
    severity=Severity.WARNING,
    looks_at=(
        "Runs without `direct=1`: the size of all files or regions they touch against the memory"
        " of the host."
    ),
    why="A file that fits in memory shows memory: after the first pass nothing needs the volume.",
    advice="Set direct: 1, or make size at least twice the memory of the host.",
    check=check,
)
