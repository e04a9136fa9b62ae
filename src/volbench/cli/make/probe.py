"""volbench probe: what this machine and its volumes are, and whether they are cold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from volbench.cli.make.fleet_options import Where, on_hosts
from volbench.cli.make.survey_output import show_survey
from volbench.cli.options import parse_targets
from volbench.engine.conditioning.cold_probe import Probed, probe_cold
from volbench.engine.hosts.volume_probe import find_volume, probe_host, probe_volume, require_fio
from volbench.engine.run.stop_request import Stop
from volbench.errors import InputError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor
from volbench.model.campaign.target import Volume
from volbench.model.results.provenance import VolumeFacts
from volbench.present.tables.result_tables import facts_table, show_table
from volbench.store.layout import ProbeFolder


@click.command("probe")
@click.argument("targets", nargs=-1, metavar="[[ROLE=]TARGET]...")
@click.option(
    "--cold",
    is_flag=True,
    help="Read a sample of each TARGET twice, and tell whether it is cold or was never written.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@on_hosts
def command(targets: tuple[str, ...], *, cold: bool, as_json: bool, where: Where) -> None:
    """Show this machine and each TARGET: model, size, scheduler, filesystem, what is on it.

    With an inventory, its hosts and their volumes instead: can they be reached, which fio is there,
    how does the clock stand, what is on the disks.
    """
    if where.inventory is not None:
        if targets or cold:
            raise InputError(
                "with --inventory the hosts' own volumes are looked at, not cold or other ones",
                hint="name them in the inventory; probe --cold works on each host itself",
            )
        show_survey(where, as_json=as_json)
        return
    executor = LocalExecutor()
    if cold and not targets:
        raise InputError("--cold probes volumes, but none is named", hint="add a TARGET")
    host = probe_host(executor)
    looks = _looks(executor, targets, with_cold=cold)
    if as_json:
        volumes = [_record(facts, probed) for facts, probed in looks]
        click.echo(json.dumps({"host": host.model_dump(mode="json"), "volumes": volumes}, indent=1))
        return
    show_table(facts_table("this machine", host.model_dump()))
    for facts, probed in looks:
        show_table(facts_table(facts.target, facts.model_dump()))
        if probed:
            click.echo(f"{probed.words}\n")


def _looks(
    executor: Executor, targets: tuple[str, ...], *, with_cold: bool
) -> Iterator[tuple[VolumeFacts, Probed | None]]:
    """Yield the facts of each target, and what reading it told."""
    for text in targets:
        for role, place in parse_targets([text]).items():
            volume = find_volume(executor, role=role, target=place)
            # The probe first: looking for a signature reads blocks, which are warm then.
            probed = _probe(executor, volume) if with_cold else None
            yield probe_volume(executor, volume), probed


def _probe(executor: Executor, volume: Volume) -> Probed:
    with TemporaryDirectory(prefix="volbench-probe-") as folder:
        return probe_cold(
            executor,
            volume,
            ProbeFolder(Path(folder)),
            fio=require_fio(executor),
            stop=Stop(),
        )


def _record(facts: VolumeFacts, probed: Probed | None) -> dict[str, object]:
    record = facts.model_dump(mode="json")
    if probed is not None:
        told = probed.model_dump(mode="json")
        record |= {"cold": told["cold"], "cold_reason": probed.reason}
    return record
