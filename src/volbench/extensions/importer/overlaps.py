"""Groups of results that were measured at the same time: their sum is the load of the volume."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from volbench.errors import Problem
from volbench.extensions.importer.run_drafts import Draft, files_in, volume_of

# Results of seconds, whose times are known to the second, may seem to overlap. Noticed by:
# tests/extensions/importer/test_overlaps.py::test_short_results_in_turn_are_no_group
_MIN_S = 5.0
# Share of the longest result during which all results of a group ran. Noticed by:
# tests/extensions/importer/test_overlaps.py::test_results_that_hardly_overlap_are_no_group
_MIN_COMMON = 0.5
_PARTITION = re.compile(r"(/dev/(?:nvme\d+n\d+(?=p)|[hsv]d[a-z]+|xvd[a-z]+))p?\d+\Z")
_AT_THE_SAME_TIME = (
    "ran at the same time as other results of the same volume: only their sum is the load, so they"
    " are shown as one result"
)


@dataclass
class Overlap:
    """Results of one volume that ran at the same time."""

    from_s: float  # when the last of them began, in seconds since the epoch
    to_s: float  # when the first of them ended
    longest_s: float  # runtime of the longest
    drafts: list[Draft] = field(default_factory=list)

    def add(self, draft: Draft, start_s: float, end_s: float) -> None:
        """Add a draft that joins the others."""
        self.drafts.append(draft)
        self.from_s, self.to_s = max(self.from_s, start_s), min(self.to_s, end_s)
        self.longest_s = max(self.longest_s, end_s - start_s)

    def joins(self, draft: Draft, start_s: float, end_s: float) -> bool:
        """Whether a draft ran during most of the time that the others have in common."""
        common_s = min(self.to_s, end_s) - max(self.from_s, start_s)
        return (
            common_s > _MIN_COMMON * max(self.longest_s, end_s - start_s)
            and all(draft.file is not other.file for other in self.drafts)
            and bool(_paths(draft) & set().union(*map(_paths, self.drafts)))
        )


def mark_overlaps(drafts: Sequence[Draft], *, host: str) -> list[Problem]:
    """Make clients of one step of the results that ran at the same time on one volume.

    Args:
        host: name of the host of results that name none; if it is empty, only results in one
            folder are known to be of one machine.

    Returns:
        A remark on each of these results.
    """
    remarks = []
    steps = count(1 + max((draft.step for draft in drafts), default=0))
    for group in _overlaps(drafts, host):
        step = next(steps)
        leaders: dict[str, Draft] = {}
        for number, draft in enumerate(group.drafts, start=1):
            draft.step, draft.client, draft.beside = step, number, len(group.drafts) - 1
            draft.leader = leaders.setdefault(str(_workload(draft)), draft)
            remarks.append(Problem(_AT_THE_SAME_TIME, draft.file.source.shown))
    return remarks


def _overlaps(drafts: Sequence[Draft], host: str) -> list[Overlap]:
    groups: dict[object, list[Overlap]] = {}
    timed = [(*times, draft) for draft in drafts if (times := _times(draft))]
    for start_s, end_s, draft in sorted(timed, key=lambda each: each[:2]):
        machine = draft.part.hostname or host or draft.file.source.path.parent
        known = groups.setdefault((machine, draft.part.place), [])
        group = next((each for each in known if each.joins(draft, start_s, end_s)), None)
        if group is None:
            group = Overlap(start_s, end_s, end_s - start_s)
            known.insert(0, group)
        group.add(draft, start_s, end_s)
    return [group for known in groups.values() for group in known if len(group.drafts) > 1]


def _times(draft: Draft) -> tuple[float, float] | None:
    """Return when a result began and ended, if it is known and of one process alone."""
    start_s, end_s = draft.started_utc_s, draft.output.ended_utc_s
    is_alone = not (draft.step or draft.read_as) and draft.output.form == "json"
    is_known = is_alone and start_s and end_s and end_s - start_s >= _MIN_S
    return (start_s, end_s) if is_known and start_s and end_s else None


def _workload(draft: Draft) -> object:
    """Return what results have in common whose rates are added up."""
    return [
        (
            [draft.reported[job.name, job.groupid].options.get(name) for name in ("rw", "bs")],
            [done.direction for done in job.directions],
        )
        for job, _ in draft.sections
    ]


def _paths(draft: Draft) -> set[str]:
    """Return the disks and files of a draft; a partition counts as its disk."""
    paths = set()
    for section in draft.reported.values():
        volume = volume_of({"": section}).target
        names = files_in(section.texts.get("filename", "")) if ":" in volume else [volume]
        paths |= {_PARTITION.sub(r"\1", name) for name in names}
    return paths
