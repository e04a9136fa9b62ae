"""Lines of the marks of users on axes of time."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from volbench.present.formatting import printable
from volbench.present.plots import marks
from volbench.present.plots.kinds import Frames

MAX_NAMED = 12  # Marks in a panel up to which each has its name
_MAX_LETTERS = 24
_ROOM = 0.03  # Of a name, as a share of its run; names that would touch another are omitted


def events_of(frames: Frames) -> pd.DataFrame:
    """Return the marks of runs: ``run``, ``t_s`` and ``name``."""
    rows = frames["marks"] if "marks" in frames else pd.DataFrame()
    if rows.empty:
        return pd.DataFrame(columns=["run", "t_s", "name"])
    return rows[["run", "t_s"]].assign(name=rows["text"].astype(str).map(printable))


def event_lines(
    events: pd.DataFrame, *, end_s: float, at: Callable[[float], float] = float, is_named: bool
) -> tuple[marks.AnyMark, ...]:
    """Return a line across a panel for each mark, and its name along it where there are few."""
    once = events.assign(_t=events["t_s"].astype(float).round(1)).drop_duplicates(["_t", "name"])
    once = once[once["_t"] <= end_s + 1.0].sort_values("_t", kind="stable")
    lines: list[marks.AnyMark] = [
        marks.ReferenceLine(at(min(t_s, end_s)), "x", series="muted", dash="dotted", width=0.8)
        for t_s in once["_t"]
    ]
    if is_named and 0 < len(once) <= MAX_NAMED:
        texts, free_from = [], -math.inf
        for t_s, name in zip(once["_t"], once["name"], strict=True):
            if t_s >= free_from:
                short = name if len(name) <= _MAX_LETTERS else f"{name[: _MAX_LETTERS - 1]}…"
                texts.append((at(min(t_s, end_s)), 1.0, short))
                free_from = t_s + _ROOM * end_s
        data = pd.DataFrame(texts, columns=["_x", "_y", "_text"])
        lines.append(
            marks.Texts(
                data,
                y_in="panel",
                offset_pt=(2, -2),
                valign="top",
                size=7,
                rotation=90,
                series="muted",
            )
        )
    return tuple(lines)
