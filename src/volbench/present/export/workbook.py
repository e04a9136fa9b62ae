"""Workbook of frames: a sheet for each, one with charts, one with the meanings of columns.

The first row of a sheet holds the columns' names and the second their units; the filter is on
the second, so that sorting leaves both in place. Charts are native ones: they can be edited.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import pandas as pd

from volbench.analyse.frames.job_frames import measured, per_job, with_latencies
from volbench.errors import InputError
from volbench.extras import install_command
from volbench.model.frames.columns import SUMMARY, Column, described
from volbench.present.formatting import records
from volbench.present.plots.colour_themes import THEMES
from volbench.present.plots.selection import valid_frames

if TYPE_CHECKING:
    from openpyxl.chart import BarChart
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet
    from openpyxl.worksheet.worksheet import Worksheet

_SHEET_ROWS = 1_048_576  # the row limit of xlsx: ECMA-376 part 1, 18.3.1.73
_MAX_BARS = 60  # Maximum number of jobs that are legible on a chart as wide as a screen

# How numbers of a unit are shown; what a cell holds stays exact
_FORMATS = {"s": "0.000000", "bytes": "#,##0", "bytes/s": "#,##0", "1/s": "#,##0.0", "%": "0.00"}

_COLOURS = tuple(
    THEMES["light"].colours[f"palette-{place}"].removeprefix("#").upper() for place in range(4)
)

# Title, unit and columns of the charts
_CHARTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("IOPS", "1/s", ("IOPS",)),
    ("Bandwidth", "MB/s", ("bandwidth MB/s",)),
    ("Latency", "ms", ("mean ms", "p50 ms", "p99 ms")),
)


def render_xlsx(
    frames: Mapping[str, pd.DataFrame], *, findings: pd.DataFrame | None = None
) -> bytes:
    """Return a workbook.

    Args:
        frames: frame name to frame; a summary gets a sheet with charts as well.
        findings: of the runs; charts leave out the results that they reject.
    """
    try:
        from openpyxl import Workbook  # noqa: PLC0415 - an extra; the other formats need none
    except ImportError as error:
        raise InputError(
            "writing xlsx needs openpyxl, which is not installed",
            hint=f"use --format csv, or install it: {install_command('xlsx')}",
        ) from error
    workbook = Workbook(write_only=True)
    for name, frame in frames.items():
        _fill_sheet(workbook.create_sheet(name[:31]), frame, frame_name=name)
    if "summary" in frames:
        known = {} if findings is None else {"findings": findings}
        valid = valid_frames({"summary": frames["summary"], **known})["summary"]
        if _has_results(valid):
            _fill_charts(workbook.create_sheet("charts"), *_points(valid))
    _explain(workbook.create_sheet("columns"), frames)
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def _fill_sheet(sheet: WriteOnlyWorksheet, frame: pd.DataFrame, *, frame_name: str) -> None:
    """Write names, units and rows of a frame; the two header rows stay in view."""
    if len(frame) + 2 > _SHEET_ROWS:
        raise InputError(
            f"frame {frame_name} has {len(frame)} rows; a sheet holds at most {_SHEET_ROWS - 2}",
            hint="use --format parquet or csv",
        )
    columns = [described(str(name), frame_name=frame_name) for name in frame.columns]
    sheet.freeze_panes = "A3"
    cast("Worksheet", sheet).auto_filter.ref = f"A2:{_letters(len(columns))}{len(frame) + 2}"
    _set_widths(sheet, [max(12, len(column.name) + 2) for column in columns])
    _append(sheet, [column.name for column in columns], bold=True)
    _append(sheet, [column.unit for column in columns])
    formats = [_number_format(column) for column in columns]
    for row in records(frame):
        _append(sheet, list(row.values()), formats=formats)


def _number_format(column: Column) -> str:
    return _FORMATS.get(column.unit, "") if column.dtype in {"float", "int"} else ""


def _explain(sheet: WriteOnlyWorksheet, frames: Mapping[str, pd.DataFrame]) -> None:
    """Write what every column means."""
    sheet.freeze_panes = "A2"
    _set_widths(sheet, [12, 28, 10, 10, 100])
    _append(sheet, ["frame", "column", "type", "unit", "meaning"], bold=True)
    for name, frame in frames.items():
        for column in (described(str(label), frame_name=name) for label in frame.columns):
            cells = [name, column.name, column.dtype, column.unit, column.meaning]
            _append(sheet, cells)


def _has_results(summary: pd.DataFrame) -> bool:
    """Return whether a summary is whole enough to be charted."""
    return {column.name for column in SUMMARY} <= set(summary.columns) and not measured(
        summary
    ).empty


def _points(summary: pd.DataFrame) -> tuple[list[list[object]], str]:
    """Return a row for each job and direction, in people's units, and the kind of latency."""
    results, kind = with_latencies(summary, ("p50", "p99", "mean"))
    columns = ["iops", "bw_bytes_per_s", "mean", "p50", "p99"]
    pooled = per_job(results, columns)
    several = pooled.groupby("label")["direction"].transform("nunique") > 1
    names = pooled["label"].where(~several, pooled["label"] + ", " + pooled["direction"])
    rows: list[list[object]] = []
    for name, row in zip(names, records(pooled), strict=True):
        scaled = [
            (row["iops"], 1.0),
            (row["bw_bytes_per_s"], 1e-6),
            *((row[statistic], 1e3) for statistic in ("mean", "p50", "p99")),
        ]
        values = [None if value is None else float(str(value)) * by for value, by in scaled]
        rows.append([name, row["repeats"], *values])
    return rows, kind


