"""volbench volume-types: list, show, check."""

from __future__ import annotations

import json
from pathlib import Path

import click

from volbench.cli.options import VOLUME_TYPES
from volbench.plan.volume_types import catalogue, find_type, limits_of, read_types
from volbench.present.tables.result_tables import show_table, text_table
from volbench.present.tables.volume_types_table import (
    about_rows,
    lasting,
    limits_rows,
    type_cells,
    types_table,
)
from volbench.units import parse_rate, parse_size

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


@click.group("volume-types")
def command() -> None:
    """List and show what volume types allow, and check files of them."""


@command.command("list")
@VOLUME_TYPES
@AS_JSON
def list_types(type_files: tuple[Path, ...], *, as_json: bool) -> None:
    """List the volume types: bundled ones and your own."""
    types = catalogue(type_files)
    if as_json:
        told = [kind.model_dump(mode="json") for kind in types.values()]
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        show_table(types_table(types))


@command.command("show")
@click.argument("name", metavar="TYPE")
@click.option("--size", metavar="SIZE", help="Of the volume, such as 100g.")
@click.option("--iops", type=float, metavar="NUMBER", help="That are provisioned.")
@click.option("--bandwidth", metavar="RATE", help="That is provisioned, such as 250MiB/s.")
@VOLUME_TYPES
@AS_JSON
def show(
    name: str,
    size: str | None,
    iops: float | None,
    bandwidth: str | None,
    type_files: tuple[Path, ...],
    *,
    as_json: bool,
) -> None:
    """Show what a volume of TYPE is allowed, and for how long."""
    types = catalogue(type_files)
    kind = find_type(name, types)
    rows: list[tuple[str, str]] = []
    if size is None and kind.needs_size:
        heading = ("type", "title", "sizes", "IOPS", "bandwidth", "burst IOPS", "burst bandwidth")
        rows = [(key, cell) for key, cell in zip(heading, type_cells(kind), strict=True) if cell]
        told: dict[str, object] = {"type": kind.model_dump(mode="json"), "limits": None}
    else:
        limits = limits_of(
            name,
            size_bytes=None if size is None else parse_size(size),
            iops=iops,
            bandwidth_bytes_per_s=None if bandwidth is None else parse_rate(bandwidth),
            types=types,
        )
        rows = list(limits_rows(kind, limits))
        told = {
            "type": kind.model_dump(mode="json"),
            "limits": limits.model_dump(mode="json", exclude={"wanted"}),
            "bursts_s": lasting(limits),
        }
    if as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    cells = [*rows, *about_rows(kind)]
    show_table(text_table(("", "value"), cells, words={"", "value"}))


@command.command("check")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
def check(files: tuple[Path, ...]) -> None:
    """Check files of volume types; every problem is printed with file, line, column and key."""
    for file in files:
        click.echo(f"{file}: volume types are good: {', '.join(read_types(file))}")
