"""Grid of panels, two abreast, with one job and direction each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from volbench.present.formatting import printable
from volbench.present.plots.description import Panel, Plot, grid
from volbench.present.plots.labels import wrap_name


def job_grid(
    jobs: Sequence[pd.DataFrame],
    panel_of: Callable[[pd.DataFrame], Panel],
    *,
    most: int,
    height_in: float,
) -> Plot:
    """Return a panel for each job with its label and direction as title; the rest is counted.

    Args:
        jobs: rows with ``label`` and ``direction``, a frame for each job and direction.
        panel_of: rows to a panel.
        most: panels.
        height_in: of each panel.
    """
    panels = [replace(panel_of(job), title=_title(job)) for job in jobs[:most]]
    more = len(jobs) - most
    return replace(
        grid(panels, height_in=height_in, abreast=2),
        width_in=11,
        legend="",
        caption=(f"{more} further jobs are not shown: choose with --where" * (more > 0),),
    )


def _title(job: pd.DataFrame) -> str:
    head = job.iloc[0]
    return wrap_name(printable(f"{head['label']}, {head['direction']}"), columns=48)
