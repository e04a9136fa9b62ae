"""volbench probe: facts about this machine and its volumes, and whether they are cold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from volbench.cli.make.fleet_options import HostSelection, on_hosts
from volbench.cli.options import parse_targets
from volbench.cli.table_output import TableOutput, table_options
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.engine.conditioning.cold_probe import Probed
    from volbench.execute.protocol import Executor
    from volbench.model.campaign.target import Volume
    from volbench.model.results.provenance import VolumeFacts


@click.command("probe")
@click.argument("targets", nargs=-1, metavar="[[ROLE=]TARGET]...")
@click.option(
    "--cold",
    is_flag=True,
    help="Read a sample of each TARGET twice to find out if it is cold or was never written.",
)
@table_options()
@on_hosts
def command(
    targets: tuple[str, ...], *, cold: bool, shown: TableOutput, where: HostSelection
) -> None:
    """Show this machine and each TARGET: model, size, scheduler, filesystem, what is on it.

    With an inventory, its hosts and their volumes instead: reachability, version of fio, clock
    offset, contents of the disks. Each host rehearses a run without I/O; no volume is written to.
    """
    from volbench.cli.make.survey_output import show_survey
    from volbench.engine.hosts.host_facts import probe_host
    from volbench.execute.local import LocalExecutor
    from volbench.present.tables.hosts_tables import facts_table

    if where.inventory is not None:
        if targets or cold:
            raise InputError(
                "--inventory surveys the volumes of its hosts; it takes no TARGET and no --cold",
                hint="name volumes in the inventory; run probe --cold on the host itself",
            )
        show_survey(where, shown)
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
