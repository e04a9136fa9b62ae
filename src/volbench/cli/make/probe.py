"""volbench probe: facts about this machine and its volumes, and whether they are cold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from volbench.cli.fleet_options import HostSelection, on_hosts
from volbench.cli.options import flag, parse_targets
from volbench.cli.output import TableOutput, table_options
from volbench.errors import CampaignError, InputError
from volbench.units import format_capacity

if TYPE_CHECKING:
    from volbench.engine.conditioning.cold_probe import Probed
    from volbench.engine.hosts.host_survey import HostSurvey
    from volbench.execute.protocol import Executor
    from volbench.model.campaign.target import Volume
    from volbench.model.results.provenance import VolumeFacts


@click.command("probe")
@click.argument("targets", nargs=-1, metavar="[[ROLE=]TARGET]...")
@flag(
    "--cold", "Read a sample of each TARGET twice to find out if it is cold or was never written."
)
@table_options()
@on_hosts
def command(
    targets: tuple[str, ...], *, cold: bool, shown: TableOutput, where: HostSelection
) -> None:
    """Show this machine and each TARGET: model, size, scheduler, filesystem, contents.

    With an inventory, its hosts and their volumes instead: reachability, version of fio, clock
    offset, contents of the disks. Each host rehearses a run without I/O; no volume is written to.
    """
    from volbench.engine.hosts.host_facts import probe_host
    from volbench.execute.local import LocalExecutor
    from volbench.present.tables.hosts_tables import facts_table

    if where.inventory is not None:
        if targets or cold:
            raise InputError(
                "--inventory surveys the volumes of its hosts; it takes no TARGET and no --cold",
                hint="name volumes in the inventory; run probe --cold on the host itself",
            )
        _show_survey(where, shown)
        return
    executor = LocalExecutor()
    if cold and not targets:
        raise InputError("--cold probes volumes, but none is named", hint="add a TARGET")
    host = probe_host(executor)
    looks = _looks(executor, targets, with_cold=cold)
    tables = [facts_table("this machine", host.model_dump())]
    volumes = []
    for facts, probed in looks:
        volumes.append(_record(facts, probed))
        table = facts_table(facts.target, facts.model_dump())
        tables.append(replace(table, notes=[probed.words]) if probed else table)
    document = {"host": host.model_dump(mode="json"), "volumes": volumes}
    shown.write(replace(tables[0], document=document), *tables[1:])


def _looks(
    executor: Executor, targets: tuple[str, ...], *, with_cold: bool
) -> Iterator[tuple[VolumeFacts, Probed | None]]:
    """Yield the facts of each target, and the result of the cold probe."""
    from volbench.engine.hosts.volume_probe import find_volume, probe_volume

    for text in targets:
        for role, place in parse_targets([text]).items():
            volume = find_volume(executor, role=role, target=place)
            # The probe first: looking for a signature reads blocks, which are warm then.
            probed = _probe(executor, volume) if with_cold else None
            yield probe_volume(executor, volume), probed


def _probe(executor: Executor, volume: Volume) -> Probed:
    from volbench.engine.conditioning.cold_probe import probe_cold
    from volbench.engine.hosts.installed_fio import require_fio
    from volbench.engine.run.stop_request import StopRequest
    from volbench.store.layout import ProbeFolder

    with TemporaryDirectory(prefix="volbench-probe-") as folder:
        return probe_cold(
            executor,
            volume,
            ProbeFolder(Path(folder)),
            fio=require_fio(executor),
            stop=StopRequest(),
        )


def _record(facts: VolumeFacts, probed: Probed | None) -> dict[str, object]:
    record = facts.model_dump(mode="json")
    if probed is not None:
        record |= {
            "cold": probed.model_dump(mode="json")["cold"],
            "cold_reason": probed.reason,
        }
    return record


def _show_survey(where: HostSelection, shown: TableOutput) -> None:
    """Survey every host, print one table, and fail if a host cannot take part."""
    from volbench.engine.hosts.host_survey import shared_machines, shared_volumes, survey
    from volbench.present.tables.hosts_tables import survey_table

    with where.connected() as hosts:
        surveys = survey(hosts)
    shown.write(survey_table([*map(_row, surveys)], [*map(_survey_record, surveys)]))
    if shown.is_for_people:
        for names in shared_machines(surveys):
            click.echo(f"note: {', '.join(names)} are one machine", err=True)
        for names in shared_volumes(surveys):
            click.echo(f"note: {', '.join(names)} are one volume", err=True)
    bad = [found for found in surveys if found.problem or found.volume_problems]
    if bad:
        hints = {found.hint for found in bad if found.hint}
        raise CampaignError(
            f"{len(bad)} of {len(surveys)} hosts cannot take part: "
            f"{', '.join(found.name for found in bad)}",
            hint=hints.pop() if len(hints) == 1 else "look at the table",
        )


def _survey_record(found: HostSurvey) -> dict[str, object]:
    return {
        "name": found.name,
        "problem": found.problem,
        "host": None if found.host is None else found.host.model_dump(mode="json"),
        "clock": None if found.clock is None else asdict(found.clock),
        "volumes": {role: facts.model_dump(mode="json") for role, facts in found.volumes.items()},
        "volume_problems": found.volume_problems,
    }


def _row(found: HostSurvey) -> dict[str, str]:
    """Return the cells of a surveyed host by heading."""
    from volbench.present.tables.hosts_tables import clock_words, volume_words

    problems = [found.problem] if found.problem else []
    problems += [f"{role}: {words}" for role, words in found.volume_problems.items()]
    cells = {}
    if found.host is not None:
        memory, clock = found.host.memory_bytes, found.clock
        cells = {
            "fio": found.host.fio_version,
            "kernel": found.host.kernel,
            "CPUs": str(found.host.cpus),
            "memory": "" if memory is None else format_capacity(memory),
            "clock": "unknown" if clock is None else clock_words(clock.offset_s, clock.bound_s),
            "volumes": "\n".join(volume_words(*pair) for pair in found.volumes.items()),
        }
    unknown = dict.fromkeys(("fio", "kernel", "CPUs", "memory", "clock", "volumes"), "")
    return {"host": found.name, **unknown, **cells, "problem": "; ".join(problems)}
