"""JSON form of plot descriptions, which the interactive renderer draws in the page.

Attributes that have their default are left out. Frames stand once under ``tables``, whichever marks
use them. A column is one of:

- ``{"values": [...]}``: few numbers, null where one is missing;
- ``{"floats": "..."}``: base64 of little-endian 32-bit floats, NaN where one is missing;
- ``{"texts": [...], "places": [...]}``: distinct texts, and the place of each row's text in them,
  -1 where it is missing.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from volbench.analyse.frames.job_frames import keep_extremes
from volbench.present.plots.description import Plot
from volbench.present.plots.marks import AnyMark, Lines, Mark

_FEW = 24  # Up to so many numbers are written as such

Json = dict[str, object]


def json_form(plot: Plot) -> Json:
    """Return a description as plain values for `json.dumps`; equal plots give equal values.

    Lines keep the extremes of each of a thousand stretches, as on paper.
    """
    tables: dict[int, tuple[int, pd.DataFrame]] = {}
    panels = [
        dict(_fields(panel, without={"marks"}))
        | {"marks": [_mark(_thinned(mark), tables) for mark in panel.marks]}
        for panel in plot.panels
    ]
    whole = dict(_fields(plot, without={"panels", "rows"}))
    return whole | {
        "panels": panels,
        "tables": [columns_form(frame) for _, frame in tables.values()],
    }


def _mark(mark: AnyMark, tables: dict[int, tuple[int, pd.DataFrame]]) -> Json:
    form: Json = {"type": type(mark).__name__}
    if isinstance(mark, Mark):
        # The frame is kept beside its number, so that its id stays its own.
        form["table"], _ = tables.setdefault(id(mark.data), (len(tables), mark.data))
    return form | dict(_fields(mark, without={"data"}))


def _thinned(mark: AnyMark) -> AnyMark:
    if not isinstance(mark, Lines):
        return mark
    keys = [name for name in (mark.by, mark.group) if name]
    rows = mark.data.reset_index(drop=True)
    lines = [line for _, line in rows.groupby(keys, sort=False, dropna=False)] if keys else [rows]
    kept = [
        keep_extremes(line.index.to_numpy(dtype=float), line[mark.y].to_numpy(dtype=float))[0]
        for line in lines
    ]
    index = np.concatenate(kept) if kept else np.array([])
    if len(index) == len(rows):
        return mark
    return replace(mark, data=rows.loc[np.sort(index.astype(int))])


def _fields(value: object, *, without: set[str]) -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(value):  # type: ignore[arg-type]  # parts of a description are dataclasses
        item = getattr(value, field.name)
        if field.name not in without and item != field.default:
            yield field.name, plain(item)


def plain(value: object) -> object:
    """Return an attribute of a description as JSON has it."""
    if dataclasses.is_dataclass(value):
        return dict(_fields(value, without=set()))
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def columns_form(frame: pd.DataFrame) -> Json:
    """Return a frame as its columns, each in one of the forms above."""
    return {str(name): _column(column) for name, column in frame.items()}


def _column(column: pd.Series) -> Mapping[str, object]:
    if not (is_numeric_dtype(column) or is_bool_dtype(column)):
        places, texts = pd.factorize(column)
        return {"texts": [str(text) for text in texts], "places": places.tolist()}
    floats = column.to_numpy(dtype="<f4", na_value=np.nan)
    if len(floats) > _FEW:
        return {"floats": base64.b64encode(floats.tobytes()).decode("ascii")}
    return {"values": [None if np.isnan(v) else float(f"{v:.7g}") for v in floats.tolist()]}
