"""Results that a chart has room for, their names and colours: all follow from the design.

Nothing is chosen by its result. Where there are too many, factors are held at values in their
middle; workloads are named by the factors that still vary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from volbench.analyse.frames.design import Design, Factor, design_of
from volbench.analyse.frames.job_frames import BY, COLOUR, COLOUR_PLACE, measured, plain_rows
from volbench.analyse.frames.run_options import BESIDE
from volbench.present.factor_words import level_words, words_of
from volbench.present.formatting import text
from volbench.present.plots.grammar import MAX_COLOURS, around_median, held_words
from volbench.present.plots.kinds import Frames, Room

_JOINS = ("run", "group", "direction")
_SHARES = "Clients ran at the same time on one volume: each has a share of its rate"
MISSING = "none"  # Value of what is compared where a run has none
_PATTERN = frozenset({"rw", "direction"})


def coloured(frames: Frames, column: str, whole: pd.DataFrame) -> Frames:
    """Return frames whose rows of runs have what is compared in the columns `BY` and `COLOUR`.

    A value has its place in the design, so that it has one colour in all charts.

    Args:
        column: of the summary, whose values have colours; empty for none.
        whole: the summary of all results, of which a condition may have left some.
    """
    if not column:
        return frames
    summary = frames["summary"]
    values = summary[column].astype(object).where(summary[column].notna(), None)
    factor = design_of(plain_rows(measured(whole))).by_column.get(column)
    every = dict.fromkeys([*(factor.values if factor else ()), *values])
    words = words_of(column, [*every])
    ordered = [words[value] for value in factor.values] if factor else []
    texts = summary[[*_JOINS]].assign(_text=[words[value] for value in values])
    places = {text: n for n, text in enumerate(dict.fromkeys([*ordered, *texts["_text"], MISSING]))}
    marked = dict(frames)
    for name, frame in frames.items():
        if "run" in frame:
            text = _joined(frame, texts, "_text").fillna(MISSING)
            marked[name] = frame.assign(**{BY: text, COLOUR: text, COLOUR_PLACE: text.map(places)})
    return marked


def compared_of(summary: pd.DataFrame, *, is_by_design: bool) -> str:
    """Return the column whose values have colours: campaigns, or what the design compares."""
    if len(summary["campaign"].unique()) > 1:
        return "campaign"
    if not is_by_design:
        return ""
    design = design_of(plain_rows(measured(summary)))
    factor = design.by_column.get(design.compared)
    if factor is None or factor.column not in summary or len(factor.values) > MAX_COLOURS:
        return ""
    return factor.column


def fit(
    frames: Frames, room: Room | None, without: Sequence[str] | None
) -> tuple[Frames, tuple[str, ...]]:
    """Return the results that a chart has room for, with their names, and what is left out."""
    every = rows = measured(frames["summary"])
    if room is not None and room.frame:
        rows = every[every["run"].isin(frames[room.frame]["run"])].reset_index(drop=True)
    if rows.empty or (room is None and without is None):
        return frames, ()
    design = design_of(plain_rows(rows), first=without or ())
    left_out = {"direction", *(without or ()), *map(design.factor_of, without or ())}
    is_kept = pd.Series(data=True, index=rows.index)
    sentences: tuple[str, ...] = ()
    if room is not None:
        is_kept, sentences = _within(room, rows, design, left_out)
    kept = rows[is_kept]
    if len(kept) < len(every):
        frames = {name: _rows_of(frame, kept) for name, frame in frames.items()}
    if BESIDE in kept and kept[BESIDE].notna().any():
        sentences += (_SHARES,)
    if without is None:
        return frames, sentences
    label = _labels(design, is_kept, left_out)
    labelled = kept[[*_JOINS]].assign(_label=label[is_kept])
    named = {
        name: _with_label(frame, labelled) if "run" in frame and len(frame) else frame
        for name, frame in frames.items()
    }
    return named, sentences


def _within(
    room: Room, rows: pd.DataFrame, design: Design, left_out: set[str]
) -> tuple[pd.Series[bool], tuple[str, ...]]:
    """Return which rows a chart has room for, and the sentence about the others.

    Factors with most values are held first, what is compared and patterns last; of runs, repeats
    before all factors.
    """
    values = _values_of_rows(design)
    part = _part_numbers(room, rows, values, left_out)
    is_kept = pd.Series(data=True, index=rows.index)
    if part.nunique() <= room.most:
        return is_kept, ()
    if room.what == "runs":
        values.pop("direction", None)  # a run has both
        repeats = rows.groupby([*design.cell_of_rows]).cumcount() + 1
        values = {"repeat": repeats, **values}
    compared = values.get(design.compared, pd.Series(0, index=rows.index))
    held = []
    for column, of_rows in values.items():
        shared = compared[is_kept].groupby(of_rows[is_kept], dropna=False).nunique()
        known = of_rows[is_kept].unique()
        every = design.by_column[column].values if column in design.by_column else sorted(known)
        levels = [value for value in every if value in {*known}]
        full = [value for value in levels if shared.get(value, 0) == shared.max()] or levels
        count = part[is_kept].nunique()
        most = max(1, room.most * len(levels) // count)
        if count > room.most and most < len(levels) and column != design.compared:
            shown = around_median(full, min(most, len(full)))
            is_kept &= of_rows.isin(shown)
            held.append(held_words(column, shown, levels))
    if part[is_kept].nunique() > room.most:
        is_kept &= part.isin(part[is_kept].unique()[: room.most])
        held.append("the first ones")
    drawn = part[is_kept].nunique()
    return is_kept, (f"Showing {drawn} of {part.nunique():,} {room.what}, {'; '.join(held)}",)


def _values_of_rows(design: Design) -> dict[str, pd.Series]:
    def rank(factor: Factor) -> tuple[bool, int]:
        return factor.column in _PATTERN, -len(factor.values)

    cells = [design.cells[number] for number in design.cell_of_rows]
    return {
        factor.column: pd.Series([cell.values[factor.column] for cell in cells], dtype=object)
        for factor in sorted(design.factors, key=rank)
    }


def _part_numbers(
    room: Room, rows: pd.DataFrame, values: Mapping[str, pd.Series], left_out: set[str]
) -> pd.Series[int]:
    if room.what == "runs":
        return rows.groupby("run", sort=False).ngroup()
    names = [name for name in values if room.what == "results" or name not in left_out]
    keys = [*(values[name] for name in names), rows["direction"]]
    return rows.groupby(keys, sort=False, dropna=False).ngroup()


def _rows_of(frame: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of some results, by as much as a frame has of their identity."""
    keys = [name for name in _JOINS if name in frame]
    if "run" not in keys:
        return frame
    is_kept = pd.MultiIndex.from_frame(frame[keys]).isin(pd.MultiIndex.from_frame(kept[keys]))
    return frame[is_kept].reset_index(drop=True)


