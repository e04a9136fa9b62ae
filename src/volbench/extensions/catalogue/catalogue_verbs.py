"""volbench price, prices, volume-types, machine-types and k8s storageclass."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.configuration import say_what_is_configured
from volbench.cli.options import (
    A_PRICE_LIST,
    CAMPAIGNS,
    PATH,
    VOLUME_TYPES,
    WHERE,
    Quantity,
    completed_by,
    examples,
    flag,
    names_option,
    schema_command,
)
from volbench.cli.output import ChartFile, TableOutput, binary_output, chart_options, table_options
from volbench.cli.verb_groups import VerbGroup
from volbench.errors import InputError
from volbench.units import parse_rate, parse_size

_FILE = click.argument("file", metavar="FILE|NAME", shell_complete=A_PRICE_LIST)


def _type_names() -> list[str]:
    from volbench.extensions.catalogue.volume_types import catalogue

    return [*catalogue()]


@click.command(
    "price",
    epilog=examples(
        "volbench price results --prices prices.yaml",
        "volbench price results --prices prices.yaml --by family --where 'bs==4k'",
        "volbench price results --prices prices.yaml --chart pareto.svg",
    ),
)
@CAMPAIGNS
@click.option(
    "--prices",
    "file",
    required=True,
    metavar="FILE|NAME",
    shell_complete=A_PRICE_LIST,
    help="Price list: a file, or the name of a bundled one.",
)
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
    help="Size of volumes whose size is not recorded.",
)
@flag("--unsteady", "Include runs that did not reach steady state, with their means.")
@table_options()
@chart_options("cost against IOPS, with the Pareto frontier,")
def price(
    campaigns: tuple[str | Path, ...],
    file: str,
    by: tuple[str, ...],
    where: str,
    size_bytes: int | None,
    *,
    unsteady: bool,
    table_output: TableOutput,
    picture: ChartFile,
) -> None:
    """Rank the configurations in DIR by price-performance, at steady state."""
    from volbench.api.many_campaigns import open_campaigns
    from volbench.extensions.catalogue.catalogue_tables import market_table
    from volbench.extensions.catalogue.pareto import pareto_plot
    from volbench.extensions.catalogue.price_list import load_prices
    from volbench.extensions.catalogue.priced_runs import priced_market

    say_what_is_configured()
    offers = priced_market(
        open_campaigns(*campaigns, where=where),
        load_prices(file),
        by=by,
        size_bytes=size_bytes,
        keep_unsteady=unsteady,
    )
    table = market_table(offers)
    if picture.chart:
        picture.write(pareto_plot(offers, title=picture.title), table)
    table_output.write(table)


@click.group("prices", cls=VerbGroup)
def prices() -> None:
    """List, show and check price lists."""


@prices.command("list", epilog=examples("volbench prices list"))
@table_options()
def list_prices(*, table_output: TableOutput) -> None:
    """List the bundled price lists."""
    from volbench.extensions.catalogue.catalogue_tables import price_lists_table
    from volbench.extensions.catalogue.price_list import load_prices, price_names

    table_output.write(price_lists_table({name: load_prices(name) for name in price_names()}))


@prices.command("show", epilog=examples("volbench prices show kamatera-azure"))
@_FILE
@table_options()
def show_prices(file: str, *, table_output: TableOutput) -> None:
    """Show the prices in FILE or in a bundled list."""
    from volbench.extensions.catalogue.catalogue_tables import prices_table
    from volbench.extensions.catalogue.price_list import load_prices

    table_output.write(prices_table(load_prices(file)))


@prices.command("check", epilog=examples("volbench prices check prices.yaml"))
@_FILE
def check_prices(file: str) -> None:
    """Check the price list FILE, or a bundled one.

    Every problem is printed with file, line, column and key.
    """
    from volbench.extensions.catalogue.price_list import load_prices

    price_list = load_prices(file)
    flavors, types = len(price_list.flavors), len(price_list.volume_types)
    click.echo(f"{file}: valid price list; flavors: {flavors}, volume types: {types}")


@schema_command(prices, "price lists")
def prices_schema() -> object:
    """Return the JSON Schema of price lists."""
    from volbench.extensions.catalogue.price_list import PricesFile
    from volbench.model.document.document_model import document_schema

    return document_schema(PricesFile, title="volbench prices")


@click.group("volume-types", cls=VerbGroup)
def volume_types() -> None:
    """List and show the limits of volume types, and check volume-type files."""


@volume_types.command("list", epilog=examples("volbench volume-types list"))
@VOLUME_TYPES
@table_options()
def list_types(*, table_output: TableOutput) -> None:
    """List the volume types: bundled ones and your own."""
    from volbench.extensions.catalogue.catalogue_tables import types_table
    from volbench.extensions.catalogue.volume_types import catalogue

    table_output.write(types_table(catalogue()))


@volume_types.command(
    "show",
    epilog=examples(
        "volbench volume-types show azure/P15", "volbench volume-types show aws/gp3 --size 500g"
    ),
)
@click.argument("name", metavar="TYPE", shell_complete=completed_by(_type_names))
@click.option(
    "--size", "size_bytes", type=Quantity("SIZE", parse_size), help="Volume size, such as 100g."
)
@click.option("--iops", type=float, metavar="NUMBER", help="Provisioned IOPS.")
@click.option(
    "--bandwidth",
    "bandwidth_bytes_per_s",
    type=Quantity("RATE", parse_rate),
    help="Provisioned bandwidth, such as 250MiB/s.",
)
@VOLUME_TYPES
@table_options()
def show_type(
    name: str,
    size_bytes: int | None,
    iops: float | None,
    bandwidth_bytes_per_s: float | None,
    *,
    table_output: TableOutput,
) -> None:
    """Show the limits of a volume of TYPE, and the duration of bursts."""
    from volbench.extensions.catalogue.catalogue_tables import type_table
    from volbench.extensions.catalogue.volume_types import catalogue, find_type, limits_of

    kind = find_type(name, catalogue())
    if size_bytes is None and kind.needs_size:
        table_output.write(type_table(kind, None))
        return
    limits = limits_of(
        name, size_bytes=size_bytes, iops=iops, bandwidth_bytes_per_s=bandwidth_bytes_per_s
    )
    table_output.write(type_table(kind, limits))


@volume_types.command("check", epilog=examples("volbench volume-types check types.yaml"))
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
def check_types(files: tuple[Path, ...]) -> None:
    """Check volume-type files.

    Every problem is printed with file, line, column and key.
    """
    from volbench.extensions.catalogue.volume_types import read_types

    for file in files:
        click.echo(f"{file}: valid volume types: {', '.join(read_types(file))}")


@schema_command(volume_types, "volume-type files")
def types_schema() -> object:
    """Return the JSON Schema of volume-type files."""
    from volbench.extensions.catalogue.volume_types import TypesFile
    from volbench.model.document.document_model import document_schema

    return document_schema(TypesFile, title="volbench volume types")


@click.group("machine-types", cls=VerbGroup)
def machine_types() -> None:
    """List the limits of machine types, and convert those that a provider's tool prints."""


