"""Output of verbs: files and standard output, tables, and charts of tables."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from volbench.api.run_profiles import stamped
from volbench.cli.configuration import confirm_results, results_folder
from volbench.cli.options import Decorator, flag, names_option, option_group, output_option
from volbench.errors import InputError
from volbench.present.renderers import PICTURE_FORMATS
from volbench.store.atomic_files import check_output, make_output_folder, write_output

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset
    from volbench.present.plots.description import Plot
    from volbench.present.tables.table import Table

_FORMATS = ("table", "json", "csv", "markdown")
_ENDINGS = {".json": "json", ".csv": "csv", ".md": "markdown"}
_FILE_ENDINGS = {"table": "txt", "markdown": "md"}

_REDRAWN_S = 0.1

RAW = flag(
    "--raw",
    "Write text to CSV unchanged, even if a spreadsheet would run it as a formula.",
    "is_raw",
)

_SORT = click.option(
    "--sort",
    default="",
    metavar="NAME",
    help="Sort the rows by a column; -NAME for the largest first.",
)


@contextmanager
def binary_output(
    output: str, *, default_name: str, names: Collection[str] = ()
) -> Iterator[BinaryIO]:
    """Yield a buffer that is written to `output` when the block ends without an error.

    Args:
        output: ``-`` for standard output, an existing folder, or a file.
        default_name: of a file in the folder; its ending is that of the format.
        names: of columns and keys that such a file may have; see `check_output`.
    """
    buffer, path = BytesIO(), Path(output)
    if output == "-":
        yield buffer
        sys.stdout.buffer.write(buffer.getvalue())
        return
    if output.endswith("/"):
        make_output_folder(path)
    if path.is_dir():
        path /= default_name
    kind = Path(default_name).suffix
    if kind in {".svg", ".png", ".pdf", ".html"}:  # before another file is written
        with suppress(OSError):
            check_output(path)
    yield buffer
    write_output(path, buffer.getvalue(), kind=kind, names=names)
    click.echo(f"written: {path}", err=True)
    note_owner(path)


def note_owner(path: Path) -> None:
    """Print a note if root writes a file or a folder into a folder of another user, or to one."""
    from volbench.store.held_folder import foreign_words

    if os.geteuid() != 0:
        return
    folders = [path.absolute().parent]
    if path.is_dir():
        folders.insert(0, path.absolute())
    if whose := next(filter(None, map(foreign_words, folders)), ""):
        click.echo(f"note: {whose}, who can replace what root writes there", err=True)


@contextmanager
def progress_line() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows on a terminal what is done: its name, count and total.

    The line is on standard error, changes ten times a second at most, and is cleared in the end.
    """
    is_shown = sys.stderr.isatty()
    last_s = 0.0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if is_shown and (now_s - last_s >= _REDRAWN_S or done == total):
            last_s = now_s
            click.echo(f"\r\x1b[K{what}: {done:,} of {total:,}", err=True, nl=False)

    try:
        yield tell
    finally:
        if last_s:
            click.echo("\r\x1b[K", err=True, nl=False)


def default_campaign_folder(name: str) -> Path:
    """Return the default folder of a new campaign."""
    from volbench.store.held_folder import checked_results_folder

    confirm_results(results_folder())
    return checked_results_folder(results_folder()) / stamped(name)


def report_folder(dataset: Dataset) -> Path:
    """Return the report folder of the first campaign, created if it is missing."""
    from volbench.store.held_folder import refuse_foreign

    opened = next(iter(dataset.names.values()))
    refuse_foreign(opened.path, opened.path.stat())
    folder = opened.report_folder
    make_output_folder(folder)
    return folder


def typed_command(inputs: Iterable[str | Path], output: Path | None) -> tuple[str, ...]:
    """Return the command line for the campaign's record, without paths of this machine."""
    short = {str(path): Path(path).resolve().name for path in inputs if str(path)}
    if output is not None:
        short[str(output)] = output.name
        for prefix in ("--output=", "-o"):
            short[f"{prefix}{output}"] = f"{prefix}{output.name}"
    return ("volbench", *(short.get(argument, argument) for argument in sys.argv[1:]))


