"""Several volumes under one role of a profile: each job runs on each of them, as arms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from volbench.errors import InputError
from volbench.model.profile.profile_model import Phase, Profile

# Longer names are no easier to read than letters. Noticed by: test_measure.py
_MAX_NAME_PARTS = 3


def target_names(targets: Mapping[str, str]) -> dict[str, str]:
    """Return key to the end of its target that no other has; the key where they are too alike."""
    words = [re.findall(r"[A-Za-z0-9_]+", target) for target in targets.values()]
    for count in range(1, _MAX_NAME_PARTS + 1):
        ends = ["-".join(parts[-count:]) for parts in words]
        if len(set(ends)) == len(ends) and all(ends):
            return dict(zip(targets, ends, strict=True))
    return {key: key for key in targets}


def on_each_target(profile: Profile, arms: Mapping[str, Mapping[str, str]]) -> Profile:
    """Return a profile whose jobs of a role run on each of several volumes.

    Args:
        arms: role to its arms: their names, and the role of the volume of each.
    """
    used = {job.role for job in profile.jobs if job.role in arms}
    if used and profile.rounds is not None:
        raise InputError(
            f"profile {profile.name} repeats its jobs until its volume is steady, but several"
            " volumes do not become steady at the same time",
            hint="run it on one volume after another, each into a folder of its own",
        )
    jobs, copies = [], dict[str, list[str]]()
    for job in profile.jobs:
        for arm, role in arms.get(job.role, {"": job.role}).items():
            name = "-".join(filter(None, (job.name, arm)))
            changed: dict[str, object] = {"name": name, "role": role}
            if arm and job.phase is Phase.MEASURED:
                changed["arm"] = "-".join(filter(None, (job.arm, arm)))
            copies.setdefault(job.name, []).append(name)
            jobs.append(job.model_copy(update=changed))
    limits = {
        own: declared
        for role, declared in profile.limits.items()
        for own in arms.get(role, {"": role}).values()
    }
    expect = {
        name: bounds for job, bounds in profile.expect.items() for name in copies.get(job, [job])
    }
    changes = {"jobs": tuple(jobs), "limits": limits, "expect": expect}
    return profile.model_copy(update=changes)


def arms_of_targets(targets: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return role to its arms, of the roles with several targets: names to roles of volumes."""
    return {
        role: {
            name: f"{role}-{key}"
            for key, name in target_names({str(n): path for n, path in enumerate(paths, 1)}).items()
        }
        for role, paths in targets.items()
        if len(paths) > 1
    }
