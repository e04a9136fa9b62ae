"""Names of imported runs: hosts, jobs and repeats, from paths and jobnames.

Results that differ never get one name, for equal names are pooled as repeats. Repeats are only what
says so: ``{repeat}`` in the pattern, or a folder or file such as ``run-2`` or ``fio_rep3.json``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_REPEAT = re.compile(
    r"(?P<rest>.*?)(?:^|[-_. ])(?:run|repeat|rep|iteration|iter|round|trial|pass|loop|attempt)"
    r"[-_. #]?(?P<number>\d{1,5})",
    re.IGNORECASE | re.DOTALL,
)
_GENERIC = re.compile(
    r"(fio|result|results|output|out|stdout|json|data|log|logs)([-_.](fio|result|results|output))?",
    re.IGNORECASE,
)
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80


@dataclass
class Naming:
    """What a run may be called.

    Attributes:
        host: where it ran.
        client: its number among those of its host; 0 for one.
        path: folders and file below what was named, without what labels took.
        jobname: fio's.
        among_others: whether its file holds more runs of the same client.
        settings: what must be equal for two results to be repeats of each other.
        repeat: its number; None where nothing gives one.
        level: how much of its path is in its name.
        job: its name.
    """

    host: str
    client: int
    path: tuple[str, ...]
    jobname: str
    among_others: bool
    settings: object
    repeat: int | None = None
    level: int = 0
    job: str = ""

    @property
    def candidate(self) -> str:
        """Its name, with as much of its path as its level says."""
        if not self.level:
            return self.jobname
        parts = self.path[-self.level :]
        return "-".join((*parts, self.jobname) if self.among_others else parts)


def split_repeat(path: Sequence[str]) -> tuple[tuple[str, ...], int | None]:
    """Return a path without what numbers a repeat and without names that say nothing."""
    kept: list[str] = []
    number: int | None = None
    for part in path:
        match = _REPEAT.fullmatch(part)
        if match is None:
            kept.append(part)
            continue
        number = int(match["number"])
        if match["rest"]:
            kept.append(match["rest"])
    telling = [part for part in kept if not _GENERIC.fullmatch(part)]
    return tuple(telling or kept), number


def choose_jobs(namings: Sequence[Naming]) -> None:
    """Give each run the shortest name that no other result has, and number the repeats."""
    while clashing := _clashing(namings):
        raised = False
        for naming in namings:
            if naming.candidate in clashing and naming.level < len(naming.path):
                naming.level += 1
                raised = True
        if not raised:
            break
    for naming in namings:
        naming.job = plain(naming.candidate)
    _number_the_rest(namings)
    _number_repeats(namings)


def _clashing(namings: Iterable[Naming]) -> set[str]:
    """Return names that more than one result has, which are no repeats of each other."""
    return {group[0].candidate for group in _groups(namings) if not _are_repeats(group)}


def _groups(namings: Iterable[Naming]) -> list[list[Naming]]:
    groups: dict[tuple[str, int, str], list[Naming]] = defaultdict(list)
    for naming in namings:
        groups[naming.host, naming.client, naming.job or naming.candidate].append(naming)
    return list(groups.values())


def _are_repeats(group: Sequence[Naming]) -> bool:
    if len(group) == 1:
        return True
    numbers = {naming.repeat for naming in group}
    are_equal = all(naming.settings == group[0].settings for naming in group)
    return are_equal and None not in numbers and len(numbers) == len(group)


def _number_the_rest(namings: Sequence[Naming]) -> None:
    """Put a number behind names that are still equal."""
    for group in _groups(namings):
        if not _are_repeats(group):
            for place, naming in enumerate(group[1:], start=2):
                naming.job = f"{naming.job}-{place}"
                naming.repeat = None


def _number_repeats(namings: Sequence[Naming]) -> None:
    for group in _groups(namings):
        for place, naming in enumerate(
            sorted(group, key=lambda naming: naming.repeat or 0), start=1
        ):
            naming.repeat = place


def plain(text: str) -> str:
    """Return a name that can be one of a job, a host or a folder."""
    return _ODD.sub("-", text).strip("-.")[:_LONGEST].strip("-.") or "job"


def choose_hosts(wanted: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return a name for each pair of a host and its labels.

    A host that was named under different labels is several to tables and charts: the labels that
    differ are put behind its name. One that nobody named is called by its labels.
    """
    named: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for host, labels in wanted:
        if labels not in named[host]:
            named[host].append(labels)
    chosen = []
    for host, labels in wanted:
        every = named[host]
        values = (labels.get(name) for name in _differing(every))
        behind = [value for value in values if value]
        chosen.append(plain("-".join([host, *behind] if host else behind) or "unknown"))
    return _apart(wanted, chosen)


def _differing(every: Sequence[Mapping[str, str]]) -> list[str]:
    names = dict.fromkeys(name for labels in every for name in labels)
    return [name for name in names if len({labels.get(name) for labels in every}) > 1]


def _apart(wanted: Sequence[tuple[str, Mapping[str, str]]], chosen: Sequence[str]) -> list[str]:
    """Return names with a number where two pairs that differ got one name."""
    owners: dict[str, list[tuple[str, Mapping[str, str]]]] = defaultdict(list)
    names = []
    for pair, name in zip(wanted, chosen, strict=True):
        if pair not in owners[name]:
            owners[name].append(pair)
        place = owners[name].index(pair)
        names.append(f"{name}-{place + 1}" if place else name)
    return names
