"""volbench profile: list, show, check, render, import, schema."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.catalogue.profile_sources import (
    load_profiles,
    plan_profile,
    render_profile,
    say_note,
)
from volbench.cli.lazy_group import VerbGroup
from volbench.cli.options import (
    ALLOW_EXEC,
    AS_YAML,
    SETTINGS,
    VOLUME_TYPES,
    flag,
    output_option,
    schema_command,
)
from volbench.cli.output import TableOutput, table_options
from volbench.run_profiles import imported_text, load_texts
from volbench.store.atomic_files import make_output_folder, write_output


@click.group("profile", cls=VerbGroup)
def command() -> None:
    """List, show, check, render and import profiles."""


@command.command("list")
@table_options()
def list_profiles(*, shown: TableOutput) -> None:
    """List the bundled profiles."""
    from volbench.plan.bundled import profile_index
    from volbench.present.tables.plan_tables import profiles_table

    shown.write(profiles_table(profile_index()))


@command.command("show")
@click.argument("name", metavar="NAME")
@AS_YAML
@VOLUME_TYPES
@table_options()
def show(name: str, *, as_yaml: bool, shown: TableOutput) -> None:
    """Show the jobs of a profile, defaults applied."""
    from volbench.execute.local import LocalExecutor
    from volbench.plan.bundled import read_profile
    from volbench.present.tables.plan_tables import profile_table

    if as_yaml:
        click.echo(read_profile(name)[0], nl=False)
        return
    shown.write(profile_table(*load_profiles(LocalExecutor(), [name], allow_exec=True)))


@command.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@ALLOW_EXEC
@VOLUME_TYPES
def check(files: tuple[str, ...], *, allow_exec: bool) -> None:
    """Check profiles.

    Every problem is printed with file, line, column and key. Where fio is installed, it parses
    every job file too, without running it.
    """
    from volbench.engine.guard.preflight import check_job_files
    from volbench.engine.hosts.connected_host import this_machine
    from volbench.execute.local import LocalExecutor

    executor = LocalExecutor()
    fio = executor.which("fio")
    for name in files:
        (profile,) = load_profiles(executor, [name], allow_exec=allow_exec)
        if fio:
            # The targets of the profile may be missing here: every role is this folder.
            plan = plan_profile(profile.model_copy(update={"volumes": {}}))
            check_job_files(this_machine(fio=fio), plan.runs)
        click.echo(f"{name}: profile {profile.name} is good, {len(profile.jobs)} jobs")


@command.command("render")
@click.argument("name", metavar="FILE")
@output_option(
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the job files; made when missing.",
)
@click.option(
    "--on",
    "targets",
    multiple=True,
    metavar="[ROLE=]TARGET",
    help="Target of a role, as for volbench run.",
)
@flag("--measuring", "Include what volbench adds when it runs them: logs, percentiles, seeds.")
@SETTINGS
@ALLOW_EXEC
@VOLUME_TYPES
def render(
    name: str,
    output: Path,
    targets: tuple[str, ...],
    settings: tuple[str, ...],
    *,
    measuring: bool,
    allow_exec: bool,
) -> None:
    """Write a profile as fio job files into DIR.

    There is one for each job; plain fio runs them.
    """
    from volbench.execute.local import LocalExecutor

    executor = LocalExecutor()
    (profile,) = load_profiles(executor, [name], settings=settings, allow_exec=allow_exec)
    make_output_folder(output)
    for file_name, text in render_profile(profile, targets=targets, measuring=measuring):
        write_output(output / file_name, text.encode())
        click.echo(str(output / file_name))


@command.command("import")
@click.argument("job_file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option(
    type=click.Path(allow_dash=True, path_type=Path),
    metavar="FILE",
    help="File; - is standard output, the default.",
)
@ALLOW_EXEC
def import_job_file(job_file: Path, output: Path | None, *, allow_exec: bool) -> None:
    """Turn a fio JOB_FILE into a profile that means the same to fio."""
    from volbench.execute.local import LocalExecutor

    executor = LocalExecutor()
    dumped = imported_text(executor, job_file, allow_exec=allow_exec, note=say_note)
    load_texts(executor, [(dumped, str(job_file))], settings=(), allow_exec=allow_exec)
    if output is None or str(output) == "-":
        click.echo(dumped, nl=False)
    else:
        write_output(output, dumped.encode())
        click.echo(f"written: {output}", err=True)


@schema_command(command, "a profile")
def schema() -> object:
    """Return the JSON Schema of profiles, with the options of the installed fio."""
    from volbench.engine.hosts.installed_fio import options_on
    from volbench.execute.local import LocalExecutor
    from volbench.plan.profile.profile_schema import json_schema

    return json_schema(options_on(LocalExecutor()))
