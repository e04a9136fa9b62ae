"""Options of fio of each run that affect its I/O, as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import mul

from volbench.model.campaign.planned_run import Campaign, Run, Section
from volbench.model.frames.metadata import option_matters, option_value
from volbench.units import natural_order

# Columns of the summary that are added up over processes at the same time
_ADDED = ("iops", "bw_bytes_per_s", "total_ios", "io_bytes", "numjobs")


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
        for row in _with_sums(rows, runs)
    ]


def _with_sums(
    rows: Sequence[Mapping[str, object]], runs: Mapping[str, Run]
) -> Iterator[Mapping[str, object]]:
    """Yield rows; those of imported processes at the same time on one volume as their sum."""
    beside: dict[tuple[object, ...], list[Mapping[str, object]]] = {}
    for row in rows:
        run = runs[str(row["run"])]
        if run.imported is not None and run.imported.beside:
            beside.setdefault((run.step, row["group"], row["direction"]), []).append(row)
        else:
            yield row
    yield from map(_sum_of, beside.values())


def _sum_of(members: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    """Return the sum of several rows: of latencies only the mean and the maximum are known."""
    first = members[0]
    unknown = {name: None for name in first if name.startswith(("lat_", "slat_", "clat_", "iops_"))}
    parts = {part for row in members for part in str(row["volume"]).split(":")}
    numbers = {name: _known(members, name) for name in (*_ADDED, "lat_mean_s", "lat_max_s")}
    ios = numbers["total_ios"]
    sums = {name: sum(numbers[name]) for name in _ADDED if numbers[name]}
    if ios and len(ios) == len(numbers["lat_mean_s"]):
        sums["lat_mean_s"] = math.fsum(map(mul, numbers["lat_mean_s"], ios)) / sum(ios)
        sums["lat_max_s"] = max(numbers["lat_max_s"])
    volume = ":".join(sorted(parts, key=natural_order))
    return {**first, **unknown, **sums, "volume": volume, "client": None}


def _known(rows: Sequence[Mapping[str, object]], name: str) -> list[float]:
    return [value for row in rows if isinstance(value := row.get(name), int | float)]
