"""Columns of tables that are computed on request and never stored: USE and comparisons."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from volbench.errors import InputError
from volbench.model.frames.columns import (
    DEVICE,
    IDENTITY,
    LABEL_PREFIX,
    PERCENTILES,
    Column,
    real,
    same,
    text,
    whole,
)

# Utilization, saturation and errors of the device beside each run: `volbench show --use`
USE: tuple[Column, ...] = (
    *(column for column in IDENTITY if column.name != "group"),
    text("label", "Job, with the settings that distinguish it."),
    Column("direct", "bool", "", "Whether every section bypassed the page cache."),
    text("device", "Kernel name of the volume's device; missing without one."),
    real("runtime_s", "s", "Duration of the tool's I/O; NaN if not reported."),
    *same(DEVICE, "read_iops", "write_iops"),
    real("limit_iops", "1/s", "Declared limit."),
    real("iops_percent", "%", "IOPS of the device over the declared limit."),
    *same(DEVICE, "read_bw_bytes_per_s", "write_bw_bytes_per_s"),
    real("limit_bw_bytes_per_s", "bytes/s", "Declared limit."),
    real("bw_percent", "%", "Bandwidth of the device over the declared limit."),
    *same(
        DEVICE,
        "active_percent",
        "read_lat_s",
        "write_lat_s",
        "read_request_bytes",
        "write_request_bytes",
        "queue_depth",
        "iowait_percent",
        "steal_percent",
        "io_pressure_some_percent",
        "io_pressure_full_percent",
    ),
    real("dirty_growth_bytes", "bytes", "Maximum dirty pages, minus those at the start."),
    real("dirty_peak_bytes", "bytes", "Maximum dirty pages while the tool ran."),
    real("tail_s", "s", "Time until 98 % of the write-back tail was written."),
    real("tail_bytes", "bytes", "Bytes written by the device after the tool's end."),
    real("dirty_remaining_bytes", "bytes", "Dirty bytes left in memory when the sampler ended."),
    real("tool_bytes", "bytes", "Bytes reported by the tool, reads and writes."),
    real("device_bytes", "bytes", "Bytes the device transferred until the tool ended."),
    real("device_share_percent", "%", "device_bytes relative to tool_bytes."),
    whole("io_errors", "", "Failed requests of the device; missing if not counted."),
    whole("error", "", "First errno of fio; 0 for none."),
    text("bottleneck", "Bottleneck of the run, as in the verdicts."),
    real("bottleneck_level", "", "Bottleneck level: 1/s for IOPS, bytes/s for bandwidth."),
    text("explanation", "Evidence for and against the bottleneck."),
)

# One row per cell and metric: `volbench compare --format csv` and `volbench.compare`
COMPARISON: tuple[Column, ...] = (
    text("workload", "Workload, such as `randread 4k, queue depth 16`."),
    text("job", "Name of the job; missing where it has several."),
    text("direction", "`read`, `write`, `trim` or `sync`; several with slashes."),
    text("metric", "Compared column of the summary."),
    Column("more_is_better", "bool", "", "Whether larger values of the metric are better."),
    text("base", "Name of the baseline."),
    text("candidate", "Name of the candidate."),
    real("base_value", "", "Median of the base's repeats, in the metric's unit."),
    whole("base_repeats", "", "Repeats of the base."),
    whole("base_volumes", "", "Volumes of these repeats."),
    text("base_asked", "What fio was asked to keep, such as `rate_iops=3000`."),
    real("candidate_value", "", "Median of the candidate's repeats."),
    whole("candidate_repeats", "", "Repeats of the candidate."),
    whole("candidate_volumes", "", "Volumes of these repeats."),
    text("candidate_asked", "Same, of the candidate."),
    text("unit_compared", "Independent unit: `repeats`, `volumes`, `same volumes` or `blocks`."),
    text("design", "What is paired, such as `10 blocks`; else `unpaired`."),
    real("ratio", "", "Candidate over base: median over all pairs of units."),
    real("ratio_low", "", "Lower end of its interval."),
    real("ratio_high", "", "Upper end of its interval."),
    real("confidence", "", "Confidence of the interval, from 0 to 1."),
    real("p_value", "", "p-value of no difference, two-sided, before Holm-Bonferroni."),
    real("detectable_percent", "%", "Minimum detectable difference."),
    text("verdict", "Outcome, such as `faster`, `same` or `as asked`."),
    text("words", "The verdict with its numbers."),
    text("regression", "Outcome against the tolerance; missing without one."),
    text("warnings", "Findings on the compared runs, with their counts."),
)

# Every computed table by name, in the order of its columns
COMPUTED: dict[str, tuple[Column, ...]] = {"use": USE, "comparison": COMPARISON}


# Maximum relative error of a percentile: half of fio's widest bin (64 per power of two)
BIN_ERROR = 1 / 128

_MORE_IS_BETTER = (
    *("iops", "iops_min", "iops_max", "bw_bytes_per_s"),
    *("steady_iops", "steady_bw_bytes_per_s"),
)
_LESS_IS_BETTER = ("iops_stddev", "cpu_usr", "cpu_sys")
_LATENCIES = ("lat_", "clat_", "slat_")
# Alias to column of the summary
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "bandwidth": "bw_bytes_per_s",
        "bs": "block_bytes",
        "bw": "bw_bytes_per_s",
        "depth": "iodepth",
        "engine": "ioengine",
        "fio": "fio_version",
        "name": "job",
        "jobs": "numjobs",
        "lat": "lat_mean_s",
        "size": "size_bytes",
        "steady_bw": "steady_bw_bytes_per_s",
        **{name: f"lat_{name}_s" for name in ("p50", "p90", "p95", "p99", "p999", "p9999")},
        **{name: f"lat_{name}_s" for name in ("mean", "min", "max", "stddev")},
        "lat_mean": "lat_mean_s",
    }
)
_USUAL = ("host", "bs", "iodepth")  # Columns that a hint names where none is near


@dataclass(frozen=True)
class Measure:
    """A metric of a run."""

    name: str  # as the user typed it
    column: str  # column of the summary
    more_is_better: bool  # False for latencies
    resolution: float = 0.0  # relative difference below which two values cannot be distinguished

    @property
    def is_latency(self) -> bool:
        """Whether the unit is seconds."""
        return self.column.startswith(_LATENCIES)


def find_measure(name: str, columns: Collection[str]) -> Measure:
    """Return the metric for a name such as ``p99`` or ``iops``."""
    column = find_column(name, columns)
    if column in _MORE_IS_BETTER:
        return Measure(name, column, more_is_better=True)
    if column.startswith(_LATENCIES):
        statistic = column.removesuffix("_s").rpartition("_")[2]
        # Base and candidate may both have the maximum error, in opposite directions.
        resolution = (1 + BIN_ERROR) ** 2 - 1 if statistic in PERCENTILES else 0.0
        return Measure(name, column, more_is_better=False, resolution=resolution)
    if column in _LESS_IS_BETTER:
        return Measure(name, column, more_is_better=False)
    raise InputError(
        f"{name} cannot be compared: neither higher nor lower is defined as better",
        hint="metrics are iops, steady_iops, bw, lat_mean, p50, p90, p99, p999, max and similar",
    )


def meaning_of(name: str, known: Collection[str]) -> str:
    """Return the known name for a name, label or alias; empty if there is none."""
    wanted = name.strip()
    plain = wanted.lower().replace(".", "")  # people write p99.9 and IOPS
    candidates = (wanted, f"{LABEL_PREFIX}{wanted}", plain, ALIASES.get(plain, ""))
    return next((each for each in candidates if each in known), "")


def find_column(name: str, columns: Collection[str]) -> str:
    """Return the column for a name, a label of hosts, or an alias.

    Args:
        name: such as ``iops``, ``p99``, ``bs`` or ``volume_type`` (for ``label_volume_type``).
    """
    if meant := meaning_of(name, columns):
        return meant
    wanted = name.strip()
    known = [column.removeprefix(LABEL_PREFIX) for column in columns]
    known += [alias for alias, column in ALIASES.items() if column in columns]
    near = ", ".join(difflib.get_close_matches(wanted, known, n=3))
    usual = [alias for alias in _USUAL if meaning_of(alias, columns)]
    question = f"did you mean {near}? " if near else f"columns are {', '.join(usual)} and others; "
    raise InputError(
        f"there is no column {wanted!r}", hint=f"{question}all of them: volbench help frames"
    )


def listed_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return names that are given as one text with commas, or one by one."""
    parts = names.split(",") if isinstance(names, str) else names
    return tuple(part.strip() for part in parts if part.strip())
