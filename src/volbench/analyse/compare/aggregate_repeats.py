"""One value for each repeat and volume of a cell, over all clients."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.run_facts import STEP, VOLUME_KEY
from volbench.analyse.price.steady_performance import STEADY

_ADDED = ("iops", "bw_bytes_per_s", *STEADY)


def one_row_a_repeat(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Take clients together that worked on one volume at one time.

    They are no repeats of each other: they share the volume and the instant. Rates are added;
    of everything else the median over the clients stands for them.

    Args:
        rows: of one side and cell, with `VOLUME_KEY` and `STEP`.
        column: the number that is wanted.

    Returns:
        A row for each step and volume that told the number: ``value`` and `VOLUME_KEY`. A volume
        that was measured in several campaigns counts as one in each: repeats of one campaign
        share its day.
    """
    values = rows[["origin", "campaign", STEP, VOLUME_KEY]].assign(value=rows[column].astype(float))
    values = values.dropna(subset=["value"])
    keys = ["origin", "campaign", STEP, VOLUME_KEY]
    groups = values.groupby(keys, sort=False, dropna=False)["value"]
    values = (groups.sum() if column in _ADDED else groups.median()).reset_index()
    places = values.drop_duplicates(["campaign", VOLUME_KEY])
    if places[VOLUME_KEY].duplicated().any():
        values[VOLUME_KEY] = values["campaign"].astype(str) + "|" + values[VOLUME_KEY]
    return values
