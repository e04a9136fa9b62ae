"""Tables of plans: the runs of a campaign in their order, and the jobs of a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Job, Phase, Profile
from volbench.present.formatting import MISSING, Row
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import format_duration, format_size

_BRIEF_OPTIONS = ("rw", "bs", "iodepth", "direct", "numjobs")


def profile_table(profile: Profile) -> Table[Job]:
    """Return the jobs of a profile with the defaults applied."""

    def options(job: Job) -> dict[str, str]:
        merged = {**profile.defaults, **job.options}
        return {name: value for name, value in merged.items() if value is not None}

    def brief(job: Job) -> str:
        sections = f" ({len(job.sections)} sections)" if job.sections else ""
        return brief_options(options(job)) + sections

    columns: list[Column[Job]] = [
        Column("job", lambda job: job.name, priority=IDENTITY),
        Column("role", lambda job: job.role, priority=4),
        Column("tool", lambda job: job.tool.value, priority=5),
        Column("phase", lambda job: job.phase.value, priority=3),
        Column("options", brief, is_folded=True),
        Column("note", lambda job: job.note, priority=2, is_folded=True, is_optional=True),
    ]
    return Table(
        profile.name,
        columns,
        profile.jobs,
        record=lambda job: {
            "job": job.name,
            "role": job.role,
            "tool": job.tool.value,
            "phase": job.phase.value,
            "options": options(job),
            "note": job.note,
        },
    )


def profile_summary(profile: Profile) -> dict[str, object]:
    """Return a profile as the list of profiles shows it: name, number of jobs, description."""
    description = " ".join(profile.description.split())
    return {"profile": profile.name, "jobs": len(profile.jobs), "description": description}


PROFILE_COLUMNS: tuple[Column[Row], ...] = (
    Column("profile", priority=IDENTITY),
    Column("jobs", is_right=True),
    Column("description", is_folded=True),
)


def profiles_table(index: Sequence[Row]) -> Table[Row]:
    """Return a row for each profile.

    Args:
        index: name, number of jobs and description of each, as of `profile_summary`.
    """
    return Table("profiles", PROFILE_COLUMNS, index)


def runs_table(campaign: Campaign, *, expected_s: Mapping[str, float]) -> Table[tuple[int, Run]]:
    """Return the plan, a row for each run in the order in which they run.

    Args:
        campaign: the plan.
        expected_s: run id to its expected length; n/a where it is not known.
    """
    columns: list[Column[tuple[int, Run]]] = [
        Column("place", lambda row: str(row[0]), header="#", priority=5, is_right=True),
        Column("run", lambda row: row[1].id, priority=IDENTITY),
        Column("job", lambda row: row[1].job, priority=6),
        Column("volume", lambda row: _volume(row[1]), priority=3),
        Column("phase", lambda row: row[1].phase.value, priority=4),
        Column("options", lambda row: _run_brief(row[1]), priority=2, is_folded=True),
        Column(
            "expected_s",
            lambda row: _known(expected_s.get(row[1].id), format_duration),
            header="time",
            is_right=True,
        ),
    ]
    return Table(
        "plan",
        columns,
        list(enumerate(campaign.runs, start=1)),
        record=lambda row: {
            "place": row[0],
            "run": row[1].id,
            "host": row[1].host,
            "job": row[1].job,
            "role": row[1].volume.role,
            "volume": row[1].volume.target,
            "phase": row[1].phase.value,
            "options": dict(row[1].effective(row[1].sections[0])),
            "expected_s": expected_s.get(row[1].id),
        },
        notes=[_plan_note(campaign, expected_s)],
    )


def _volume(run: Run) -> str:
    return f"{run.volume.role}: {run.volume.target}"


def _known(value: float | None, format_value: Callable[[float], str]) -> str:
    return MISSING if value is None else format_value(value)


def _run_brief(run: Run) -> str:
    """Return the main options of a run; further sections are counted, not listed."""
    first = brief_options(run.effective(run.sections[0]))
    more = len(run.sections) - 1
    return f"{first} (+{more} sections)" if more else first


def brief_options(options: Mapping[str, str]) -> str:
    """Return the options that shape a result, such as ``randwrite bs=4k iodepth=16``."""
    parts = []
    for name in _BRIEF_OPTIONS:
        value = options.get(name)
        if value is None:
            continue
        if name == "bs" and value.isdigit():
            value = format_size(int(value))
        parts.append(value if name == "rw" else f"{name}={value}")
    return " ".join(parts)


def _plan_note(campaign: Campaign, expected_s: Mapping[str, float]) -> str:
    """Return the totals of a plan."""
    measured = sum(run.phase is Phase.MEASURED for run in campaign.runs)
    parts = [f"{len(campaign.runs)} runs, {measured} of them measured", f"seed {campaign.seed}"]
    # The runs of a step are concurrent, so their times do not add up.
    if expected_s and not any(run.step for run in campaign.runs):
        is_open = campaign.rounds or any(run.until for run in campaign.runs)
        word = "at most" if is_open else "about"
        parts.append(f"{word} {format_duration(sum(expected_s.values()))}")
    return "; ".join(parts)
