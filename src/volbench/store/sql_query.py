"""SQL over frames, answered by DuckDB from Parquet files and tables.

DuckDB runs in memory, and may read the files of the views and nothing else: no other file, no
network, no extension from elsewhere; only statements that read are let through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from volbench.errors import InputError
from volbench.model.frames.columns import FRAMES
from volbench.store.parquet_tables import schema_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from fsspec import AbstractFileSystem

_FRAMES_HINT = f"frames are {', '.join(FRAMES)}; 'describe summary' lists a frame's columns"


@dataclass
class View:
    """What one name in SQL stands for: the rows of all its files and tables.

    Attributes:
        files: Parquet files whose rows are taken as they are.
        named_files: Parquet file to the campaign's name, which replaces the one in the file and is
            put before its ids of runs.
        tables: rows that stand in no file.
    """

    files: list[str] = field(default_factory=list)
    named_files: dict[str, str] = field(default_factory=dict)
    tables: list[pa.Table] = field(default_factory=list)


def run_query(
    sql: str, view_of: Callable[[str], View], *, filesystem: AbstractFileSystem | None = None
) -> pa.Table:
    """Answer a SQL query.

    Args:
        sql: one statement that reads, such as ``select job, iops from summary``.
        view_of: what a frame's name stands for; asked for the frames whose names stand in `sql`.
        filesystem: where the files are, if not on this machine.

    Raises:
        InputError: duckdb is missing, or the statement is wrong or more than a question.
    """
    try:
        import duckdb  # noqa: PLC0415 - an extra; nothing else needs it
    except ImportError as error:
        raise InputError(
            "SQL needs duckdb, which is not installed", hint="pip install 'volbench[sql]'"
        ) from error
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    try:
        with duckdb.connect(":memory:", config=config) as connection:
            _check_reads(connection, sql)
            words = sql.lower()
            views = {name: view_of(name) for name in FRAMES if name in words}
            if filesystem is not None:
                connection.register_filesystem(filesystem)
            for name in FRAMES:
                _make_view(connection, name, views.get(name, View()))
            _shut(connection, [file for view in views.values() for file in _files(view)])
            answer = connection.sql(sql)
            return answer.to_arrow_table()
    except duckdb.Error as error:
        raise InputError(
            f"the query can't be answered: {_brief(str(error))}", hint=_FRAMES_HINT
        ) from error


def _check_reads(connection: DuckDBPyConnection, sql: str) -> None:
    """Refuse anything but one SELECT, to which WITH, DESCRIBE and SUMMARIZE count."""
    kinds = [statement.type.name for statement in connection.extract_statements(sql)]
    if kinds != ["SELECT"]:
        found = " and ".join(kinds) if kinds else "nothing"
        raise InputError(
            f"one statement that reads was expected, not {found}",
            hint="write one query that begins with select, with, describe or summarize",
        )


def _make_view(connection: DuckDBPyConnection, name: str, view: View) -> None:
    """Make a view of everything a name stands for; one without rows still has its columns."""
    parts = []
    empty = schema_of(FRAMES[name]).empty_table()
    for place, table in enumerate([*view.tables, empty]):
        connection.register(f"_{name}_{place}", table)
        parts.append(f"_{name}_{place}")
    if view.files:
        parts.append(_read(view.files))
    if view.named_files:
        parts.append(_renamed(connection, name, view.named_files))
    whole = " union all by name ".join(f"from {part}" for part in reversed(parts))
    connection.execute(f'create view "{name}" as {whole}')


def _renamed(connection: DuckDBPyConnection, name: str, files: Mapping[str, str]) -> str:
    """Return the rows of files with the campaign's name of each file in them."""
    rows = [{"file": file, "own": own} for file, own in files.items()]
    connection.register(f"_{name}_names", pa.Table.from_pylist(rows))
    has_run = any(column.name == "run" for column in FRAMES[name])
    run = ", own || '/' || run as run" if has_run else ""
    return (
        f"(from {_read(list(files), more=', filename=true')} "
        f"join _{name}_names on filename = file "
        f"select * exclude (file, own, filename) replace (own as campaign{run}))"
    )


def _read(files: Sequence[str], *, more: str = "") -> str:
    return f"read_parquet({_list(files)}, union_by_name=true{more})"


def _list(texts: Sequence[str]) -> str:
    """Return texts as a list of SQL: a quote in one is doubled."""
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"


def _files(view: View) -> list[str]:
    return [*view.files, *view.named_files]


def _shut(connection: DuckDBPyConnection, files: Sequence[str]) -> None:
    """Let nothing be read from now on but these files, and no setting be changed."""
    connection.execute(f"set allowed_paths = {_list(files)}")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def _brief(words: str) -> str:
    """Return DuckDB's words without the kind of error before them and the picture below."""
    first = words.strip().partition("\n\nLINE ")[0]
    return " ".join(first.partition(" Error: ")[2].split()) or " ".join(first.split())
