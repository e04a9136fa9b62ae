"""Commands of fio as volbench plans them, compared with fio's own parse."""

from pathlib import Path

from tests.fio.plain import ParsedJob, parsed_jobs
from volbench.fio.jobs.command_line import FioCommand, parse_command
from volbench.fio.jobs.job_file import ImportedJob, parse_jobfile
from volbench.fio.jobs.job_syntax import read_value
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.jobs.render_job import render
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind
from volbench.model.profile.option_policy import OWN
from volbench.model.profile.profile_model import Profile
from volbench.plan.expansion.expand import Terms, expand

TABLE = shipped_table()
SAID_OTHERWISE = {*OWN, "filename", "directory", "kb_base", "thread", "filename_format"}
SAID_OTHERWISE |= {"cmd_type", "nonvectored", "hipri_percentage"}
"""Options that a profile expresses in another way, and some that fio sets itself with an engine."""


def imported(command: str, text: str = "") -> tuple[FioCommand, ImportedJob]:
    """Return a command as volbench reads it, with the profile that it makes of it."""
    parsed = parse_command(command, TABLE)
    return parsed, parse_jobfile(text, path="j.fio", table=TABLE, command=parsed)


def runs(profile: Profile, folder: Path) -> tuple[Run, ...]:
    """Return the runs of a profile on volumes that are a folder."""
    volumes = {
        role: Volume(role=role, kind=VolumeKind.DIRECTORY, target=str(folder))
        for role in profile.volumes
    }
    return expand([profile], volumes, Terms(name="t", seed=1)).runs


def planned(profile: Profile, folder: Path) -> list[ParsedJob] | None:
    """Return the jobs of a profile as fio reads them from its job files; None if it refuses."""
    jobs = []
    for run in runs(profile, folder):
        (folder / "run.fio").write_text(render(run, measuring=False), encoding="utf-8")
        found = parsed_jobs("run.fio", folder=folder)
        if found is None:
            return None
        jobs += found
    order = [name for job in profile.jobs for name in (job.sections or [job.name])]
    return sorted(jobs, key=lambda job: order.index(job.name))  # runs are by volume


def meant(job: ParsedJob) -> dict[str, object]:
    """Return the options of a job by fio's own names, without options that are said otherwise."""
    options: dict[str, object] = {}
    for name, values in job.options.items():
        option = TABLE.find(name)
        if option is None or option.name in SAID_OTHERWISE:
            continue
        is_read = values[0].startswith("=")
        options[option.name] = values if is_read else read_value(option, values[0]).value
        if option.name == "buffered":
            options["direct"] = ("=0",) if options.pop("buffered") == ("=1",) else ("=1",)
        if option.name == "rwmixwrite":
            del options["rwmixwrite"]
            options["rwmixread"] = (f"={100 - int(values[0][1:])}",)
    if options.get("runtime", ("=0",)) == ("=0",):
        options.pop("time_based", None)
    return options


def differences(arguments: list[str], profile: Profile, folder: Path) -> list[str]:
    """Return in which options the jobs of a profile differ from fio's own of a command."""
    own, ours = parsed_jobs(*arguments, folder=folder), planned(profile, folder)
    if own is None or ours is None or len(own) != len(ours):
        return [] if own is ours else [f"fio has {own}, not {ours}"]
    return [
        f"{job.name}: {name} is {meant(job).get(name)} to fio, not {meant(plan).get(name)}"
        for job, plan in zip(own, ours, strict=True)
        for name in sorted({*meant(job), *meant(plan)})
        if meant(job).get(name) != meant(plan).get(name)
    ]
