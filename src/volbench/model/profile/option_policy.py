"""Policy for fio's options in profiles: allowed, allowed with consent, or reserved for volbench.

Every text option of fio 3.33 was reviewed for references to paths, programs, control groups,
devices and hosts, and is listed in one of the tables below. Options of newer versions are listed
from their documentation, as far as known. A text option in none of the tables, such as one of a
newer fio, needs ``--allow-exec``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from volbench.errors import InputError, did_you_mean
from volbench.model.profile.fio_options import Option, OptionKind, OptionTable, canonical
from volbench.units import SECTOR_BYTES, format_size, parse_duration

_RUNS = "it runs a program"
_FILES = "its file may be outside the run's folder"
_MACHINE = "it changes a setting of the host"
_REMOTE = "it names a host, or storage that is not the volume"

# Options that run a program or access anything outside the run's folder and its volume, with the
# reason; they need ``--allow-exec``
RISKY: Mapping[str, str] = {
    **dict.fromkeys(("exec_prerun", "exec_postrun", "program", "arguments"), _RUNS),
    **dict.fromkeys(("write_iolog", "merge_blktrace_file", "donorname", "std_redirect"), _FILES),
    "verify_state_load": "it reads a file of an earlier run, and each run's folder begins empty",
    **dict.fromkeys(("conf", "dp_scheme", "spdk_conf", "http_cert", "http_key"), _FILES),
    **dict.fromkeys(("cgroup", "cgroup_weight", "cgroup_nodelete"), _MACHINE),
    "include": "it reads another job file",
    "verify_dump": "it copies blocks of the volume into the results",
    "opendir": "it uses every file below a folder as a target",
    "uid": "it changes the user that does the I/O",
    "gid": "it changes the group that does the I/O",
    "ioscheduler": "it changes a setting of the device",
    "allow_mounted_write": "it disables fio's own check for mounted devices",
    **dict.fromkeys(("hostname", "interface", "bindname", "serverip", "namenode"), _REMOTE),
    **dict.fromkeys(("brick", "volume", "clustername", "clientname", "pool", "rbdname"), _REMOTE),
    **dict.fromkeys(("cont", "svcl", "hdfsdirectory", "http_host", "nfs_url"), _REMOTE),
    **dict.fromkeys(("libblkio_path", "xnvme_dev_subnqn"), _REMOTE),
}

# Text options that refer to nothing outside the run's folder and volume. Values that would are
# refused: paths in filename or patterns, other volumes in replay_redirect. The log of
# read_iolog is sent to the host.
_PLAIN_TEXTS_NAMES = """
buffer_pattern verify_pattern cmdprio_bssplit cpus_allowed filename filename_format
ignore_error ioengine mem numa_cpu_nodes numa_mem_policy pi_chk plids read_iolog
replay_redirect replay_skip steadystate verify_async_cpus wait_for
"""
PLAIN_TEXTS = frozenset(_PLAIN_TEXTS_NAMES.split())

# ioengines that run programs or leave the volume, with the reason; need ``--allow-exec``
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
    "libblkio": "it works on a device named in an option",
    "e4defrag": "it works on a second file",
}

# Ioengines that were tried on files, and read and write them in place
_IN_PLACE_ENGINES_NAMES = """
sync psync vsync pvsync pvsync2 mmap splice posixaio libaio io_uring null cpuio
"""
_IN_PLACE_ENGINES = frozenset(_IN_PLACE_ENGINES_NAMES.split())
MEMORY_ENGINES = frozenset({"null", "cpuio", "net", "netsplice"})
# Reviewed ioengines that stay within the volume; any other needs ``--allow-exec``. libpmem cuts a
# file to the size of the job, as fio 3.33 does with it.
PLAIN_ENGINES = _IN_PLACE_ENGINES | {
    *("falloc", "ftruncate", "filecreate", "filestat", "filedelete"),
    *("dircreate", "dirstat", "dirdelete", "io_uring_cmd", "sg", "nbd", "mtd"),
    *("libzbc", "xnvme", "libcufile", "pmemblk", "dev-dax", "libpmem"),
}

# Options of fio 3.33 with which a job may remove a file, or write outside its range of offset and
# size. A user's file is measured without them, and without options of a newer fio, unless its user
# names them. Noticed by: tests/model/profile/test_option_policy.py
_DISPLACING_NAMES = """
allow_mounted_write create_on_open create_only donorname exec_postrun exec_prerun
file_append fill_device inplace ioscheduler merge_blktrace_file merge_blktrace_iters opendir
merge_blktrace_scalars offset_align profile program read_beyond_wp read_iolog
read_iolog_chunked replay_align replay_no_stall replay_redirect replay_scale replay_skip
replay_time_scale sg_write_mode skip_bad touch_objects trim_backlog trim_backlog_batch
trim_percentage trim_verify_zero unique_filename unlink unlink_each_loop verify_state_load
verify_state_save write_iolog zone_reset_frequency zone_reset_threshold zonecapacity
zonemode zonerange zonesize zoneskip
"""
DISPLACING = frozenset(_DISPLACING_NAMES.split())
# Options that write until a filesystem is full, a file anew at its end, or wherever a log says
_FILLING = ("fill_device", "file_append", "read_iolog")

_LAYOUT = "volbench parses logs of one layout only"
_SAMPLE = "set `sample`"
_WHOLE = "latencies of the whole run are in fio's result"
_PACKED = "logs are compressed when the run ends"

# Options that volbench sets itself, with the alternative
OWN: Mapping[str, str] = {
    "name": "name the job in `jobs`",
    "description": "write a `note`",
    "directory": "name the directory as the volume: --on ROLE=DIR",
    "stonewall": "jobs run one after another anyway; use `sections` to run them in parallel",
    **dict.fromkeys(("write_bw_log", "write_iops_log", "write_lat_log", "log_entries"), _SAMPLE),
    **dict.fromkeys(("per_job_logs", "log_avg_msec", "log_hist_coarseness"), _SAMPLE),
    **dict.fromkeys(("log_unix_epoch", "log_alternate_epoch"), _SAMPLE),
    "log_alternate_epoch_clock_id": _SAMPLE,
    **dict.fromkeys(("write_hist_log", "log_hist_msec"), _WHOLE),
    **dict.fromkeys(("log_offset", "log_prio", "log_issue_time"), _LAYOUT),
    **dict.fromkeys(("log_max_value", "log_window_value"), _LAYOUT),
    **dict.fromkeys(("bwavgtime", "iopsavgtime"), f"{_SAMPLE}; the windows of the logs follow it"),
    **dict.fromkeys(("log_compression", "log_store_compressed", "log_compression_cpus"), _PACKED),
    "stats": "move a job that must not count to a phase",
    "profile": "write the jobs themselves",
    "allow_file_create": "volbench sets it from the kind of the volume",
    "uri": "name the export as the volume: --on ROLE=nbd://...",
}

# Maximum jobs of a fio process (REAL_MAX_JOBS in fio.h of 3.33; beyond it fio fails with "maximum
# number of jobs reached"). Noticed by:
# tests/model/profile/test_option_policy.py::test_fio_refuses_one_job_more
MAX_JOBS = 4096

# Maximum files of a run. volbench names and checks each before the run; fio 3.33 itself fails an
# assertion between 200,000 and 400,000, when its shared-memory pool is full. Noticed by:
# tests/model/profile/test_option_policy.py
MAX_FILES = 100_000

_IN_FLIGHT = 65_536, "Linux allows 65,536 requests of libaio by default, and io_uring 32,768"
_FILES_LIMIT = "fio runs out of memory for files soon after"

# Maximum values of options limited by fio or the host, with the reason
BOUNDS: Mapping[str, tuple[int, str]] = {
    "numjobs": (MAX_JOBS, "the maximum of a fio process"),
    "verify_async": (MAX_JOBS, "each is a thread, and a machine has fewer CPUs"),
    **dict.fromkeys(("nrfiles", "openfiles"), (MAX_FILES, _FILES_LIMIT)),
    **dict.fromkeys(("iodepth", "iodepth_low", "iodepth_batch"), _IN_FLIGHT),
    **dict.fromkeys(("iodepth_batch_complete_min", "iodepth_batch_complete_max"), _IN_FLIGHT),
}

# Log that a planned run replays, from the folder of the run: its copy in the campaign folder, named
# by its SHA-256
PLANNED_LOG = re.compile(r"\.\./\.\./inputs/([0-9a-f]{64})")
# Folder of such logs beside the job file on other hosts; it is hidden, so that it is not fetched
SENT_LOGS = ".inputs"
# Similarity of a misspelt name to the one that was meant; others mean something else. Noticed by:
# tests/model/profile/test_option_policy.py
_MISSPELT = 0.8
_CONSENT = "if you trust it, allow it with --allow-exec"
_FORMAT_VARIABLES = re.compile(r"\$(jobname|jobnum|filenum)")
# Start of a path or a quoted name; percentages such as 4k/60 have digits before the slash
_PATH = re.compile(r"(?<!\d)/|['\"]")

# Options with which even a read section trims, removes files, or replays any kind of I/O
_CHANGING = ("trim_percentage", "unlink", "unlink_each_loop", "read_iolog")
# Engines that create, remove, truncate or move files whatever ``rw`` says
_CHANGING_ENGINES = frozenset({"filecreate", "filedelete", "ftruncate", "falloc", "e4defrag"})
# Engines that wait for each I/O, so that a deeper queue has no effect (fio 3.36 HOWTO, iodepth);
# psync is the default on Linux
_WAITING_ENGINES = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})
# Option to the ones it acts with; without any of them fio ignores it (fio 3.36 HOWTO)
_ACTS_WITH: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("thinktime_blocks", "thinktime_spin", "thinktime_iotime"), ("thinktime",)),
    **dict.fromkeys(("latency_window", "latency_percentile", "latency_run"), ("latency_target",)),
    **dict.fromkeys(("do_verify", "verify_fatal", "verify_async"), ("verify", "verify_pattern")),
    "rate_process": ("rate", "rate_iops"),
}
_OF_RANDOM = ("random_distribution", "norandommap", "percentage_random", "random_generator")
_OF_WRITES = ("fsync", "fdatasync", "end_fsync", "fsync_on_close")
# Options of flushes that fio schedules like reads and writes
_FLUSHES = ("fsync", "sync_file_range")
_OF_MIXES = ("rwmixread", "rwmixwrite")
_OF_LATENCIES = ("gtod_reduce", "disable_lat", "disable_clat")
# Option to what people write for it
_OTHER_WORDS = {
    "bs": ("block_size", "blk", "block"),
    "iodepth": ("depth", "io_depth", "qd", "qdepth", "queue_depth", "queuedepth"),
    "numjobs": ("jobs", "num_jobs", "parallel", "threads", "workers"),
    "runtime": ("duration", "time"),
    "rw": ("mode", "pattern", "type", "workload"),
}


def check_option(
    table: OptionTable, name: str, raw: object, *, allow_exec: bool = False
) -> tuple[str, str]:
    """Return canonical name and value of a fio option of a profile, which may be an alias."""
    option = table.find(name)
    if option is None:
        raise unknown_option(table, name)
    if option.name in OWN:
        raise InputError(f"{name} is set by volbench", hint=OWN[option.name])
    if not allow_exec and (reason := _reach(option)):
        raise InputError(f"{name} is refused: {reason}", hint=_CONSENT)
    value = canonical(option, raw)
    if option.name in _CHECKS:
        _CHECKS[option.name](option.name, value, table)
    if not allow_exec and (reason := _value_reach(table, option, value)):
        raise InputError(f"{option.name} {value!r} is refused: {reason}", hint=_CONSENT)
    most, why = BOUNDS.get(option.name, (0, ""))
    if most and int(value) > most:
        raise InputError(f"{option.name} {value} is above {most}: {why}", hint="decrease it")
    return option.name, value


def unknown_option(table: OptionTable, name: str, more: Iterable[str] = ()) -> InputError:
    """Return the error of an option that a fio does not have; `more` names are known there."""
    names = [*table.names(), *more]
    if meant := next((option for option, words in _OTHER_WORDS.items() if name in words), ""):
        return InputError(f"fio has no option {name!r}", hint=f"did you mean `{meant}`?")
    near = did_you_mean(name, names, "see `fio --cmdhelp=all`", alike=_MISSPELT)
    release = table.releases.get(name)
    hint = f"fio has it from {release} on" if release else near
    version = "" if table.source == "shipped" else f" {table.fio_version}"  # no fio to name
    return InputError(f"fio{version} has no option {name!r}", hint=hint)


def _reach(option: Option) -> str:
    """Return the reason why an option needs consent whatever its value; empty if it does not."""
    is_unknown = option.kind is OptionKind.TEXT and option.name not in PLAIN_TEXTS
    unknown = "volbench does not know whether it names a file, a program or a device"
    return RISKY.get(option.name, unknown if is_unknown else "")


def _value_reach(table: OptionTable, option: Option, value: str) -> str:
    """Return the reason why a value needs consent; empty if it does not."""
    if option.name == "ioengine":
        if value.startswith("external:"):
            return "it runs foreign code"
        is_unknown = value in table.engines and value not in PLAIN_ENGINES
        unknown = "volbench does not know whether it stays within the volume"
        return FOREIGN_ENGINES.get(value, unknown if is_unknown else "")
    if option.name in {"buffer_pattern", "verify_pattern"} and "'" in value:
        return "fio reads the file named between quotes"
    if option.name == "mem" and ":" in value:
        return "fio overwrites the file named behind the colon, such as one of the run's folder"
    if option.kind is OptionKind.CHOICE and _PATH.search(value.partition(":")[2]):
        return "its parameter looks like a file name"
    return ""


def _check_file_names(_name: str, value: str, _table: OptionTable) -> None:
    for part in (names := value.split(":")):
        if part in {"", ".", "..", "-"} or {"/", "\\"} & {*part} or names.count(part) > 1:
            raise InputError(
                f"filename {value!r} is not a plain file name inside the volume",
                hint="leave it out, or write bare file names, each once: --on PATH is the volume",
            )


def _check_format(_name: str, value: str, _table: OptionTable) -> None:
    """Refuse paths outside the volume, and variables not known before the run."""
    if "/" in value or ".." in value:
        raise InputError(f"filename_format {value!r} leaves the volume", hint="leave out /")
    if "$" in _FORMAT_VARIABLES.sub("", value):
        raise InputError(
            f"filename_format {value!r} names files that cannot be known before the run",
            hint="use $jobname, $jobnum and $filenum only",
        )


def _check_engine(_name: str, value: str, table: OptionTable) -> None:
    if not value.startswith("external:") and value not in table.engines:
        value_of = {"aio": "libaio", "uring": "io_uring", "iouring": "io_uring"}
        known = f"it has {', '.join(table.engines)}"
        meant = value_of.get(value, value)
        hint = did_you_mean(meant, table.engines, known, alike=_MISSPELT)
        raise InputError(f"this fio has no ioengine {value!r}", hint=hint)


def _check_iolog(_name: str, value: str, _table: OptionTable) -> None:
    if ":" in value or not (value.startswith("/") or PLANNED_LOG.fullmatch(value)):
        raise InputError(
            f"read_iolog {value!r} is not the absolute path of one log",
            hint="write its absolute path on this machine, from which volbench sends it to the "
            "hosts; each of several logs needs a section of its own",
        )


def _check_blocks(name: str, value: str, _table: OptionTable) -> None:
    if "0" in value.split(","):
        raise InputError(f"{name} must be at least 1", hint="increase it, or leave it out")


def _check_lockmem(_name: str, value: str, _table: OptionTable) -> None:
    if not value.isdecimal():
        raise InputError(f"lockmem {value!r} is not a number of bytes", hint="write it like 1g")


def _check_written(name: str, value: str, _table: OptionTable) -> None:
    if "/" in value:
        hint = "leave out the folder: the file is made in that of the run"
        raise InputError(f"{name} {value!r} is not in the folder of the run", hint=hint)


# Checks of values that pass fio's parser but fail, or do harm, at runtime
_CHECKS: Mapping[str, Callable[[str, str, OptionTable], None]] = {
    "filename": _check_file_names,
    "filename_format": _check_format,
    "ioengine": _check_engine,
    "read_iolog": _check_iolog,
    "lockmem": _check_lockmem,
    **dict.fromkeys(("write_iolog", "merge_blktrace_file", "donorname", "mem"), _check_written),
    **dict.fromkeys(("bs", "ba", "numjobs", "nrfiles", "loops", "size", "io_size"), _check_blocks),
}


def changing_option(options: Mapping[str, str]) -> str:
    """Return the option with which a section may change its volume; empty if it only reads.

    A mix of reads and writes may change it even at 100 % reads.
    """
    if options.get("rw", "read").partition(":")[0] not in {"read", "randread"}:
        return "rw"
    if options.get("ioengine") in _CHANGING_ENGINES:
        return "ioengine"
    return next((name for name in _CHANGING if options.get(name, "0") != "0"), "")


def displacing_option(options: Mapping[str, str], *, reviewed: Container[str]) -> str:
    """Return the option, or engine, that may change more of a file than bytes in its range.

    Args:
        reviewed: names of the options of fio 3.33; those of sprandom (3.42) stay in the range, too.
    """
    for name, value in options.items():
        is_known = name in reviewed or name.startswith("spr")
        if value != "0" and (name in DISPLACING or not is_known):
            return name
    engine = options.get("ioengine", "psync")
    return "" if engine in _IN_PLACE_ENGINES else engine


def filling_option(options: Mapping[str, str]) -> str:
    """Return the option whose writes no size bounds; empty if there is none."""
    return next((name for name in _FILLING if options.get(name, "0") != "0"), "")


@dataclass(frozen=True)
class Conflict:
    """Conflicting settings of a job."""

    message: str  # description of the conflict
    hint: str  # suggested correction
    key: str = ""  # key of the job's setting to change; empty for an option
    option: str = ""  # canonical name of the option to change
    section: str = ""  # section of that option; empty for the usual single one


def fio_conflicts(options: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield conflicts with which fio fails at runtime; ``--parse-only`` accepts them (3.33)."""
    blocks = [int(part) for part in options.get("bs", "4096").split(",") if part.isdecimal()]
    size = options.get("size", "")
    if blocks and size.isdecimal() and 0 < int(size) < max(blocks):
        name = "bs" if "bs" in options else "size"
        message = f"bs {max(blocks)} is larger than size {size}"
        yield Conflict(message, "increase size", option=name)
    if options.get("direct") == "1" and any(block % SECTOR_BYTES for block in blocks):
        message = "direct=1 needs a bs that is a multiple of 512"
        yield Conflict(message, "use 4k, or direct: 0", option="bs")
    if "rate" in options and "rate_iops" in options:
        yield Conflict("rate and rate_iops exclude each other", "keep one", option="rate_iops")
    if options.get("rate_process") == "poisson" and _syncs_beside(options):
        message = "fio 3.33 crashes on rate_process: poisson if a section only writes and flushes"
        hint = "remove rate_process, or use ioengine: psync"
        yield Conflict(message, hint, option="rate_process")
    jobs, files = int(options.get("numjobs", "1")), int(options.get("nrfiles", "1"))
    if jobs * files > MAX_FILES:
        message = f"{jobs} jobs of {files} files are more than {MAX_FILES} files"
        yield Conflict(message, "decrease nrfiles or numjobs", option="nrfiles")


