"""Options and volume of the jobs in a result, as reported by fio.

Nothing is guessed: an option that cannot be parsed is omitted and listed, and a volume that is not
reported is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from volbench.errors import InputError, OutputError
from volbench.fio.jobs.job_syntax import is_device, read_value
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.version import parse_version
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.model.profile.fio_options import OptionKind
from volbench.model.results.result import JobResult, RunOutput

ROLE = "data"
UNKNOWN = "unknown"
_NOT_OPTIONS = frozenset({"name", "description"})
# Version from which results contain options without a value; 3.36 is known to omit them
_WRITES_VALUELESS_SINCE = (3, 42)


@dataclass(frozen=True)
class ReportedOptions:
    """Options of one section."""

    options: dict[str, str]  # canonical
    note: str = ""  # its description
    is_whole: bool = True  # whether options that are not listed have fio's defaults
    left_out: tuple[str, ...] = ()  # options that cannot be parsed, as reported


def reported_options(output: RunOutput, job: JobResult) -> ReportedOptions:
    """Return the options of an entry: fio's global ones, and its own over them.

    fio 2.2 reports none at all, and later versions omit those of some clients' jobs.
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
        if option is None or option.name in _NOT_OPTIONS:
            continue
        try:
            options[option.name] = _canonical(option.name, text, kb_base)
        except (InputError, ValueError):
            left_out.append(f"{name}={text}")
    is_whole = has_own and not left_out
    return ReportedOptions(options, texts.get("description", ""), is_whole, tuple(left_out))


def unreported_flags(output: RunOutput) -> tuple[str, ...]:
    """Return the options that a result omits although they may have been set.

    Up to fio 3.36 those without a value, such as a bare ``time_based``, are omitted; 3.42 writes
    them with an empty text.
    """
    texts = [output.global_options, *(job.options for job in output.jobs)]
    if _writes_valueless(output.tool_version) or any("" in options.values() for options in texts):
        return ()
    flags = (
        option.name for option in shipped_table().options.values() if option.kind is OptionKind.FLAG
    )
    return tuple(flags)


def _writes_valueless(version: str) -> bool:
    """Return whether a version writes options without a value; False for an unknown version."""
    try:
        return parse_version(version) >= _WRITES_VALUELESS_SINCE
    except OutputError:
        return False


@lru_cache(maxsize=4096)
def _canonical(name: str, text: str, kb_base: int) -> str:
    """Return the value of an option of the shipped table; the results of a campaign repeat many."""
    option = shipped_table().options[name]
    is_bare = text == "" and option.kind is OptionKind.FLAG
    return read_value(option, None if is_bare else text, kb_base=kb_base).value


def volume_of(sections: Mapping[str, ReportedOptions]) -> Volume:
    """Return the volume of a run, as far as it is reported."""
    places = list(
        dict.fromkeys(_volume_from_options(section.options) for section in sections.values())
    )
    if len(places) == 1:
        kind, target = places[0]
        return Volume(role=ROLE, kind=kind, target=target)
    return Volume(
        role=ROLE, kind=VolumeKind.UNKNOWN, target=", ".join(target for _, target in places)
    )


def _volume_from_options(options: Mapping[str, str]) -> tuple[VolumeKind, str]:
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
