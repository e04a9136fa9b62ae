"""Profiles by name or path, checked against the installed fio, and their job files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import parse_targets
from volbench.errors import InputError
from volbench.run_profiles import load_texts, profile_texts

if TYPE_CHECKING:
    from volbench.execute.protocol import Executor
    from volbench.model.campaign.planned_run import Campaign
    from volbench.model.campaign.target import Volume
    from volbench.model.profile.profile_model import Profile


def load_profiles(
    executor: Executor,
    names: Sequence[str],
    *,
    settings: Sequence[str] = (),
    allow_exec: bool = False,
) -> tuple[Profile, ...]:
    """Load profiles and apply overrides."""
    sources = texts_of(executor, names, allow_exec=allow_exec)
    return load_texts(executor, sources, settings=settings, allow_exec=allow_exec)


def texts_of(
    executor: Executor, names: Sequence[str], *, allow_exec: bool, like: Path | None = None
) -> list[tuple[str, str]]:
    """Return the text of each profile, and where it is from; notices go to stderr."""
    from volbench.store.archive import read_campaign

    if bool(names) == (like is not None):
        raise InputError(
            "name the profiles to run, or a campaign whose profiles are taken",
            hint="volbench run PROFILE..., or volbench run --like DIR",
        )
    if like is None:
        return profile_texts(executor, names, allow_exec=allow_exec, note=say_note)
    layout, archive = read_campaign(like)
    if not archive.profiles:
        raise InputError(
            f"{like} has no profiles: its runs were imported, or are a warm-up",
            hint="name a profile: volbench profile list",
        )
    return [(text, f"{layout.campaign} {name}") for name, text in archive.profiles.items()]


def say_note(notice: str) -> None:
    """Print what a profile cannot express of a job file."""
    click.echo(f"note: {notice}", err=True)


def plan_profile(profile: Profile, *, targets: Sequence[str] = ()) -> Campaign:
    """Return the runs of one repeat of a profile; the default target is this folder.

    Targets are not touched, and need not exist: a path under ``/dev`` is a device, an existing
    file is one, and anything else is a directory.
    """
    from volbench.plan.expansion.expand import Terms, expand

    roles = {job.role for job in profile.jobs}
    named = {**profile.volumes, **parse_targets(targets)}
    places = named or dict.fromkeys(roles, ".")
    missing = sorted(roles - set(places))
    if missing:
        raise InputError(
            f"no target for the role {missing[0]!r}", hint=f"add --on {missing[0]}=PATH"
        )
    volumes = {role: _volume(role, places[role]) for role in roles}
    terms = Terms(name=profile.name, seed=profile.seed or 0, repeat=1)
    return expand([profile.model_copy(update={"rounds": None})], volumes, terms)


def render_profile(
    profile: Profile, *, targets: Sequence[str], measuring: bool
) -> Iterator[tuple[str, str]]:
    """Yield file name and text of each job of a profile."""
    from volbench.fio.dd import dd_argv
    from volbench.fio.jobs.render_job import render
    from volbench.model.profile.profile_model import Tool

    for run in plan_profile(profile, targets=targets).runs:
        if run.tool is Tool.DD:
            yield f"{run.job}.txt", shlex.join(dd_argv(run)) + "\n"
        else:
            yield f"{run.job}.fio", render(run, measuring=measuring)


def _volume(role: str, target: str) -> Volume:
    from volbench.fio.jobs.job_targets import is_device
    from volbench.model.campaign.target import Volume, VolumeKind
    from volbench.model.profile.secret_values import mask_text

    if target.startswith("nbd"):
        return Volume(role=role, kind=VolumeKind.NBD, target=mask_text(target))
    path = Path(target)
    if is_device(target):
        kind = VolumeKind.DEVICE
    elif path.is_file():
        kind = VolumeKind.FILE
    else:
        kind = VolumeKind.DIRECTORY
    return Volume(role=role, kind=kind, target=str(path.absolute()) if target != "." else ".")