def _syncs_beside(options: Mapping[str, str]) -> bool:
    """Return whether a section only writes, and flushes through an engine that does not wait."""
    is_write = options.get("rw", "read").partition(":")[0] in {"write", "randwrite"}
    is_waiting = options.get("ioengine", "psync") in _WAITING_ENGINES
    return is_write and not is_waiting and any(_is_on(options, name) for name in _FLUSHES)


def unintended(options: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield combinations that fio accepts but that are almost certainly unintended."""
    if options.get("time_based", "0") == "1" and options.get("runtime", "0s") == "0s":
        message = "time_based without runtime runs size once"
        yield Conflict(message, "add runtime: 60s", option="time_based")
    if options.get("direct") == "1" and options.get("buffered") == "1":
        yield Conflict("direct and buffered exclude each other", "keep one", option="buffered")
    mix = [int(options[name]) for name in ("rwmixread", "rwmixwrite") if name in options]
    if len(mix) == 2 and sum(mix) != 100:
        message = f"rwmixread and rwmixwrite add up to {sum(mix)}"
        yield Conflict(message, "keep one", option="rwmixwrite")


def on_export(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options on an NBD volume, whose ioengine replaces all but those in memory."""
    return {**options, **({} if options.get("ioengine") in MEMORY_ENGINES else {"ioengine": "nbd"})}


def lacks_pattern(options: Mapping[str, str | None]) -> bool:
    """Return whether fio would choose the access pattern: sequential reads."""
    return not options.get("rw")


def lacks_block_size(options: Mapping[str, str | None]) -> bool:
    """Return whether fio would choose the block size: 4k."""
    return not any(options.get(name) for name in ("bs", "bsrange", "bssplit"))


def block_sizes(options: Mapping[str, str]) -> list[int]:
    """Return the sizes of a section's blocks, also those of directions that it does not use."""
    sizes: list[int] = []
    for name in ("bssplit", "bsrange", "bs"):  # the first counts, but for directions it leaves out
        text = options.get(name, "")
        sizes += map(int, re.findall(r"(?:^|[:,-])([1-9]\d*)", text))
        if sizes and not text.startswith(","):
            return sizes
    return [*sizes, 4096]


def shared_sizes(options: Mapping[str, str], files: int) -> list[str]:
    """Return the size of each file; fio 3.33 gives the first ones a block more of what is left."""
    size, block = options.get("size", "100%"), min(block_sizes(options))
    if not files or not size.isdecimal():
        return [size] * files
    share, rest = divmod(int(size), files)
    return [str(share + block * (number < rest // block)) for number in range(files)]


def doubtful(options: Mapping[str, str], *, own: Container[str]) -> Iterator[str]:
    """Yield effects of a section in fio that its author may not expect, the largest first.

    Args:
        own: names of options that are not defaults, which may be meant for other jobs.
    """
    yield from _doubtful_depth(options)
    yield from _doubtful_jobs(options)
    yield from _doubtful_rate(options)
    yield from _doubtful_time(options)
    yield from _without_effect(options, own)
    is_direct = options.get("direct", "0") != "0" or options.get("buffered") == "0"
    if options.get("invalidate") == "0" and not is_direct and options.get("ioengine") != "nbd":
        yield "invalidate: 0 keeps the page cache, so reads may not reach the volume"
    for name in _OF_LATENCIES:
        if _is_on(options, name):
            yield f"{name} switches off the measurement of latency, which will be n/a"
    if "read_iolog" not in options:
        if lacks_pattern(options):
            yield "rw is not set, so fio reads sequentially (its default, rw: read)"
        if lacks_block_size(options):
            yield "bs is not set, so fio uses its default of 4k"
    ways = [*dict.fromkeys(format_size(int(s or 0)) for s in options.get("bs", "").split(","))]
    if ways[1:] and options.get("rw", "read").removeprefix("rand") in {"read", "write"}:
        yield (
            f"bs: {','.join(ways)} has one size for reads and one for writes; a job for each size"
            f" is written bs: [{', '.join(ways)}]"
        )


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "0") not in {"0", "0s", ""}


def _doubtful_depth(options: Mapping[str, str]) -> Iterator[str]:
    depth, engine = int(options.get("iodepth", "1")), options.get("ioengine", "psync")
    if depth > 1 and engine in _WAITING_ENGINES:
        default = "" if "ioengine" in options else ", fio's default,"
        yield (
            f"the ioengine {engine}{default} has one I/O in flight, so iodepth: {depth} has no "
            f"effect on files and devices; use ioengine: io_uring or libaio, or numjobs: {depth}"
        )
    is_direct = options.get("direct") == "1" or options.get("buffered") == "0"
    if engine == "libaio" and depth > 1 and not is_direct:
        yield (
            f"libaio without direct: 1 submits one buffered I/O after the other, so "
            f"iodepth: {depth} has no effect; add direct: 1"
        )
    if engine == "mmap" and is_direct:
        yield "direct: 1 has no effect with the ioengine mmap, which uses the page cache"
    batch = int(options.get("iodepth_batch", "1"))
    if batch > depth:
        yield f"iodepth_batch: {batch} is above iodepth: {depth}, so fio lowers it to {depth}"


def _doubtful_rate(options: Mapping[str, str]) -> Iterator[str]:
    """Yield that a linear rate_iops counts bytes of the smallest block, measured with fio 3.33."""
    is_linear = options.get("rate_process", "linear") == "linear"
    # A split without a colon has one block size in each direction.
    is_split = ":" in options.get("bssplit", "")
    mixed = "bssplit" if is_split else "bsrange" if "bsrange" in options else ""
    if "rate_iops" in options and is_linear and mixed:
        yield (
            f"rate_iops with {mixed} limits the bytes: fio counts each I/O as one of the smallest "
            "block, so it does fewer than asked; use rate, or rate_process: poisson"
        )


def _without_effect(options: Mapping[str, str], own: Container[str]) -> Iterator[str]:
    for name, others in _ACTS_WITH.items():
        if name in options and not any(other in options for other in others):
            yield f"{name} has no effect without {' or '.join(others)}"
    if "bssplit" in options and "bs" in options:
        yield "bs has no effect with bssplit, which lists all block sizes"
    pattern = (options.get("rw") or "read").partition(":")[0]
    for names, acts, reason in (
        (_OF_RANDOM, "rand" in pattern, "which is sequential"),
        (_OF_WRITES, pattern not in {"read", "randread"}, "which does not write"),
        (_OF_MIXES, pattern in {"rw", "readwrite", "randrw"}, "which does not mix directions"),
    ):
        for name in names if not acts else ():
            if name in own and _is_on(options, name):
                yield f"{name} has no effect with rw: {pattern}, {reason}"


def _doubtful_time(options: Mapping[str, str]) -> Iterator[str]:
    runtime, is_timed = options.get("runtime", "0s"), _is_on(options, "time_based")
    is_counted = any(name in options for name in ("io_size", "loops", "fill_device"))
    if _is_on(options, "runtime") and not is_timed and not is_counted:
        yield (
            f"without time_based: 1 the job ends when it has moved its size once, at the latest "
            f"after runtime: {runtime}"
        )
    ramp_s = parse_duration(options.get("ramp_time", "0"))
    if is_timed and ramp_s >= parse_duration(runtime) > 0:
        yield (
            f"ramp_time: {options['ramp_time']} is not shorter than runtime: {runtime}; fio may "
            f"then count I/Os of the ramp (fio issue 2041)"
        )
    if is_timed and int(options.get("loops", "1")) > 1:
        yield "loops has no effect with time_based: 1, which repeats until the runtime is over"


def _doubtful_jobs(options: Mapping[str, str]) -> Iterator[str]:
    jobs = int(options.get("numjobs", "1"))
    if jobs == 1:
        return
    for name in ("rate", "rate_iops"):
        if name in options:
            yield f"{name} applies to each of the {jobs} jobs: {jobs} times as much in total"
    is_sequential = (options.get("rw") or "read").partition(":")[0] in {"read", "write"}
    is_sequential &= "read_iolog" not in options
    if "filename" in options and is_sequential and not _is_on(options, "offset_increment"):
        yield (
            f"all {jobs} jobs go through the same blocks of filename: {options['filename']}, so "
            f"most I/Os may come from a cache; add offset_increment, or leave filename out"
        )
