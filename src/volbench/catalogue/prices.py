"""volbench prices: list, show, check, schema."""

from __future__ import annotations

import click

from volbench.cli.options import schema_command
from volbench.cli.output import TableOutput, table_options
from volbench.cli.verb_groups import VerbGroup

_FILE = click.argument("file", metavar="FILE|NAME")


@click.group("prices", cls=VerbGroup)
def command() -> None:
    """List, show and check files of prices."""


@command.command("list")
@table_options()
def list_prices(*, shown: TableOutput) -> None:
    """List the bundled files of prices."""
    from volbench.catalogue.bundled_prices import load_prices, price_names
    from volbench.catalogue.price_list_table import price_lists_table

    shown.write(price_lists_table({name: load_prices(name) for name in price_names()}))


@command.command("show")
@_FILE
@table_options()
def show(file: str, *, shown: TableOutput) -> None:
    """Show the prices in FILE, or in a bundled one."""
    from volbench.catalogue.bundled_prices import load_prices
    from volbench.catalogue.price_list_table import prices_table

    shown.write(prices_table(load_prices(file)))


@command.command("check")
@_FILE
def check(file: str) -> None:
    """Check FILE, or a bundled one.

    Every problem is printed with file, line, column and key.
    """
    from volbench.catalogue.bundled_prices import load_prices

    prices = load_prices(file)
    flavors, types = len(prices.flavors), len(prices.volume_types)
    click.echo(f"{file}: prices are good, flavors: {flavors}, volume types: {types}")


@schema_command(command, "files of prices")
def schema() -> object:
    """Return the JSON Schema of files of prices."""
    from volbench.catalogue.price_list import PricesFile
    from volbench.model.document.document_model import document_schema

    return document_schema(PricesFile, title="volbench prices")
