"""Names and labels of imported runs: hosts, jobs and repeats, from paths and jobnames.

Different results never share a name, because equal names are pooled as repeats. Repeats are only
those marked as such: ``{repeat}`` in the pattern, or a folder or file such as ``run-2`` or
``fio_rep3.json``. The pattern ``{provider}/{volume_type}/{host}`` matches
``azure/P15/vm1/fio.json`` and ``azure/P15/vm1.json``. A job or repeat that a pattern names is kept
as it is named, or refused.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from volbench.errors import InputError

HOST, REPEAT, JOB = "host", "repeat", "job"
# Placeholders for the host, the number of the repeat and the name of the job; not labels
RESERVED = frozenset({HOST, REPEAT, JOB})

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.IGNORECASE)
_REPEAT = re.compile(
    r"(?P<rest>.*?)(?:^|[-_. ])(?:run|repeat|rep|iteration|iter|round|trial|pass|loop|attempt)"
    r"[-_. #]?(?P<number>\d{1,5})",
    re.IGNORECASE | re.DOTALL,
)
_GENERIC = re.compile(
    r"(fio|result|results|output|out|stdout|json|data|log|logs)([-_.](fio|result|results|output|0))?",
    re.IGNORECASE,
)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
# Run folders have this name between two numbers, and file systems allow 255 letters
_MAX_LENGTH = 160
_MAX_NAMED = 3  # Renamed jobs in a note; `volbench show` lists all


@dataclass(frozen=True)
class LabelPattern:
    """Parsed pattern."""

    text: str  # as written by the user
    # a regular expression for each folder, or for the file's name without its endings
    parts: tuple[re.Pattern[str], ...]

    def read(self, inside: PurePosixPath, *, stem: str) -> dict[str, str] | None:
        """Return the labels of a path; None if the pattern does not match it.

        Args:
            inside: path of the file relative to the imported folder.
            stem: its name without endings.
        """
        levels = (*inside.parts[:-1], stem)
        if len(levels) < len(self.parts):
            return None
        labels: dict[str, str] = {}
        for part, name in zip(self.parts, levels, strict=False):
            match = part.fullmatch(name)
            if match is None:
                return None
            labels |= match.groupdict()
        return labels

    def splits_otherwise(self, labels: Mapping[str, str]) -> bool:
        """Whether a value holds what stands between two labels, so that others are possible."""
        levels = [_PLACEHOLDER.split(level) for level in self.text.strip("/").split("/")]
        return any(
            separator and separator in labels[name]
            for level in levels
            for separator in level[2:-1:2]
            for name in level[1::2]
        )

    def rest(self, inside: PurePosixPath, *, stem: str) -> tuple[str, ...]:
        """Return the parts of a path beyond the pattern."""
        return (*inside.parts[:-1], stem)[len(self.parts) :]


def parse_pattern(text: str) -> LabelPattern:
    """Parse a pattern."""
    names = _PLACEHOLDER.findall(text)
    bare = _PLACEHOLDER.sub("", text)
    malformed = [name for name in names if not _NAME.fullmatch(name)]
    if malformed or not names or "{" in bare or "}" in bare or len({*names}) < len(names):
        raise InputError(
            f"--labels {text!r} is not a pattern: a {{name}} consists of letters, digits and _, and"
            " is used once",
            hint="write it like '{provider}/{volume_type}/{host}'; * matches any text",
        )
    return LabelPattern(text, tuple(_level_pattern(part) for part in text.strip("/").split("/")))


def _level_pattern(level: str) -> re.Pattern[str]:
    pieces = _PLACEHOLDER.split(level)
    text = ""
    for place, piece in enumerate(pieces):
        text += f"(?P<{piece}>.+?)" if place % 2 else re.escape(piece).replace(r"\*", ".*")
    return re.compile(text, re.DOTALL)


def parse_labels(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the labels of ``--label KEY=VALUE``."""
    labels: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not value or not _NAME.fullmatch(name) or name in RESERVED | {*labels}:
            hint = "write it like volume_type=P15, each once"
            raise InputError(f"--label {text!r} is not a label", hint=hint)
        labels[name] = value
    return labels


def pattern_mismatch(pattern: LabelPattern, example: str) -> InputError:
    """Return the error for a pattern that matches no path at all."""
    folders = example.split("/")
    names = ("provider", "volume_type", "host", "job")
    count = min(len(folders), len(names))
    chosen = names[:count] if count > 1 else ("host",)
    written = "/".join(f"{{{name}}}" for name in chosen)
    return InputError(
        f"--labels {pattern.text!r} matches no result; the first one is {example}",
        hint=f"the pattern is matched against that path; write it like {written!r}",
    )


@dataclass
class Naming:
    """Parts of the name of a run."""

    host: str  # that it ran on
    client: int  # number among several on its host; 0 for the only one
    path: tuple[str, ...]  # folders and file below the imported path, without host, job and repeat
    jobname: str  # from fio
    among_others: bool  # whether its file contains more runs of the same client
    settings: object  # equal for results that are repeats of each other
    # those that differ among the results of its host
    labels: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""  # that it is in, without hosts and numbers of repeats
    repeat: int | None = None  # its number; None if unknown
    source: str = ""  # path of its result, for messages
    is_job_given: bool = False  # whether a pattern names its job, so that `jobname` is kept
    is_repeat_given: bool = False  # whether a pattern names its repeat, so that the number is kept
    # what its pattern says beside host, job and repeat, where that differs among the results of its
    # host; empty without a job from a pattern
    variant: str = ""
    level: int = 0  # how much of labels and path is in the name
    job: str = ""  # the chosen name

    @property
    def most_levels(self) -> int:
        """The level at which the name has everything."""
        return 0 if self.is_job_given else len(self.path) + bool(self.labels)

    @property
    def candidate(self) -> str:
        """Name with labels, or with as many parts of the path, as `level` says."""
        if not self.level:
            return self.jobname
        if self.labels and self.level == 1:
            return "-".join((self.jobname, *self.labels.values()))
        parts = self.path[-self.level + bool(self.labels) :]
        return "-".join((*parts, self.jobname) if self.among_others else parts)


