"""Distribution of ``--set`` settings over several profiles."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from volbench.model.profile.profile_model import Profile


def settings_by_profile(profiles: Sequence[Profile], settings: Sequence[str]) -> list[list[str]]:
    """Return the settings of each profile.

    One that names a job, a pattern of jobs or the number of rounds holds for the profiles that
    have them; where none has, it stays with all of them and is refused there.

    Args:
        profiles: that are run together.
        settings: ``KEY=VALUE`` each.
    """
    meant: list[list[str]] = [[] for _ in profiles]
    for setting in settings:
        key, _, value = setting.partition("=")
        having = [_has(profile, key.strip(), value.strip()) for profile in profiles]
        for own, is_meant in zip(meant, having, strict=True):
            if is_meant or not any(having):
                own.append(setting)
    return meant


def _has(profile: Profile, key: str, value: str) -> bool:
    """Return whether a profile has the part that a key names."""
    if key == "rounds.max":
        return profile.rounds is not None
    if any(key.startswith(f"{job.name}.") for job in profile.jobs):
        return True
    return not value and any(fnmatchcase(job.name, key) for job in profile.jobs)
