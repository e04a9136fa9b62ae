"""Export of frames as CSV, JSON, Parquet, workbooks, Markdown and LaTeX.

No number changes on the way: floats are written so that reading them back gives the same float,
but those of xlsx, which have 16 digits.
An unknown value is an empty field (CSV, xlsx), null (JSON) or a null value (Parquet). Markdown and
LaTeX alone are for people: their numbers are rounded, and have units.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from volbench.errors import InputError
from volbench.extras import install_command
from volbench.model.frames.columns import FRAMES, LABEL_PREFIX, SUMMARY, Column, described
from volbench.present.formatting import (
    BRIEF_STATISTICS,
    MISSING,
    Row,
    flag,
    number,
    printable,
    records,
    spreadsheet_text,
    text,
    unit_words,
)
from volbench.present.tables.render_table import json_text, markdown_text
from volbench.store.atomic_files import write_output, write_outputs
from volbench.units import utc_text

TEXT_FORMATS = ("markdown", "latex")
FORMATS = ("csv", "json", "parquet", "xlsx", *TEXT_FORMATS)

# Characters that a sheet cannot hold: ECMA-376 part 1, 22.4.2.4
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"

_ENDINGS = {"markdown": "md", "latex": "tex"}  # Of file names, where they differ from the format


# Headings that people say otherwise than the column is called
_WORDS = {
    "block_bytes": "bs",
    "bw_bytes_per_s": "bandwidth",
    "iops": "IOPS",
    "iodepth": "depth",
    "numjobs": "jobs",
}

_RESULTS = ("rw", "block_bytes", "iodepth", "iops", "bw_bytes_per_s")
# Shown where they differ, before the job, and labels with them
_TELLING = ("campaign", "host", "client", "profile", "role", "repeat")


def export_frame(
    frame: pd.DataFrame,
    *,
    frame_name: str,
    format: str,  # noqa: A002 - the word users write: --format
    into: BinaryIO | Path,
    raw: bool = False,
) -> None:
    """Write one frame.

    Args:
        frame: any frame of `volbench.model.frames.columns`, with columns of labels or without.
        frame_name: such as ``summary``; gives units and meanings, and the sheet's name.
    """
    if _checked(format) == "xlsx":
        content = _render_xlsx({frame_name: frame})
    else:
        content = _render(frame, frame_name, format_name=format, raw=raw)
    if isinstance(into, Path):
        write_output(into, content, kind=Path(file_name(frame_name, format)).suffix)
    else:
        into.write(content)


def export_frames(
    frames: Mapping[str, pd.DataFrame],
    *,
    format: str,  # noqa: A002 - the word users write: --format
    into: Path,
    raw: bool = False,
) -> tuple[Path, ...]:
    """Write frames: a file each into a folder, made when missing, or one workbook for xlsx."""
    if _checked(format) == "xlsx":
        write_output(into, _render_xlsx(frames))
        return (into,)
    files = {
        file_name(name, format): _render(frame, name, format_name=format, raw=raw)
        for name, frame in frames.items()
    }
    write_outputs(into, files)
    return tuple(into / name for name in files)


def file_name(frame_name: str, format_name: str) -> str:
    """Return what a file of a frame is called, such as ``summary.csv``."""
    return f"{frame_name}.{_ENDINGS.get(format_name, format_name)}"


def format_of_file(path: Path) -> str:
    """Return the format that the ending of a file stands for."""
    ending = path.suffix.removeprefix(".").lower()
    formats = {_ENDINGS.get(name, name): name for name in FORMATS}
    if ending not in formats:
        raise InputError(
            f"{path.name} has no ending of an export format", hint=f"use .{', .'.join(formats)}"
        )
    return formats[ending]


def _checked(format_name: str) -> str:
    if format_name not in FORMATS:
        raise InputError(
            f"{format_name!r} is not an export format", hint=f"use one of {', '.join(FORMATS)}"
        )
    return format_name


def _render(frame: pd.DataFrame, name: str, *, format_name: str, raw: bool) -> bytes:
    if format_name == "csv":  # as in RFC 4180: CRLF line ends, a header, quotes where needed
        plain = _with_texts_of_times(frame if raw else _without_formulas(frame))
        return str(plain.to_csv(index=False, lineterminator="\r\n")).encode()
    if format_name == "json":
        return json_text(records(frame)).encode()
    if format_name in TEXT_FORMATS:
        return render_text(frame, frame_name=name, format_name=format_name).encode()
    return _render_parquet(frame, frame_name=name)


def _with_texts_of_times(frame: pd.DataFrame) -> pd.DataFrame:
    names = [*frame.select_dtypes("datetimetz").columns]
    return frame.assign(
        **{name: frame[name].map(utc_text, na_action="ignore").astype(object) for name in names}
    )


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    safe = frame.rename(columns=spreadsheet_text)
    for index, dtype in enumerate(safe.dtypes):
        if pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype):
            codes, texts = pd.factorize(safe.iloc[:, index])
            changed = pd.Series([spreadsheet_text(text) for text in texts], dtype=object)
            safe.isetitem(index, changed.reindex(codes).array)
    return safe


def _render_xlsx(frames: Mapping[str, pd.DataFrame]) -> bytes:
    try:
        import openpyxl  # noqa: F401, PLC0415 - an extra, which pandas uses
    except ImportError as error:
        raise InputError(
            "writing xlsx needs openpyxl, which is not installed",
            hint=f"use --format csv, or install it: {install_command('xlsx')}",
        ) from error
    stream = io.BytesIO()
    try:
        with pd.ExcelWriter(stream, engine="openpyxl") as writer:
            writer.book.properties.creator = "volbench"
            for name, frame in frames.items():
                safe = _with_texts_of_times(_without_formulas(frame))
                safe = safe.replace(_CONTROL, "\N{REPLACEMENT CHARACTER}", regex=True)
                safe.to_excel(writer, sheet_name=name[:31], index=False)
    except ValueError as error:  # a sheet is too small for the frame
        raise InputError(str(error), hint="use --format parquet or csv") from error
    marked = io.BytesIO()
    with ZipFile(stream) as book, ZipFile(marked, "w", ZIP_DEFLATED) as archive:
        for name in book.namelist():  # uncompressed, the creator marks the file as volbench's
            is_mark = name == "docProps/core.xml"
            archive.writestr(name, book.read(name), ZIP_STORED if is_mark else ZIP_DEFLATED)
    return marked.getvalue()


def _render_parquet(frame: pd.DataFrame, *, frame_name: str) -> bytes:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [
        field.with_metadata({"unit": column.unit, "meaning": column.meaning})
        for field in table.schema
        for column in [described(field.name, frame_name=frame_name)]
    ]
    stream = io.BytesIO()
    schema = pa.schema(fields, metadata={"creator": "volbench", **(table.schema.metadata or {})})
    pq.write_table(table.cast(schema), stream, compression="zstd")
    return stream.getvalue()


def default_columns(frame: pd.DataFrame, *, frame_name: str) -> list[str]:
    """Return the columns that a table for people shows when none are named.

    Args:
        frame: of a summary the identifying columns, the workload and the results;
            every column of any other frame.
        frame_name: such as ``summary``.
    """
    if frame_name != "summary" or not {column.name for column in SUMMARY} <= set(frame.columns):
        return [str(name) for name in frame.columns]
    labels = [str(name) for name in frame.columns if str(name).startswith(LABEL_PREFIX)]
    rows = records(frame)
    telling = [
        name
        for name in (*_TELLING[:2], *labels, *_TELLING[2:])
        if len({str(row[name]) for row in rows}) > 1
    ]
    kind = (
        "clat" if frame["lat_p99_s"].isna().all() and frame["clat_p99_s"].notna().any() else "lat"
    )
    mixed = frame.groupby(["run", "group"], dropna=False)["direction"].nunique().gt(1).any()
    results = [_RESULTS[0], *(["direction"] if mixed else []), *_RESULTS[1:]]
    return [*telling, "job", *results, *(f"{kind}_{name}_s" for name in BRIEF_STATISTICS)]


def render_text(frame: pd.DataFrame, *, frame_name: str, format_name: str) -> str:
    """Return a table for people: three digits and units that suit each number.

    Args:
        frame: the columns that are to be shown, in their order.
        frame_name: gives the columns' units.
        format_name: ``markdown`` (pipes, as GitHub reads it) or ``latex`` (a ``tabular`` for the
            package booktabs).
    """
    columns = [_known(str(name), frame_name=frame_name) for name in frame.columns]
    right = [
        pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        for dtype in frame.dtypes
    ]
    headings = [_heading(column) for column in columns]
    rows = [[_cell(row, column) for column in columns] for row in records(frame)]
    if format_name == "markdown":
        return markdown_text(headings, rows, right)
    lines = [[" ".join(printable(cell).split()) for cell in row] for row in rows]
    alignment = "".join("r" if is_right else "l" for is_right in right)
    table = pd.DataFrame(lines, columns=headings)
    return str(table.to_latex(index=False, escape=True, column_format=alignment))


def _known(name: str, *, frame_name: str) -> Column:
    for frame in (frame_name, *FRAMES):
        if any(column.name == name for column in FRAMES.get(frame, ())):
            return described(name, frame_name=frame)
    return described(name)


def _heading(column: Column) -> str:
    if column.name in _WORDS:
        return _WORDS[column.name]
    name = column.name.removeprefix(LABEL_PREFIX)
    ending = {"s": "_s", "bytes": "_bytes", "bytes/s": "_bytes_per_s", "%": "_percent"}
    name = name.removesuffix(ending.get(column.unit, "")) if column.unit else name
    return name.replace("_", " ")


def _cell(row: Row, column: Column) -> str:
    value = row.get(column.name)
    if isinstance(value, bool):
        return flag(row, column.name)
    amount = number(row, column.name)
    if math.isnan(amount):
        return text(row, column.name, missing=MISSING) if isinstance(value, str) else MISSING
    if column.unit == "%":
        return f"{amount:.3g} %"
    if column.unit in {"s", "bytes", "bytes/s", "1/s"}:
        return unit_words(column.name, column.unit)(amount)
    return f"{amount:.0f}" if amount.is_integer() else f"{amount:.4g}"
