"""Conflicts of jobs with a file that all clients share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from volbench.model.profile.option_policy import Conflict, changing_option
from volbench.model.profile.profile_model import Job, Phase

# Options with which a section reads beyond `size`
_BEYOND_SIZE = ("filesize", "offset_increment")


def shared_conflicts(job: Job, sections: Mapping[str, Mapping[str, str]]) -> Iterator[Conflict]:
    """Yield why the clients of a job cannot share its file.

    Args:
        sections: effective options of each section; the usual single one is named ``""``.
    """
    shared = job.shared
    if shared is None:
        return
    if job.warming is not None or job.phase is Phase.PRECONDITION:
        message = "only jobs that follow the phase precondition, in which volbench writes the "
        message += "shared file, can read it; a warm-up cannot"
        yield Conflict(message, "remove shared, or move the job to `jobs`", "shared")
        return
    named = {name: options.get("filename", "").split(":") for name, options in sections.items()}
    if not any(shared in names for names in named.values()):
        hint = f"add filename: {shared} to the section that reads it"
        yield Conflict(f"no section has the filename {shared}", hint, "shared")
    for section, options in sections.items():
        if named[section] == [shared]:
            yield from _section_conflicts(shared, section, options)
        elif shared in named[section]:
            message = f"the shared file {shared} cannot be one of several files"
            hint = "write a section for each file"
            yield Conflict(message, hint, option="filename", section=section)


def _section_conflicts(shared: str, section: str, options: Mapping[str, str]) -> Iterator[Conflict]:
    if changing := changing_option(options):
        message = f"all clients share {shared}, so they can only read it"
        hint = "write rw: randread or read; write in a section with another filename, which each "
        hint += "client has of its own, such as filename: overlay"
        if changing != "rw":
            hint = f"remove {changing}"
        yield Conflict(message, hint, option=changing, section=section)
    size, offset = options.get("size", ""), options.get("offset", "0")
    if not (size.isdecimal() and offset.isdecimal() and int(size)):
        name = "size" if offset.isdecimal() else "offset"
        message = f"the shared file {shared} is new, so {name} must be known in bytes"
        yield Conflict(message, f"write it like {name}: 1g", option=name, section=section)
    for name in _BEYOND_SIZE:
        if options.get(name, "0") != "0":
            message = f"{name} is not possible with the shared file {shared}"
            yield Conflict(message, f"remove {name}", option=name, section=section)
