"""volbench prices: list, show, check, schema."""

from __future__ import annotations

import json

import click

from volbench.cli.table_output import TableOutput, table_options

FILE = click.argument("file", metavar="FILE|NAME")


@click.group("prices")
def command() -> None:
    """List, show and check files of prices."""


@command.command("list")
def list_prices() -> None:
    """List the bundled files of prices."""
    from volbench.plan.prices import price_names

    for name in price_names():
        click.echo(name)


@command.command("show")
@FILE
@table_options()
def show(file: str, *, shown: TableOutput) -> None:
    """Show the prices in FILE, or in a bundled one."""
    from volbench.plan.prices import load_prices
    from volbench.present.tables.catalogue.price_list_table import prices_table

    shown.write(prices_table(load_prices(file)))


@command.command("check")
@FILE
def check(file: str) -> None:
    """Check FILE; every problem is printed with file, line, column and key."""
    from volbench.plan.prices import load_prices

    prices = load_prices(file)
    flavors, types = len(prices.flavors), len(prices.volume_types)
    click.echo(f"{file}: prices are good, flavors: {flavors}, volume types: {types}")


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of files of prices, for editors."""
    from volbench.model.catalogue.price_list import PricesFile
    from volbench.model.document.document_schema import document_schema

    click.echo(
        json.dumps(
            document_schema(PricesFile, title="volbench prices"), indent=2, ensure_ascii=False
        )
    )
