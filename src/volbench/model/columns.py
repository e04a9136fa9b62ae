"""The contract with analysts: every column of every frame, with type, unit and meaning.

The reference page docs/reference/frames.md is written from these tables and a test holds the two
together. NaN (or a missing value) always means "not told", never zero.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: with its unit in it.
        dtype: ``string``, ``int`` (nullable), ``float`` or ``bool`` (nullable).
        unit: such as ``s``, ``bytes/s``, ``1/s``; empty for text and flags.
        meaning: one sentence.
    """

    name: str
    dtype: str
    unit: str
    meaning: str


def _text(name: str, meaning: str) -> Column:
    return Column(name, "string", "", meaning)


def _whole(name: str, unit: str, meaning: str) -> Column:
    return Column(name, "int", unit, meaning)


def _real(name: str, unit: str, meaning: str) -> Column:
    return Column(name, "float", unit, meaning)


PERCENTILES: dict[str, float] = {
    "p50": 50.0,
    "p90": 90.0,
    "p95": 95.0,
    "p99": 99.0,
    "p999": 99.9,
    "p9999": 99.99,
}
"""Percentile columns of the summary, by the name that stands in the column."""

_IDENTITY = (
    _text("campaign", "Name of the campaign."),
    _text("run", "Id of the Run, also the name of its folder."),
    _text("host", "Host it ran on; `local` is the controller itself."),
    _text("profile", "Name of the profile."),
    _text("job", "Name of the job in the profile."),
    _text("group", "Name of fio's job section; equal to `job` for single-section jobs."),
    _text("role", "Role of the volume, such as `data`."),
    _text("volume", "Target of the volume: device, file, directory or NBD uri."),
    _whole("repeat", "", "Repeat, counted from 1."),
    _text("phase", "`precondition`, `warmup` or `measured`."),
)

_LATENCIES = (
    ("lat", "Total latency, submission to completion"),
    ("clat", "Completion latency"),
    ("slat", "Submission latency"),
)


def _latency_columns() -> tuple[Column, ...]:
    columns = []
    for prefix, title in _LATENCIES:
        for statistic, word in (
            ("mean", "arithmetic mean"),
            ("stddev", "standard deviation"),
            ("min", "least"),
            ("max", "greatest"),
        ):
            columns.append(_real(f"{prefix}_{statistic}_s", "s", f"{title}: {word}, exact."))
        columns.extend(
            _real(
                f"{prefix}_{name}_s",
                "s",
                f"{title}: percentile {value:g}, to the resolution of fio's bins (0.8 %).",
            )
            for name, value in PERCENTILES.items()
        )
    return tuple(columns)


SUMMARY: tuple[Column, ...] = (
    *_IDENTITY,
    _text("tool", "`fio` or `dd`."),
    _text("direction", "`read`, `write`, `trim` or `sync` (latency of fsync and its kin)."),
    _text("rw", "Access pattern as fio names it, such as `randwrite`."),
    Column("direct", "bool", "", "Whether the page cache was bypassed (O_DIRECT)."),
    _whole("block_bytes", "bytes", "Block size of this direction; missing when it varies."),
    _whole("iodepth", "", "I/Os kept in flight, as asked for, by each clone."),
    _whole("numjobs", "", "Clones of the section."),
    _text("ioengine", "I/O engine of fio."),
    _whole("size_bytes", "bytes", "Size asked for, per clone; missing for a whole device."),
    _real("runtime_s", "s", "Runtime of this direction, as fio measured it."),
    _whole("io_bytes", "bytes", "Bytes transferred."),
    _whole("total_ios", "", "I/Os completed."),
    _real("iops", "1/s", "total_ios / runtime_s, as fio prints it."),
    _real("iops_min", "1/s", "Least window of fio's; windows without completions are not in it."),
    _real("iops_max", "1/s", "Greatest window of fio's."),
    _real("iops_stddev", "1/s", "Standard deviation over fio's windows."),
    _real("bw_bytes_per_s", "bytes/s", "io_bytes / runtime_s."),
    *_latency_columns(),
    _real("cpu_usr", "%", "CPU time in user space, per clone."),
    _real("cpu_sys", "%", "CPU time in the kernel, per clone."),
    _whole("error", "", "errno of the first error; 0 for none."),
    _text("status", "State of the Run: `finished`, `failed` or `interrupted`."),
    _text("started_utc", "When the process was started, ISO 8601 with Z."),
    _text("fio_version", "Version of the tool, such as `fio-3.33`."),
    _real("limit_iops", "1/s", "Declared limit of the volume."),
    _real("limit_bw_bytes_per_s", "bytes/s", "Declared limit of the volume."),
    _text("note", "The job's remark."),
)

SERIES: tuple[Column, ...] = (
    *_IDENTITY,
    _text("direction", "`read`, `write` or `trim`."),
    _real("t_s", "s", "End of the interval, since the Run's I/O began."),
    _text("utc", "The same instant, ISO 8601 with Z; missing when fio told no epoch."),
    _real("iops", "1/s", "Mean over the interval; 0 when nothing completed."),
    _real("bw_bytes_per_s", "bytes/s", "Mean over the interval; 0 when nothing completed."),
    _real("lat_mean_s", "s", "Mean total latency of the interval's I/Os; NaN for none."),
    _real("lat_p50_s", "s", "Median from histogram logs; NaN without them."),
    _real("lat_p99_s", "s", "Percentile 99 from histogram logs; NaN without them."),
    _real("lat_p999_s", "s", "Percentile 99.9 from histogram logs; NaN without them."),
    _real("lat_max_s", "s", "Greatest; NaN where the logs hold means only."),
)

PERCENTILE_ROWS: tuple[Column, ...] = (
    *_IDENTITY,
    _text("direction", "`read`, `write`, `trim` or `sync`."),
    _text("latency", "`lat`, `clat` or `slat`."),
    _real("percentile", "%", "From 0 to 100."),
    _real("value_s", "s", "Latency at that percentile, as fio prints it."),
)

HISTOGRAM: tuple[Column, ...] = (
    *_IDENTITY,
    _text("direction", "`read`, `write`, `trim` or `sync`."),
    _text("latency", "`lat`, `clat` or `slat`."),
    _real("bin_s", "s", "Midpoint of fio's bin."),
    _real("bin_low_s", "s", "Lower edge, inclusive."),
    _real("bin_high_s", "s", "Upper edge, exclusive."),
    _whole("count", "", "I/Os in the bin; bins of clones are added."),
)

FRAMES: dict[str, tuple[Column, ...]] = {
    "summary": SUMMARY,
    "series": SERIES,
    "percentiles": PERCENTILE_ROWS,
    "histogram": HISTOGRAM,
}
"""Every frame by name, in the order of its columns."""
