"""Kind of chart: requirements, and steps from frames to plot description."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pandas as pd

from volbench.analyse.frames.job_frames import left_out, measured
from volbench.model.profile.profile_settings import Rounds
from volbench.present.plots.description import Plot

Frames = Mapping[str, pd.DataFrame]
Data = TypeVar("Data")
PER_JOB = "per job"
ALWAYS_READ = ("summary", "findings")
"""Frames that title and caption need, whatever the kind reads."""


@dataclass(frozen=True)
class Options:
    """Inputs of some kinds beside the frames.

    Attributes:
        rounds: profile to its tracking variables, for the kinds that show rounds.
        volume_bytes: size of the volume whose warm-up is estimated.
        price_per_hour: of volume and machine while it warms up; NaN to estimate hours alone.
        currency: such as ``USD``.
    """

    rounds: Mapping[str, Rounds] = field(default_factory=dict)
    volume_bytes: float = 1 << 40
    price_per_hour: float = math.nan
    currency: str = ""


@dataclass(frozen=True)
class Kind(Generic[Data]):
    """One kind of chart.

    Attributes:
        name: on the command line.
        title: the quantity, in the title over the chart unless another is given.
        help: content of the chart in one sentence.
        needs: what a campaign must contain, in a few words.
        read: frames to the data to draw, or to the reason why there is none.
        build: data to plot description.
        describe: its main numbers in one sentence, for readers who cannot see it.
        frame_names: the frames it reads.
        is_pooled: a mark represents all repeats of a job; the caption counts them.
        needs_results: `read` is only called when a measured run has finished.
        in_report: shown in every report.
        by_options: end of the title where jobs do not differ in one or two options, such as ``per
            job``; where they do, the title says ``by`` these. Empty for titles without either.
    """

    name: str
    title: str
    help: str
    needs: str
    read: Callable[[Frames, Options], Data | str]
    build: Callable[[Data], Plot]
    describe: Callable[[Data], str]
    frame_names: tuple[str, ...] = ("summary",)
    is_pooled: bool = False
    needs_results: bool = True
    in_report: bool = False
    by_options: str = ""

    def frames_of(self, frames: Frames) -> dict[str, pd.DataFrame]:
        """Return the frames that the kind reads, of those there are."""
        names = (
            *ALWAYS_READ,
            *self.frame_names,
            *(("use",) if "device" in self.frame_names else ()),
        )
        return {name: frames[name] for name in names if name in frames}


def missing_results(frames: Frames) -> str:
    """Return the reason why nothing can be drawn; empty if a measured run finished."""
    summary = frames["summary"]
    if len(measured(summary)):
        return ""
    states = left_out(summary)
    if not states:
        return "no measured run has a result"
    return "no measured run finished: " + ", ".join(f"{n} {state}" for state, n in states.items())
