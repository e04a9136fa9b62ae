"""volbench inventory: show, check, schema."""

from __future__ import annotations

import json
from pathlib import Path

import click

from volbench.cli.catalogue.inventory_options import read_hosts
from volbench.cli.catalogue.profile_sources import knows_volume_types
from volbench.cli.options import LIMIT, MAPPING
from volbench.cli.table_output import TableOutput, table_options

FILE = click.argument("file", type=click.Path(path_type=Path), metavar="FILE")


@click.group("inventory")
def command() -> None:
    """Show and check lists of hosts."""


@command.command("show")
@FILE
@LIMIT
@MAPPING
@table_options()
@knows_volume_types
def show(file: Path, limits: tuple[str, ...], mapping: Path | None, *, shown: TableOutput) -> None:
    """Show the hosts in FILE, defaults applied. Nobody is connected to."""
    from volbench.present.tables.hosts_tables import hosts_table

    inventory = read_hosts(file, limits=limits, mapping=mapping)
    shown.write(hosts_table(inventory))


@command.command("check")
@FILE
@MAPPING
@knows_volume_types
def check(file: Path, mapping: Path | None) -> None:
    """Check FILE; every problem is printed with file, line, column and key."""
    inventory = read_hosts(file, mapping=mapping)
    hosts, groups = len(inventory.hosts), len(inventory.groups)
    click.echo(f"{file}: inventory is good, hosts: {hosts}, groups: {groups}")


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of volbench's own inventories, for editors."""
    from volbench.plan.inventory.host_entries import json_schema

    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
