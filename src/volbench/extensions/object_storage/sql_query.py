"""SQL queries on frames by DuckDB, from Parquet files and Arrow tables.

DuckDB runs in memory and may access only the files of the views: no other files, no network, no
extensions. Only read-only statements are accepted, with limits on memory and time. The files of a
dataset are those of ``volbench export --format dataset``: ``DATASET/<frame>/<campaign>.parquet``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa

from volbench.api.many_campaigns import View
from volbench.errors import InputError
from volbench.extras import install_command
from volbench.model.frames.columns import FRAMES
from volbench.store.parquet_tables import frame_of, schema_of

if TYPE_CHECKING:
    import pandas as pd
    from duckdb import DuckDBPyConnection
    from fsspec import AbstractFileSystem

    from volbench.extensions.object_storage.object_storage import ObjectStorage

# URL scheme of paths in object storage, so that DuckDB uses our filesystem, not its extension
_PROTOCOL = "volbench"

_DATASET_HINT = "write one with: volbench export DIR... --format dataset --output DATASET"
_FRAMES_HINT = f"frames are {', '.join(FRAMES)}; 'describe summary' lists a frame's columns"


@dataclass(frozen=True, kw_only=True)
class QueryLimits:
    """Resource limits of a query."""

    # memory limit of DuckDB and, separately, of the result; no spilling to disk
    memory_bytes: int = 4 << 30
    timeout_s: float = 300.0  # time after which the query is interrupted
    threads: int = 0  # DuckDB threads; 0 for one per core


def answer_query(query: str, view_of: Callable[[str], View]) -> pd.DataFrame:
    """Return the result of an SQL query with plain columns; see `run_query`."""
    return plain_answer(run_query(query, view_of))


def run_query(
    sql: str,
    view_of: Callable[[str], View],
    *,
    filesystem: AbstractFileSystem | None = None,
    limits: QueryLimits | None = None,
) -> pa.Table:
    """Return the result of an SQL query.

    Args:
        sql: one read-only statement, such as ``select job, iops from summary``.
        view_of: returns the sources of a frame; called for the frames named in `sql`.
        filesystem: filesystem of the files, if not local.
        limits: resource limits; None for the defaults.
    """
    limits = limits or QueryLimits()
    try:
        import duckdb
    except ImportError as error:
        raise InputError(
            "SQL needs duckdb, which is not installed",
            hint=f"install it: {install_command('sql')}",
        ) from error
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "memory_limit": f"{limits.memory_bytes}B",
        "temp_directory": "",
        **({"threads": limits.threads} if limits.threads else {}),
    }
    try:
        with duckdb.connect(":memory:", config=config) as connection:
            _check_reads(connection, sql)
            text = sql.lower()
            views = {name: view_of(name) for name in FRAMES if name in text}
            if filesystem is not None:
                connection.register_filesystem(filesystem)
            for name in FRAMES:
                _make_view(connection, name, views.get(name, View()))
            files = [path for view in views.values() for path in (*view.files, *view.named_files)]
            connection.execute(f"set allowed_paths = {_list(files)}")
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            return _fetch_within(connection, sql, limits)
    except TimeoutError as error:
        raise InputError(
            f"the query was interrupted after {limits.timeout_s:g} s",
            hint="narrow it with where, or allow more time with --timeout",
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise _too_large(limits.memory_bytes) from error
    except duckdb.Error as error:
        raise InputError(f"the query failed: {_brief(str(error))}", hint=_FRAMES_HINT) from error


def _fetch_within(connection: DuckDBPyConnection, sql: str, limits: QueryLimits) -> pa.Table:
    """Fetch the result in a thread, so that Ctrl-C and the time limit can interrupt it."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        answer = pool.submit(_fetch, connection, sql, limits.memory_bytes)
        try:
            return answer.result(timeout=limits.timeout_s)
        except BaseException:
            connection.interrupt()
            raise


def _fetch(connection: DuckDBPyConnection, sql: str, limit_bytes: int) -> pa.Table:
    """Fetch the result and limit its memory, which DuckDB's limit does not include."""
    reader = connection.sql(sql).to_arrow_reader()
    batches, size_bytes = [], 0
    for batch in reader:
        batches.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > limit_bytes:
            raise _too_large(limit_bytes)
    return pa.Table.from_batches(batches, schema=reader.schema)


def _too_large(limit_bytes: int) -> InputError:
    return InputError(
        f"the query needs more than {limit_bytes / (1 << 30):.3g} GiB of memory",
        hint="narrow it with where or group by, or allow more with --memory",
    )


