"""Options of fio of each run that affect its I/O, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from volbench.model.campaign.planned_run import Campaign, Run, Section
from volbench.model.frames.metadata import option_matters, option_value


def option_names(campaigns: Iterable[Campaign]) -> list[str]:
    """Return the options that any run sets and that matter, in the order of the alphabet."""
    named = {
        name
        for campaign in campaigns
        for run in campaign.runs
        for section in run.sections
        for name in run.effective(section)
    }
    return sorted(name for name in named if option_matters(name))


def section_of(run: Run, group: str) -> Section:
    """Return the section of a run with a name; the first where none has it."""
    return next((section for section in run.sections if section.name == group), run.sections[0])


def option_values(run: Run, group: str, names: Sequence[str]) -> dict[str, str | None]:
    """Return the value of each option in a section; None where it is not known."""
    section = section_of(run, group)
    if not run.reports_options(section):
        return dict.fromkeys(names)
    given = run.effective(section)
    return {
        name: option_value(name, given.get(name)) if run.has_default(section, name) else None
        for name in names
    }


def rows_with_options(
    parts: Iterable[tuple[Campaign, Mapping[str, Run], Sequence[Mapping[str, object]]]],
) -> list[dict[str, object]]:
    """Return rows of the summary with the options of their runs.

    Args:
        parts: campaign, its runs by the id that rows have, and rows.
    """
    known = list(parts)
    names = option_names(campaign for campaign, _, _ in known)
    return [
        {**option_values(runs[str(row["run"])], str(row.get("group")), names), **row}
        for _, runs, rows in known
        for row in rows
    ]
