"""Tables as elements of a page, for reports and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from volbench.present.formatting import printable
from volbench.present.tables.render_table import used_columns
from volbench.present.tables.table import Column, Table

_MAX_ROWS = 200  # More are counted: nobody reads them on a page
_RIGHT = Markup(' style="text-align: right"')


def html_table(table: Table[Any]) -> Markup:
    """Return a table with its title above and its notes below; every text is escaped."""
    columns = used_columns(table)
    head = Markup("").join(
        Markup("<th{}{}>{}</th>").format(
            _RIGHT if column.is_right else "",
            Markup(' title="{}"').format(column.meaning) if column.meaning else "",
            column.heading,
        )
        for column in columns
    )
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(_cells(columns, item)) for item in table.rows[:_MAX_ROWS]
    )
    rest = len(table.rows) - _MAX_ROWS
    notes = [*([f"and {rest:,} more rows"] if rest > 0 else []), *table.notes]
    return (
        (Markup("<p>{}</p>").format(printable(table.title)) if table.title else Markup(""))
        + Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)
        + Markup("").join(Markup("<small>{}</small><br>").format(printable(note)) for note in notes)
    )


def _cells(columns: Sequence[Column[Any]], item: object) -> Markup:
    cells = Markup("")
    for column in columns:
        text = column.cell(item)
        style = column.styles.get(text, "")
        cells += Markup("<td{}{}>{}</td>").format(
            _RIGHT if column.is_right else "",
            Markup(' class="{}"').format(style) if style else "",
            text,
        )
    return cells
