"""Views of runs made by hand: a clean run, and changes of it that a rule must see."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest import mock

import pandas as pd

from tests.planned import planned_campaign
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import every_rule, find
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import DevicePin, Run, Section, Volume, VolumeKind
from volbench.model.profile.profile_model import Phase, Tool
from volbench.model.profile.profile_settings import Limits, Until
from volbench.model.results.finding import Finding
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.store.parquet_tables import frame_of, table_of

Row = dict[str, object]

GIB = 2**30
SECONDS = 60
IOPS = 1000.0
BLOCK = 4096
START = datetime(2026, 1, 1, tzinfo=UTC)

CLEAN: Mapping[str, str] = {
    "ioengine": "libaio",
    "direct": "1",
    "rw": "randwrite",
    "bs": str(BLOCK),
    "iodepth": "16",
    "time_based": "1",
    "runtime": f"{SECONDS}s",
    "refill_buffers": "1",
}
"""Options of a run that nobody can doubt."""


def a_run(
    changes: Mapping[str, str | None] | None = None,
    *,
    name: str = "a",
    kind: VolumeKind = VolumeKind.DEVICE,
    role: str = "data",
    tool: Tool = Tool.FIO,
    sections: Sequence[Section] = (),
    **fields: object,
) -> Run:
    """Return a run with the clean options and some changes; None takes an option away."""
    options = {name: value for name, value in {**CLEAN, **(changes or {})}.items() if value}
    targets = {VolumeKind.DEVICE: "/dev/sdb", VolumeKind.NBD: "nbd://host/export"}
    pin = None
    if kind is VolumeKind.DEVICE:
        pin = DevicePin(path="/dev/sdb", major=8, minor=16, size_bytes=64 * GIB)
    run = Run(
        id=f"001-{name}-r1",
        profile="p",
        job=name,
        volume=Volume(role=role, kind=kind, target=targets.get(kind, "/data"), pin=pin),
        tool=tool,
        options=options,
        sections=tuple(sections) or (Section(name=name),),
    )
    return run.model_copy(update=fields)


def summary_row(run: Run, **columns: object) -> Row:
    """Return a row of the summary: 1,000 writes a second for a minute, 16 in flight."""
    row: Row = {
        **identity(run),
        "tool": run.tool.value,
        "direction": "write",
        "rw": run.options.get("rw"),
        "status": "finished",
        "runtime_s": float(SECONDS),
        "total_ios": int(IOPS * SECONDS),
        "io_bytes": int(IOPS * SECONDS * BLOCK),
        "iops": IOPS,
        "bw_bytes_per_s": IOPS * BLOCK,
        "lat_mean_s": 0.016,
        "lat_max_s": 0.2,
        "slat_mean_s": 5e-6,
        "cpu_usr": 2.0,
        "cpu_sys": 5.0,
        "error": 0,
    }
    return row | columns


def identity(run: Run) -> Row:
    """Return the columns that every frame shares."""
    return {
        "campaign": "c",
        "run": run.id,
        "host": run.host,
        "profile": run.profile,
        "job": run.job,
        "group": run.sections[0].name,
        "role": run.volume.role,
        "volume": run.volume.target,
        "repeat": run.repeat,
        "phase": run.phase.value,
    }


def utc(seconds: float) -> str:
    """Return an instant that many seconds after the start."""
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def series_rows(run: Run, iops: Sequence[float], *, direction: str = "write") -> list[Row]:
    """Return a row for each second."""
    return [
        {
            **identity(run),
            "direction": direction,
            "t_s": second + 1.0,
            "utc": utc(second + 1.0),
            "iops": rate,
            "bw_bytes_per_s": rate * BLOCK,
            "lat_mean_s": 16 / rate if rate else None,
        }
        for second, rate in enumerate(iops)
    ]


def device_sample(run: Run, t_s: float, **columns: object) -> Row:
    """Return one second of the device as fio's clean run leaves it."""
    busy = 0 < t_s <= SECONDS
    row: Row = {
        **identity(run),
        "device": "sdb",
        "level": "volume",
        "t_s": t_s,
        "utc": utc(t_s),
        "interval_s": 1.0,
        "after_fio": t_s > SECONDS,
        "read_iops": 0.0,
        "write_iops": IOPS if busy else 0.0,
        "read_bw_bytes_per_s": 0.0,
        "write_bw_bytes_per_s": IOPS * BLOCK if busy else 0.0,
        "io_errors": 0,
        "cpu_busy_percent": 8.0,
        "iowait_percent": 40.0,
        "steal_percent": 0.1,
        "dirty_bytes": 1e6,
        "writeback_bytes": 0.0,
        "swap_bytes_per_s": 0.0,
    }
    return row | columns


