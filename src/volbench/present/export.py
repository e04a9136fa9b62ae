"""Frames for other programs: a frame enters, CSV, JSON, Parquet or a workbook leaves.

No number changes on the way: floats are written so that reading them back gives the same float.
What is not told is an empty field (CSV, xlsx), null (JSON) or a null value (Parquet).
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from volbench.errors import InputError
from volbench.model.columns import FRAMES, LABEL_PREFIX, Column, label_column
from volbench.present.cells import records

if TYPE_CHECKING:
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet
    from openpyxl.worksheet.worksheet import Worksheet

FORMATS = ("csv", "json", "parquet", "xlsx")

_SHEET_ROWS = 1_048_576  # the row limit of xlsx: ECMA-376 part 1, 18.3.1.73


def export_frame(
    frame: pd.DataFrame,
    *,
    frame_name: str,
    format: str,  # noqa: A002 - the word users write: --format
    into: BinaryIO | Path,
) -> None:
    """Write one frame.

    Args:
        frame: any frame of `volbench.model.columns`, with columns of labels or without.
        frame_name: such as ``summary``; gives units and meanings, and the sheet's name.
        format: ``csv``, ``json``, ``parquet`` or ``xlsx``.
        into: a binary stream, or a file that is replaced in one step.

    Raises:
        InputError: an unknown format, a file that can't be written, too many rows for a sheet,
            or xlsx without openpyxl.
    """
    content = _render({frame_name: frame}, format_name=_checked(format))
    if isinstance(into, Path):
        _write_file(into, content)
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
        format: ``csv``, ``json``, ``parquet`` or ``xlsx``.
        into: the folder, made when missing; the file of the workbook for xlsx.

    Returns:
        The files that were written.

    Raises:
        InputError: as for `export_frame`.
    """
    if _checked(format) == "xlsx":
        _write_file(into, _render(frames, format_name=format))
        return (into,)
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(into, error) from error
    files = []
    for name, frame in frames.items():
        files.append(into / f"{name}.{format}")
        export_frame(frame, frame_name=name, format=format, into=files[-1])
    return tuple(files)


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
        return _render_xlsx(frames)
    [(name, frame)] = frames.items()
    if format_name == "csv":
        return _render_csv(frame)
    if format_name == "json":
        return _render_json(frame)
    return _render_parquet(frame, frame_name=name)


def _render_csv(frame: pd.DataFrame) -> bytes:
    """Return CSV as RFC 4180 has it: CRLF line ends, a header, quotes where needed."""
    return str(frame.to_csv(index=False, lineterminator="\r\n")).encode()


def _render_json(frame: pd.DataFrame) -> bytes:
    """Return an array with a record a line; JSON has no infinity, so that is null as well."""
    lines = []
    for row in records(frame):
        told = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        lines.append(json.dumps(told, ensure_ascii=False, allow_nan=False))
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode() if lines else b"[]\n"


def _render_parquet(frame: pd.DataFrame, *, frame_name: str) -> bytes:
    """Return Parquet whose fields carry unit and meaning in their metadata."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [
        field.with_metadata({"unit": column.unit, "meaning": column.meaning})
        for field, column in zip(table.schema, _columns(frame, frame_name=frame_name), strict=True)
    ]
    stream = io.BytesIO()
    pq.write_table(table.cast(pa.schema(fields, metadata=table.schema.metadata)), stream)
    return stream.getvalue()


def _render_xlsx(frames: Mapping[str, pd.DataFrame]) -> bytes:
    """Return a workbook: a sheet per frame, and a last sheet that explains the columns."""
    try:
        from openpyxl import Workbook  # noqa: PLC0415 - an extra; the other formats need none
    except ImportError as error:
        raise InputError(
            "writing xlsx needs openpyxl, which is not installed",
            hint="pip install 'volbench[xlsx]', or use --format csv",
        ) from error
    workbook = Workbook(write_only=True)
    for name, frame in frames.items():
        _fill_sheet(workbook.create_sheet(name[:31]), frame, frame_name=name)
    explained = workbook.create_sheet("columns")
    explained.freeze_panes = "A2"
    _append(explained, ["frame", "column", "type", "unit", "meaning"], bold=True)
    for name, frame in frames.items():
        for column in _columns(frame, frame_name=name):
            cells = [name, column.name, column.dtype, column.unit, column.meaning]
            _append(explained, cells)
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def _fill_sheet(sheet: WriteOnlyWorksheet, frame: pd.DataFrame, *, frame_name: str) -> None:
    """Write names, units and rows of a frame; the two header rows stay in view."""
    if len(frame) + 2 > _SHEET_ROWS:
        raise InputError(
            f"frame {frame_name} has {len(frame)} rows, a sheet holds {_SHEET_ROWS - 2}",
            hint="use --format parquet or csv",
        )
    columns = _columns(frame, frame_name=frame_name)
    sheet.freeze_panes = "A3"
    widths = cast("Worksheet", sheet).column_dimensions  # its type lacks what it does have
    for place, column in enumerate(columns, start=1):
        widths[_letters(place)].width = max(12, len(column.name) + 2)
    _append(sheet, [column.name for column in columns], bold=True)
    _append(sheet, [column.unit for column in columns])
    for row in records(frame):
        _append(sheet, list(row.values()))


def _append(sheet: WriteOnlyWorksheet, values: Sequence[object], *, bold: bool = False) -> None:
    """Write a row; text stays text, whatever sign it begins with."""
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415 - present once a sheet exists
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE  # noqa: PLC0415 - same
    from openpyxl.styles import Font  # noqa: PLC0415 - same

    cells = []
    for value in values:
        if value is None or isinstance(value, bool):
            cell = WriteOnlyCell(sheet, value=value)
        elif isinstance(value, int | float) and math.isfinite(value):
            cell = WriteOnlyCell(sheet, value=repr(value))  # openpyxl would round to 16 digits
            cell.data_type = "n"
        else:
            words = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", str(value))
            cell = WriteOnlyCell(sheet, value=words)
            cell.data_type = "s"
            cell.quotePrefix = words.startswith(("=", "+", "-", "@"))
        if bold:
            cell.font = Font(bold=True)
        cells.append(cell)
    sheet.append(cells)


def _letters(place: int) -> str:
    """Return the letters of a sheet's column, counted from 1."""
    letters = ""
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _known(frame_name: str) -> dict[str, Column]:
    return {column.name: column for column in FRAMES.get(frame_name, ())}


def _described(name: str) -> Column:
    """Return the description of a column that the contract does not list."""
    if name.startswith(LABEL_PREFIX):
        return label_column(name.removeprefix(LABEL_PREFIX))
    return Column(name, "string", "", "")


def _columns(frame: pd.DataFrame, *, frame_name: str) -> list[Column]:
    """Return the description of each column, an empty one for labels."""
    known = _known(frame_name)
    return [known.get(name, _described(name)) for name in map(str, frame.columns)]


def _write_file(file: Path, content: bytes) -> None:
    """Replace a file in one step, so that a reader never sees half of it."""
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
