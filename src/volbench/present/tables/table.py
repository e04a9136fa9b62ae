"""Declaration of a table: its columns, each with priority and format, and its rows.

A table is declared once and rendered by `volbench.present.tables.render_table` for a terminal and
as JSON, CSV and Markdown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from volbench.errors import InputError
from volbench.present.formatting import MISSING, Row, printable, shown, unit_words

IDENTITY = 0
"""Priority of columns that tell rows apart: they are shown at any width."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Column(Generic[Item]):
    """A column of a table.

    Attributes:
        name: of the value in JSON and CSV, and for ``--columns``.
        show: a row to the text of the cell; None for the value of that name as it is.
        header: over the column; the name, with blanks, if empty.
        priority: where a table is wider than the screen, columns with the largest number are left
            out first; those with `IDENTITY` never.
        is_right: aligned right, as numbers are.
        is_folded: long text, which may be broken into lines.
        is_optional: left out where all cells are empty or n/a.
        meaning: what the values are, in a sentence.
        styles: text of a cell to its colour.
    """

    name: str
    show: Callable[[Item], str] | None = None
    header: str = ""
    priority: int = 1
    is_right: bool = False
    is_folded: bool = False
    is_optional: bool = False
    meaning: str = ""
    styles: Mapping[str, str] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """Text over the column."""
        return self.header or self.name.replace("_", " ")

    def cell(self, item: Item) -> str:
        """Return the text of a cell without control characters."""
        if self.show is not None:
            return printable(self.show(item))
        value = item.get(self.name) if isinstance(item, Mapping) else None
        return plain_text(value)


@dataclass(frozen=True)
class Table(Generic[Item]):
    """Rows under columns.

    Attributes:
        name: of the file that is written into a folder.
        columns: in the order in which they are shown.
        rows: what the columns show.
        record: a row to the values that JSON and CSV have of it, by name; those of a mapping, else
            the texts of its cells, if None. Rows with an empty record are no data.
        title: above the table.
        notes: lines below the table.
        document: all of it for JSON, where that is more than a list of records.
    """

    name: str
    columns: Sequence[Column[Item]]
    rows: Sequence[Item]
    record: Callable[[Item], Row] | None = None
    title: str = ""
    notes: Sequence[str] = ()
    document: object = None

    def records(self) -> list[Row]:
        """Return the values of each row by name; rows that have none are left out."""
        return [record for item in self.rows if (record := self.record_of(item))]

    def record_of(self, item: Item) -> Row:
        """Return the values of a row by name."""
        if self.record is not None:
            return self.record(item)
        if isinstance(item, Mapping):
            return item
        return {column.name: column.cell(item) for column in self.columns}

    def with_columns(self, names: Sequence[str]) -> Table[Item]:
        """Return the table with the named columns alone, in that order, none of them left out.

        Args:
            names: of columns, as they are named in JSON or as their headings read.

        Raises:
            InputError: no column and no value has that name.
        """
        known = {spelled: column for column in self.columns for spelled in _spellings(column)}
        values = dict.fromkeys(name for record in self.records() for name in record)
        chosen: list[Column[Item]] = []
        for name in names:
            key = _key(name)
            if key not in known and name not in values:
                names_there = dict.fromkeys([*(column.name for column in self.columns), *values])
                raise InputError(
                    f"no column is named {name!r}", hint=f"columns: {', '.join(names_there)}"
                )
            column = known.get(key) or Column(name, self._value_text(name))
            chosen.append(replace(column, priority=IDENTITY, is_optional=False))
        return replace(self, columns=tuple(chosen), document=None)

    def _value_text(self, name: str) -> Callable[[Item], str]:
        return lambda item: plain_text(self.record_of(item).get(name))


def plain_text(value: object) -> str:
    """Return a value that has no format of its own: lists joined, n/a for None, six digits."""
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return MISSING if value != value else f"{value:.6g}"  # noqa: PLR0124 - NaN alone differs from itself
    if isinstance(value, list | tuple):
        return ", ".join(plain_text(part) for part in value)
    return printable(str(value))


def text_table(  # noqa: PLR0913 - the attributes of a table and of its columns
    name: str,
    rows: Iterable[Mapping[str, str]],
    *,
    identity: str,
    priorities: Mapping[str, int] | None = None,
    right: Sequence[str] = (),
    folded: Sequence[str] = (),
    title: str = "",
    notes: Sequence[str] = (),
) -> Table[Any]:
    """Return a table of texts that are ready to be shown; columns without any are left out.

    Args:
        name: of the table.
        rows: heading to text; headings that a row lacks read n/a.
        identity: the heading that tells rows apart.
        priorities: heading to priority where it is not 1.
        right: headings that are aligned right.
        folded: headings whose text may be broken into lines.
        title: above the table.
        notes: lines below.
    """
    listed = list(rows)
    priorities = {**(priorities or {}), identity: IDENTITY}
    columns = [
        Column[Mapping[str, str]](
            heading.lower().replace(" ", "_"),
            lambda row, heading=heading: row.get(heading, MISSING),  # type: ignore[misc]  # the default binds the loop's value
            header=heading,
            priority=priorities.get(heading, 1),
            is_right=heading in right,
            is_folded=heading in folded,
            is_optional=heading != identity,
        )
        for heading in dict.fromkeys(key for row in listed for key in row)
    ]

    def record(row: Mapping[str, str]) -> Row:
        return {column.name: row.get(column.header) for column in columns}

    return Table(name, columns, listed, record=record, title=title, notes=notes)


def quantity(name: str, header: str = "", *, priority: int = 1) -> Column[Row]:
    """Return a column of numbers of a frame, in the unit that the end of its name says.

    Args:
        name: of the frame's column.
        header: over it.
        priority: as for `Column`.
    """
    words = unit_words(name)
    return Column(
        name, lambda row: shown(row, name, words), header=header, priority=priority, is_right=True
    )


def _spellings(column: Column[Item]) -> set[str]:
    return {_key(column.name), _key(column.heading)}


def _key(name: str) -> str:
    return name.strip().lower().replace("_", " ")
