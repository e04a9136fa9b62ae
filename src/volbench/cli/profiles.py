"""Profiles by name or path, checked against the fio that is here."""

from __future__ import annotations

from collections.abc import Sequence

from volbench.engine.fio_options import options_on
from volbench.execute.protocol import Executor
from volbench.model.profile import Profile
from volbench.plan.bundled import read_profile
from volbench.plan.load import load_profile
from volbench.plan.override import apply_overrides


def load_profiles(
    executor: Executor,
    names: Sequence[str],
    *,
    settings: Sequence[str] = (),
    allow_exec: bool = False,
) -> tuple[Profile, ...]:
    """Load profiles and apply overrides.

    Raises:
        InputError: a profile is unknown, or wrong in one or more places.
    """
    table = options_on(executor)
    profiles = []
    for name in names:
        text, path = read_profile(name)
        profile = load_profile(text, path=path, table=table, allow_exec=allow_exec)
        profiles.append(apply_overrides(profile, settings, table=table, allow_exec=allow_exec))
    return tuple(profiles)
