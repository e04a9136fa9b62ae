"""volbench volume-types: list, show, check, schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from volbench.cli.options import VOLUME_TYPES
from volbench.cli.table_output import TableOutput, table_options
from volbench.units import parse_rate, parse_size


@click.group("volume-types")
def command() -> None:
    """List and show what volume types allow, and check files of them."""


@command.command("list")
@VOLUME_TYPES
@table_options()
def list_types(type_files: tuple[Path, ...], *, shown: TableOutput) -> None:
    """List the volume types: bundled ones and your own."""
    from volbench.plan.volume_types import catalogue
    from volbench.present.tables.catalogue.volume_types_table import types_table

    shown.write(types_table(catalogue(type_files)))


@command.command("show")
@click.argument("name", metavar="TYPE")
@click.option("--size", metavar="SIZE", help="Of the volume, such as 100g.")
@click.option("--iops", type=float, metavar="NUMBER", help="That are provisioned.")
@click.option("--bandwidth", metavar="RATE", help="That is provisioned, such as 250MiB/s.")
@VOLUME_TYPES
@table_options()
def show(
    name: str,
    size: str | None,
    iops: float | None,
    bandwidth: str | None,
    type_files: tuple[Path, ...],
    *,
    shown: TableOutput,
) -> None:
    """Show what a volume of TYPE is allowed, and for how long."""
    from volbench.plan.volume_types import catalogue, find_type, limits_of
    from volbench.present.tables.catalogue.volume_types_table import (
        about_rows,
        lasting,
        limits_rows,
        type_cells,
    )
    from volbench.present.tables.table import text_table

    types = catalogue(type_files)
    kind = find_type(name, types)
    rows: list[tuple[str, str]] = []
    if size is None and kind.needs_size:
        heading = ("type", "title", "sizes", "IOPS", "bandwidth", "burst IOPS", "burst bandwidth")
        rows = [(key, cell) for key, cell in zip(heading, type_cells(kind), strict=True) if cell]
        document: dict[str, object] = {"type": kind.model_dump(mode="json"), "limits": None}
    else:
        limits = limits_of(
            name,
            size_bytes=None if size is None else parse_size(size),
            iops=iops,
            bandwidth_bytes_per_s=None if bandwidth is None else parse_rate(bandwidth),
            types=types,
        )
        rows = list(limits_rows(kind, limits))
        document = {
            "type": kind.model_dump(mode="json"),
            "limits": limits.model_dump(mode="json", exclude={"wanted"}),
            "bursts_s": lasting(limits),
        }
    cells = [{"property": key, "value": value} for key, value in (*rows, *about_rows(kind))]
    table = text_table("volume-type", cells, identity="property", folded=["value"])
    shown.write(replace(table, document=document))


@command.command("check")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
def check(files: tuple[Path, ...]) -> None:
    """Check files of volume types; every problem is printed with file, line, column and key."""
    from volbench.plan.volume_types import read_types

    for file in files:
        click.echo(f"{file}: volume types are good: {', '.join(read_types(file))}")


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of files of volume types, for editors."""
    from volbench.model.catalogue.volume_type_file import TypesFile
    from volbench.model.document.document_schema import document_schema

    click.echo(
        json.dumps(
            document_schema(TypesFile, title="volbench volume types"), indent=2, ensure_ascii=False
        )
    )
