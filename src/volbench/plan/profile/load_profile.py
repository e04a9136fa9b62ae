"""Profiles as YAML text: loading with every problem at its place, and dumping."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.errors import Problems
from volbench.model.document.located_errors import Fault, Location, note_fault, validate
from volbench.model.document.yaml_text import parse_document, yaml_text
from volbench.model.profile.fio_option import OptionTable
from volbench.model.profile.profile_model import Job, Profile
from volbench.plan.profile.job_conflicts import job_conflicts, rounds_fault
from volbench.plan.profile.option_values import OptionReader
from volbench.plan.profile.profile_document import ProfileDocument


def load_profile(text: str, *, path: str, table: OptionTable, allow_exec: bool = False) -> Profile:
    """Read a profile.

    Args:
        text: YAML 1.2.
        path: for messages.
        table: the options of the fio that will run it.
        allow_exec: accept options that run programs or leave the run's folder.

    Raises:
        ProfileError: everything that is wrong in it, in file order.
    """
    problems = Problems(path)
    node = parse_document(text, problems, what="a profile", needs="a name and jobs")
    if node is not None:
        reader = OptionReader(table, allow_exec=allow_exec)
        document = validate(ProfileDocument, node, problems, context=reader)
        if document is not None:
            profile, conflicts = with_conflicts(document)
            for fault, _ in conflicts:
                note_fault(problems, node, fault)
            problems.raise_if_any()
            return profile
    problems.raise_if_any()
    raise AssertionError("a document without a model has a problem")


def dump_profile(profile: Profile) -> str:
    """Return a profile as YAML; values are canonical: bytes, whole seconds, 0 and 1."""
    return yaml_text(profile.document())


def with_conflicts(document: ProfileDocument) -> tuple[Profile, list[tuple[Fault, Job | None]]]:
    """Return the profile of a document, and what cannot work together in it.

    Returns:
        The profile; and each conflict once, however many jobs share it, with the first such job,
        or None where it is not that of a job.
    """
    profile = document.profile()
    found: dict[tuple[Location, str], tuple[Fault, Job | None]] = {}
    for fault, job in _conflicts(document, profile):
        found.setdefault((fault.at, fault.message), (fault, job))
    return profile, list(found.values())


def _conflicts(document: ProfileDocument, profile: Profile) -> Iterator[tuple[Fault, Job | None]]:
    for origin in document.origins:
        for conflict in job_conflicts(origin.job, profile.defaults):
            place, on_key = (*origin.place, conflict.key), False
            if conflict.option:
                place, on_key = origin.option_place(conflict.option, conflict.section)
            yield Fault(conflict.message, conflict.hint, place, on_key), origin.job
    if fault := rounds_fault(profile):
        yield Fault(fault.message, fault.hint, ("rounds",), True), None
