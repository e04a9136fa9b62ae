"""Bounds that no disk exceeds: a rate above one of them is that of a cache."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.bottleneck.volume_context import DeviceKind, device_kind
from volbench.analyse.findings.rule import Observation
from volbench.analyse.frames.run_view import Result, RunView, results_of, total
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.profile.option_policy import MEMORY_ENGINES
from volbench.model.results.finding import Severity
from volbench.model.results.provenance import VolumeFacts
from volbench.units import format_count, format_latency, format_percent, format_rate

# Latency that no disk undercuts (2026: the fastest NVMe drives take 7 us).
# Noticed by: test_memory.py::test_imported_results_faster_than_any_disk_are_questioned
_MIN_DISK_LATENCY_S = 4e-6
# Bandwidth that no disk exceeds: four lanes of PCIe 5.0.
# Noticed by: test_memory.py::test_imported_results_faster_than_any_disk_are_questioned
_MAX_DISK_BYTES_PER_S = 16e9
# Mean latency above which such a bandwidth is that of many disks, not of memory.
# Noticed by: test_memory.py::test_imported_results_faster_than_any_disk_are_questioned
_MAX_MEMORY_LATENCY_S = 1e-3
# Random IOPS of a spinning disk: at 15,000 turns a minute half a turn alone takes 2 ms, and a full
# queue halves that at best. Noticed by: test_memory.py::test_rates_that_no_such_disk_has
_MAX_ROTATIONAL_IOPS = 1000.0
# Rate over that of the device below: repeats of one volume differ by a few percent.
# Noticed by: test_memory.py::test_an_upper_layer_that_is_faster_than_its_device_is_questioned
_MIN_ABOVE_LOWER = 1.1
_CACHES_DIRECT_IO = re.compile(r"zfs|fuse.*|9p|virtiofs|ntfs-3g|mergerfs")
_COMPRESSES = re.compile(r"(?:^|,)(compress(?:-force)?=(?!no)[^,]*)")


def implausible(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each bound that a direct run exceeds, with the number and where it comes from."""
    facts = view.volume
    if view.run.imported is not None and MEMORY_ENGINES.isdisjoint(
        load.engine for load in view.workloads
    ):
        yield from _beyond_disks(view)
    if facts is not None:
        yield from _rotational(view, facts)
        yield from _beyond_link(view, facts)
        yield from _filesystem(view, facts)
        yield from _above_lower(view, context, facts)


def _beyond_disks(view: RunView) -> Iterator[Observation]:
    fastest_s = min((_typical_s(row) for row in results_of(view)), default=math.nan)
    rate = total(view, "bw_bytes_per_s")
    disks = max((load.disks for load in view.workloads), default=1)
    is_fast = rate > disks * _MAX_DISK_BYTES_PER_S and fastest_s <= _MAX_MEMORY_LATENCY_S
    if fastest_s < _MIN_DISK_LATENCY_S or is_fast:
        target = view.run.volume.target
        volume = "the volume" if target == "unknown" else target
        yield Observation(
            f"Too fast for a disk: {format_latency(fastest_s)} for a typical I/O and"
            f" {format_rate(rate)}. Either {volume} is in memory, or a cache was measured.",
            {"lat_mean_s": fastest_s, "bw_bytes_per_s": rate},
        )


def _typical_s(result: Result) -> float:
    """Return the mean latency, or a lower median; completion is the whole of a synchronous I/O."""
    medians = [result["lat_p50_s"]]
    if math.isnan(result["slat_mean_s"]):
        medians.append(result["clat_p50_s"])
    return min([result["lat_mean_s"], *(value for value in medians if not math.isnan(value))])


def _rotational(view: RunView, facts: VolumeFacts) -> Iterator[Observation]:
    # virtual disks are called rotational unless their hypervisor says otherwise
    if device_kind(view) is not DeviceKind.HARD_DISK:
        return
    if not all(load.is_random for load in view.workloads):
        return
    disks = max(1, len(facts.backing))
    limit, iops = _MAX_ROTATIONAL_IOPS * disks, total(view, "iops")
    if iops > limit:
        spindles = "a spinning disk" if disks == 1 else f"{disks} spinning disks"
        yield Observation(
            f"{format_count(iops)} random IOPS are more than the {format_count(limit)} of"
            f" {spindles} (half a turn takes 2 ms or more): {facts.model or facts.device} is no"
            " such disk, or a cache answered.",
            {"rate": iops, "bound": limit, "of": "iops"},
        )


def _beyond_link(view: RunView, facts: VolumeFacts) -> Iterator[Observation]:
    # of a virtual disk the link is emulated; a full-duplex link carries its rate each way
    if device_kind(view) not in {DeviceKind.HARD_DISK, DeviceKind.LOCAL_SSD}:
        return
    limit = facts.link_bytes_per_s * len(facts.device.split("+"))
    for direction in ("read", "write"):
        rate = total(view, "bw_bytes_per_s", direction=direction)
        if rate > limit > 0:
            yield Observation(
                f"{format_rate(rate)} are more than the {format_rate(limit)} that {facts.link}"
                " carries: a cache answered.",
                {"rate": rate, "bound": limit, "of": "bw_bytes_per_s"},
                direction=direction,
            )


def _filesystem(view: RunView, facts: VolumeFacts) -> Iterator[Observation]:
    if _CACHES_DIRECT_IO.fullmatch(facts.filesystem):
        yield Observation(
            f"direct=1 on {facts.filesystem}, which serves direct I/O through a cache of its own.",
            {"filesystem": facts.filesystem},
        )
    elif (found := _COMPRESSES.search(facts.mount_options)) and view.writes:
        yield Observation(
            f"{facts.mount_point or facts.target} is mounted with {found[1]}: fewer bytes reach"
            " the device than fio writes.",
            {"filesystem": facts.filesystem, "option": found[1]},
            severity=Severity.NOTE,
        )


def _above_lower(view: RunView, context: Context, facts: VolumeFacts) -> Iterator[Observation]:
    on_device = view.run.volume.kind is not VolumeKind.DEVICE
    below = {*facts.backing, *([facts.device] if on_device else [])}
    for other in context.views:
        lower = other.volume
        if lower is None or other.run.host != view.run.host or not other.is_finished:
            continue
        is_below = other.run.volume.kind is VolumeKind.DEVICE and lower.device in below
        if not is_below or _workload(other) != _workload(view):
            continue
        rate, bound = total(view, "iops"), total(other, "iops")
        if rate > _MIN_ABOVE_LOWER * bound:
            yield Observation(
                f"{view.run.volume.target} is faster than {lower.target}, on which it is"
                f" ({format_count(rate)} against {format_count(bound)} IOPS,"
                f" {format_percent(rate / bound)}): a cache answers, or writes are not durable.",
                {"rate": rate, "bound": bound, "of": "iops"},
            )
            return


def _workload(view: RunView) -> list[object]:
    return [
        (load.pattern, load.block_bytes, load.depth, load.numjobs, load.is_buffered)
        for load in view.workloads
    ]
