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
ALWAYS_READ = ("summary", "findings")  # Frames that title and caption need, whatever the kind reads


@dataclass(frozen=True)
class Options:
    """Inputs of some kinds beside the frames."""

    # profile to its tracking variables, for the kinds that show rounds
    rounds: Mapping[str, Rounds] = field(default_factory=dict)
    volume_bytes: float = 1 << 40  # size of the volume whose warm-up is estimated
    # of volume and machine while it warms up; NaN to estimate hours alone
    price_per_hour: float = math.nan
    currency: str = ""  # such as ``USD``


@dataclass(frozen=True)
class Kind(Generic[Data]):
    """One kind of chart."""

    name: str  # on the command line
    title: str  # the quantity, in the title over the chart unless another is given
    help: str  # content of the chart in one sentence
    needs: str  # what a campaign must contain, in a few words
    # frames to the data to draw, or to the reason why there is none
    read: Callable[[Frames, Options], Data | str]
    build: Callable[[Data], Plot]  # data to plot description
    # its main numbers in one sentence, for readers who cannot see it
    describe: Callable[[Data], str]
    frame_names: tuple[str, ...] = ("summary",)  # the frames it reads
    is_pooled: bool = False  # a mark represents all repeats of a job; the caption counts them
    needs_results: bool = True  # `read` is only called when a measured run has finished
    in_report: bool = False  # shown in every report
    # end of the title where jobs do not differ in one or two options, such as ``per job``; where
    # they do, the title says ``by`` these. Empty for titles without either.
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
