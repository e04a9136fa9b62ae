"""volbench probe: what this machine and its volumes are."""

from __future__ import annotations

import click

from volbench.cli.options import parse_targets
from volbench.engine.probe import find_volume, probe_host, probe_volume
from volbench.execute.local import LocalExecutor
from volbench.present.tables import facts_table, show_table


@click.command("probe")
@click.argument("targets", nargs=-1, metavar="[[ROLE=]TARGET]...")
def command(targets: tuple[str, ...]) -> None:
    """Show this machine and each TARGET: model, size, scheduler, filesystem, what is on it."""
    executor = LocalExecutor()
    show_table(facts_table("this machine", probe_host(executor).model_dump()))
    for target in targets:
        for role, place in parse_targets([target]).items():
            facts = probe_volume(executor, find_volume(executor, role=role, target=place))
            show_table(facts_table(place, facts.model_dump()))
