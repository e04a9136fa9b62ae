"""Export of frames as CSV, JSON, Parquet, workbooks, Markdown and LaTeX.

No number changes on the way: floats are written so that reading them back gives the same float.
An unknown value is an empty field (CSV, xlsx), null (JSON) or a null value (Parquet). Markdown and
LaTeX alone are for people: their numbers are rounded, and have units.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from volbench.errors import InputError
from volbench.model.frames.columns import described
from volbench.present.export.markup import TEXT_FORMATS, render_text
from volbench.present.export.workbook import render_xlsx
from volbench.present.formatting import records

FORMATS = ("csv", "json", "parquet", "xlsx", *TEXT_FORMATS)

_ENDINGS = {"markdown": "md", "latex": "tex"}
"""Of file names, where they differ from the format."""


def export_frame(
    frame: pd.DataFrame,
    *,
    frame_name: str,
    format: str,  # noqa: A002 - the word users write: --format
    into: BinaryIO | Path,
) -> None:
    """Write one frame.

    Args:
        frame: any frame of `volbench.model.frames.columns`, with columns of labels or without.
        frame_name: such as ``summary``; gives units and meanings, and the sheet's name.
        format: one of `FORMATS`.
        into: a binary stream, or a file that is replaced in one step.

    Raises:
        InputError: an unknown format, a file that can't be written, too many rows for a sheet,
            or xlsx without openpyxl.
    """
    content = _render({frame_name: frame}, format_name=_checked(format))
    if isinstance(into, Path):
        replace_file(into, content)
    else:
        into.write(content)


def export_frames(
    frames: Mapping[str, pd.DataFrame],
    *,
    format: str,  # noqa: A002 - the word users write: --format
    into: Path,
) -> tuple[Path, ...]:
    """Write several frames: a file each into a folder, or one workbook for xlsx.

    Args:
        frames: frame name to frame.
        format: one of `FORMATS`.
        into: the folder, made when missing; the file of the workbook for xlsx.

    Returns:
        The files that were written.

    Raises:
        InputError: as for `export_frame`.
    """
    if _checked(format) == "xlsx":
        replace_file(into, _render(frames, format_name=format))
        return (into,)
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(into, error) from error
    files = []
    for name, frame in frames.items():
        files.append(into / file_name(name, format))
        export_frame(frame, frame_name=name, format=format, into=files[-1])
    return tuple(files)


def file_name(frame_name: str, format_name: str) -> str:
    """Return what a file of a frame is called, such as ``summary.csv``."""
    return f"{frame_name}.{_ENDINGS.get(format_name, format_name)}"


def _checked(format_name: str) -> str:
    """Return a known format."""
    if format_name not in FORMATS:
        raise InputError(
            f"{format_name!r} is not a format of export", hint=f"use one of {', '.join(FORMATS)}"
        )
    return format_name


def _render(frames: Mapping[str, pd.DataFrame], *, format_name: str) -> bytes:
    """Return the bytes of a file; only a workbook can hold several frames."""
    if format_name == "xlsx":
        return render_xlsx(frames)
    [(name, frame)] = frames.items()
    if format_name == "csv":
        return _render_csv(frame)
    if format_name == "json":
        return _render_json(frame)
    if format_name in TEXT_FORMATS:
        return render_text(frame, frame_name=name, format_name=format_name).encode()
    return render_parquet(frame, frame_name=name)


def _render_csv(frame: pd.DataFrame) -> bytes:
    """Return CSV as RFC 4180 has it: CRLF line ends, a header, quotes where needed."""
    return str(frame.to_csv(index=False, lineterminator="\r\n")).encode()


def _render_json(frame: pd.DataFrame) -> bytes:
    """Return an array with a record a line; JSON has no infinity, so that is null as well."""
    lines = []
    for row in records(frame):
        record = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False))
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode() if lines else b"[]\n"


def render_parquet(
    frame: pd.DataFrame, *, frame_name: str, facts: Mapping[str, str] | None = None
) -> bytes:
    """Return Parquet whose fields carry unit and meaning in their metadata.

    Args:
        frame: any frame.
        frame_name: such as ``summary``.
        facts: kept in the file's own metadata.
    """
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [
        field.with_metadata({"unit": column.unit, "meaning": column.meaning})
        for field in table.schema
        for column in [described(field.name, frame_name=frame_name)]
    ]
    stream = io.BytesIO()
    metadata = {**(table.schema.metadata or {}), **(facts or {})}
    pq.write_table(table.cast(pa.schema(fields, metadata=metadata)), stream, compression="zstd")
    return stream.getvalue()


def replace_file(file: Path, content: bytes) -> None:
    """Replace a file in one step, so that a reader never sees half of it.

    Args:
        file: in a folder that exists.
        content: all of it.

    Raises:
        InputError: it can't be written.
    """
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _unwritable(file, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot write {path}: {error.strerror}",
        hint="name a place that exists and that you may write to",
        context={"path": str(path)},
    )
