"""Options and volume of the jobs in a result, from what fio reports of them.

Nothing is made up: an option that cannot be read is left out and named, and a volume that is not
reported is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from volbench.errors import InputError, OutputError
from volbench.fio.jobs.fio_values import read_value
from volbench.fio.jobs.job_targets import is_device
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.version import parse_version
from volbench.model.campaign.target import Volume, VolumeKind
from volbench.model.profile.fio_option import Option, OptionKind
from volbench.model.results.result import JobResult, RunOutput

ROLE = "data"
UNKNOWN = "unknown"
_APART = frozenset({"name", "description"})
_WRITES_BARE = (3, 42)
"""Version whose results hold options without a value; 3.36 is the last one seen without."""


@dataclass(frozen=True)
class ReportedOptions:
    """What is known of one section.

    Attributes:
        options: canonical.
        note: its description.
        is_whole: whether what is not among the options has fio's default.
        left_out: options that can't be read, as they stand.
    """

    options: dict[str, str]
    note: str = ""
    is_whole: bool = True
    left_out: tuple[str, ...] = ()


def reported_options(output: RunOutput, job: JobResult) -> ReportedOptions:
    """Return the options of an entry: fio's global ones, and its own over them.

    fio 2.2 reports none at all, and later ones leave out those of some clients' jobs.
    """
    shared = output.shared_options(job)
    texts = {**shared, **job.options}
    has_own = bool(job.options) or (bool(shared) and not job.hostname)
    has_own = has_own and output.disputed <= job.options.keys()
    options: dict[str, str] = {}
    left_out: list[str] = []
    kb_base = 1000 if texts.get("kb_base") == "1000" else 1024
    for name, text in texts.items():
        option = shipped_table().find(name)
        if option is None or option.name in _APART:
            continue
        try:
            options[option.name] = _canonical(option, text, kb_base)
        except (InputError, ValueError):
            left_out.append(f"{name}={text}")
    is_whole = has_own and not left_out
    return ReportedOptions(options, texts.get("description", ""), is_whole, tuple(left_out))


def unsaid_by(output: RunOutput) -> tuple[str, ...]:
    """Return the options that a result leaves out although they may have been set.

    Up to fio 3.36 those without a value, such as a bare ``time_based``, are left out; 3.42 writes
    them with an empty text.
    """
    texts = [output.global_options, *(job.options for job in output.jobs)]
    if _writes_bare(output.tool_version) or any("" in options.values() for options in texts):
        return ()
    flags = (
        option.name for option in shipped_table().options.values() if option.kind is OptionKind.FLAG
    )
    return tuple(flags)


def _writes_bare(version: str) -> bool:
    """Whether a version writes options without a value; an odd text is none that does."""
    try:
        return parse_version(version) >= _WRITES_BARE
    except OutputError:
        return False


def _canonical(option: Option, text: str, kb_base: int) -> str:
    is_bare = text == "" and option.kind is OptionKind.FLAG
    return read_value(option, None if is_bare else text, kb_base=kb_base).value


def volume_of(sections: Mapping[str, ReportedOptions]) -> Volume:
    """Return what a run worked on, as far as it is reported."""
    places = list(dict.fromkeys(_place(section.options) for section in sections.values()))
    if len(places) == 1:
        kind, target = places[0]
        return Volume(role=ROLE, kind=kind, target=target)
    return Volume(
        role=ROLE, kind=VolumeKind.UNKNOWN, target=", ".join(target for _, target in places)
    )


def _place(options: Mapping[str, str]) -> tuple[VolumeKind, str]:
    if options.get("ioengine") == "nbd" and "uri" in options:
        return VolumeKind.NBD, options["uri"]
    folder, name = options.get("directory", ""), options.get("filename", "")
    plain = name.replace("\\:", "")
    if ":" in plain or ":" in folder.replace("\\:", ""):
        return VolumeKind.UNKNOWN, name or folder
    path = name.replace("\\:", ":")
    if path and is_device(path):
        return VolumeKind.DEVICE, path
    if path:
        return VolumeKind.FILE, str(PurePosixPath(folder) / path.lstrip("/")) if folder else path
    if folder:
        return VolumeKind.DIRECTORY, folder
    return VolumeKind.UNKNOWN, UNKNOWN
