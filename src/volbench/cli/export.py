"""volbench export: frames of campaigns for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import CAMPAIGNS, WHERE, examples, flag, names_option, output_option
from volbench.cli.output import RAW, binary_output, note_owner
from volbench.errors import InputError
from volbench.extension import extensions, load
from volbench.model.frames.columns import DERIVED, FRAMES

if TYPE_CHECKING:
    import pandas as pd

    from volbench.api.many_campaigns import Dataset


_FORMATS = ("csv", "json", "parquet", "xlsx", "markdown", "latex")

# Formats of extensions
EXPORT_FORMATS = {
    name: form for extension in extensions() for name, form in extension.export_formats.items()
}

_SHORT = {"summary", *DERIVED}  # Frames of a few rows for each run; the others are faster in pandas


@click.command(
    "export",
    epilog=examples(
        "volbench export results > runs.csv",
        "volbench export results --frame series --format parquet -o series.parquet",
        "volbench export results --format xlsx -o results.xlsx",
    ),
)
@CAMPAIGNS
@click.option(
    "--format",
    "kind",
    type=click.Choice([*_FORMATS, *EXPORT_FORMATS]),
    default="csv",
    show_default=True,
    help="Format of the file; xlsx needs the extra volbench[xlsx]. "
    + "; ".join(f"{name}: {form.content}" for name, form in EXPORT_FORMATS.items())
    + ".",
)
@flag("--json", "Short for --format json.", "as_json")
@click.option(
    "--frame",
    "name",
    type=click.Choice([*FRAMES, "all"]),
    metavar="FRAME",
    help=f"{', '.join(FRAMES)}, or all of them as files in a folder or sheets of a workbook. "
    "Default: summary; openmetrics: device and series.",
)
@names_option(
    "--columns",
    "columns",
    metavar="NAME,...",
    text="Only these columns, such as job,bs,iops,p99. Default: a short selection for Markdown "
    "and LaTeX, all columns for other formats.",
)
@click.option(
    "--sort",
    default="",
    metavar="NAME",
    help="Sort the rows by a column; -NAME for the largest first.",
)
@WHERE
@RAW
@output_option(metavar="PATH", default="-", help="File or folder; - is standard output.")
def export(
    campaigns: Sequence[str | Path],
    kind: str,
    name: str | None,
    columns: tuple[str, ...],
    where: str,
    output: str,
    sort: str,
    *,
    as_json: bool,
    is_raw: bool,
) -> None:
    """Write a frame of the campaigns in DIR, every number in full precision, base SI units."""
    from volbench.api.many_campaigns import open_campaigns

    opened = open_campaigns(*campaigns, where=where)
    kind = "json" if as_json else kind
    if kind in EXPORT_FORMATS:
        with binary_output(output, default_name=EXPORT_FORMATS[kind].file_name) as sink:
            sink.write(load(EXPORT_FORMATS[kind].render)(opened, name).encode())
    elif name == "all":
        _write_all(opened, kind=kind, output=output, raw=is_raw)
    else:
        choice = _Choice(columns, sort)
        _write_frame(opened, name or "summary", choice, kind=kind, output=output, raw=is_raw)


@dataclass(frozen=True)
class _Choice:
    """Columns and order of a frame; empty for its own."""

    columns: Sequence[str]
    sort: str


def _write_frame(
    opened: Dataset, name: str, choice: _Choice, *, kind: str, output: str, raw: bool
) -> None:
    """Write one frame; a short one as CSV without pandas, which takes longer to import than it."""
    columns, is_plain = choice.columns, kind == "csv" and name in _SHORT and not opened.where
    if name == "summary":
        _note_shares(opened)
    rows = _rows_with_marks(opened, name) if is_plain and not choice.sort else []
    if rows and all(each in rows[0] for each in columns):
        from volbench.present.tables.render_table import csv_text

        chosen = columns or list(rows[0])
        with binary_output(output, default_name=f"{name}.csv") as sink:
            sink.write(csv_text(rows, columns=chosen, raw=raw, line_end="\r\n").encode())
        return
    from volbench.present.export.frame_export import export_frame, file_name

    with binary_output(output, default_name=file_name(name, kind)) as sink:
        ordered = _in_order(_frame_with(opened, name, columns), choice.sort)
        frame = _selected_columns(ordered, name=name, columns=columns, kind=kind)
        export_frame(frame, frame_name=name, format=kind, into=sink, raw=raw)


def _note_shares(opened: Dataset) -> None:
    from volbench.analyse.frames.run_options import beside

    if count := sum(bool(note.run and beside(note.run)) for note in opened.runs.values()):
        text = f"{count} rows are processes at the same time on one volume, each with a share"
        click.echo(f"note: {text} of its rate; their sums: --frame aggregate", err=True)


def _marks(opened: Dataset, name: str) -> dict[tuple[object, object], str]:
    found: dict[tuple[object, object], dict[str, None]] = {}
    for row in opened.rows("findings") if name == "summary" else ():
        if row["severity"] == "invalid":
            found.setdefault((row["campaign"], row["run"]), {})[str(row["rule"])] = None
    return {run: ", ".join(rules) for run, rules in found.items()}


def _rows_with_marks(opened: Dataset, name: str) -> list[dict[str, object]]:
    rows, marks = opened.rows(name), _marks(opened, name)
    marked = (row | {"invalid": marks.get((row["campaign"], row["run"]))} for row in rows)
    return [*marked] if marks else rows


def _frame_with(opened: Dataset, name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return a frame; the summary with options of fio, if a column is named that it lacks."""
    from volbench.model.frames.column_names import meaning_of

    frame = opened.frame(name)
    names = [*frame.columns]
    is_short = name == "summary" and not all(meaning_of(column, names) for column in columns)
    frame = opened.summary(options=True) if is_short else frame
    if marks := _marks(opened, name):
        frame["invalid"] = list(map(marks.get, zip(frame["campaign"], frame["run"], strict=True)))
    return frame


