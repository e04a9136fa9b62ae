"""Column lookup by name, label or alias, and the metrics that can be compared."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from volbench.errors import InputError
from volbench.model.frames.columns import LABEL_PREFIX, PERCENTILES

# Maximum relative error of a percentile: half of fio's widest bin (64 per power of two)
BIN_ERROR = 1 / 128

_MORE_IS_BETTER = (
    *("iops", "iops_min", "iops_max", "bw_bytes_per_s"),
    *("steady_iops", "steady_bw_bytes_per_s"),
)
_LESS_IS_BETTER = ("iops_stddev", "cpu_usr", "cpu_sys")
_LATENCIES = ("lat_", "clat_", "slat_")


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
        return Measure(name, column, more_is_better=False, resolution=_resolution(column))
    if column in _LESS_IS_BETTER:
        return Measure(name, column, more_is_better=False)
    raise InputError(
        f"{name} cannot be compared: neither higher nor lower is defined as better",
        hint="metrics are iops, steady_iops, bw, lat_mean, p50, p90, p99, p999, max and similar",
    )


def _resolution(column: str) -> float:
    statistic = column.removesuffix("_s").rpartition("_")[2]
    # Base and candidate may both have the maximum error, in opposite directions.
    return (1 + BIN_ERROR) ** 2 - 1 if statistic in PERCENTILES else 0.0


# Alias to column of the summary
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "bandwidth": "bw_bytes_per_s",
        "bs": "block_bytes",
        "bw": "bw_bytes_per_s",
        "depth": "iodepth",
        "engine": "ioengine",
        "fio": "fio_version",
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
        f"there is no column {wanted!r}",
        hint=f"{question}docs/reference/frames.md lists the columns",
    )


def listed_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return names that are given as one text with commas, or one by one."""
    parts = names.split(",") if isinstance(names, str) else names
    return tuple(part.strip() for part in parts if part.strip())
