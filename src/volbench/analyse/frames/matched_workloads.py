"""Rows and frames of several campaigns under the words of their workloads."""

from collections.abc import Mapping, Sequence

import pandas as pd

from volbench.analyse.frames.design import WORKLOAD, Row
from volbench.analyse.frames.matched_cells import cells_of_frame, match_cells

_RUN = ("campaign", "run", "group", "direction")


def order_by_workload(rows: Sequence[Row]) -> list[Row]:
    """Return rows of several campaigns with those of one workload below each other."""
    campaigns = [str(row.get("campaign")) for row in rows]
    cells = match_cells(rows, campaigns, always=WORKLOAD).numbers
    return [rows[place] for place in sorted(range(len(rows)), key=cells.__getitem__)]


def named_by_workload(
    frames: Mapping[str, pd.DataFrame], side: str, *, ignored: str = ""
) -> dict[str, pd.DataFrame]:
    """Return frames whose measured runs have the words of their workload as job and group.

    Args:
        frames: by name, the summary among them; those without a column ``run`` stay.
    """
    summary = frames["summary"]
    rows = summary[summary["phase"].eq("measured").fillna(value=False)]
    sides = rows[side].astype(str).tolist()
    always = [name for name in WORKLOAD if name != ignored]
    words = cells_of_frame(rows, sides, compared=[ignored], always=always).labels
    labelled = rows[[*_RUN]].assign(_label=pd.Series(words, index=rows.index, dtype="str"))
    return {
        name: _label_frame(frame, labelled) if "run" in frame and len(frame) else frame
        for name, frame in frames.items()
    }


def _label_frame(frame: pd.DataFrame, labelled: pd.DataFrame) -> pd.DataFrame:
    keys = [name for name in _RUN if name in frame]
    texts = labelled.drop_duplicates(keys).set_index(keys)["_label"]
    index = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else frame[keys[0]]
    label = pd.Series(texts.reindex(index).to_numpy(), index=frame.index)
    columns = [name for name in ("job", "group") if name in frame]
    return frame.assign(**{name: label.where(label.notna(), frame[name]) for name in columns})
