"""Declaration of a table: its columns, each with text and priority, and its rows.

A table is declared once. `volbench.present.tables.render_table` writes it for a terminal and as
JSON, CSV and Markdown, `volbench.present.tables.html_table` for a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from volbench.errors import InputError, did_you_mean
from volbench.model.frames.column_names import meaning_of
from volbench.present.formatting import MISSING, UNIT_ENDINGS, Row, printable, shown, unit_words

MAX_ROWS = 60  # More do not fit two screens
SCREEN_ROWS = 20  # Rows that fit a screen of 24 lines with heading and prompt
IDENTITY = 0  # Priority of columns that identify rows: they are shown at any width

Item = TypeVar("Item")


@dataclass(frozen=True)
class Column(Generic[Item]):
    """A column of a table."""

    name: str  # of the value in JSON and CSV, and for ``--columns``
    # returns the text of a row's cell; None for the plain value of that name
    show: Callable[[Item], str] | None = None
    header: str = ""  # over the column; the name, with blanks, if empty
    # where a table is wider than the screen, columns with the largest number are left out first;
    # those with `IDENTITY` never
    priority: int = 1
    is_right: bool = False  # aligned right, as numbers are
    is_folded: bool = False  # long text, which may be broken into lines
    is_optional: bool = False  # left out where all cells are empty or n/a
    meaning: str = ""  # what the values are, in a sentence
    styles: Mapping[str, str] = field(default_factory=dict)  # text of a cell to its colour

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
    """Rows under columns."""

    name: str  # of the file that is written into a folder
    columns: Sequence[Column[Item]]  # in the order in which they are shown
    rows: Sequence[Item]  # items that the columns show
    # returns the values of a row for JSON and CSV; None for the mapping itself, else the texts of
    # the cells. Rows with an empty record are not part of the data.
    record: Callable[[Item], Row] | None = None
    title: str = ""  # above the table
    notes: Sequence[str] = ()  # lines below the table
    document: object = None  # complete JSON document, if it is more than a list of records

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
            names: of columns, as they are named in JSON, as their headings read, or as an alias
                of a frame's column such as ``p99.9``.
        """
        chosen = [replace(self._found(n), priority=IDENTITY, is_optional=False) for n in names]
        return replace(self, columns=tuple(chosen), document=None)

    def sorted_by(self, name: str) -> Table[Item]:
        """Return the table with its rows in the order of a column, unknown values last."""
        column = self._found(name.removeprefix("-"))

        def value_of(item: Item) -> object:
            return self.record_of(item).get(column.name, column.cell(item))

        known = [item for item in self.rows if plain_text(value_of(item)) != MISSING]
        are_numbers = all(isinstance(value_of(item), int | float) for item in known)
        key = value_of if are_numbers else lambda item: str(value_of(item))
        ordered = sorted(known, key=key, reverse=name.startswith("-"))  # type: ignore[arg-type]  # numbers, or texts
        unknown = [item for item in self.rows if plain_text(value_of(item)) == MISSING]
        return replace(self, rows=[*ordered, *unknown], document=None)

    def _found(self, name: str) -> Column[Item]:
        known = {_key(text): each for each in self.columns for text in (each.name, each.heading)}
        values = dict.fromkeys(value for record in self.records() for value in record)
        value = name if name in values else meaning_of(name, values)
        if _key(name) in known:
            return known[_key(name)]
        if value:
            return Column(value, self._value_text(value), header=name)
        names = [column.name for column in self.columns]
        hint = did_you_mean(name, [*names, *values], f"columns are {', '.join(names)}")
        raise InputError(f"no column is named {name!r}", hint=hint)

    def _value_text(self, name: str) -> Callable[[Item], str]:
        def show(item: Item) -> str:
            value = self.record_of(item).get(name)
            has_unit = isinstance(value, float) and name.endswith(UNIT_ENDINGS)
            return shown({name: value}, name, unit_words(name)) if has_unit else plain_text(value)

        return show


def plain_text(value: object) -> str:
    """Return the default text of a value: lists joined, n/a for None, six digits."""
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
    """Return a table of texts that are ready to be shown; columns without any are left out."""
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


def quantity(name: str, header: str = "", *, priority: int = 1, **more: Any) -> Column[Any]:  # noqa: ANN401 - any other attribute of a column
    """Return a column of numbers of a frame, in the unit that the end of its name says."""
    unit_format = unit_words(name)
    column: Column[Row] = Column(
        name,
        lambda row: shown(row, name, unit_format),
        header=header,
        priority=priority,
        is_right=True,
    )
    return replace(column, **more)


def _key(name: str) -> str:
    return name.strip().lower().replace("_", " ")
