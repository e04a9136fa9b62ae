"""Tables as text for a terminal, JSON, CSV and Markdown."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import click

from volbench.present.formatting import MISSING, Row, printable, spreadsheet_text
from volbench.present.tables.table import Column, Item, Table
from volbench.present.tables.text_layout import aligned, display_width, lay_out, wrap

FORMATS = ("table", "json", "csv", "markdown")
_NAMED_COLUMNS = 10  # More hidden columns than these are counted, not named


def render_table(
    table: Table[Item],
    format_name: str,
    *,
    width: int | None = None,
    columns: Sequence[str] = (),
    colour: bool = False,
    raw: bool = False,
) -> str:
    """Return a table in a format.

    Args:
        width: maximum width for ``table``; None for no limit.
        columns: names of the columns to show; those of the table, as far as they fit, if empty.
    """
    chosen = table.with_columns(columns) if columns else table
    if format_name == "json":
        return _render_json(chosen, only=columns)
    if format_name == "csv":
        return csv_text(_values(chosen, only=columns), raw=raw)
    chosen = replace(chosen, columns=used_columns(chosen))
    if format_name == "markdown":
        return _render_markdown(chosen)
    return "".join(f"{line}\n" for line in _lines(chosen, width=width, colour=colour))


def used_columns(table: Table[Item]) -> list[Column[Item]]:
    """Return the columns without those that are optional and empty."""
    return [
        column
        for column in table.columns
        if not column.is_optional
        or any(column.cell(item) not in {"", MISSING} for item in table.rows)
    ]


def _values(table: Table[Item], *, only: Sequence[str]) -> list[Row]:
    """Return the records; selected columns that are not in a record have the text of the cell."""
    if not only:
        return table.records()
    records: list[Row] = []
    for item in table.rows:
        if not (record := table.record_of(item)):
            continue
        records.append(
            {
                column.name: record[column.name] if column.name in record else column.cell(item)
                for column in table.columns
            }
        )
    return records


def _render_json(table: Table[Item], *, only: Sequence[str]) -> str:
    if table.document is not None:
        return json.dumps(_plain(table.document), indent=2, ensure_ascii=False) + "\n"
    return json_text(_values(table, only=only))


def json_text(records: Iterable[Row]) -> str:
    """Return an array with a record a line; null for unknown values, NaN and infinity."""
    lines = [json.dumps(_plain(record), ensure_ascii=False) for record in records]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def _plain(value: object) -> object:
    """Return a value for JSON: null for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_text(records: Iterable[Row], *, raw: bool = False) -> str:
    """Return a line for each record, numbers in full precision; unknown values are empty.

    Args:
        records: names to values; lists are joined by ``;``.
    """
    import csv  # noqa: PLC0415 - only where CSV is written

    listed = list(records)
    names = list(dict.fromkeys(name for record in listed for name in record))
    sink = io.StringIO()
    safe = (lambda value: value) if raw else spreadsheet_text
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow([safe(name) for name in names])
    writer.writerows([safe(_csv_cell(row.get(name, ""))) for name in names] for row in listed)
    return sink.getvalue()


def _csv_cell(value: object) -> object:
    if isinstance(value, list | tuple):
        return ";".join(str(part) for part in value)
    if isinstance(value, Mapping):
        return json.dumps(_plain(value), ensure_ascii=False)
    return "" if isinstance(value, float) and math.isnan(value) else value


def _render_markdown(table: Table[Item]) -> str:
    title = f"**{_escaped(table.title)}**\n\n" if table.title else ""
    body = markdown_text(
        [column.heading for column in table.columns],
        [[column.cell(item) for column in table.columns] for item in table.rows],
        [column.is_right for column in table.columns],
    )
    notes = "".join(f"- {_escaped(note)}\n" for note in table.notes)
    return title + body + (f"\n{notes}" if notes else "")


def markdown_text(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool]
) -> str:
    """Return a Markdown table whose columns are aligned in the source too.

    Args:
        rows: texts of the cells; characters with a meaning in Markdown are escaped.
    """
    cells = [[_escaped(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    shapes = [*zip(widths, right, strict=True)]
    rule = ["-" * (width - is_right) + ":" * is_right for width, is_right in shapes]
    lines = [
        [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, (width, is_right) in zip(line, shapes, strict=True)
        ]
        for line in (cells[0], rule, *cells[1:])
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escaped(text: str) -> str:
    """Return a text without active Markdown or HTML, on one line."""
    return " ".join(re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(text)).split())


def _lines(table: Table[Item], *, width: int | None, colour: bool) -> list[str]:
    columns = table.columns
    cells = [[column.cell(item) for column in columns] for item in table.rows]
    natural = [
        max([display_width(column.heading), *(_width(row[place]) for row in cells)])
        for place, column in enumerate(columns)
    ]
    layout = lay_out(columns, natural, width=width)
    shown = [columns[place] for place in layout.shown]
    title = wrap(printable(table.title), width) if table.title else []
    lines = [click.style(line, bold=True) if colour else line for line in title]
    headings = [column.heading for column in shown]
    lines += _row_lines(headings, shown, layout.widths, colour=False)
    lines.append("  ".join("─" * width for width in layout.widths))
    for row in cells:
        lines += _row_lines([row[i] for i in layout.shown], shown, layout.widths, colour=colour)
    hidden = [column.heading for place, column in enumerate(columns) if place not in layout.shown]
    for note in (*_meanings(shown), *table.notes, *_hidden_note(hidden)):
        lines += wrap(printable(note), width)
    return lines


def _meanings(columns: Sequence[Column[Item]]) -> Iterator[str]:
    """Yield what the columns that have a meaning show, a line each."""
    for column in columns:
        if column.meaning:
            meaning = column.meaning.partition(": ")[2] or column.meaning
            if meaning[1:2].islower():
                meaning = meaning[:1].lower() + meaning[1:]
            yield f"{column.heading}: {meaning}"


def _hidden_note(hidden: Sequence[str]) -> list[str]:
    if not hidden:
        return []
    if len(hidden) > _NAMED_COLUMNS:
        return [f"{len(hidden)} columns are hidden; see --wide and --columns"]
    return [f"hidden columns (--wide shows them): {', '.join(hidden)}"]


def _width(cell: str) -> int:
    return max(map(display_width, cell.split("\n"))) if "\n" in cell else display_width(cell)


def _row_lines(
    row: Sequence[str], columns: Sequence[Column[Item]], widths: Sequence[int], *, colour: bool
) -> list[str]:
    """Return the lines of one row: several where a cell is broken."""
    folded = [wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, folded))
    if height == 1:
        return [_line(row, columns, widths, colour=colour)]
    filled = [[*cell, *[""] * (height - len(cell))] for cell in folded]
    return [_line(line, columns, widths, colour=colour) for line in zip(*filled, strict=True)]


def _line(
    cells: Sequence[str], columns: Sequence[Column[Item]], widths: Sequence[int], *, colour: bool
) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        text = aligned(cell, width, is_right=column.is_right)
        style = column.styles.get(cell) if colour else None
        parts.append(click.style(text, fg=style, bold=style == "red") if style else text)
    return "  ".join(parts).rstrip()
