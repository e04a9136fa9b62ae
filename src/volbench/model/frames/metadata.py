"""Registry of facts that affect comparability of runs, with units and weights.

Pooling runs that differ in a relevant fact gives a meaningless number; comparing them answers a
different question. Facts come from the plan (options of fio), the summary, and the facts about
host and volume.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from volbench.errors import InputError
from volbench.model.frames.column_names import meaning_of
from volbench.model.frames.columns import LABEL_PREFIX

# Columns that name a volume or its type; comparing their values compares volumes
VOLUME_COLUMNS = frozenset({"volume", "role", "device_model", "csi_driver"}) | {
    LABEL_PREFIX + name
    for name in (*("volume_type", "storage_class"), *("persistent_volume", "volume_size"))
}
_AS_COLUMNS = frozenset({"rw", "direct", "bs", "iodepth", "numjobs", "ioengine", "size"})
_HARMLESS = frozenset(
    {"clientname", "clustername", "description", "directory", "filename", "filename_format"}
    | {"name", "opendir", "pool", "rbdname", "fallocate", "unlink", "create_only", "stonewall"}
    | {"create_serialize", "new_group", "randrepeat", "randseed", "output", "eta", "per_job_logs"}
    | {"disable_bw_measurement", "group_reporting", "unified_rw_reporting", "percentile_list"}
    | {"clat_percentiles", "lat_percentiles", "slat_percentiles", "iopsavgtime", "bwavgtime"}
)
_HARMLESS_BEGINNINGS = ("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "log_")
# Defaults of options whose zero is not the same as not set, or is a value like others
_DEFAULTS = {
    **dict.fromkeys(("fadvise_hint", "invalidate", "scramble_buffers"), "1"),
    **dict.fromkeys(("offset", "ramp_time", "startdelay", "thinktime", "thinktime_spin"), "0"),
}
UNTIL_STEADY = "until steady"  # Runtime of a run that ends when it is steady
NOT_SET = "not set"


class Weight(StrEnum):
    """Effect of a difference on a comparison."""

    REFUSE = "refuse"
    REPORT = "report"
    IGNORE = "ignore"


class Source(StrEnum):
    """Origin of a fact."""

    SUMMARY = "summary"
    PLAN = "plan"
    HOST = "host"
    VOLUME = "volume"
    CAMPAIGN = "campaign"


@dataclass(frozen=True)
class Fact:
    """A property in which runs may differ."""

    name: str  # name for users, and of its column
    dtype: str  # ``string``, ``int``, ``float`` or ``bool``, as in the contract of columns
    unit: str  # such as ``bytes``; empty for text and flags
    source: Source  # origin of the fact
    within: Weight  # effect of a difference between runs to be pooled
    between: Weight  # effect of a difference between the two sides of a comparison
    meaning: str  # one sentence


def _fact(
    name: str, dtype: str, source: Source, weight: Weight, meaning: str, *, unit: str = ""
) -> Fact:
    return Fact(name, dtype, unit, source, weight, weight, meaning)


_FACTS = (
    _fact("tool", "string", Source.SUMMARY, Weight.REFUSE, "fio, or `watch` for a watched load."),
    # Versions may be compared with reservations, but must never be pooled.
    Fact(
        "fio_version",
        "string",
        "",
        Source.SUMMARY,
        Weight.REFUSE,
        Weight.REPORT,
        "Version of the tool.",
    ),
    _fact("rw", "string", Source.SUMMARY, Weight.REFUSE, "Access pattern."),
    _fact("direct", "bool", Source.SUMMARY, Weight.REFUSE, "Bypass of the page cache (O_DIRECT)."),
    _fact("block_bytes", "int", Source.SUMMARY, Weight.REFUSE, "Block size.", unit="bytes"),
    _fact("iodepth", "int", Source.SUMMARY, Weight.REFUSE, "Queue depth per job."),
    _fact("numjobs", "int", Source.SUMMARY, Weight.REFUSE, "Jobs in parallel."),
    _fact("ioengine", "string", Source.SUMMARY, Weight.REFUSE, "I/O engine of fio."),
    _fact("size_bytes", "int", Source.SUMMARY, Weight.REFUSE, "Size of the test.", unit="bytes"),
    _fact(
        "volume_bytes",
        "int",
        Source.SUMMARY,
        Weight.REFUSE,
        "Capacity of the device; cloud limits depend on it.",
        unit="bytes",
    ),
    _fact("limit_iops", "float", Source.SUMMARY, Weight.REPORT, "Declared limit.", unit="1/s"),
    _fact(
        "limit_bw_bytes_per_s",
        "float",
        Source.SUMMARY,
        Weight.REPORT,
        "Declared limit.",
        unit="bytes/s",
    ),
    _fact("clients", "int", Source.PLAN, Weight.REFUSE, "Clients that ran at the same time."),
    _fact("until", "string", Source.PLAN, Weight.REFUSE, "Steady-state criterion of the run."),
    _fact("kernel", "string", Source.HOST, Weight.REFUSE, "Release of the kernel."),
    _fact("cpu_model", "string", Source.HOST, Weight.REFUSE, "CPU model, from the kernel."),
    _fact("cpus", "int", Source.HOST, Weight.REPORT, "CPUs online."),
    _fact("memory_bytes", "int", Source.HOST, Weight.REPORT, "Memory of the host.", unit="bytes"),
    _fact(
        "memory_limit_bytes",
        "int",
        Source.HOST,
        Weight.REPORT,
        "Memory limit of the container or cgroup; missing without one.",
        unit="bytes",
    ),
    _fact(
        "ephemeral_limit_bytes",
        "int",
        Source.HOST,
        Weight.REPORT,
        "Limit of a pod's files outside volumes (ephemeral-storage); missing without one.",
        unit="bytes",
    ),
    _fact("os", "string", Source.HOST, Weight.REPORT, "Operating system."),
    _fact("virtualization", "string", Source.HOST, Weight.REPORT, "Hypervisor or container."),
    _fact("machine_type", "string", Source.HOST, Weight.REPORT, "Machine type of a pod's node."),
    _fact("zone", "string", Source.HOST, Weight.REPORT, "Zone of a pod's node."),
    _fact("csi_driver", "string", Source.HOST, Weight.REPORT, "Driver of a pod's volume."),
    _fact("volume_kind", "string", Source.VOLUME, Weight.REFUSE, "Device, file, directory or nbd."),
    _fact("filesystem", "string", Source.VOLUME, Weight.REFUSE, "Filesystem of the volume."),
    _fact("scheduler", "string", Source.VOLUME, Weight.REFUSE, "I/O scheduler in use."),
    _fact("write_cache", "string", Source.VOLUME, Weight.REFUSE, "Write back or write through."),
    _fact("device_model", "string", Source.VOLUME, Weight.REPORT, "Model of the disk."),
    _fact("mount_options", "string", Source.VOLUME, Weight.REPORT, "Options of the mount."),
    _fact("volbench_version", "string", Source.CAMPAIGN, Weight.REPORT, "Version of volbench."),
    Fact(
        "import_folder",
        "string",
        "",
        Source.SUMMARY,
        Weight.IGNORE,
        Weight.IGNORE,
        "Folder of an imported result.",
    ),
    # Volume types are a common subject of comparison, but must never be pooled.
    Fact(
        f"{LABEL_PREFIX}volume_type",
        "string",
        "",
        Source.SUMMARY,
        Weight.REFUSE,
        Weight.IGNORE,
        "Label `volume_type` of the host.",
    ),
)

# All facts by name; options of fio are added by `fact_of`
FACTS: Mapping[str, Fact] = MappingProxyType({fact.name: fact for fact in _FACTS})

# Facts that follow from the volume: between volumes they differ as what is compared does
VOLUME_FACTS = frozenset(
    {"volume_bytes", *(fact.name for fact in _FACTS if fact.source is Source.VOLUME)}
)

_HOST_FACTS = VOLUME_FACTS | {fact.name for fact in _FACTS if fact.source is Source.HOST}


def reported_between(column: str) -> Collection[str]:
    """Return the facts that follow from what is compared, and do not refuse a comparison."""
    return VOLUME_FACTS if column in VOLUME_COLUMNS else _HOST_FACTS if column == "host" else ()


def option_value(name: str, text: str | None) -> str:
    """Return the effective value of an option of fio; off is equivalent to not set.

    Args:
        text: canonical value; None where the job does not set it.
    """
    if text in {None, "", "0", "0s"}:
        default = _DEFAULTS.get(name, NOT_SET)
        return "0" if text and default == "1" else default
    return str(text)


def option_matters(name: str) -> bool:
    """Return whether an option of fio is a separate fact: not a column, and it affects the I/O."""
    return (
        name not in _AS_COLUMNS
        and name not in _HARMLESS
        and not name.startswith(_HARMLESS_BEGINNINGS)
    )


def fact_of(name: str) -> Fact:
    """Return the fact of a column: from the registry, or for an option of fio."""
    fact = FACTS.get(name)
    return fact or _fact(name, "string", Source.PLAN, Weight.REFUSE, f"Option `{name}` of fio.")


def find_fact(name: str, known: Collection[str]) -> str:
    """Return the fact for a name, a label, or an alias such as ``bs``."""
    if meant := meaning_of(name, known):
        return meant
    wanted = name.strip()
    near = difflib.get_close_matches(wanted, known, n=3) or sorted(known)
    raise InputError(f"there is no fact {wanted!r}", hint=f"did you mean {', '.join(near)}?")
