"""Options of fio of each run that affect its I/O, as plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import mul

from volbench.analyse.frames.design import GIVEN, HOST
from volbench.model.campaign.planned_run import Campaign, Run, Section
from volbench.model.frames.columns import IDENTITY
from volbench.model.frames.metadata import UNTIL_STEADY, option_matters, option_value
from volbench.model.results.provenance import HostFacts
from volbench.units import natural_order

_Row = Mapping[str, object]
WITHIN = "_within"  # Column of the bounds on latencies in whose search a run is a trial
TURN = "_turn"  # Column of the turn in which a host runs; 0 where hosts run together
BESIDE = "_beside"  # Column of what `beside` returns
_MEMBERS = "_members"  # Column of the runs of a sum
# Columns of the first process that name the sum of several
_NAMES = frozenset({*(column.name for column in IDENTITY), "started_utc", BESIDE})
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


def option_values(run: Run, group: str, names: Sequence[str]) -> dict[str, object]:
    """Return the value of each option in a section; None where it is not known."""
    section = section_of(run, group)
    if not run.reports_options(section):
        return dict.fromkeys(names)
    given = run.effective(section)
    values: dict[str, object] = {
        name: option_value(name, given.get(name)) if run.has_default(section, name) else None
        for name in names
    }
    if run.until is not None and "runtime" in values:  # which is only its deadline
        values["runtime"] = UNTIL_STEADY
    return {**values, WITHIN: run.within} if run.within else values


def rows_with_options(
    parts: Iterable[tuple[Campaign, Mapping[str, Run], Sequence[_Row], Sequence[HostFacts]]],
) -> list[dict[str, object]]:
    """Return rows of the summary with the options of their runs."""
    known = list(parts)
    names = option_names(campaign for campaign, *_ in known)
    return [
        {**option_values(runs[str(row["run"])], str(row.get("group")), names), **row, **of_host}
        for campaign, runs, rows, hosts in known
        for given, turns in [(given_order(campaign), turns_of(campaign))]
        for facts in [{host.host: vars(host) for host in hosts}]
        for row in with_sums(rows, partial(lambda of, row: beside(of[str(row["run"])]), runs))
        for host in [str(row["host"])]
        for of_host in [{GIVEN: given, TURN: turns.get(host), HOST: facts.get(host)}]
    ]


def given_order(campaign: Campaign) -> tuple[str, ...]:
    """Return arms, and hosts that take turns, in the order in which they were given."""
    is_in_turn = any(run.in_turn for run in campaign.runs)
    return *campaign.arms, *(host.name for host in campaign.hosts if is_in_turn)


def turns_of(campaign: Campaign) -> dict[object, int]:
    """Return the turn in which each host runs; 0 for hosts that run together."""
    return {host.name: host.turn for host in campaign.hosts}


def beside(run: Run) -> int | None:
    """Return the step of imported processes at the same time on one volume; None of others."""
    return run.step if run.imported is not None and run.imported.beside else None


def with_sums(
    rows: Iterable[Mapping[str, object]], beside_of: Callable[[Mapping[str, object]], object]
) -> Iterator[Mapping[str, object]]:
    """Yield rows of the summary; those of processes beside each other as their sum, at the end."""
    members: dict[tuple[object, ...], list[Mapping[str, object]]] = {}
    for row in rows:
        if step := beside_of(row):
            key = (row["campaign"], step, row["group"], row["direction"])
            members.setdefault(key, []).append(row)
        else:
            yield row
    yield from map(_sum_of, members.values())


def members_of(row: Mapping[str, object]) -> Sequence[object]:
    """Return the runs of a row, several of a sum."""
    members = row.get(_MEMBERS)
    return members if isinstance(members, list) else [row["run"]]


def _sum_of(members: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    """Return the sum of several rows: of latencies only the mean and the maximum are known.

    What processes differ in, such as the block size, is not known of the sum.
    """
    first = members[0]
    unknown = {
        name: None
        for name, value in first.items()
        if name.startswith(("lat_", "slat_", "clat_", "iops_"))
        or (name not in _NAMES and any(row.get(name) != value for row in members))
    }
    parts = {part for row in members for part in str(row["volume"]).split(":")}
    numbers = {
        name: [value for row in members if isinstance(value := row.get(name), int | float)]
        for name in (*_ADDED, "lat_mean_s", "lat_max_s")
    }
    ios = numbers["total_ios"]
    sums = {name: sum(numbers[name]) for name in _ADDED if numbers[name]}
    if ios and len(ios) == len(numbers["lat_mean_s"]):
        sums["lat_mean_s"] = math.fsum(map(mul, numbers["lat_mean_s"], ios)) / sum(ios)
        sums["lat_max_s"] = max(numbers["lat_max_s"], default=math.nan)
    volume = ":".join(sorted(parts, key=natural_order))
    runs = [row["run"] for row in members]
    return {**first, **unknown, **sums, "volume": volume, "client": None, _MEMBERS: runs}
