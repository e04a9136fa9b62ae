"""page-cache: the host's memory answered instead of the volume."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import amount, percent, tool_name
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import (
    bytes_until_end,
    device_rows,
    host_rows,
    results_of,
    runtime_s,
    total,
)
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_duration, format_rate

_REACHED = 0.98
_MOSTLY_MEMORY = 0.5
_WORTH_BYTES = 1e6
_WORTH_S = 0.5
_VERBS = {"read": "read", "write": "written"}


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for each direction of a run that went through the page cache."""
    del context
    rows, runtime = device_rows(view), runtime_s(view)
    directions = {result.direction for result in results_of(view)} & {"read", "write"}
    if math.isnan(runtime) or not runtime:
        return
    buffered = view.is_buffered
    for direction in sorted(directions):
        if buffered and rows.empty:
            yield _unwatched(view, direction)
        elif not rows.empty and (buffered or direction == "write"):
            yield from _compared(view, direction, runtime, buffered=buffered)


def _unwatched(view: RunView, direction: str) -> Finding:
    """Return that nothing is known without samples of the device."""
    synced = all(workload.is_synced for workload in view.workloads) and direction == "write"
    end = ", though it waited for the data at the end" if synced else ""
    rate = total(view, "bw_bytes_per_s", direction=direction)
    return RULE.finding(
        view,
        f"It went through the page cache (direct=0){end}, and nobody watched"
        f" the device: {format_rate(rate)} is what {tool_name(view.run)} saw.",
        {"tool_bw_bytes_per_s": rate},
        direction=direction,
        severity=Severity.NOTE if synced else Severity.WARNING,
    )


def _compared(
    view: RunView, direction: str, runtime: float, *, buffered: bool
) -> Iterator[Finding]:
    """Yield a finding from the tool's bytes and the device's bytes of one direction."""
    rows, column = device_rows(view), f"{direction}_bw_bytes_per_s"
    moved = total(view, "io_bytes", direction=direction)
    # What is flushed before the clock stops, or was never cached, may count in full.
    prompt = not buffered or all(workload.is_synced for workload in view.workloads)
    device = bytes_until_end(rows, column, runtime=math.inf if prompt else runtime)
    if not moved > 0 or (not buffered and device >= _MOSTLY_MEMORY * moved):
        return
    share = device / moved
    evidence: dict[str, float | str] = {
        "tool_bytes": moved,
        "device_bytes": device,
        "share_percent": 100 * share,
        "tool_bw_bytes_per_s": total(view, "bw_bytes_per_s", direction=direction),
        "device_bw_bytes_per_s": device / runtime,
    }
    message = (
        f"{tool_name(view.run)} says {amount(moved)} were {_VERBS[direction]}; the device moved"
        f" {amount(device)} ({percent(share)}) while it ran, which is"
        f" {format_rate(device / runtime)}."
    )
    if direction == "write":
        message += _tail(view, runtime, evidence)
    if not buffered:
        message += " O_DIRECT was asked for, so something below it caches or compresses."
    yield RULE.finding(view, message, evidence, direction=direction, severity=_severity(share))


def _severity(share: float) -> Severity:
    if share < _MOSTLY_MEMORY:
        return Severity.INVALID
    return Severity.WARNING if share < _REACHED else Severity.NOTE


def _tail(view: RunView, runtime: float, evidence: dict[str, float | str]) -> str:
    """Return what dirty pages and the time after the end tell, and note it as evidence."""
    rows = device_rows(view)
    after = rows[rows["t_s"] > runtime]
    moved = bytes_until_end(after, "write_bw_bytes_per_s", runtime=math.inf) - bytes_until_end(
        after, "write_bw_bytes_per_s", runtime=runtime
    )
    busy = after[after["write_bw_bytes_per_s"] > 0]["t_s"]
    lasted = 0.0 if busy.empty else float(busy.max()) - runtime
    grown, peak = _dirty(view)
    evidence |= {
        "tail_bytes": moved,
        "tail_s": lasted,
        "dirty_growth_bytes": grown,
        "dirty_peak_bytes": peak,
    }
    parts = []
    if grown >= _WORTH_BYTES:
        parts.append(f" Dirty pages grew by {amount(grown)}.")
    elif peak >= _WORTH_BYTES:
        parts.append(f" Up to {amount(peak)} were dirty.")
    if moved >= _WORTH_BYTES and lasted >= _WORTH_S:
        parts.append(f" {amount(moved)} followed in the {format_duration(lasted)} after it ended.")
    return "".join(parts)


def _dirty(view: RunView) -> tuple[float, float]:
    """Return by how much dirty pages grew, NaN from a single sample, and their peak."""
    dirty = host_rows(view)["dirty_bytes"].dropna()
    if dirty.empty:
        return math.nan, math.nan
    peak = float(dirty.max())
    return peak - float(dirty.iloc[0]) if len(dirty) > 1 else math.nan, peak


RULE = Rule(
    id="page-cache",
    title="the page cache was in the way",
    severity=Severity.WARNING,
    looks_at=(
        "Runs without `direct=1`: the bytes that fio or dd counted against the bytes that the"
        " device moved until the tool ended. From 98 % on it is a note, below it a warning (the"
        " counters of a device agree with fio's within 2 % when nothing is cached), and below half"
        " the number is invalid. Growth of dirty pages and the bytes written after the end are"
        " told with it. With nobody watching the device it is a warning. Also runs with"
        " `direct=1` of whose writes less than half reached the device. NBD exports are never"
        " cached by the host."
    ),
    why=(
        "Memory is hundreds of times faster than a volume. What has not reached the device when"
        " the clock stops was not measured."
    ),
    advice=(
        "Set direct: 1 to measure the volume. To measure writes through the cache, add"
        " end_fsync: 1, so that the time until everything is written counts."
    ),
    check=check,
)
