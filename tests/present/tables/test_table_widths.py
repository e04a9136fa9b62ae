"""Every table at 80, 100 and 120 columns: it fits, nothing is cut, rows can be identified."""

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.present.tables import declared_tables
from tests.present.tables.declared_tables import LONG, TABLES, finding
from volbench.present import tables
from volbench.present.tables.findings_table import findings_text
from volbench.present.tables.render_table import render_table
from volbench.present.tables.table import IDENTITY

NOT_DECLARATIONS = {"text_table"}


def spans(lines: list[str]) -> list[tuple[int, int]]:
    """Return where the columns of a printed table begin and end, by the rule below its headings."""
    (rule,) = (line for line in lines if line and set(line) <= {"─", " "})
    edges, start = [], 0
    for part in rule.split("  "):
        edges.append((start, start + len(part)))
        start += len(part) + 2
    return edges


def squeezed(text: str) -> str:
    """Return a text without blanks, which a line break may have replaced."""
    return "".join(text.split())


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_fits_the_width_without_losing_a_column(name: str, width: int) -> None:
    """No line is too long, no shown cell is cut, and the columns of the identity are there."""
    table = TABLES[name]()
    lines = render_table(table, "table", width=width).splitlines()
    assert max(map(len, lines)) <= width
    edges = spans(lines)
    rule = next(place for place, line in enumerate(lines) if line and set(line) <= {"─", " "})
    shown = {squeezed(_column_text(lines[:rule], edge)): edge for edge in edges}
    body = lines[rule + 1 :]
    by_heading = {squeezed(column.heading): column for column in table.columns}
    for heading, edge in shown.items():
        column = by_heading[max(filter(heading.endswith, by_heading), key=len)]
        cells = squeezed("".join(column.cell(row) for row in table.rows))
        assert squeezed(_column_text(body, edge)).startswith(cells), heading
    needed = [c for c in table.columns if c.priority == IDENTITY and not c.is_optional]
    assert needed
    for column in needed:
        assert any(h.endswith(squeezed(column.heading)) for h in shown), column.heading


def _column_text(lines: list[str], edge: tuple[int, int]) -> str:
    return "".join(line[edge[0] : edge[1]] for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_pipe_without_width_gets_everything(name: str) -> None:
    """Without a width, every column is whole, and each row one line unless a cell has several."""
    table = TABLES[name]()
    text = render_table(table, "table")
    assert "hidden" not in text
    for row in table.rows:
        for column in table.columns:
            for line in column.cell(row).split("\n"):
                assert line in text or column.is_optional


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("format_name", ["json", "csv", "markdown"])
def test_every_table_has_every_format(name: str, format_name: str) -> None:
    """JSON, CSV and Markdown hold at least a line for each row."""
    table = TABLES[name]()
    text = render_table(table, format_name)
    records = [record for record in table.records() if record]
    assert text.count("\n") >= len(records)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_findings_fit_the_width(width: int) -> None:
    """Text grouped by rule is broken at the width of the terminal."""
    rows = [finding(f"{number:03}-randread-4k-iodepth-16-r1") for number in range(9)]
    lines = findings_text(rows, runs=9, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert squeezed(LONG) in squeezed("".join(lines))


def test_every_declared_table_is_tested() -> None:
    """A function that returns a table for a terminal is called by the declared tables."""
    source = inspect.getsource(declared_tables)
    missing = [
        name
        for module in pkgutil.walk_packages(tables.__path__, f"{tables.__name__}.")
        for name, value in vars(import_module(module.name)).items()
        if inspect.isfunction(value)
        and not name.startswith("_")
        and not name.endswith("_page_table")
        and str(value.__annotations__.get("return", "")).startswith("Table[")
        and f"{name}(" not in source
        and name not in NOT_DECLARATIONS
    ]
    assert missing == []


def test_tables_are_declared_in_one_place() -> None:
    """Outside present/, extensions and two verbs declare tables, and test the width."""
    source = Path(inspect.getfile(tables)).parents[2]
    declaring = {
        path.relative_to(source)
        for path in source.rglob("*.py")
        if re.search(r"\bTable\(\n?\s*\"", path.read_text(encoding="utf-8"))
    }
    elsewhere = {path for path in declaring if path.parts[0] not in {"present", "extensions"}}
    assert {str(path) for path in elsewhere} <= {"cli/check.py"}
