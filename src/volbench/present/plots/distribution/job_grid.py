"""Grid of panels, two abreast, with one job and direction each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from volbench.present.formatting import printable
from volbench.present.plots.description import Panel
from volbench.present.plots.labels import wrap_name

ABREAST = 2


def grid_panels(
    jobs: Sequence[pd.DataFrame], panel_of: Callable[[pd.DataFrame], Panel]
) -> tuple[Panel, ...]:
    """Return a panel for each job, with its label and direction as title, at its place.

    Args:
        jobs: rows with ``label`` and ``direction``, a frame for each job and direction.
        panel_of: rows to a panel.
    """
    return tuple(
        replace(panel_of(job), title=job_title(job), row=place // ABREAST, column=place % ABREAST)
        for place, job in enumerate(jobs)
    )


def grid_size(jobs: int, *, height_in: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return heights of the rows and widths of the columns of a grid of panels."""
    columns = min(ABREAST, jobs)
    return (height_in,) * -(-jobs // columns), (1.0,) * columns


def job_title(job: pd.DataFrame) -> str:
    """Return label and direction of a job."""
    head = job.iloc[0]
    return wrap_name(printable(f"{head['label']}, {head['direction']}"), columns=48)


def jobs_left_out(count: int, most: int) -> str:
    """Return what the caption says of jobs beyond those that are shown."""
    more = count - most
    return f"{more} further jobs are not shown: choose with --where" if more > 0 else ""
