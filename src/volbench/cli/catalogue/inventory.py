"""volbench inventory: show, check, schema."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.fleet_options import LIMIT, MAPPING, read_hosts
from volbench.cli.lazy_group import VerbGroup
from volbench.cli.options import PATH, VOLUME_TYPES, schema_command
from volbench.cli.output import TableOutput, table_options

_FILE = click.argument("file", type=PATH, metavar="FILE")


@click.group("inventory", cls=VerbGroup)
def command() -> None:
    """Show and check lists of hosts."""


@command.command("show")
@_FILE
@LIMIT
@MAPPING
@table_options()
@VOLUME_TYPES
def show(file: Path, limits: tuple[str, ...], mapping: Path | None, *, shown: TableOutput) -> None:
    """Show the hosts in FILE, defaults applied. No connection is made."""
    from volbench.present.tables.hosts_tables import hosts_table

    shown.write(hosts_table(read_hosts(file, limits=limits, mapping=mapping)))


@command.command("check")
@_FILE
@MAPPING
@VOLUME_TYPES
def check(file: Path, mapping: Path | None) -> None:
    """Check FILE.

    Every problem is printed with file, line, column and key.
    """
    inventory = read_hosts(file, mapping=mapping)
    hosts, groups = len(inventory.hosts), len(inventory.groups)
    click.echo(f"{file}: inventory is good, hosts: {hosts}, groups: {groups}")


@schema_command(command, "volbench's own inventories")
def schema() -> object:
    """Return the JSON Schema of inventories."""
    from volbench.plan.inventory.host_entries import json_schema

    return json_schema()
