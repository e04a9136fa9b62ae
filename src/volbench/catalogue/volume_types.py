"""volbench volume-types: list, show, check, schema."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import PATH, VOLUME_TYPES, Quantity, schema_command
from volbench.cli.output import TableOutput, table_options
from volbench.cli.verb_groups import VerbGroup
from volbench.units import parse_rate, parse_size


@click.group("volume-types", cls=VerbGroup)
def command() -> None:
    """List and show the limits of volume types, and check files of them."""


@command.command("list")
@VOLUME_TYPES
@table_options()
def list_types(*, shown: TableOutput) -> None:
    """List the volume types: bundled ones and your own."""
    from volbench.catalogue.bundled_volume_types import catalogue
    from volbench.catalogue.volume_types_table import types_table

    shown.write(types_table(catalogue()))


@command.command("show")
@click.argument("name", metavar="TYPE")
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
def show(
    name: str,
    size_bytes: int | None,
    iops: float | None,
    bandwidth_bytes_per_s: float | None,
    *,
    shown: TableOutput,
) -> None:
    """Show the limits of a volume of TYPE, and how long bursts last."""
    from volbench.catalogue.bundled_volume_types import catalogue, find_type, limits_of
    from volbench.catalogue.volume_types_table import type_table

    kind = find_type(name, catalogue())
    if size_bytes is None and kind.needs_size:
        shown.write(type_table(kind, None))
        return
    limits = limits_of(
        name, size_bytes=size_bytes, iops=iops, bandwidth_bytes_per_s=bandwidth_bytes_per_s
    )
    shown.write(type_table(kind, limits))


@command.command("check")
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
def check(files: tuple[Path, ...]) -> None:
    """Check files of volume types.

    Every problem is printed with file, line, column and key.
    """
    from volbench.catalogue.bundled_volume_types import read_types

    for file in files:
        click.echo(f"{file}: volume types are good: {', '.join(read_types(file))}")


@schema_command(command, "files of volume types")
def schema() -> object:
    """Return the JSON Schema of files of volume types."""
    from volbench.catalogue.volume_type_file import TypesFile
    from volbench.model.document.document_model import document_schema

    return document_schema(TypesFile, title="volbench volume types")