def _fill_charts(sheet: WriteOnlyWorksheet, points: Sequence[Sequence[object]], kind: str) -> None:
    """Write the numbers, and beside them a chart for each of IOPS, bandwidth and latency."""
    headings = ["job", "repeats", *(name for *_, names in _CHARTS for name in names)]
    _set_widths(sheet, [max(24, *(len(str(row[0])) + 2 for row in points)), 9, *[15] * 5])
    sheet.freeze_panes = "B2"
    _append(sheet, headings, bold=True)
    formats = ["", "0", "#,##0.0", "#,##0.00", "0.0000", "0.0000", "0.0000"]
    for row in points:
        _append(sheet, row, formats=formats)
    bars = min(len(points), _MAX_BARS)
    first, top = 3, 2
    for title, unit, names in _CHARTS:
        what = "Completion latency" if title == "Latency" and kind == "clat" else title
        chart = _chart(sheet, title=what, unit=unit, bars=bars, places=(first, len(names)))
        cast("Worksheet", sheet).add_chart(chart, f"{_letters(len(headings) + 2)}{top}")
        first += len(names)
        top += 2 + 2 * round(chart.height)  # a row is half a centimetre high
    if bars < len(points):
        note = f"The charts show the first {bars} of {len(points)} jobs."
        _append(sheet, [note])


def _chart(
    sheet: WriteOnlyWorksheet, *, title: str, unit: str, bars: int, places: tuple[int, int]
) -> BarChart:
    """Return a chart of bars that lie, so that long names can be read, the first job on top."""
    from openpyxl.chart import BarChart, Reference  # noqa: PLC0415 - present once a sheet exists
    from openpyxl.chart.shapes import GraphicalProperties  # noqa: PLC0415 - same

    first, count = places
    chart = BarChart()
    chart.type, chart.style = "bar", 10
    chart.title = f"{title}, {unit} (medians of repeats)"
    chart.width, chart.height = 24, _height_cm(bars * max(1.0, 0.6 * count))
    data = Reference(
        cast("Worksheet", sheet),
        min_col=first,
        max_col=first + count - 1,
        min_row=1,
        max_row=bars + 1,
    )
    chart.add_data(data, titles_from_data=True)
    chart.set_categories(
        Reference(cast("Worksheet", sheet), min_col=1, min_row=2, max_row=bars + 1)
    )
    for series, colour in zip(chart.series, _COLOURS, strict=False):
        series.graphicalProperties = GraphicalProperties(solidFill=colour)
    chart.gapWidth = 40
    chart.x_axis.scaling.orientation = "maxMin"
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.y_axis.scaling.min = 0
    chart.y_axis.crosses = "max"  # the first job is on top, its axis still below the last
    chart.y_axis.number_format = "General"
    if count == 1:
        chart.legend = None
    return chart


def _height_cm(bars: float) -> int:
    return min(40, round(5 + 0.55 * bars))


def _set_widths(sheet: WriteOnlyWorksheet, widths: Sequence[float]) -> None:
    dimensions = cast("Worksheet", sheet).column_dimensions  # its type lacks what it does have
    for index, width in enumerate(widths, start=1):
        dimensions[_letters(index)].width = width


def _append(
    sheet: WriteOnlyWorksheet,
    values: Sequence[object],
    *,
    bold: bool = False,
    formats: Sequence[str] = (),
) -> None:
    """Write a row; text stays text, whatever sign it begins with."""
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415 - present once a sheet exists
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE  # noqa: PLC0415 - same
    from openpyxl.styles import Font  # noqa: PLC0415 - same

    cells = []
    for index, value in enumerate(values):
        if value is None or isinstance(value, bool):
            cell = WriteOnlyCell(sheet, value=value)
        elif isinstance(value, int | float) and math.isfinite(value):
            cell = WriteOnlyCell(sheet, value=repr(value))  # openpyxl would round to 16 digits
            cell.data_type = "n"
            if index < len(formats) and formats[index]:
                cell.number_format = formats[index]
        else:
            text = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", str(value))
            cell = WriteOnlyCell(sheet, value=text)
            cell.data_type = "s"
            cell.quotePrefix = text.startswith(("=", "+", "-", "@"))
        if bold:
            cell.font = Font(bold=True)
        cells.append(cell)
    sheet.append(cells)


def _letters(index: int) -> str:
    """Return the letters of a sheet's column, counted from 1."""
    letters = ""
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
