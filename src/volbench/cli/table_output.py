"""Options of verbs that print a table, and the table printed as they say."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.options import output_option
from volbench.cli.outputs import binary_output

if TYPE_CHECKING:
    from volbench.present.tables.table import Table

_FORMATS = ("table", "json", "csv", "markdown")
_ENDINGS = {".json": "json", ".csv": "csv", ".md": "markdown"}
_FILE_ENDINGS = {"table": "txt", "markdown": "md"}


@dataclass(frozen=True)
class TableOutput:
    """How and where a table is printed.

    Attributes:
        format: ``table``, ``json``, ``csv`` or ``markdown``.
        output: file, folder, or ``-`` for standard output.
        columns: names of the columns; those of the table if empty.
        is_wide: all columns of the table, however narrow the screen is.
    """

    format: str = "table"
    output: str = "-"
    columns: tuple[str, ...] = ()
    is_wide: bool = False

    def write(
        self, *tables: Table[Any], text: Callable[[int | None, bool], str] | None = None
    ) -> None:
        """Print tables one after the other; CSV, JSON and Markdown have the first alone.

        Args:
            tables: the main table first.
            text: width and whether there are colours to the text that stands for the table on a
                terminal.

        Raises:
            InputError: there is no such column, or the file cannot be written.
        """
        width, colour = self._width(), self._has_colour()
        if self.format == "table" and text is not None and not self.columns:
            content = text(width, colour)
        else:
            content = self._rendered(tables, width=width, colour=colour)
        if self.output == "-":
            click.echo(content, nl=False, color=colour)
            return
        ending = _FILE_ENDINGS.get(self.format, self.format)
        with binary_output(self.output, default_name=f"{tables[0].name}.{ending}") as sink:
            sink.write(content.encode())

    def _rendered(self, tables: tuple[Table[Any], ...], *, width: int | None, colour: bool) -> str:
        from volbench.present.tables.render_table import render_table

        shown = tables if self.format == "table" and not self.columns else tables[:1]
        return "\n".join(
            render_table(table, self.format, width=width, columns=self.columns, colour=colour)
            for table in shown
        )

    def _width(self) -> int | None:
        """Return the width to keep to: of the terminal, or COLUMNS; None without either."""
        columns = os.environ.get("COLUMNS", "")
        if self.is_wide or self.output != "-":
            return None
        if columns.isdecimal() and int(columns):
            return int(columns)
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def _has_colour(self) -> bool:
        return self.output == "-" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


Verb = Callable[..., None]


def table_options(*more_formats: str) -> Callable[[Verb], Verb]:
    """Return a decorator that gives a verb the options of tables, as one keyword, `shown`.

    Args:
        more_formats: formats of this verb beside those of every table.
    """

    def add(function: Verb) -> Verb:
        @click.option(
            "--format",
            "format_name",
            type=click.Choice([*_FORMATS, *more_formats]),
            help="Default: as the file of --output ends, else table.",
        )
        @click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
        @output_option(metavar="PATH", default="-", help="File or folder; - is standard output.")
        @click.option(
            "--columns",
            "column_names",
            metavar="NAME,...",
            help="Only these columns, in this order.",
        )
        @click.option("--wide", "is_wide", is_flag=True, help="All columns at their full width.")
        @wraps(function)
        def wrapped(
            *arguments: object,
            format_name: str | None,
            as_json: bool,
            output: str,
            column_names: str | None,
            is_wide: bool,
            **others: object,
        ) -> None:
            shown = TableOutput(
                format="json" if as_json else format_name or _format_of(output, more_formats),
                output=output,
                columns=split_names(column_names),
                is_wide=is_wide,
            )
            function(*arguments, shown=shown, **others)

        return wrapped

    return add


def _format_of(output: str, more_formats: Sequence[str]) -> str:
    """Return the format that the name of a file means."""
    ending = Path(output).suffix.lower()
    named = {**_ENDINGS, **{f".{name}": name for name in more_formats}}
    return named.get(ending, "table")


def split_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