def _labels(design: Design, is_kept: pd.Series[bool], left_out: set[str]) -> pd.Series[str]:
    numbers = pd.Series(design.cell_of_rows)
    cells = [design.cells[number] for number in numbers[is_kept].unique()]
    names = [
        factor.column
        for factor in design.factors
        if factor.column not in left_out
        and any(cell.values[factor.column] != cells[0].values[factor.column] for cell in cells)
    ]
    volumes = words_of("volume", design.by_column["volume"].values) if "volume" in names else {}
    levels = ({name: cell.values[name] for name in names} for cell in design.cells)
    texts = [level_words(each, volumes) for each in levels]
    firsts = [design.rows[cell.places[0]] for cell in design.cells]
    whole = [text(row, "rw") or text(row, "job") for row in firsts]
    return pd.Series([texts[number] or whole[number] for number in numbers], dtype="str")


def _with_label(frame: pd.DataFrame, labelled: pd.DataFrame) -> pd.DataFrame:
    label = _joined(frame, labelled, "_label")
    columns = [name for name in ("job", "group") if name in frame]
    return frame.assign(**{name: label.where(label.notna(), frame[name]) for name in columns})


def _joined(frame: pd.DataFrame, texts: pd.DataFrame, column: str) -> pd.Series:
    """Return a column of other rows, joined by as much as a frame has of the identity."""
    keys = [name for name in _JOINS if name in frame]
    values = texts.drop_duplicates(keys).set_index(keys)[column]
    index = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else frame[keys[0]]
    return pd.Series(values.reindex(index).to_numpy(), index=frame.index)
