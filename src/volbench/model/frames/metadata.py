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
    source: Source  # origin of the fact
    within: Weight  # effect of a difference between runs to be pooled
    compared: Weight | None = None  # the same between sides of a comparison; None for `within`

    @property
    def between(self) -> Weight:
        """Effect of a difference between the two sides of a comparison."""
        return self.within if self.compared is None else self.compared


_FACTS = (
    Fact("tool", Source.SUMMARY, Weight.REFUSE),  # fio, or `watch` for a watched load
    # Versions may be compared with reservations, but must never be pooled.
    Fact("fio_version", Source.SUMMARY, Weight.REFUSE, Weight.REPORT),
    Fact("rw", Source.SUMMARY, Weight.REFUSE),  # Access pattern
    Fact("direct", Source.SUMMARY, Weight.REFUSE),  # Bypass of the page cache (O_DIRECT)
    Fact("block_bytes", Source.SUMMARY, Weight.REFUSE),
    Fact("iodepth", Source.SUMMARY, Weight.REFUSE),  # Per job
    Fact("numjobs", Source.SUMMARY, Weight.REFUSE),
    Fact("ioengine", Source.SUMMARY, Weight.REFUSE),
    Fact("size_bytes", Source.SUMMARY, Weight.REFUSE),  # Size of the test
    # Capacity of the device; cloud limits depend on it
    Fact("volume_bytes", Source.SUMMARY, Weight.REFUSE),
    Fact("limit_iops", Source.SUMMARY, Weight.REPORT),
    Fact("limit_bw_bytes_per_s", Source.SUMMARY, Weight.REPORT),
    Fact("clients", Source.PLAN, Weight.REFUSE),  # That ran at the same time
    Fact("until", Source.PLAN, Weight.REFUSE),  # Steady-state criterion of the run
    Fact("kernel", Source.HOST, Weight.REFUSE),  # Its release
    Fact("cpu_model", Source.HOST, Weight.REFUSE),
    Fact("cpus", Source.HOST, Weight.REPORT),  # Online
    Fact("memory_bytes", Source.HOST, Weight.REPORT),
    # Of the container or cgroup; missing without one
    Fact("memory_limit_bytes", Source.HOST, Weight.REPORT),
    # Of a pod's files outside volumes; missing without one
    Fact("ephemeral_limit_bytes", Source.HOST, Weight.REPORT),
    Fact("os", Source.HOST, Weight.REPORT),
    Fact("virtualization", Source.HOST, Weight.REPORT),  # Hypervisor or container
    Fact("machine_type", Source.HOST, Weight.REPORT),  # Of a pod's node
    Fact("zone", Source.HOST, Weight.REPORT),  # Of a pod's node
    Fact("csi_driver", Source.HOST, Weight.REPORT),  # Of a pod's volume
    Fact("volume_kind", Source.VOLUME, Weight.REFUSE),  # Device, file, directory or nbd
    Fact("filesystem", Source.VOLUME, Weight.REFUSE),
    Fact("scheduler", Source.VOLUME, Weight.REFUSE),  # The one in use
    Fact("write_cache", Source.VOLUME, Weight.REFUSE),  # Write back or write through
    Fact("device_model", Source.VOLUME, Weight.REPORT),  # Of the disk
    Fact("mount_options", Source.VOLUME, Weight.REPORT),
    Fact("volbench_version", Source.CAMPAIGN, Weight.REPORT),
    Fact("import_folder", Source.SUMMARY, Weight.IGNORE),  # Of an imported result
    # Volume types are a common subject of comparison, but must never be pooled.
    Fact(f"{LABEL_PREFIX}volume_type", Source.SUMMARY, Weight.REFUSE, Weight.IGNORE),
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
    return fact or Fact(name, Source.PLAN, Weight.REFUSE)


def find_fact(name: str, known: Collection[str]) -> str:
    """Return the fact for a name, a label, or an alias such as ``bs``."""
    if meant := meaning_of(name, known):
        return meant
    wanted = name.strip()
    near = difflib.get_close_matches(wanted, known, n=3) or sorted(known)
    raise InputError(f"there is no fact {wanted!r}", hint=f"did you mean {', '.join(near)}?")
