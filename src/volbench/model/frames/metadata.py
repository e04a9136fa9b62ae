"""What matters when runs are compared: a registry of facts, each with its unit and its weight.

Pooling runs that differ in something that matters makes a number of nothing; comparing them answers
another question than the one that was asked. Facts come from the plan (options of fio), from the
summary, and from what was known of the host and the volume.
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


class Weight(StrEnum):
    """What a difference means for a comparison."""

    REFUSE = "refuse"
    TELL = "tell"
    IGNORE = "ignore"


class Source(StrEnum):
    """Where a fact is told."""

    SUMMARY = "summary"
    PLAN = "plan"
    HOST = "host"
    VOLUME = "volume"
    CAMPAIGN = "campaign"


@dataclass(frozen=True)
class Fact:
    """One thing that runs may differ in.

    Attributes:
        name: as users name it, and the name of its column.
        dtype: ``string``, ``int`` or ``bool``, as in the contract of columns.
        unit: such as ``bytes``; empty for text and flags.
        source: where it is told.
        within: what a difference among runs means that would be pooled.
        between: what a difference means between two sides of a comparison.
        meaning: one sentence.
    """

    name: str
    dtype: str
    unit: str
    source: Source
    within: Weight
    between: Weight
    meaning: str


def _fact(
    name: str, dtype: str, source: Source, weight: Weight, meaning: str, *, unit: str = ""
) -> Fact:
    return Fact(name, dtype, unit, source, weight, weight, meaning)


_FACTS = (
    _fact("tool", "string", Source.SUMMARY, Weight.REFUSE, "fio or dd."),
    _fact("fio_version", "string", Source.SUMMARY, Weight.REFUSE, "Version of the tool."),
    _fact("rw", "string", Source.SUMMARY, Weight.REFUSE, "Access pattern."),
    _fact("direct", "bool", Source.SUMMARY, Weight.REFUSE, "Past the page cache or through it."),
    _fact("block_bytes", "int", Source.SUMMARY, Weight.REFUSE, "Block size.", unit="bytes"),
    _fact("iodepth", "int", Source.SUMMARY, Weight.REFUSE, "I/Os in flight of each job."),
    _fact("numjobs", "int", Source.SUMMARY, Weight.REFUSE, "Jobs in parallel."),
    _fact("ioengine", "string", Source.SUMMARY, Weight.REFUSE, "I/O engine of fio."),
    _fact("size_bytes", "int", Source.SUMMARY, Weight.REFUSE, "Size of the test.", unit="bytes"),
    _fact(
        "volume_bytes",
        "int",
        Source.SUMMARY,
        Weight.REFUSE,
        "Capacity of the device: clouds tie limits to it.",
        unit="bytes",
    ),
    _fact("clients", "int", Source.PLAN, Weight.REFUSE, "Clients that ran at one time."),
    _fact("until", "string", Source.PLAN, Weight.REFUSE, "When the run was to end by itself."),
    _fact("kernel", "string", Source.HOST, Weight.REFUSE, "Release of the kernel."),
    _fact("cpu_model", "string", Source.HOST, Weight.REFUSE, "CPU, as the kernel names it."),
    _fact("cpus", "int", Source.HOST, Weight.TELL, "CPUs online."),
    _fact("memory_bytes", "int", Source.HOST, Weight.TELL, "Memory of the host.", unit="bytes"),
    _fact("os", "string", Source.HOST, Weight.TELL, "Operating system."),
    _fact("virtualization", "string", Source.HOST, Weight.TELL, "Hypervisor or container."),
    _fact("volume_kind", "string", Source.VOLUME, Weight.REFUSE, "Device, file, directory or nbd."),
    _fact("filesystem", "string", Source.VOLUME, Weight.REFUSE, "Filesystem of the volume."),
    _fact("scheduler", "string", Source.VOLUME, Weight.REFUSE, "I/O scheduler in use."),
    _fact("write_cache", "string", Source.VOLUME, Weight.REFUSE, "Write back or write through."),
    _fact("device_model", "string", Source.VOLUME, Weight.TELL, "Model of the disk."),
    _fact("mount_options", "string", Source.VOLUME, Weight.TELL, "Options of the mount."),
    _fact("volbench_version", "string", Source.CAMPAIGN, Weight.TELL, "Version of volbench."),
    # Two volume types are often what is compared, but never to be pooled.
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

FACTS: Mapping[str, Fact] = MappingProxyType({fact.name: fact for fact in _FACTS})
"""Every fact that is known by name; options of fio come on top, see `fact_of`."""

_AS_COLUMNS = frozenset({"rw", "direct", "bs", "iodepth", "numjobs", "ioengine", "size"})
_HARMLESS = frozenset(
    {
        "clat_percentiles",
        "create_only",
        "create_serialize",
        "description",
        "directory",
        "disable_bw_measurement",
        "eta",
        "filename",
        "filename_format",
        "fallocate",
        "group_reporting",
        "iopsavgtime",
        "bwavgtime",
        "lat_percentiles",
        "name",
        "new_group",
        "opendir",
        "output",
        "percentile_list",
        "randrepeat",
        "per_job_logs",
        "randseed",
        "slat_percentiles",
        "stonewall",
        "unified_rw_reporting",
        "unlink",
    }
)
_HARMLESS_BEGINNINGS = ("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "log_")


_ON_UNLESS_SET = frozenset({"fadvise_hint", "invalidate", "scramble_buffers"})
NOT_SET = "not set"


def option_value(name: str, text: str | None) -> str:
    """Return what an option of fio amounts to: what is off is as good as not set.

    Args:
        name: of the option.
        text: its canonical value; None where the job does not name it.
    """
    if text is None:
        return "1" if name in _ON_UNLESS_SET else NOT_SET
    return NOT_SET if text in {"", "0", "0s"} and name not in _ON_UNLESS_SET else text


def option_matters(name: str) -> bool:
    """Return whether an option of fio is a fact of its own: it is no column and changes the I/O."""
    return (
        name not in _AS_COLUMNS
        and name not in _HARMLESS
        and not name.startswith(_HARMLESS_BEGINNINGS)
    )


def fact_of(name: str) -> Fact:
    """Return the fact of a column: from the registry, or that of an option of fio."""
    found = FACTS.get(name)
    return found or _fact(name, "string", Source.PLAN, Weight.REFUSE, f"Option `{name}` of fio.")


def find_fact(name: str, known: Collection[str]) -> str:
    """Return the fact that a name means: itself, a label, or an alias such as ``bs``.

    Args:
        name: as the user typed it.
        known: names of the facts there are.

    Raises:
        InputError: no fact is meant; the hint tells the nearest ones.
    """
    if meant := meaning_of(name, known):
        return meant
    wanted = name.strip()
    near = difflib.get_close_matches(wanted, known, n=3) or sorted(known)
    raise InputError(
        f"nothing that matters is called {wanted!r}",
        hint=f"did you mean {', '.join(near)}?",
        context={"fact": wanted},
    )
