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
    sources = profile_texts(names, like=None)
    return load_texts(executor, sources, settings=settings, allow_exec=allow_exec)


def profile_texts(names: Sequence[str], *, like: Path | None) -> list[tuple[str, str]]:
    """Return the text of each profile, and where it is from.

    Args:
        names: bundled names or paths.
        like: instead, a campaign whose profiles are taken.

    Raises:
        ArchiveError: there is no campaign, or it is damaged.
        InputError: a profile is unknown, or the campaign was not planned from profiles.
    """
    from volbench.errors import InputError
    from volbench.plan.profile.bundled import read_profile
    from volbench.store.archive import read_campaign

    if bool(names) == (like is not None):
        raise InputError(
            "name the profiles to run, or a campaign whose profiles are taken",
            hint="volbench run PROFILE..., or volbench run --like DIR",
        )
    if like is None:
        return [read_profile(name) for name in names]
    layout, archive = read_campaign(like)
    if not archive.profiles:
        raise InputError(
            f"{like} has no profiles: its runs were imported, or are a warm-up",
            hint="name a profile: volbench profile list",
        )
    return [(text, f"{layout.campaign} {name}") for name, text in archive.profiles.items()]


def load_texts(
    executor: Executor,
    sources: Sequence[tuple[str, str]],
    *,
    settings: Sequence[str],
    allow_exec: bool,
) -> tuple[Profile, ...]:
    """Load profiles from texts, each with where it is from, and apply overrides.

    Raises:
        InputError: a profile is wrong in one or more places.
    """
    from volbench.engine.hosts.installed_fio import options_on
    from volbench.plan.profile.load_profile import load_profile
    from volbench.plan.profile.override import apply_overrides, settings_by_profile

    table = options_on(executor)
    profiles = [
        load_profile(text, path=path, table=table, allow_exec=allow_exec) for text, path in sources
    ]
    return tuple(
        apply_overrides(profile, meant, table=table, allow_exec=allow_exec)
        for profile, meant in zip(profiles, settings_by_profile(profiles, settings), strict=True)
    )
