"""Verb price, and what audit --list shows."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.configuration import say_what_is_configured
from volbench.cli.help_pages import VerbCommand
from volbench.cli.options import (
    A_PRICE_LIST,
    WHERE,
    Quantity,
    campaigns_argument,
    examples,
    flag,
    names_option,
    schema_option,
)
from volbench.cli.output import ChartFile, TableOutput, chart_options, table_options
from volbench.errors import InputError
from volbench.units import parse_size


def prices_schema() -> object:
    """Return the JSON Schema of price lists."""
    from volbench.extensions.catalogue.price_list import PricesFile
    from volbench.model.document.document_model import document_schema

    return document_schema(PricesFile, title="volbench prices")


@click.command(
    "price",
    cls=VerbCommand,
    epilog=examples(
        "volbench price results --prices prices.yaml",
        "volbench price results --prices prices.yaml --by family --where 'bs==4k'",
        "volbench price results --prices prices.yaml --chart pareto.svg",
        "volbench price --list",
        "volbench price --list prices.yaml",
    ),
)
@campaigns_argument(required=False)
@click.option(
    "--prices",
    "file",
    metavar="FILE|NAME",
    shell_complete=A_PRICE_LIST,
    help="Price list: a file, or the name of a bundled one.",
)
@click.option(
    "--list",
    "listed",
    is_flag=False,
    flag_value="",
    metavar="[FILE|NAME]",
    shell_complete=A_PRICE_LIST,
    help="Check a price list and show its prices; without a value, the bundled lists.",
)
@schema_option("a price list", "volbench.extensions.catalogue.catalogue_verbs:prices_schema")
@names_option(
    "--by",
    "by",
    text="Columns or labels that define a configuration, such as family.  "
    "[default: flavor,volume_type]",
)
@WHERE
@click.option(
    "--size",
    "size_bytes",
    type=Quantity("SIZE", parse_size),
    help="Size of folders and volumes of unknown size.",
)
@flag("--unsteady", "Include runs that did not reach steady state, with their means.")
@table_options()
@chart_options("cost against IOPS, with the Pareto frontier")
def price(
    campaigns: tuple[str | Path, ...],
    file: str | None,
    listed: str | None,
    by: tuple[str, ...],
    where: str,
    size_bytes: int | None,
    *,
    unsteady: bool,
    table_output: TableOutput,
    picture: ChartFile,
) -> None:
    """Rank the configurations in DIR by price-performance, at steady state."""
    if listed is not None:
        if campaigns:
            raise InputError("--list shows prices, without campaigns", hint="leave out DIR")
        _list_prices(listed, table_output)
        return
    if not campaigns or file is None:
        raise InputError(
            "a price list is missing" if campaigns else "no campaign is named",
            hint="volbench price DIR --prices FILE; bundled price lists: volbench price --list",
        )
    from volbench.api.many_campaigns import open_campaigns
    from volbench.extensions.catalogue.catalogue_tables import market_table
    from volbench.extensions.catalogue.pareto import pareto_plot
    from volbench.extensions.catalogue.priced_runs import price_of

    say_what_is_configured()
    opened = open_campaigns(*campaigns, where=where)
    offers = price_of(opened, prices=file, by=by, size=size_bytes or 0, unsteady=unsteady)
    table = market_table(offers)
    if picture.chart:
        picture.write(pareto_plot(offers), table)
    table_output.write(table)


def _list_prices(name: str, table_output: TableOutput) -> None:
    """Show the prices of a list, or the bundled lists if none is named."""
    from volbench.extensions.catalogue.catalogue_tables import price_lists_table, prices_table
    from volbench.extensions.catalogue.price_list import load_prices, price_names

    if name:
        table_output.write(prices_table(load_prices(name)))
    else:
        table_output.write(price_lists_table({each: load_prices(each) for each in price_names()}))


def list_types(declared: str, table_output: TableOutput) -> None:
    """Show the limits of a volume or machine type, or all types if none is named."""
    from volbench.extensions.catalogue.catalogue_tables import (
        machines_table,
        type_table,
        types_table,
    )
    from volbench.extensions.catalogue.machine_types import machine_types
    from volbench.extensions.catalogue.volume_types import catalogue, find_type
    from volbench.model.document.yaml_text import read_document, yaml_text
    from volbench.plan.profile.limits_document import LimitsDocument

    machines = machine_types()
    if not declared:
        table_output.write(types_table(catalogue()), machines_table(machines))
    elif declared in machines:
        table_output.write(machines_table({declared: machines[declared]}))
    else:
        text = yaml_text({"type": declared})
        needs = "a type"
        limits = read_document(text, LimitsDocument, path="--list", what="a type", needs=needs)
        is_open = limits.limits().wanted is not None
        kind = find_type(limits.type, catalogue())
        table_output.write(type_table(kind, None if is_open else limits.limits()))


def types_schema() -> object:
    """Return the JSON Schema of volume-type files."""
    from volbench.extensions.catalogue.volume_types import TypesFile
    from volbench.model.document.document_model import document_schema

    return document_schema(TypesFile, title="volbench volume types")
