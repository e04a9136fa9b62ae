"""One kind of chart: what it needs and how frames become its description."""

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


@dataclass(frozen=True)
class Options:
    """What some kinds take beside frames.

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
        title: over the chart unless another is given.
        frame_names: the frames it reads.
        help: what it shows, one sentence.
        needs: what a campaign must have for it, a few words.
        read: frames to what is drawn, or to the reason why there is nothing.
        build: what is drawn to its description.
        describe: its main numbers in one sentence, for people who can't see it.
        is_pooled: a mark stands for all repeats of a job, which the caption counts.
        needs_results: `read` is only called when a measured run has finished.
        in_report: every report shows it.
    """

    name: str
    title: str
    frame_names: tuple[str, ...]
    help: str
    needs: str
    read: Callable[[Frames, Options], Data | str]
    build: Callable[[Data], Plot]
    describe: Callable[[Data], str]
    is_pooled: bool = False
    needs_results: bool = True
    in_report: bool = False


def missing_results(frames: Frames) -> str:
    """Return why there is nothing to draw at all; empty when a measured run finished."""
    summary = frames["summary"]
    if len(measured(summary)):
        return ""
    states = left_out(summary)
    if not states:
        return "no run of the campaign's measured phase has ended yet"
    return "no measured run finished: " + ", ".join(f"{n} {state}" for state, n in states.items())
