"""Output of a survey of the hosts of an inventory."""

from __future__ import annotations

from dataclasses import asdict

import click

from volbench.cli.make.fleet_options import HostSelection, connected_hosts
from volbench.cli.table_output import TableOutput
from volbench.engine.hosts.host_survey import HostSurvey, shared_machines, shared_volumes, survey
from volbench.errors import CampaignError
from volbench.present.tables.hosts_tables import (
    SurveyedHost,
    clock_words,
    survey_table,
    volume_words,
)
from volbench.units import format_capacity


def show_survey(where: HostSelection, shown: TableOutput) -> None:
    """Survey every host, print one table, and fail if a host can't take part.

    Raises:
        CampaignError: a host can't take part.
    """
    with connected_hosts(where) as hosts:
        surveys = survey(hosts)
    shown.write(survey_table([_row(found) for found in surveys]))
    if shown.format == "table":
        for names in shared_machines(surveys):
            click.echo(f"note: {', '.join(names)} are one machine", err=True)
        for names in shared_volumes(surveys):
            click.echo(f"note: {', '.join(names)} are one volume", err=True)
    bad = [found for found in surveys if found.problem or found.volume_problems]
    if bad:
        hints = [found.hint for found in bad if found.hint]
        raise CampaignError(
            f"{len(bad)} of {len(surveys)} hosts can't take part: "
            f"{', '.join(found.name for found in bad)}",
            hint=hints[0] if hints else "look at the table",
        )


def _record(found: HostSurvey) -> dict[str, object]:
    """Return everything that is known about a host, for scripts."""
    return {
        "name": found.name,
        "problem": found.problem,
        "host": None if found.host is None else found.host.model_dump(mode="json"),
        "clock": None if found.clock is None else asdict(found.clock),
        "volumes": {role: facts.model_dump(mode="json") for role, facts in found.volumes.items()},
        "volume_problems": found.volume_problems,
    }


def _row(found: HostSurvey) -> SurveyedHost:
    """Return a host in the words of the table."""
    problems = [found.problem] if found.problem else []
    problems += [f"{role}: {words}" for role, words in found.volume_problems.items()]
    cells: dict[str, str] = {}
    if found.host is not None:
        if not found.host.fio_version:
            problems.append("fio is not installed: apt-get install fio")
        memory, clock = found.host.memory_bytes, found.clock
        cells = {
            "fio": found.host.fio_version,
            "kernel": found.host.kernel,
            "CPUs": str(found.host.cpus),
            "memory": "" if memory is None else format_capacity(memory),
            "clock": "unknown" if clock is None else clock_words(clock.offset_s, clock.bound_s),
            "volumes": "\n".join(volume_words(*pair) for pair in found.volumes.items()),
        }
    return SurveyedHost(found.name, cells, "; ".join(problems), _record(found))
