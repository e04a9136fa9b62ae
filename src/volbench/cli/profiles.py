"""Verb profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.api.run_profiles import load_texts, profile_texts
from volbench.cli.fio_verb import FioVerb
from volbench.cli.options import (
    A_PROFILE,
    ALLOW_EXEC,
    AS_YAML,
    SETTINGS,
    examples,
    flag,
    on_option,
    output_option,
    parse_targets,
    schema_option,
)
from volbench.cli.output import TableOutput, binary_output, note_owner, table_options
from volbench.cli.verb_groups import VerbGroup
from volbench.errors import InputError
from volbench.store.atomic_files import write_outputs

if TYPE_CHECKING:
    from volbench.execute.protocol import Executor
    from volbench.model.campaign.planned_run import Campaign, Volume
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
    executor: Executor,
    names: Sequence[str],
    *,
    allow_exec: bool,
    like: Path | None = None,
    sections: Sequence[str] = (),
    is_placed: bool = False,
) -> list[tuple[str, str]]:
    """Return the text of each profile, and where it is from; notices go to stderr."""
    from volbench.store.archive import read_campaign

    if bool(names) == (like is not None):
        raise InputError(
            "name the profiles to run, or a campaign whose profiles are taken",
            hint="volbench run PROFILE..., volbench run -- fio ..., or volbench run --like DIR",
        )
    if like is None:
        return profile_texts(
            executor,
            names,
            allow_exec=allow_exec,
            sections=sections,
            is_placed=is_placed,
            note=say_note,
        )
    layout, archive = read_campaign(like)
    if not archive.profiles:
        message = f"{like} has no profiles: its runs were imported, or are a warm-up"
        raise InputError(message, hint="name a profile: volbench profile list")
    return [(text, f"{layout.campaign} {name}") for name, text in archive.profiles.items()]


def say_note(notice: str) -> None:
    """Print what a profile cannot express of a job file."""
    click.echo(f"note: {notice}", err=True)


def plan_profile(profile: Profile, *, targets: Sequence[str] = ()) -> Campaign:
    """Return the runs of one repeat of a profile; the default target is this folder.

    Targets are not touched, and need not exist: a path under ``/dev`` is a device, an existing
    file is one, and anything else is a directory.
    """
    from volbench.model.profile.profile_settings import Repeat
    from volbench.plan.expansion.expand import Terms, expand

    roles = profile.roles
    named = {**profile.volumes, **parse_targets(targets)}
    places = named or dict.fromkeys(roles, ".")
    missing = sorted(roles - set(places))
    if missing:
        raise InputError(
            f"no target for the role {missing[0]!r}", hint=f"add --on {missing[0]}=PATH"
        )
    volumes = {role: _volume(role, places[role]) for role in roles}
    terms = Terms(name=profile.name, seed=profile.seed or 0)
    jobs = tuple(job.model_copy(update={"within": ()}) for job in profile.jobs)
    once = profile.model_copy(update={"rounds": None, "repeats": Repeat(), "jobs": jobs})
    return expand([once], volumes, terms)


def render_profile(
    profile: Profile, *, targets: Sequence[str], measuring: bool
) -> Iterator[tuple[str, str]]:
    """Yield file name and text of each job of a profile."""
    from volbench.fio.jobs.render_job import render

    for run in plan_profile(profile, targets=targets).runs:
        place = f"-{run.volume.role}" if profile.lanes > 1 else ""
        yield f"{run.job}{place}.fio", render(run, measuring=measuring)


def _volume(role: str, target: str) -> Volume:
    from volbench.engine.guard.volume_targets import joined_volume
    from volbench.model.campaign.target_paths import paths_of

    paths = paths_of(target)
    return joined_volume([_single_volume(role, path, of=len(paths)) for path in paths])


def _single_volume(role: str, target: str, *, of: int) -> Volume:
    from volbench.fio.jobs.job_syntax import is_device
    from volbench.model.campaign.planned_run import Volume, VolumeKind
    from volbench.model.profile.secret_values import mask_text

    if target.startswith("nbd"):
        return Volume(role=role, kind=VolumeKind.NBD, target=mask_text(target))
    path = Path(target)
    if is_device(target):
        kind = VolumeKind.DEVICE
    elif path.is_file() or of > 1:
        kind = VolumeKind.FILE
    else:
        kind = VolumeKind.DIRECTORY
    return Volume(role=role, kind=kind, target=str(path.absolute()) if target != "." else ".")


def profile_schema() -> object:
    """Return the JSON Schema of profiles, with the options of the installed fio."""
    from volbench.engine.hosts.host_facts import options_on
    from volbench.execute.local import LocalExecutor
    from volbench.plan.profile.load_profile import json_schema

    return json_schema(options_on(LocalExecutor()))


@click.group("profile", cls=VerbGroup)
@schema_option("a profile", "volbench.cli.profiles:profile_schema")
def profile() -> None:
    """List, show, check, render and import profiles."""


@profile.command("list", epilog=examples("volbench profile list"))
@table_options()
def list_profiles(*, table_output: TableOutput) -> None:
    """List the bundled profiles."""
    from volbench.plan.bundled_files import profile_index
    from volbench.present.tables.plan_tables import profiles_table

    table_output.write(profiles_table(profile_index()))


@profile.command(
    "show",
    epilog=examples(
        "volbench profile show quick", "volbench profile show quick --yaml > my-profile.yaml"
    ),
)
@click.argument("name", metavar="NAME", shell_complete=A_PROFILE)
@AS_YAML
@table_options()
def show(name: str, *, as_yaml: bool, table_output: TableOutput) -> None:
    """Show the jobs of a profile, defaults applied."""
    from volbench.execute.local import LocalExecutor
    from volbench.plan.bundled_files import read_profile
    from volbench.present.tables.plan_tables import profile_table

    if as_yaml:
        click.echo(read_profile(name)[0], nl=False)
        return
    table_output.write(profile_table(*load_profiles(LocalExecutor(), [name], allow_exec=True)))


@profile.command("check", epilog=examples("volbench profile check my-profile.yaml"))
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=A_PROFILE)
@ALLOW_EXEC
def check(files: tuple[str, ...], *, allow_exec: bool) -> None:
    """Check profiles.

    Every problem is printed with file, line, column and key. If fio is installed, it also parses
    every job file without running it.
    """
    from volbench.engine.guard.preflight import check_job_files
    from volbench.engine.hosts.connected_host import this_machine
    from volbench.engine.hosts.host_facts import fio_path
    from volbench.execute.local import LocalExecutor
    from volbench.plan.expansion.expand import missing_size
    from volbench.plan.profile.profile_document import profile_warnings

    executor = LocalExecutor()
    fio = fio_path(executor)
    for name in files:
        (profile,) = load_profiles(executor, [name], allow_exec=allow_exec)
        # The targets of the profile may be missing here: every role is this folder.
        plan = plan_profile(profile.model_copy(update={"volumes": {}}))
        if fio:
            check_job_files(this_machine(fio=fio), plan.runs)
        for warning in profile_warnings(profile):
            click.echo(f"{name}: warning: {warning}", err=True)
        needs = "; a directory or a new file needs --set size=1g"
        more = needs if any(map(missing_size, plan.runs)) else ""
        click.echo(f"{name}: profile {profile.name} is valid, jobs: {len(profile.jobs)}{more}")


@profile.command(
    "render",
    epilog=examples(
        "volbench profile render quick --on /mnt/data -o jobs",
        "volbench profile render quick --on /mnt/data --as-commands",
    ),
)
@click.argument("name", metavar="FILE", shell_complete=A_PROFILE)
@output_option(
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the job files; created if it is missing.",
)
@flag("--as-commands", "Print a command of fio for each job instead.")
@on_option("Target of a role, as for volbench run.", metavar="[ROLE=]TARGET")
@flag("--measuring", "Include what volbench adds to measure: logs, percentiles, seeds.")
@SETTINGS
@ALLOW_EXEC
def render(
    name: str,
    output: Path | None,
    targets: tuple[str, ...],
    settings: tuple[str, ...],
    *,
    as_commands: bool,
    measuring: bool,
    allow_exec: bool,
) -> None:
    """Write a profile as fio job files into DIR.

    There is one for each job; plain fio runs them.
    """
    from volbench.execute.local import LocalExecutor
    from volbench.fio.jobs.command_line import as_command

    executor = LocalExecutor()
    (profile,) = load_profiles(executor, [name], settings=settings, allow_exec=allow_exec)
    rendered = render_profile(profile, targets=targets, measuring=measuring)
    if as_commands:
        click.echo("\n".join(as_command(text) for _, text in rendered))
        return
    if output is None:
        raise InputError("-o/--output is missing", hint="name a folder, or add --as-commands")
    write_outputs(output, {name: text.encode() for name, text in rendered})
    click.echo("\n".join(str(output / name) for name, _ in rendered))
    note_owner(output)


@profile.command(
    "import",
    cls=FioVerb,
    epilog=examples(
        "volbench profile import database.fio -o database.yaml",
        "volbench profile import -- fio --name=reads --rw=randread --size=1g",
    ),
)
@click.argument("job_file", metavar="JOB_FILE|COMMAND")
@output_option(metavar="FILE", default="-", help="File; - is standard output, the default.")
@ALLOW_EXEC
def import_job_file(job_file: str, output: str, *, allow_exec: bool) -> None:
    """Turn a fio JOB_FILE, or a COMMAND after --, into a profile.

    The profile means the same to fio.
    """
    from volbench.execute.local import LocalExecutor

    executor = LocalExecutor()
    sources = profile_texts(executor, [job_file], allow_exec=allow_exec, note=say_note)
    load_texts(executor, sources, settings=(), allow_exec=allow_exec)
    with binary_output(output, default_name="profile.yaml") as sink:
        sink.write(sources[0][0].encode())
