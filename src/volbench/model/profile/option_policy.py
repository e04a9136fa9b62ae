"""Rules for fio's options: which a profile may not have, or only with consent, and why.

Every option of fio 3.33 and 3.42 that holds a text was reviewed for what its value may name: a
path, a program, a control group, a device, a host. It stands in one of the tables below. A text
option that stands in none of them, such as one of a newer fio, needs ``--allow-exec``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from volbench.errors import InputError, did_you_mean
from volbench.model.profile.canonical import canonical
from volbench.model.profile.fio_option import Option, OptionKind, OptionTable

_RUNS = "it runs a program"
_FILES = "it writes or reads files outside the run's folder"
_MACHINE = "it changes a setting of the machine"
_REMOTE = "it names a host, or storage that is not the volume"

RISKY: Mapping[str, str] = {
    **dict.fromkeys(("exec_prerun", "exec_postrun", "program", "arguments"), _RUNS),
    **dict.fromkeys(("write_iolog", "read_iolog", "merge_blktrace_file", "donorname"), _FILES),
    **dict.fromkeys(("verify_state_save", "verify_state_load", "std_redirect"), _FILES),
    **dict.fromkeys(("conf", "dp_scheme", "spdk_conf", "http_cert", "http_key"), _FILES),
    **dict.fromkeys(("cgroup", "cgroup_weight", "cgroup_nodelete"), _MACHINE),
    "include": "it reads another job file",
    "opendir": "it takes every file below a folder as a target",
    "uid": "it changes the user that does the I/O",
    "gid": "it changes the group that does the I/O",
    "ioscheduler": "it changes a setting of the device",
    "replay_redirect": "it sends I/O to another device",
    "allow_mounted_write": "it takes away fio's own check for mounted devices",
    **dict.fromkeys(("hostname", "interface", "bindname", "serverip", "namenode"), _REMOTE),
    **dict.fromkeys(("brick", "volume", "clustername", "clientname", "pool", "rbdname"), _REMOTE),
    **dict.fromkeys(("cont", "svcl", "hdfsdirectory", "http_host", "nfs_url"), _REMOTE),
    **dict.fromkeys(("libblkio_path", "xnvme_dev_subnqn"), _REMOTE),
}
"""Options that run a program or reach out of the run's folder and its volume, with the reason; they
need ``--allow-exec``."""

PLAIN_TEXTS: Mapping[str, str] = {
    "buffer_pattern": "bytes to write; a name between quotes is refused",
    "verify_pattern": "as buffer_pattern",
    "cmdprio_bssplit": "block sizes with priorities",
    "cpus_allowed": "numbers of CPUs",
    "filename": "names of files inside the volume; paths are refused",
    "filename_format": "as filename, with variables that are known before the run",
    "ignore_error": "names of errors",
    "ioengine": "an engine; those that leave the volume are refused",
    "lockmem": "a size",
    "mem": "a kind of memory; a file for it is refused",
    "numa_cpu_nodes": "numbers of NUMA nodes",
    "numa_mem_policy": "a policy with numbers of NUMA nodes",
    "pi_chk": "kinds of checks",
    "plids": "numbers of placement ids",
    "replay_skip": "kinds of I/O",
    "steadystate": "a criterion with its limit",
    "wait_for": "the name of a section",
}
"""Options whose text names nothing outside the run's folder and its volume, with what it holds."""

FOREIGN_ENGINES: Mapping[str, str] = {
    "exec": _RUNS,
    **dict.fromkeys(
        ("rbd", "rados", "gfapi", "gfapi_async", "libhdfs", "http", "dfs", "nfs", "libiscsi"),
        "it works on remote storage that is not the volume",
    ),
    **dict.fromkeys(
        ("net", "netsplice", "rdma", "librpma_apm", "librpma_gpspm"),
        "it sends data to another host",
    ),
    "libblkio": "it works on a device that an option names",
    "e4defrag": "it works on a second file",
}
"""ioengines that run programs or leave the volume, with the reason; need ``--allow-exec``."""

