"""What probe and others show of the hosts of an inventory."""

from __future__ import annotations

from dataclasses import asdict

import click

from volbench.cli.make.fleet_options import Where, stations_of
from volbench.cli.table_output import TableOutput
from volbench.engine.hosts.host_survey import Seen, shared_machines, shared_volumes, survey
from volbench.errors import CampaignError
from volbench.present.tables.hosts_tables import (
    SurveyedHost,
    clock_words,
    survey_table,
    volume_words,
)
from volbench.units import format_capacity


def show_survey(where: Where, shown: TableOutput) -> None:
    """Survey every host, print one table, and fail if a host cannot take part.

    Raises:
        CampaignError: a host can't take part.
    """
    with stations_of(where) as stations:
        seen = survey(stations)
    shown.write(survey_table([_row(one) for one in seen]))
    if shown.format == "table":
        for names in shared_machines(seen):
            click.echo(f"note: {', '.join(names)} are one machine", err=True)
        for names in shared_volumes(seen):
            click.echo(f"note: {', '.join(names)} are one volume", err=True)
    bad = [one for one in seen if one.problem or one.trouble]
    if bad:
        hints = [one.hint for one in bad if one.hint]
        raise CampaignError(
            f"{len(bad)} of {len(seen)} hosts can't take part: "
            f"{', '.join(one.name for one in bad)}",
            hint=hints[0] if hints else "look at the table",
        )


def _record(one: Seen) -> dict[str, object]:
    """Return everything that is known of a host, for scripts."""
    return {
        "name": one.name,
        "problem": one.problem,
        "host": None if one.host is None else one.host.model_dump(mode="json"),
        "clock": None if one.clock is None else asdict(one.clock),
        "volumes": {role: facts.model_dump(mode="json") for role, facts in one.volumes.items()},
        "trouble": one.trouble,
    }


def _row(one: Seen) -> SurveyedHost:
    """Return a host in the words of the table."""
    problems = [one.problem] if one.problem else []
    problems += [f"{role}: {words}" for role, words in one.trouble.items()]
    cells: dict[str, str] = {}
    if one.host is not None:
        if not one.host.fio_version:
            problems.append("fio is not installed: apt-get install fio")
        memory, clock = one.host.memory_bytes, one.clock
        cells = {
            "fio": one.host.fio_version,
            "kernel": one.host.kernel,
            "CPUs": str(one.host.cpus),
            "memory": "" if memory is None else format_capacity(memory),
            "clock": "unknown" if clock is None else clock_words(clock.offset_s, clock.bound_s),
            "volumes": "\n".join(volume_words(*pair) for pair in one.volumes.items()),
        }
    return SurveyedHost(one.name, cells, "; ".join(problems), _record(one))
