"""Table of fio's options: names, kinds, choices, and which of them a profile may not use.

A canonical value is what is written behind ``option=`` in a job file: plain byte integers, whole
seconds (or milliseconds), ``0`` and ``1``. fio's own reading of suffixes is never relied on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from volbench.errors import nearest


class OptionKind(StrEnum):
    """How the value of an option is read."""

    SIZE = "size"  # bytes, or a percentage; up to three, separated by commas
    SIZE_RANGE = "size-range"  # bytes low-high, up to three
    BLOCK_SPLIT = "block-split"  # bytes/percent pairs separated by colons
    DURATION = "duration"  # a bare number is seconds
    MICROSECONDS = "microseconds"  # a bare number is microseconds, as in fio
    INTEGER = "integer"  # up to three, separated by commas
    BOOLEAN = "boolean"
    FLAG = "flag"  # may stand bare in a job file
    FLOATS = "floats"  # numbers separated by colons
    CHOICE = "choice"  # one of `choices`, maybe with a parameter behind a colon
    TEXT = "text"


@dataclass(frozen=True)
class Option:
    """One fio option.

    Attributes:
        name: fio's canonical name.
        kind: how its value is read.
        help: fio's own one-line description.
        aliases: other names fio accepts.
        choices: the values of a CHOICE; empty otherwise.
        minimum: least integer value; None when unlimited.
        maximum: largest integer value; None when unlimited.
        engines: ioengines it belongs to; empty for a general option.
    """

    name: str
    kind: OptionKind
    help: str = ""
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    engines: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptionTable:
    """All options of one fio version.

    Attributes:
        fio_version: such as ``3.33``.
        options: canonical name to Option.
        engines: ioengines known to this fio.
        source: ``shipped`` or ``installed``.
    """

    fio_version: str
    options: Mapping[str, Option]
    engines: tuple[str, ...]
    source: str

    def find(self, name: str) -> Option | None:
        """Return an option by its name or an alias, or None."""
        found = self.options.get(name)
        if found is not None:
            return found
        return next((option for option in self.options.values() if name in option.aliases), None)

    def suggest(self, name: str) -> str | None:
        """Return the known name that is nearest to a misspelt one, or None."""
        names = [*self.options, *(a for option in self.options.values() for a in option.aliases)]
        return nearest(name, names)


_RUNS = "it runs a program"
_WRITES = "it writes or reads files outside the run's folder"

RISKY: Mapping[str, str] = {
    "exec_prerun": _RUNS,
    "exec_postrun": _RUNS,
    "program": _RUNS,
    "arguments": _RUNS,
    "write_iolog": _WRITES,
    "read_iolog": _WRITES,
    "merge_blktrace_file": _WRITES,
    "opendir": "it takes every file below a folder as a target",
    "verify_state_save": _WRITES,
    "verify_state_load": _WRITES,
    "uid": "it changes the user that does the I/O",
    "gid": "it changes the group that does the I/O",
    "cgroup": "it changes control groups of the machine",
    "cgroup_weight": "it changes control groups of the machine",
    "ioscheduler": "it changes a setting of the device",
    "replay_redirect": "it sends I/O to another device",
    "allow_mounted_write": "it takes away fio's own check for mounted devices",
    "donorname": _WRITES,
    "include": "it reads another job file",
}
"""Options that run a program or leave the run's folder, with the reason; need ``--allow-exec``."""

_LAYOUT = "volbench reads its logs in one layout"

FOREIGN_ENGINES: Mapping[str, str] = {
    "exec": _RUNS,
    **dict.fromkeys(
        ("rbd", "rados", "gfapi", "gfapi_async", "libhdfs", "http", "dfs", "nfs"),
        "it works on remote storage that is not the volume",
    ),
    **dict.fromkeys(
        ("net", "netsplice", "rdma", "librpma_apm", "librpma_gpspm"),
        "it sends data to another host",
    ),
    "e4defrag": "it works on a second file",
}
"""ioengines that run programs or leave the volume, with the reason; need ``--allow-exec``."""

OWN: Mapping[str, str] = {
    "name": "name the job in `jobs`",
    "description": "write a `note`",
    "directory": "name the directory as the volume: --on ROLE=DIR",
    "stonewall": "jobs run one after another anyway; use `sections` for what runs together",
    "write_bw_log": "set `sample`",
    "write_iops_log": "set `sample`",
    "write_lat_log": "set `sample`",
    "write_hist_log": "set `latency_log`",
    "per_job_logs": "set `sample`",
    "log_avg_msec": "set `sample`",
    "log_hist_msec": "set `sample` and `latency_log`",
    "log_unix_epoch": "set `sample`",
    "log_alternate_epoch": "set `sample`",
    "log_offset": _LAYOUT,
    "log_prio": _LAYOUT,
    "log_issue_time": _LAYOUT,
    "log_max_value": _LAYOUT,
    "log_window_value": _LAYOUT,
    "log_entries": "set `sample`",
    "log_hist_coarseness": "set `sample`",
    "log_alternate_epoch_clock_id": "set `sample`",
    "log_compression_cpus": "logs are compressed when the run ends",
    "bwavgtime": "set `sample`; the windows of the logs follow it",
    "iopsavgtime": "set `sample`; the windows of the logs follow it",
    "stats": "a job that must not count can be a phase",
    "profile": "write the jobs themselves",
    "log_compression": "logs are compressed when the run ends",
    "log_store_compressed": "logs are compressed when the run ends",
    "allow_file_create": "volbench sets it from the kind of the volume",
    "uri": "name the export as the volume: --on ROLE=nbd://...",
}
"""Options that volbench sets itself, with what to write instead."""