def _in_order(frame: pd.DataFrame, sort: str) -> pd.DataFrame:
    if not sort:
        return frame
    column = _named_columns([sort.removeprefix("-")], [str(name) for name in frame.columns])
    is_falling = sort.startswith("-")
    return frame.sort_values(column, ascending=not is_falling, kind="stable", ignore_index=True)


def _selected_columns(
    frame: pd.DataFrame, *, name: str, columns: Sequence[str], kind: str
) -> pd.DataFrame:
    from volbench.present.export.frame_export import TEXT_FORMATS, default_columns

    if columns:
        names = _named_columns(columns, [str(column) for column in frame.columns])
        pairs = zip(columns, names, strict=True)
        return frame[[each for pair in pairs for each in _reported(frame, *pair)]]
    chosen = default_columns(frame, frame_name=name)
    chosen += [*{"invalid"}.intersection(frame.columns).difference(chosen)]
    return frame[chosen] if kind in TEXT_FORMATS else frame


def _reported(frame: pd.DataFrame, column: str, name: str) -> list[str]:
    """Return the columns of a short name such as ``p99``: completion latency where no other is."""
    completion = f"c{name}"
    if column == name or completion not in frame:
        return [name]
    is_lacking = frame[name].isna() & frame[completion].notna()
    return [*([] if is_lacking.all() else [name]), *([completion] if is_lacking.any() else [])]


def _named_columns(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    from volbench.model.frames.column_names import find_column

    return [find_column(column, names) for column in columns]


def _write_all(opened: Dataset, *, kind: str, output: str, raw: bool) -> None:
    from volbench.present.export.frame_export import export_frames

    if output == "-":
        raise InputError(
            "--frame all needs --output", hint="name a folder, or a file for xlsx: --output frames"
        )
    frames = {frame_name: opened.frame(frame_name) for frame_name in FRAMES}
    export_frames(frames, format=kind, into=Path(output), raw=raw)
    note_owner(Path(output))