@machine_types.command("list", epilog=examples("volbench machine-types list"))
@table_options()
def list_machines(*, table_output: TableOutput) -> None:
    """List the machine types: bundled ones, and those in ./machine-types."""
    from volbench.extensions.catalogue.catalogue_tables import machines_table
    from volbench.extensions.catalogue.machine_types import machine_types as known_machines

    table_output.write(machines_table(known_machines()))


@machine_types.command(
    "convert",
    epilog=examples("volbench machine-types convert listing.json > machine-types/aws.yaml"),
)
@click.argument("file", type=PATH)
def convert_machines(file: Path) -> None:
    """Print the file of machine types for FILE.

    It has what `aws ec2 describe-instance-types` or `az vm list-skus` prints as JSON.
    """
    from datetime import UTC, datetime

    from volbench.extensions.catalogue.machine_types import converted
    from volbench.plan.bundled_files import read_text

    what = "listing of machine types"
    text = read_text(file, what=what, max_bytes=_MAX_LISTING_BYTES, form="JSON")
    click.echo(converted(text, path=str(file), checked=f"{datetime.now(UTC):%Y-%m-%d}"), nl=False)


_MAX_LISTING_BYTES = 1 << 28  # Every size in every region of Azure takes some 100 MB


@click.command(
    "storageclass",
    epilog=examples(
        "volbench k8s storageclass --list",
        "volbench k8s storageclass ebs-gp3-retain | kubectl apply -f -",
    ),
)
@click.argument("names", nargs=-1, metavar="NAME...")
@flag("--list", "List the storage classes instead.", "is_list")
@table_options()
def storageclass(names: tuple[str, ...], *, is_list: bool, table_output: TableOutput) -> None:
    """Print the manifests of the storage classes NAME.

    All have the reclaim policy Retain: a volume stays, and is billed, after its claim is deleted.
    """
    from volbench.extensions.catalogue.catalogue_tables import (
        classes_table,
        read_class,
        storage_classes,
    )

    if bool(names) == is_list:
        raise InputError(
            "name storage classes, or use --list", hint="see: volbench k8s storageclass --list"
        )
    if is_list:
        table_output.write(classes_table(storage_classes()))
        return
    text = "---\n".join(read_class(name) for name in names)
    with binary_output(table_output.output, default_name="storageclasses.yaml") as sink:
        sink.write(text.encode())