def split_repeat(path: Sequence[str]) -> tuple[tuple[str, ...], int | None]:
    """Return a path without numbers of repeats and generic names, and the repeat if given."""
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
    specific = [part for part in kept if not _GENERIC.fullmatch(part)]
    return tuple(specific or kept), number


def assign_job_names(namings: Sequence[Naming]) -> None:
    """Choose the shortest names that tell results apart, and number the repeats.

    Of results with one jobname, all names have the same parts of labels and path.
    """
    # Names shared by results that are not repeats of each other
    while clashing := {g[0].candidate for g in _groups(namings) if not _are_repeats(g)}:
        raised = False
        # What tells two results of a job apart stands in the names of all of them
        alike = {naming.jobname for naming in namings if naming.candidate in clashing}
        for naming in namings:
            if naming.jobname in alike and naming.level < naming.most_levels:
                naming.level += 1
                raised = True
        if not raised:
            break
    for naming in namings:
        naming.job = plain(naming.candidate)
    _number_clashes(namings)
    _number_repeats(namings)


def _groups(namings: Iterable[Naming]) -> list[list[Naming]]:
    groups: dict[tuple[str, int, str, str], list[Naming]] = defaultdict(list)
    for naming in namings:
        name = naming.job or naming.candidate
        groups[naming.host, naming.client, naming.variant, name].append(naming)
    return list(groups.values())


def _are_repeats(group: Sequence[Naming]) -> bool:
    if len(group) == 1:
        return True
    numbers = {naming.repeat for naming in group}
    names = {naming.jobname for naming in group if naming.is_job_given}
    are_equal = all(naming.settings == group[0].settings for naming in group)
    are_equal |= all(naming.is_job_given for naming in group) and len(names) == 1
    return are_equal and None not in numbers and len(numbers) == len(group)


def _number_clashes(namings: Sequence[Naming]) -> None:
    """Append a number to names that are still equal, unless a pattern gives them."""
    for group in _groups(namings):
        if not _are_repeats(group):
            if any(naming.is_job_given or naming.is_repeat_given for naming in group):
                raise _same_name(group)
            for number, members in enumerate(_repeated(group), start=1):
                for naming in members:
                    naming.job += f"-{number}" if number > 1 else ""
                    naming.repeat = naming.repeat if len(members) > 1 else None


def _repeated(group: Sequence[Naming]) -> list[list[Naming]]:
    """Return results of one name in groups of repeats; a result without repeats is alone."""
    alike: list[list[Naming]] = []
    for naming in group:
        known = next((each for each in alike if each[0].settings == naming.settings), None)
        alike += [[naming]] if known is None else []
        if known is not None:
            known.append(naming)
    return [
        members
        for each in alike
        for members in ([each] if _are_repeats(each) else ([naming] for naming in each))
    ]


def _same_name(group: Sequence[Naming]) -> InputError:
    """Return the error for results that a pattern does not tell apart."""
    numbers = Counter(naming.repeat for naming in group)
    alike = [naming for naming in group if numbers[naming.repeat] > 1]
    first, second = (*alike, *group)[:2] if len(alike) > 1 else group[:2]
    repeat = f", repeat {first.repeat}" if first.repeat == second.repeat is not None else ""
    return InputError(
        f"--labels gives {first.source} and {second.source} the same name: job {first.job}{repeat}"
        f" on host {first.host}",
        hint="name the folder in which they differ: {repeat} for repeats, or a label",
    )


def _number_repeats(namings: Sequence[Naming]) -> None:
    for group in _groups(namings):
        if all(naming.is_repeat_given for naming in group):
            continue
        for number, naming in enumerate(
            sorted(group, key=lambda naming: naming.repeat or 0), start=1
        ):
            naming.repeat = number


def renamed_jobs(namings: Iterable[Naming]) -> str:
    """Return which jobs have another name than fio gave them, in words; empty for none."""
    names = [
        f"{naming.jobname!r} in {naming.source} is {naming.job!r}"
        for naming in namings
        if naming.job != naming.jobname
    ]
    if not names:
        return ""
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return f"jobs were renamed for valid, unique names: {', '.join(names[:_MAX_NAMED])}{more}"


def plain(text: str) -> str:
    """Return a text as a valid name of a job, a host or a folder."""
    return _NOT_IN_NAMES.sub("-", text).strip("-.")[:_MAX_LENGTH].strip("-.") or "job"


def assign_host_names(wanted: Sequence[str]) -> list[str]:
    """Return a valid name for each host, ``unknown`` for one without; no two hosts share one."""
    owners: dict[str, list[str]] = defaultdict(list)
    names = []
    for host in wanted:
        name = plain(host or "unknown")
        if host not in owners[name]:
            owners[name].append(host)
        index = owners[name].index(host)
        names.append(f"{name}-{index + 1}" if index else name)
    return names
