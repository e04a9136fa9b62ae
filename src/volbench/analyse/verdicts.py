"""Frames of a campaign in, rows of the verdicts frame out: steady or not, and what binds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from volbench.model.run import Campaign


def verdict_rows(
    campaign: Campaign, *, summary: pd.DataFrame, series: pd.DataFrame, device: pd.DataFrame
) -> Sequence[Mapping[str, object]]:
    """Return a row for each finished Run and direction that has a series."""
    del campaign, summary, series, device
    return ()
