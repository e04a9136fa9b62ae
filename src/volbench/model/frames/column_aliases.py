"""Short names of columns, and the columns that they stand for."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from types import MappingProxyType

from volbench.errors import InputError
from volbench.model.frames.columns import LABEL_PREFIX

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
    }
)
"""What engineers say, and the column of the summary that it is."""


def meaning_of(name: str, known: Collection[str]) -> str:
    """Return which of the known names is meant: itself, a label of hosts, or an alias; else ""."""
    wanted = name.strip()
    candidates = (wanted, f"{LABEL_PREFIX}{wanted}", ALIASES.get(wanted, ""))
    return next((each for each in candidates if each in known), "")


def find_column(name: str, columns: Collection[str]) -> str:
    """Return the column that a name means: itself, a label of hosts, or an alias.

    Args:
        name: such as ``iops``, ``p99``, ``bs`` or ``volume_type`` (for ``label_volume_type``).
        columns: the columns there are.

    Raises:
        InputError: no column is meant; the hint tells the nearest ones.
    """
    if meant := meaning_of(name, columns):
        return meant
    wanted = name.strip()
    known = [column.removeprefix(LABEL_PREFIX) for column in columns]
    known += [alias for alias, column in ALIASES.items() if column in columns]
    near = difflib.get_close_matches(wanted, known, n=3) or sorted(known)
    raise InputError(
        f"there is no column {wanted!r}",
        hint=f"did you mean {', '.join(near)}? docs/reference/frames.md lists them",
        context={"column": wanted},
    )