def device_samples(run: Run, **columns: object) -> list[Row]:
    """Return a sample a second, from 2 s before the run to 2 s after it."""
    return [device_sample(run, float(t_s), **columns) for t_s in range(-2, SECONDS + 3)]


def percentile_rows(run: Run, *, direction: str = "write", tail: float = 99.9) -> list[Row]:
    """Return the percentiles that fio was asked for."""
    return [
        {
            **identity(run),
            "direction": direction,
            "latency": "lat",
            "percentile": percentile,
            "value_s": 0.016,
        }
        for percentile in (50.0, 99.0, tail)
    ]


def frame(name: str, rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows as the frame of that name."""
    return frame_of(table_of(name, rows))


def a_view(run: Run | None = None, **parts: object) -> RunView:
    """Return a view of a run; parts that are not given are those of a clean one.

    Args:
        run: the clean one when None.
        parts: rows of a frame by its name, or a field of the view.
    """
    run = run or a_run()
    rows: dict[str, Sequence[Row]] = {
        "summary": [summary_row(run)],
        "series": series_rows(run, [IOPS] * SECONDS),
        "device": device_samples(run),
        "percentiles": percentile_rows(run),
    }
    kept: dict[str, object] = {}
    for name, part in parts.items():
        if name in rows:
            assert isinstance(part, list)
            rows[name] = part
        else:
            kept[name] = part
    made = RunView(
        campaign=planned_campaign(run),
        run=run,
        summary=frame("summary", rows["summary"]),
        series=frame("series", rows["series"]),
        device=frame("device", rows["device"]),
        percentiles=frame("percentiles", rows["percentiles"]),
        volume=VolumeFacts(
            role=run.volume.role,
            target=run.volume.target,
            kind=run.volume.kind,
            path=run.volume.target,
            device="sdb",
            filesystem="" if run.volume.kind is VolumeKind.DEVICE else "ext4",
        ),
        host=HostFacts(host="local", memory_bytes=16 * GIB),
    )
    return replace(made, **kept)  # type: ignore[arg-type]  # the fields are named by the caller


def over_time(rates: Sequence[float], run: Run | None = None, **columns: object) -> RunView:
    """Return a run of a row a second with these IOPS.

    Args:
        rates: of each second.
        run: the clean one when None.
        columns: further ones of the summary.
    """
    run = run or a_run()
    seconds, ios = len(rates), int(sum(rates))
    row = summary_row(
        run,
        runtime_s=float(seconds),
        total_ios=ios,
        io_bytes=ios * BLOCK,
        iops=ios / seconds,
        bw_bytes_per_s=ios * BLOCK / seconds,
        lat_mean_s=16 * seconds / ios,
        **columns,
    )
    return a_view(run, summary=[row], series=series_rows(run, rates), device=[])


def found(*views: RunView, rule: str) -> list[Finding]:
    """Return what one rule, asked alone, says about the last of some runs."""
    only = [entry for entry in every_rule() if entry.id == rule]
    with mock.patch("volbench.analyse.findings.every_rule", return_value=only):
        findings = find(Context(views))
    return [entry for entry in findings if entry.rule == rule and entry.run == views[-1].run.id]


__all__ = [
    "BLOCK",
    "GIB",
    "IOPS",
    "SECONDS",
    "Limits",
    "Phase",
    "Row",
    "Section",
    "Tool",
    "Until",
    "VolumeKind",
    "a_run",
    "a_view",
    "device_sample",
    "device_samples",
    "found",
    "over_time",
    "percentile_rows",
    "series_rows",
    "summary_row",
]
