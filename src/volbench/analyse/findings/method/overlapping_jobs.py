"""overlapping-jobs: jobs or sections work on the same range."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.frames.workload_spec import WorkloadSpec
from volbench.model.campaign.target import VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.model.results.finding import Finding, Severity


@dataclass(frozen=True)
class _Range:
    """Where a section begins and how far it goes, in bytes or in shares of the volume."""

    start: float
    length: float


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for parallel jobs, and for pairs of sections, that do the same blocks."""
    del context
    sections = [a for a in view.workloads if a.tool is Tool.FIO and (a.reads or a.writes)]
    for workload in sections:
        if (
            workload.numjobs > 1
            and _shares_files(workload)
            and _jobs_overlap(workload, _size(view))
        ):
            yield _shared_range(view, workload)
    for first, other in combinations(sections, 2):
        if _in_turn(first, other, sections) or not (first.writes or other.writes):
            continue
        if _meet(first, other, _size(view)):
            yield RULE.finding(
                view,
                f"Sections {first.section} and {other.section} work on the same blocks at the same"
                " time, and at least one of them writes.",
                {"sections": f"{first.section}, {other.section}"},
                severity=_severity(first, other),
            )


def _in_turn(first: WorkloadSpec, other: WorkloadSpec, sections: Sequence[WorkloadSpec]) -> bool:
    """Return whether the later section begins when the earlier one has ended (fio: wait_for)."""
    by_name = {workload.section: workload for workload in sections}
    seen: set[str] = set()
    before: WorkloadSpec | None = other
    while before is not None and before.section not in seen:
        seen.add(before.section)
        before = by_name.get(before.options.get("wait_for", ""))
    return first.section in seen


def _shared_range(view: RunView, workload: WorkloadSpec) -> Finding:
    verb = "write" if workload.writes else "read"
    order = "random blocks of" if workload.is_random else ""
    return RULE.finding(
        view,
        f"{workload.numjobs} jobs {verb} {order} the same range".replace("  ", " ")
        + (
            "."
            if workload.is_random
            else f": each block is {_done(workload)} {workload.numjobs} times."
        ),
        {"numjobs": float(workload.numjobs), "section": workload.section},
        direction=None if workload.reads and workload.writes else verb,
        severity=_severity(workload),
    )


def _done(workload: WorkloadSpec) -> str:
    return "written" if workload.writes else "read"


def _severity(*sections: WorkloadSpec) -> Severity:
    """Return a note for random I/O: it meets itself rarely on a large volume."""
    return Severity.NOTE if all(workload.is_random for workload in sections) else Severity.WARNING


def _size(view: RunView) -> float:
    pin = view.run.volume.pin
    return math.nan if pin is None else float(pin.size_bytes)


def _shares_files(workload: WorkloadSpec) -> bool:
    """Return whether the jobs of a section open the same file; in a directory each has its own."""
    if workload.kind in {VolumeKind.DIRECTORY, VolumeKind.UNKNOWN}:
        return "filename" in workload.options
    return True


def _bytes(text: str, volume_bytes: float) -> float:
    """Return a size or a share of the volume in bytes; NaN when that is not known."""
    if text.isdecimal():
        return float(text)
    return volume_bytes * float(text[:-1]) / 100 if text.endswith("%") else math.nan


def _jobs_overlap(workload: WorkloadSpec, volume_bytes: float) -> bool:
    """Return whether each job begins before the one before it ends (fio: offset_increment)."""
    step, size = workload.options.get("offset_increment", "0"), workload.options.get("size", "100%")
    if step.endswith("%") and size.endswith("%"):
        return float(step[:-1]) < float(size[:-1])
    if step in {"0", "0%"}:
        return True
    return _bytes(step, volume_bytes) < _bytes(size, volume_bytes)


def _meet(first: WorkloadSpec, other: WorkloadSpec, volume_bytes: float) -> bool:
    """Return whether two sections surely open the same file and their ranges meet."""
    if not (_shares_files(first) and _shares_files(other)):
        return False
    if first.options.get("filename") != other.options.get("filename"):
        return False
    mine, theirs = _range(first, volume_bytes), _range(other, volume_bytes)
    if mine == theirs:
        return True
    return mine.start < theirs.start + theirs.length and theirs.start < mine.start + mine.length


def _range(workload: WorkloadSpec, volume_bytes: float) -> _Range:
    """Return what a section with all its jobs covers; shares of an unknown size are of 1."""
    unit = 1.0 if math.isnan(volume_bytes) else volume_bytes
    start = _bytes(workload.options.get("offset", "0"), unit)
    length = _bytes(workload.options.get("size", "100%"), unit)
    step = _bytes(workload.options.get("offset_increment", "0"), unit)
    return _Range(start, length + step * (workload.numjobs - 1))


RULE = Rule(
    id="overlapping-jobs",
    title="several jobs work on the same blocks",
    severity=Severity.WARNING,
    looks_at=(
        "Sections with `numjobs` above 1 on one file or device without an `offset_increment` of at"
        " least `size`, and sections of one job on the same range of which one writes. Random"
        " offsets are a note."
    ),
    why=(
        "Blocks that are done several times are in a cache the second time, and a volume that is"
        " to be filled is filled once while the time of several passes is paid."
    ),
    advice=(
        "Give each job its own part: size: 25% and offset_increment: 25% for numjobs: 4, or"
        " leave out filename in a directory, so that each has its own file."
    ),
    check=check,
)