def _check_reads(connection: DuckDBPyConnection, sql: str) -> None:
    """Refuse all but a single SELECT, which includes WITH, DESCRIBE and SUMMARIZE."""
    kinds = [statement.type.name for statement in connection.extract_statements(sql)]
    if kinds != ["SELECT"]:
        statements = " and ".join(kinds) if kinds else "nothing"
        raise InputError(
            f"expected one read-only statement, not {statements}",
            hint="write one query that begins with select, with, describe or summarize",
        )


def _make_view(connection: DuckDBPyConnection, name: str, view: View) -> None:
    """Create the view of a frame; an empty one has all columns, too."""
    sources = []
    empty = schema_of(FRAMES[name]).empty_table()
    for number, table in enumerate([*view.tables, empty]):
        connection.register(f"_{name}_{number}", table)
        sources.append(f"_{name}_{number}")
    if view.files:
        sources.append(_read(view.files))
    if view.named_files:
        sources.append(_renamed(connection, name, view.named_files))
    whole = " union all by name ".join(f"from {source}" for source in reversed(sources))
    connection.execute(f'create view "{name}" as {whole}')


def _renamed(connection: DuckDBPyConnection, name: str, files: Mapping[str, str]) -> str:
    """Return the SQL for rows of files, with the campaign name replaced."""
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
    """Return an SQL list of strings, with quotes escaped."""
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"


def _brief(message: str) -> str:
    """Return DuckDB's message without its error type and the SQL excerpt."""
    first = message.strip().partition("\n\nLINE ")[0]
    return " ".join(first.partition(" Error: ")[2].split()) or " ".join(first.split())


def plain_answer(table: pa.Table) -> pd.DataFrame:
    """Return a frame with only string, integer, float and boolean columns.

    Args:
        table: table of any types. Decimals become integers or floats, times ISO 8601 strings, lists
            and structs JSON. Duplicate column names are numbered.
    """
    names: list[str] = []
    for name in table.column_names:
        number = names.count(name) + sum(other.startswith(f"{name}_") for other in names)
        names.append(name if name not in names else f"{name}_{number + 1}")
    columns = [_plain_column(column) for column in table.columns]
    return frame_of(pa.Table.from_arrays(columns, names=names))


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_decimal(kind):
        fits = kind.scale == 0 and all(
            value is None or abs(value) < 2**63 for value in column.to_pylist()
        )
        return column.cast(pa.int64() if fits else pa.float64(), safe=False)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64() if kind != pa.uint64() else pa.uint64())
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    texts = [None if value is None else _plain_text(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _plain_text(value: object) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if callable(isoformat) else str(value)


@dataclass(frozen=True)
class Parts:
    """The files of a dataset."""

    files: Mapping[str, list[str]]  # frame name to paths, as passed to DuckDB
    filesystem: AbstractFileSystem | None = None  # filesystem of the paths; None for local files


def local_parts(folder: Path) -> Parts:
    """Return the files of a local dataset; empty if the folder is not a dataset."""
    paths = (
        path for name in FRAMES for path in sorted((folder.absolute() / name).glob("*.parquet"))
    )
    return Parts(_by_frame(map(str, paths)))


def remote_parts(storage: ObjectStorage, names: Iterable[str]) -> Parts:
    """Return the files of a dataset in object storage."""
    try:
        from fsspec.implementations.arrow import ArrowFSWrapper
    except ImportError as error:
        raise InputError(
            "queries in object storage need fsspec, which is not installed",
            hint=f"install it: {install_command('sql')}",
        ) from error
    paths = sorted(name for name in names if name.endswith(".parquet"))
    files = _by_frame(f"{_PROTOCOL}://{storage.prefix}/{path}" for path in paths)
    if not files:
        raise InputError(
            f"there is no dataset and no campaign at {storage.address}", hint=_DATASET_HINT
        )

    def path_of(address: str) -> str:
        """Return the path with its bucket, which fsspec would parse as a host name."""
        return address.removeprefix(f"{_PROTOCOL}://").rstrip("/")

    methods = {"protocol": _PROTOCOL, "_strip_protocol": staticmethod(path_of), "root_marker": ""}
    bucket = type("Bucket", (ArrowFSWrapper,), methods)
    return Parts(files, bucket(storage.filesystem))


def _by_frame(paths: Iterable[str]) -> dict[str, list[str]]:
    """Group paths by frame, the name of their directory."""
    files: dict[str, list[str]] = {}
    for path in paths:
        name = PurePosixPath(path).parent.name
        if name in FRAMES:
            files.setdefault(name, []).append(path)
    return files
