"""Tables of campaigns, of the runs of a plan in their order, and of profiles with their jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from volbench.present.formatting import Row, first_sentence, text
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import counted_noun, format_size

if TYPE_CHECKING:
    from volbench.model.campaign.planned_run import Campaign
    from volbench.model.profile.profile_model import Profile

_BRIEF_OPTIONS = ("rw", "bs", "iodepth", "direct", "numjobs", "size", "runtime")
PROFILE_COLUMNS: tuple[Column[Row], ...] = (
    Column("profile", priority=IDENTITY),
    Column("jobs", is_right=True),
    Column("description", lambda row: first_sentence(text(row, "description")), is_folded=True),
)
_MANY_RUNS = 20  # In a plan, above which it has a row for each workload
_NAMES_SHOWN = 3  # Names that a cell lists before it counts the others


def profile_table(profile: Profile) -> Table[Row]:
    """Return the jobs of a profile with the defaults applied."""
    columns: list[Column[Row]] = [
        Column("job", priority=IDENTITY),
        Column("role", priority=4),
        Column("phase", priority=3),
        Column("options", _options, is_folded=True),
        Column("note", priority=2, is_folded=True, is_optional=True),
    ]
    rows = [
        {
            "job": job.name,
            "role": job.role,
            "phase": job.phase.value,
            "options": _known_values({**profile.defaults, **job.options}),
            "sections": {
                name: _known_values({**profile.defaults, **job.options, **options})
                for name, options in job.sections.items()
            },
            "note": job.note,
            "within": job.within,
        }
        for job in profile.jobs
    ]
    description = " ".join(profile.description.split())
    title = f"{profile.name}: {description}" if description else profile.name
    return Table(profile.name, columns, rows, title=title)


def _known_values(options: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def _options(row: Row) -> str:
    options, sections = row["options"], row["sections"]
    if isinstance(sections, Mapping) and len(sections) > 1:
        named = [f"{name}: {brief_options(each)}" for name, each in sections.items()]
        more = [f"and {len(named) - _NAMES_SHOWN} more"] if len(named) > _NAMES_SHOWN else []
        return "; ".join([*named[:_NAMES_SHOWN], *more])
    within = row.get("within") or ()
    bounds = [f"within {' and '.join(within)}"] if isinstance(within, tuple) and within else []
    return " ".join([brief_options(options) if isinstance(options, Mapping) else "", *bounds])


def profiles_table(index: Sequence[Row]) -> Table[Row]:
    """Return a row for each profile, with the first sentence of its description."""
    return Table("profiles", PROFILE_COLUMNS, index)


def runs_table(
    campaign: Campaign, *, expected_s: Mapping[str, float], is_brief: bool = False
) -> Table[Row]:
    """Return the plan, a row for each run in the order in which they run."""
    volumes = {f"{run.volume.role}: {run.volume.target}" for run in campaign.runs}
    volume = Column[Row]("volume", lambda row: f"{row['role']}: {row['volume']}", priority=3)
    columns: list[Column[Row]] = [
        Column("place", header="#", priority=5, is_right=True),
        Column("run", priority=IDENTITY),
        Column("job", priority=6),
        *([volume] if len(volumes) > 1 else []),
        Column("phase", priority=4),
        Column("options", _options, priority=2, is_folded=True),
        quantity("expected_s", "time"),
    ]
    rows: list[Row] = [
        {
            "place": index,
            "run": run.id,
            "host": run.host,
            "job": run.job,
            "role": run.volume.role,
            "volume": run.volume.target,
            "phase": run.phase.value,
            "options": dict(run.effective(run.sections[0])),
            "sections": {section.name: dict(run.effective(section)) for section in run.sections},
            "expected_s": expected_s.get(run.id),
            "within": run.within,
        }
        for index, run in enumerate(campaign.runs, start=1)
    ]
    notes = [f"volume of all runs: {only}" for only in volumes if len(volumes) == 1]
    is_search = any(run.within for run in campaign.runs)
    if is_brief and (len(rows) > _MANY_RUNS or is_search):
        workloads: dict[str, dict[str, Any]] = {}
        for row in rows:
            key = " ".join(
                [*(str(row[name]) for name in ("job", "volume", "phase")), _options(row)]
            )
            whole = workloads.setdefault(key, {**row, "runs": 0, "expected_s": 0.0})
            whole["runs"] += 1
            whole["expected_s"] += expected_s.get(str(row["run"]), math.nan)
        rows = [*workloads.values()]
        count = Column[Row]("runs", priority=1, is_right=True)
        columns = [Column("job", priority=IDENTITY), *columns[3:-1], count, columns[-1]]
        notes.append("--wide shows each run")
    if is_search:
        notes.append("a job with within has at most this many runs, each at a rate chosen then")
    return Table("plan", columns, rows, notes=[*notes, _plan_note(campaign)])


def brief_options(options: Mapping[str, str]) -> str:
    """Return the options that shape a result, such as ``randwrite bs=4k iodepth=16``."""
    parts = []
    for name in _BRIEF_OPTIONS:
        value = options.get(name)
        if value is None:
            continue
        if name in {"bs", "size"} and value.isdigit():
            value = format_size(int(value))
        parts.append(value if name == "rw" else f"{name}={value}")
    return " ".join(parts)


def _plan_note(campaign: Campaign) -> str:
    from volbench.model.profile.profile_model import Phase  # noqa: PLC0415 - slow to import, and lists of profiles need none

    measured = sum(run.phase is Phase.MEASURED for run in campaign.runs)
    runs = counted_noun(len(campaign.runs), "run")
    if measured < len(campaign.runs):
        runs += f", {measured} of them measured"
    return "; ".join(filter(None, [runs, campaign.design, f"seed {campaign.seed}"]))
