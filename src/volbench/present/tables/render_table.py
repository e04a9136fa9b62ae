"""Tables as text for a terminal, JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import click

from volbench.present.formatting import MISSING, Row, printable, spreadsheet_text
from volbench.present.tables.table import IDENTITY, Column, Item, Table

FORMATS = ("table", "json", "csv", "markdown")
_NAMED_COLUMNS = 10  # More hidden columns than these are counted, not named
GAP = 2  # Blanks between columns
# Widths that a folded column and one of the identity keep if they can; one that each keeps
_FOLDED_WIDTH, _IDENTITY_WIDTH, _NARROWEST = 24, 16, 8
# Columns of this priority are what the table is for: the identity is broken to keep them
_MAIN_PRIORITY = 1


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
        return json.dumps(plain_json(table.document), indent=2, ensure_ascii=False) + "\n"
    return json_text(_values(table, only=only))


def json_text(records: Iterable[Row]) -> str:
    """Return an array with a record a line; null for unknown values, NaN and infinity."""
    lines = [json.dumps(plain_json(record), ensure_ascii=False) for record in records]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def plain_json(value: object) -> object:
    """Return a value for JSON: null for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(name): plain_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_text(
    records: Iterable[Row], *, columns: Sequence[str] = (), raw: bool = False, line_end: str = "\n"
) -> str:
    """Return a line for each record, numbers in full precision; unknown values are empty.

    Args:
        records: names to values; lists are joined by ``;``.
        columns: to write, in this order; all of the records if empty.
        raw: leave text as it is, even where a spreadsheet would run it as a formula.
        line_end: CRLF gives the bytes that `frame_export.export_frame` makes of a frame.
    """
    listed = list(records)
    names = columns or list(dict.fromkeys(name for record in listed for name in record))
    sink = io.StringIO()
    safe = (lambda value: value) if raw else spreadsheet_text
    writer = csv.writer(sink, lineterminator=line_end)
    writer.writerow([safe(name) for name in names])
    writer.writerows([safe(_csv_cell(row.get(name, ""))) for name in names] for row in listed)
    return sink.getvalue()


def _csv_cell(value: object) -> object:
    if isinstance(value, list | tuple):
        return ";".join(str(part) for part in value)
    if isinstance(value, Mapping):
        return json.dumps(plain_json(value), ensure_ascii=False)
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
    """Return a Markdown table whose columns are aligned in the source too."""
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
    return " ".join(re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(text)).split())


def _lines(table: Table[Item], *, width: int | None, colour: bool) -> list[str]:
    columns = table.columns
    cells = [[column.cell(item) for column in columns] for item in table.rows]
    natural = [
        max(
            [
                display_width(column.heading),
                *(max(map(display_width, row[index].split("\n"))) for row in cells),
            ]
        )
        for index, column in enumerate(columns)
    ]
    layout = lay_out(columns, natural, width=width)
    visible = [columns[index] for index in layout.shown]
    title = wrap(printable(table.title), width) if table.title else []
    lines = [click.style(line, bold=True) if colour else line for line in title]
    headings = [column.heading for column in visible]
    lines += _row_lines(headings, visible, layout.widths, colour=False)
    lines.append("  ".join("─" * width for width in layout.widths))
    for row in cells:
        lines += _row_lines([row[i] for i in layout.shown], visible, layout.widths, colour=colour)
    hidden = [column.heading for index, column in enumerate(columns) if index not in layout.shown]
    for note in (*_meanings(visible), *table.notes, *_hidden_note(hidden)):
        lines += wrap(printable(note), width)
    return lines


def _meanings(columns: Sequence[Column[Item]]) -> Iterator[str]:
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


def _row_lines(
    row: Sequence[str], columns: Sequence[Column[Item]], widths: Sequence[int], *, colour: bool
) -> list[str]:
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


@dataclass(frozen=True)
class Layout:
    """Visible columns of a table and their widths."""

    shown: Sequence[int]  # indexes of the columns
    widths: Sequence[int]  # of each shown column


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def lay_out(
    columns: Sequence[Column[Item]], natural: Sequence[int], *, width: int | None
) -> Layout:
    """Return the columns that fit, and their widths."""
    visible = list(range(len(columns)))
    if width is None:
        return Layout(visible, natural)
    least = [
        min(wanted, max(_FOLDED_WIDTH, display_width(column.heading)))
        if column.is_folded
        else wanted
        for column, wanted in zip(columns, natural, strict=True)
    ]
    broken = [
        min(wanted, max(_IDENTITY_WIDTH, display_width(column.heading)))
        if column.priority == IDENTITY
        else wanted
        for column, wanted in zip(columns, least, strict=True)
    ]
    while _total(least, visible) > width:
        others = [index for index in visible if columns[index].priority != IDENTITY]
        are_main = all(columns[index].priority <= _MAIN_PRIORITY for index in others)
        if not others or (are_main and _total(broken, visible) <= width):
            break
        visible.remove(max(others, key=lambda index: (columns[index].priority, index)))
    widths = [least[index] for index in visible]
    room = width - GAP * (len(visible) - 1)
    return Layout(visible, _stretched(_shrunk(widths, room), [natural[i] for i in visible], room))


def _total(widths: Sequence[int], visible: Sequence[int]) -> int:
    return sum(widths[index] for index in visible) + GAP * (len(visible) - 1)


def _shrunk(widths: list[int], room: int) -> list[int]:
    while sum(widths) > room and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _stretched(widths: list[int], natural: Sequence[int], room: int) -> list[int]:
    spare = room - sum(widths)
    while spare > 0:
        wanting = [i for i, width in enumerate(widths) if width < natural[i]]
        if not wanting:
            break
        for index in wanting[:spare]:
            widths[index] += 1
        spare -= len(wanting[:spare])
    return widths


def wrap(text: str, width: int | None) -> list[str]:
    """Return a text in lines that are no longer than a width; words that are longer are broken."""
    lines = text.split("\n")
    if width is None or all(display_width(line) <= width for line in lines):
        return lines
    return [part for line in lines for part in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    parts: list[str] = []
    current = line[: len(line) - len(line.lstrip(" "))]
    is_blank = True
    for word in line.split():
        joined = f"{current}{word}" if is_blank else f"{current} {word}"
        if display_width(joined) <= width:
            current, is_blank = joined, False
            continue
        if not is_blank:
            parts.append(current)
        *whole, current = _broken(word, width)
        parts += whole
        is_blank = False
    return [*parts, current]


def _broken(word: str, width: int) -> list[str]:
    pieces, current = [], ""
    for char in word:
        if display_width(current + char) > width and current:
            mark = max(current.rfind(mark) for mark in "-_./:,=") + 1
            end = mark if mark > len(current) // 2 else len(current)
            pieces.append(current[:end])
            current = current[end:]
        current += char
    return [*pieces, current]


def aligned(text: str, width: int, *, is_right: bool) -> str:
    """Return a text padded with blanks."""
    blanks = " " * (width - display_width(text))
    return blanks + text if is_right else text + blanks
