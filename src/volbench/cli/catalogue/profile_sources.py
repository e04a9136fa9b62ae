"""Profiles by name or path, checked against the installed fio and the known volume types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

from volbench.cli.options import VOLUME_TYPES

if TYPE_CHECKING:
    from volbench.execute.protocol import Executor
    from volbench.model.profile.profile_model import Profile


def knows_volume_types(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the option ``--volume-types``; whatever it reads may name types of the files."""

    @VOLUME_TYPES
    @wraps(function)
    def wrapped(*arguments: object, type_files: tuple[Path, ...], **others: object) -> None:
        from volbench.plan.volume_types import also_types

        with also_types(type_files):
            function(*arguments, **others)

    return wrapped


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
    from volbench.engine.hosts.installed_fio import options_on
    from volbench.plan.profile.bundled import read_profile
    from volbench.plan.profile.load_profile import load_profile
    from volbench.plan.profile.override import apply_overrides, settings_by_profile

    table = options_on(executor)
    profiles = []
    for name in names:
        text, path = read_profile(name)
        profile = load_profile(text, path=path, table=table, allow_exec=allow_exec)
        profiles.append(profile)
    return tuple(
        apply_overrides(profile, meant, table=table, allow_exec=allow_exec)
        for profile, meant in zip(profiles, settings_by_profile(profiles, settings), strict=True)
    )
