"""busy-device: the device did more than the tool asked of it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import percent
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import device_rows, runtime_s, total, within_run
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.resample import seconds
from volbench.model.campaign.target import VolumeKind
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_rate

_LEAST_BYTES_PER_S = 1e6
_LEAST_SAMPLES = 3
_MORE = {VolumeKind.DEVICE: 0.1, VolumeKind.FILE: 0.25, VolumeKind.DIRECTORY: 0.25}


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for each device and direction with I/O that is not the tool's."""
    more = _MORE.get(view.run.volume.kind)
    if more is None or view.is_buffered or any(a.waits_for_sync for a in view.workloads):
        return
    if view.device.empty:
        return
    rows = within_run(_own_devices(view), runtime=runtime_s(view))
    own = {d: max(total(view, "io_bytes", direction=d), 0.0) for d in ("read", "write")}
    own = {d: 0.0 if math.isnan(value) else value for d, value in own.items()}
    for device, part in rows.groupby("device", sort=False):
        if len(part) >= _LEAST_SAMPLES:
            known = _with_others(view, context, part, own)
            for direction in own:
                yield from _foreign(view, str(device), part, direction, own=known, more=more)


def _with_others(
    view: RunView, context: Context, rows: pd.DataFrame, own: dict[str, float]
) -> dict[str, float]:
    """Return the tool's bytes with those of other clients meanwhile; NaN when one told nothing."""
    load = context.load(view)
    if load is None:
        return own
    ends_s = seconds(rows["utc"])
    from_s, to_s = float((ends_s - rows["interval_s"]).min()), float(ends_s.max())
    return {
        way: moved + load.others_bytes(view.run.id, way, from_s=from_s, to_s=to_s)
        for way, moved in own.items()
    }


def _own_devices(view: RunView) -> pd.DataFrame:
    """Return samples of the volume's device, and of the whole disk when it is a partition."""
    rows = device_rows(view)
    names = {str(name) for name in rows["device"]}
    backing = device_rows(view, level="backing")
    disks = backing["device"].map(lambda disk: any(name.startswith(str(disk)) for name in names))
    return pd.concat([rows, backing[disks.astype(bool)]]) if disks.any() else rows


def _foreign(
    view: RunView,
    device: str,
    rows: pd.DataFrame,
    direction: str,
    *,
    own: dict[str, float],
    more: float,
) -> Iterator[Finding]:
    """Yield a finding when one direction of a device clearly exceeds the tool's bytes."""
    seconds = float(rows["interval_s"].sum())
    moved = float((rows[f"{direction}_bw_bytes_per_s"] * rows["interval_s"]).sum())
    foreign = (moved - own[direction]) / seconds
    runtime = runtime_s(view)
    known = sum(own.values())
    if math.isnan(known) or foreign <= max(_LEAST_BYTES_PER_S, more * known / runtime):
        return
    yield RULE.finding(
        view,
        f"{device} did {format_rate(moved / seconds)} of {direction}s, at least"
        f" {format_rate(foreign)} of them ({percent(foreign * seconds / moved)}) for another"
        " else.",
        {
            "device": device,
            "device_bw_bytes_per_s": moved / seconds,
            "tool_bw_bytes_per_s": own[direction] / runtime,
            "foreign_bw_bytes_per_s": foreign,
        },
        direction=direction,
    )


RULE = Rule(
    id="busy-device",
    title="the device was busy with something else",
    severity=Severity.WARNING,
    looks_at=(
        "Runs with `direct=1` that do not flush: bytes that the device moved, by the kernel's"
        " count, above those of fio, reads and writes apart, for the device and for the disk a"
        " partition is on. It needs 3 samples, 1 MB/s, and 10 % of the run's own rate; 25 % for"
        " files, because filesystems write a journal. What other clients of the same step did"
        " meanwhile is no doubt. The thresholds are volbench's own."
    ),
    why="The run got only a part of what the device can do.",
    advice=(
        "Find the other load (iotop, lsof; the write-back tail of a run before this one is a"
        " candidate), stop it, and measure again."
    ),
    check=check,
)