@dataclass(frozen=True)
class TableOutput:
    """Format and destination of a table."""

    # ``table``, ``json``, ``csv``, ``markdown`` or ``events``; None for that of the output
    format_name: str | None = None
    as_json: bool = False  # the same as the format ``json``
    output: str = "-"  # file, folder, or ``-`` for standard output
    columns: tuple[str, ...] = ()  # names of the columns; those of the table if empty
    is_wide: bool = False  # all columns of the table, however narrow the screen is
    sort: str = ""  # column that the rows are sorted by; empty for the table's own order
    # CSV with text as it is, even where a spreadsheet would run it as a formula
    is_raw: bool = False
    more_formats: tuple[str, ...] = ()  # formats of the verb beside those of every table

    @property
    def format(self) -> str:
        """Selected format, or the format implied by the file name."""
        if self.as_json or self.has_events:
            return "json"
        if self.format_name:
            return self.format_name
        endings = {**_ENDINGS, **{f".{name}": name for name in self.more_formats}}
        return endings.get(Path(self.output).suffix.lower(), "table")

    @property
    def has_events(self) -> bool:
        """Whether events of a campaign are printed while it runs, the results last, as JSON."""
        return self.format_name == "events"

    @property
    def is_for_people(self) -> bool:
        """Whether notes may surround the table; other formats contain data only."""
        return self.format == "table"

    @property
    def is_brief(self) -> bool:
        """Whether a long table may be summarised: no option requests its rows."""
        is_plain = self.is_for_people and self.output == "-"
        return is_plain and not (self.columns or self.sort)

    def write(
        self,
        *tables: Table[Any],
        text: Callable[[int | None, bool], str] | None = None,
        lead: Sequence[Table[Any]] = (),
    ) -> None:
        """Print tables one after the other; CSV, JSON and Markdown have the first alone.

        Args:
            lead: printed before them, for people only.
        """
        colour = self.output == "-" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        width = self._width()
        main = tables[0]
        if self.sort:
            tables = (tables[0].sorted_by(self.sort), *tables[1:])
        if text is not None and self.is_for_people and not (self.columns or self.sort):
            content = text(width, colour)
        else:
            content = self._rendered(tables, lead, width=width, colour=colour)
        if self.output == "-":
            click.echo(content, nl=False, color=colour)
            return
        ending = _FILE_ENDINGS.get(self.format, self.format)
        file_name = f"{main.name}.{ending}"
        names = {column.name for column in main.columns}.union(*main.records())
        names |= {*main.document} if isinstance(main.document, dict) else set()
        with binary_output(self.output, default_name=file_name, names=names) as sink:
            sink.write(content.encode())

    def note(self, text: str) -> None:
        """Print a note below a table, or to stderr for the other formats."""
        click.echo(text, err=not self.is_for_people)

    def _rendered(
        self,
        tables: tuple[Table[Any], ...],
        lead: Sequence[Table[Any]],
        *,
        width: int | None,
        colour: bool,
    ) -> str:
        from volbench.present.tables.render_table import render_table

        printed = (*lead, *tables) if self.is_for_people and not self.columns else tables[:1]
        return "\n".join(
            render_table(
                table,
                self.format,
                width=width,
                columns=self.columns,
                colour=colour,
                raw=self.is_raw,
            )
            for table in printed
        )

    def _width(self) -> int | None:
        """Return the maximum width: COLUMNS, or that of the terminal; None without either."""
        columns = os.environ.get("COLUMNS", "")
        if self.is_wide or self.output != "-":
            return None
        if columns.isdecimal() and int(columns):
            return int(columns)
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table_options(
    *more_formats: str, has_output: bool = True, has_events: bool = False, has_order: bool = False
) -> Decorator:
    """Return a decorator that gives a verb the options of tables, as one keyword, `table_output`.

    Args:
        has_output: whether ``-o/--output`` says where the table goes; for verbs that make a
            campaign it names the campaign's folder.
        has_events: whether the verb runs a campaign, whose events ``--format events`` prints.
        has_order: whether rows can be sorted, and CSV be written without protection.
    """
    output = output_option(
        metavar="PATH", default="-", help="File or folder; - is standard output."
    )
    order: list[Decorator] = [_SORT, RAW] if has_order else []
    ending = "by the ending of --output, else table" if has_output else "table"
    default = f"Output format. Default: {ending}."
    if has_events:
        more_formats = ("events",)
        default = (
            "Format of the results, or of the plan; events is a JSON object per line while the "
            "campaign runs, the results last.  [default: table]"
        )
    return option_group(
        "table_output",
        partial(TableOutput, more_formats=more_formats),
        click.option(
            "--format", "format_name", type=click.Choice([*_FORMATS, *more_formats]), help=default
        ),
        flag("--json", "Short for --format json.", "as_json"),
        *([output] if has_output else []),
        names_option(
            "--columns", "columns", text="Only these columns, in this order.", metavar="NAME,..."
        ),
        flag("--wide", "All columns at their full width.", "is_wide"),
        *order,
        heading="Output",
    )


@dataclass(frozen=True)
class ChartFile:
    """File of the chart of a table."""

    chart: str | None  # file of the picture; None for no chart

    def write(self, plot: Plot, numbers: Table[Any]) -> None:
        """Write a chart, and its numbers as CSV beside it."""
        from volbench.present.renderers.matplotlib import draw, save
        from volbench.present.tables.render_table import csv_text

        chart = str(self.chart)
        image = _picture_format(chart)
        beside = str(Path(chart).with_suffix(".csv"))
        with (
            binary_output(chart, default_name=f"chart.{image}") as picture,
            binary_output(beside, default_name="chart.csv") as sink,
        ):
            save(draw(plot), picture, format=image)
            sink.write(csv_text(numbers.records()).encode())


def chart_options(shows: str) -> Decorator:
    """Return the options of a verb that prints a table and may draw it, as `picture`."""
    return option_group(
        "picture",
        ChartFile,
        click.option(
            "--chart",
            metavar="FILE",
            callback=_checked,
            help=f"Draw {shows}: a .svg, .png or .pdf file, with the numbers as CSV beside it.",
        ),
        heading="Chart",
    )


def _checked(context: click.Context, option: click.Parameter, chart: str | None) -> str | None:
    del context, option
    if chart is not None:
        _picture_format(chart)
    return chart


def _picture_format(chart: str) -> str:
    image = Path(chart).suffix.removeprefix(".").lower()
    if image not in PICTURE_FORMATS:
        message = f"{chart} is not the name of an image file"
        raise InputError(message, hint=f"end it with .{', .'.join(PICTURE_FORMATS)}")
    return image