PLAIN_ENGINES = frozenset(
    {
        *("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "posixaio", "libaio"),
        *("io_uring", "io_uring_cmd", "sg", "nbd", "mtd", "libzbc", "xnvme", "libcufile"),
        *("null", "cpuio", "pmemblk", "dev-dax", "libpmem", "falloc", "ftruncate"),
        *("filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete"),
    }
)
"""ioengines that were reviewed and stay within the volume; any other needs ``--allow-exec``."""

_LAYOUT = "volbench reads its logs in one layout"

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

MOST_JOBS = 4096
"""Jobs of one fio process (REAL_MAX_JOBS in fio.h of 3.33; one more is "maximum number of jobs
reached")."""

MOST_FILES = 100_000
"""Files of one run. volbench names and checks each before the run; fio 3.33 itself ends in an
assertion between 200,000 and 400,000, when its pool of shared memory is full."""

_OF_JOBS = "fio runs no more in one process"
_IN_FLIGHT = "Linux allows 65,536 requests of libaio by default, and io_uring 32,768"
_FILES_LIMIT = "fio's memory for files is full soon after"

BOUNDS: Mapping[str, tuple[int, str]] = {
    "numjobs": (MOST_JOBS, _OF_JOBS),
    "verify_async": (MOST_JOBS, "each is a thread, and a machine has fewer CPUs"),
    **dict.fromkeys(("nrfiles", "openfiles"), (MOST_FILES, _FILES_LIMIT)),
    **dict.fromkeys(("iodepth", "iodepth_low", "iodepth_batch"), (65_536, _IN_FLIGHT)),
    **dict.fromkeys(
        ("iodepth_batch_complete_min", "iodepth_batch_complete_max"), (65_536, _IN_FLIGHT)
    ),
}
"""Maximum of options of which fio, or the host, can do only so much, with the reason."""

_CONSENT = "if you trust this profile, allow it with --allow-exec"
_FORMAT_VARIABLES = re.compile(r"\$(jobname|jobnum|filenum)")
_PATH = re.compile(r"(?<!\d)/|['\"]")
"""The start of a path, or of a quoted name; shares such as 4k/60 have digits before the slash."""


def check_option(
    table: OptionTable, name: str, raw: object, *, allow_exec: bool = False
) -> tuple[str, str]:
    """Return canonical name and value of a fio option as written in a profile.

    Args:
        table: the options of the fio that will run it.
        name: as written; may be an alias.
        raw: text, number or boolean.
        allow_exec: accept options that run programs or leave the run's folder.

    Raises:
        InputError: unknown, not for profiles, dangerous, or a value that can't be.
    """
    option = table.find(name)
    if option is None:
        raise InputError(
            f"fio {table.fio_version} has no option {name!r}",
            hint=did_you_mean(name, table.names(), "see `fio --cmdhelp=all`"),
        )
    if option.name in OWN:
        raise InputError(f"{name} is set by volbench", hint=OWN[option.name])
    if not allow_exec and (reason := _reach(option)):
        raise InputError(f"{name} is refused: {reason}", hint=_CONSENT)
    value = canonical(option, raw)
    if not allow_exec and (reason := _value_reach(table, option, value)):
        raise InputError(f"{option.name} {value!r} is refused: {reason}", hint=_CONSENT)
    _check_bound(option, value)
    if option.name in _CHECKS:
        _CHECKS[option.name](option.name, value, table)
    return option.name, value


def _reach(option: Option) -> str:
    """Return why an option needs consent whatever its value is; empty when it does not."""
    is_unknown = option.kind is OptionKind.TEXT and option.name not in PLAIN_TEXTS
    unknown = "volbench does not know whether it names a file, a program or a device"
    return RISKY.get(option.name, unknown if is_unknown else "")


def _value_reach(table: OptionTable, option: Option, value: str) -> str:
    """Return why a value needs consent; empty when it does not."""
    if option.name == "ioengine":
        if value.startswith("external:"):
            return "it runs foreign code"
        is_unknown = value in table.engines and value not in PLAIN_ENGINES
        unknown = "volbench does not know whether it stays within the volume"
        return FOREIGN_ENGINES.get(value, unknown if is_unknown else "")
    if option.name in {"buffer_pattern", "verify_pattern"} and "'" in value:
        return "fio reads the file whose name stands between quotes"
    if option.name == "mem" and "/" in value:
        return "its file lies outside the run's folder"
    if option.kind is OptionKind.CHOICE and _PATH.search(value.partition(":")[2]):
        return "its parameter looks like the name of a file"
    return ""


def _check_bound(option: Option, value: str) -> None:
    most, reason = BOUNDS.get(option.name, (0, ""))
    if most and int(value) > most:
        raise InputError(f"{option.name} {value} is above {most}: {reason}", hint="decrease it")


def _check_file_names(_name: str, value: str, _table: OptionTable) -> None:
    for part in value.split(":"):
        if part in {"", ".", "..", "-"} or "/" in part or "\\" in part:
            raise InputError(
                f"filename {value!r} is not a plain file name inside the volume",
                hint="name the place with --on ROLE=PATH and the file by its name alone",
            )


def _check_format(_name: str, value: str, _table: OptionTable) -> None:
    """Refuse what leaves the volume, and variables whose value is not known before the run."""
    if "/" in value or ".." in value:
        raise InputError(f"filename_format {value!r} leaves the volume", hint="leave out /")
    if "$" in _FORMAT_VARIABLES.sub("", value):
        raise InputError(
            f"filename_format {value!r} names files that cannot be known before the run",
            hint="use $jobname, $jobnum and $filenum only",
        )


def _check_engine(_name: str, value: str, table: OptionTable) -> None:
    if not value.startswith("external:") and value not in table.engines:
        raise InputError(
            f"this fio has no ioengine {value!r}",
            hint=did_you_mean(value, table.engines, f"it has {', '.join(table.engines)}"),
        )


def _check_iolog(_name: str, value: str, _table: OptionTable) -> None:
    if not value.startswith("/"):
        raise InputError(
            f"read_iolog {value!r} would be looked for in the run's folder",
            hint="write the whole path; it has to be there on every host",
        )


def _check_blocks(name: str, value: str, _table: OptionTable) -> None:
    if "0" in value.split(","):
        raise InputError(f"{name} must be at least 1 byte", hint="write it like 4k")


def _check_jobs(_name: str, value: str, _table: OptionTable) -> None:
    if value == "0":
        raise InputError("numjobs must be at least 1", hint="fio fails with 0")


_CHECKS: Mapping[str, Callable[[str, str, OptionTable], None]] = {
    "filename": _check_file_names,
    "filename_format": _check_format,
    "ioengine": _check_engine,
    "read_iolog": _check_iolog,
    "bs": _check_blocks,
    "ba": _check_blocks,
    "numjobs": _check_jobs,
}
"""Checks of values that pass fio's parser and fail, or do harm, when it runs."""
