"""Views of simulated runs: the frames that a campaign on such a volume would have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pandas as pd
from benchmarks.truth_cases import Case
from benchmarks.virtual_volume import Load, Sampled, VirtualSeries, VirtualVolume, sampled

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import (
    Campaign,
    DevicePin,
    Run,
    Section,
    Volume,
    VolumeKind,
)
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.store.parquet_tables import frame_of, table_of

SAMPLE_S = 1.0
BETWEEN_S = 2.0
_START = datetime(2026, 1, 1, tzinfo=UTC)
_DEVICES = {"nvme": "nvme0n1", "cloud": "vda", "unknown": "sdb"}
_SYSTEMS = {"nvme": "none", "cloud": "kvm", "nbd": "kvm"}
Row = dict[str, object]


@dataclass(frozen=True)
class Simulated:
    """Outcome of a case: its runs, the last of which is judged.

    Attributes:
        context: of all runs.
        view: of the judged one.
        series: of the judged one.
        sampled: the same in seconds.
    """

    context: Context
    view: RunView
    series: VirtualSeries
    sampled: Sampled


def simulate(case: Case) -> Simulated:
    """Return the runs of a case."""
    disk = VirtualVolume(case.scenario)
    runs = [_run(case, load, number) for number, load in enumerate(case.loads, start=1)]
    campaign = Campaign(name="truth", created_utc="2026-01-01T00:00:00Z", runs=tuple(runs), seed=1)
    views, begin_s = [], 0.0
    for run, load in zip(runs, case.loads, strict=True):
        series = disk.run(load)
        seen = sampled(series, sample_s=SAMPLE_S)
        views.append(_view(campaign, run, case, load, seen, begin_s))
        disk.rest(BETWEEN_S)
        begin_s += load.runtime_s + BETWEEN_S
    return Simulated(Context(tuple(views)), views[-1], series, seen)


def _capacity(case: Case) -> int:
    return case.capacity or case.scenario.size_bytes


def _run(case: Case, load: Load, number: int) -> Run:
    kind = VolumeKind.NBD if case.platform == "nbd" else VolumeKind.DEVICE
    path = f"/dev/{_DEVICES.get(case.platform, 'sdb')}"
    pin = None
    if case.platform in {"nvme", "cloud"}:
        pin = DevicePin(path=path, major=8, minor=0, size_bytes=_capacity(case))
    target = "nbd://host/export" if kind is VolumeKind.NBD else path
    options = {
        "ioengine": "nbd" if kind is VolumeKind.NBD else "libaio",
        "direct": "1",
        "rw": f"rand{load.direction}",
        "bs": str(load.block_bytes),
        "iodepth": str(load.iodepth),
        "time_based": "1",
        "runtime": f"{load.runtime_s:.0f}s",
        "refill_buffers": "1",
    }
    return Run(
        id=f"{number:03}-job{number}-r1",
        profile="truth",
        job=f"job{number}",
        volume=Volume(role="data", kind=kind, target=target, pin=pin),
        options=options,
        sections=(Section(name=f"job{number}"),),
        limits=case.declared,
        step=number,
    )


def _view(
    campaign: Campaign, run: Run, case: Case, load: Load, seen: Sampled, begin_s: float
) -> RunView:
    identity = campaign.identity_of(run, run.job)
    beside = {**identity, "direction": load.direction}
    percentiles = [
        {**beside, "latency": "lat", "percentile": float(name[1:]), "value_s": value}
        for name, value in seen.latency_s.items()
        if name.startswith("p")
    ]
    return RunView(
        campaign=campaign,
        run=run,
        summary=_frame("summary", [{**beside, **_summary(case, run, load, seen)}]),
        series=_frame("series", [{**beside, **row} for row in _series(load, seen, begin_s)]),
        device=_frame(
            "device", [{**identity, **row} for row in _device(case, load, seen, begin_s)]
        ),
        percentiles=_frame("percentiles", percentiles),
        volume=_facts(case, run),
        host=None
        if case.platform == "unknown"
        else HostFacts(host="local", cpus=4, virtualization=_SYSTEMS[case.platform]),
    )


def _frame(name: str, rows: list[Row]) -> pd.DataFrame:
    return frame_of(table_of(name, rows))


def _facts(case: Case, run: Run) -> VolumeFacts | None:
    if case.platform == "unknown":
        return None
    return VolumeFacts(
        role="data",
        target=run.volume.target,
        kind=run.volume.kind,
        path=run.volume.target,
        device=_DEVICES.get(case.platform, ""),
        model="SSD 990" if case.platform == "nvme" else "",
        size_bytes=_capacity(case) if case.platform != "nbd" else None,
        rotational=False if case.platform == "nvme" else None,
    )


def _summary(case: Case, run: Run, load: Load, seen: Sampled) -> Row:
    runtime_s, ios = seen.t_s[-1], int(sum(seen.iops) * SAMPLE_S)
    busy = 100 * min(1.0, ios * load.cpu_s / runtime_s) if load.cpu_s else 5.0
    return {
        "tool": "fio",
        "rw": run.options["rw"],
        "direct": True,
        "block_bytes": load.block_bytes,
        "iodepth": load.iodepth,
        "numjobs": 1,
        "ioengine": run.options["ioengine"],
        "volume_bytes": _capacity(case) if run.volume.pin else None,
        "runtime_s": runtime_s,
        "io_bytes": ios * load.block_bytes,
        "total_ios": ios,
        "iops": ios / runtime_s,
        "bw_bytes_per_s": ios * load.block_bytes / runtime_s,
        "lat_mean_s": seen.latency_s["mean"],
        "lat_min_s": seen.latency_s["min"],
        "lat_max_s": seen.latency_s["max"],
        "cpu_usr": 0.4 * busy,
        "cpu_sys": 0.6 * busy,
        "error": 0,
        "status": "finished",
        "limit_iops": case.declared.iops,
        "limit_bw_bytes_per_s": case.declared.bandwidth_bytes_per_s,
    }


def _series(load: Load, seen: Sampled, begin_s: float) -> Iterator[Row]:
    for t_s, iops, latency_s in zip(seen.t_s, seen.iops, seen.lat_mean_s, strict=True):
        yield {
            "t_s": t_s,
            "utc": _utc(begin_s + t_s),
            "iops": iops,
            "bw_bytes_per_s": iops * load.block_bytes,
            "lat_mean_s": latency_s or None,
        }


def _device(case: Case, load: Load, seen: Sampled, begin_s: float) -> Iterator[Row]:
    """Yield what the host samples; an import has nothing of it."""
    if case.platform == "unknown":
        return
    device = _DEVICES.get(case.platform)
    for t_s, iops, steal in zip(seen.t_s, seen.iops, seen.steal_percent, strict=True):
        row: Row = {
            "device": device,
            "level": "volume",
            "t_s": t_s,
            "utc": _utc(begin_s + t_s),
            "interval_s": SAMPLE_S,
            "after_fio": False,
            "cpu_busy_percent": min(100.0, 6.0 + steal),
            "iowait_percent": 20.0,
            "steal_percent": steal,
            "dirty_bytes": 1e6,
            "writeback_bytes": 0.0,
            "swap_bytes_per_s": 0.0,
        }
        if device:
            row |= {"read_iops": 0.0, "write_iops": 0.0, "io_errors": 0}
            row |= {"read_bw_bytes_per_s": 0.0, "write_bw_bytes_per_s": 0.0}
            row[f"{load.direction}_iops"] = iops
            row[f"{load.direction}_bw_bytes_per_s"] = iops * load.block_bytes
        yield row


def _utc(seconds: float) -> str:
    return (_START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
