"""What probe and others show of the hosts of an inventory."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from volbench.cli.make.fleet_options import Where, stations_of
from volbench.engine.hosts.host_survey import Seen, shared_machines, shared_volumes, survey
from volbench.errors import CampaignError
from volbench.present.tables.result_tables import show_table
from volbench.present.tables.survey_table import clock_words, survey_table, volume_words
from volbench.units import format_size


def show_survey(where: Where, *, as_json: bool) -> None:
    """Look at every host, print one table, and fail when one can't take part.

    Raises:
        CampaignError: a host can't take part.
    """
    with stations_of(where) as stations:
        seen = survey(stations)
    if as_json:
        click.echo(json.dumps([_record(one) for one in seen], indent=1))
    else:
        show_table(survey_table([_row(one) for one in seen]))
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


def _row(one: Seen) -> tuple[str, ...]:
    """Return the cells of a host."""
    problems = [one.problem] if one.problem else []
    problems += [f"{role}: {words}" for role, words in one.trouble.items()]
    if one.host is None:
        return (one.name, "", "", "", "", "", "", "; ".join(problems))
    if not one.host.fio_version:
        problems.append("fio is not installed: apt-get install fio")
    memory = one.host.memory_bytes
    clock = one.clock
    return (
        one.name,
        one.host.fio_version,
        one.host.kernel,
        str(one.host.cpus),
        "" if memory is None else format_size(memory),
        "unknown" if clock is None else clock_words(clock.offset_s, clock.bound_s),
        "\n".join(volume_words(role, facts) for role, facts in one.volumes.items()),
        "; ".join(problems),
    )
