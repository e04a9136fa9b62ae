"""What is told apart, coloured and given a panel: frames and columns enter, frames leave.

``by`` names one or two columns of the summary. Rows that are equal in the first, and in job and
direction, are one thing: they are pooled, and each value has its colour. The second makes a panel
for each of its values.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from volbench.analyse.frames.job_frames import BY, COLOUR, measured
from volbench.errors import InputError
from volbench.model.frames.column_aliases import find_column
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.present.formatting import printable
from volbench.units import format_count, format_latency, format_rate, format_size

PANEL = "panel"
MOST_PANELS = 12
MISSING = "none"

_JOINS = ("run", "group", "direction")


def by_columns(summary: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the columns that are meant.

    Raises:
        InputError: there is no such column, or there are more than two.
    """
    if len(by) > 2:
        raise InputError(
            f"--by takes one or two columns, not {len(by)}",
            hint="the first colours, the second makes a panel for each of its values",
        )
    return [find_column(name, list(summary.columns)) for name in by]


def arrange(
    frames: Mapping[str, pd.DataFrame], columns: Sequence[str]
) -> list[tuple[str, dict[str, pd.DataFrame]]]:
    """Return the frames of each panel under its name.

    Args:
        frames: complete frames.
        columns: none, one or two of the summary.

    Returns:
        One panel without a name, unless there are two columns. Frames with rows of Runs have the
        columns `BY` and `COLOUR` where there is something to tell apart.

    Raises:
        InputError: there are more panels than anybody can look at.
    """
    if not columns:
        return [("", _coloured_by_campaign(frames))]
    marked = _marked(frames, BY, _texts(frames["summary"], columns[0]))
    marked = {name: _copied(frame, BY, COLOUR) for name, frame in marked.items()}
    if len(columns) == 1:
        return [("", marked)]
    marked = _marked(marked, PANEL, _texts(frames["summary"], columns[1]))
    rows = measured(marked["summary"])
    values = list(rows.drop_duplicates(PANEL).sort_values(columns[1])[PANEL])
    if len(values) > MOST_PANELS:
        raise InputError(
            f"{short(columns[1])} has {len(values)} values, and a chart has {MOST_PANELS} panels",
            hint="choose some of them with --where, or name another second column with --by",
        )
    return [
        (
            f"{short(columns[1])}: {value.removeprefix(short(columns[1]))}".replace(":  ", ": "),
            {name: _only(f, value) for name, f in marked.items()},
        )
        for value in values
    ]


def side_by_side(pooled: pd.DataFrame) -> pd.DataFrame:
    """Return pooled rows so that what differs in colour alone stands beside each other."""
    if COLOUR not in pooled:
        return pooled
    order = pooled.groupby(["job", "group", "direction"], sort=False, dropna=False).ngroup()
    return pooled.iloc[order.argsort(kind="stable")].reset_index(drop=True)


def short(column: str) -> str:
    """Return a column as people call it."""
    names = {"block_bytes": "block", "iodepth": "depth", "numjobs": "clones"}
    return names.get(column, column.removeprefix(LABEL_PREFIX))


def value_text(column: str, value: object) -> str:
    """Return a value of a column for people: ``4k``, ``direct``, ``2.5 ms``."""
    if value is None or pd.isna(value):  # type: ignore[call-overload]  # a single value, no array
        return MISSING
    if column == "direct":
        return "direct" if value else "buffered"
    if isinstance(value, numbers.Real):
        return _format_of(column)(float(value))
    return printable(str(value))


def _format_of(column: str) -> Callable[[float], str]:
    """Return how numbers of a column are written, by the unit in its name."""
    if column.endswith("bytes_per_s"):
        return format_rate
    if column.endswith("_bytes"):
        return format_size
    if column.endswith("_s"):
        return format_latency
    return lambda value: f"{value:.0f}" if value.is_integer() else format_count(value)


def _texts(summary: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return Run, section and direction with the text of a column's value."""
    told = summary[[*_JOINS]].copy()
    told["text"] = [value_text(column, value) for value in summary[column]]
    if column in {"iodepth", "numjobs"}:
        told["text"] = f"{short(column)} " + told["text"]
    return told


def _marked(
    frames: Mapping[str, pd.DataFrame], name: str, texts: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Return the frames with a further column, joined by as much as they have of the identity."""
    marked = {}
    for frame_name, frame in frames.items():
        keys = [key for key in _JOINS if key in frame]
        if "run" not in keys:
            marked[frame_name] = frame
            continue
        values = texts.drop_duplicates(keys).set_index(keys)["text"]
        index = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else frame[keys[0]]
        found = values.reindex(index).fillna(MISSING)
        marked[frame_name] = frame.assign(**{name: found.to_numpy()})
    return marked


def _copied(frame: pd.DataFrame, source: str, name: str) -> pd.DataFrame:
    return frame.assign(**{name: frame[source]}) if source in frame else frame


def _only(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    return frame[frame[PANEL] == value].reset_index(drop=True) if PANEL in frame else frame


def _coloured_by_campaign(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the frames with a colour for each campaign, where there are several."""
    if frames["summary"]["campaign"].nunique() < 2:
        return dict(frames)
    return {name: _copied(frame, "campaign", COLOUR) for name, frame in frames.items()}
