"""Kinds of charts: what each needs, its steps from frames to plot description, and their registry.

The names of the kinds cost no import: a kind is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from volbench.extension import extensions, load

if TYPE_CHECKING:
    import pandas as pd

    from volbench.model.profile.profile_settings import Rounds
    from volbench.present.plots.description import Plot

Frames = Mapping[str, "pd.DataFrame"]
Data = TypeVar("Data")
# Percentile that a reader asks for to the statistic of a column
STATISTICS = {"50": "p50", "99": "p99", "99.9": "p999", "max": "max"}
# Frames that title and caption need, whatever the kind reads
ALWAYS_READ = ("summary", "findings")


View = Literal["", "lines", "bars", "grid", "towers", "table"]
VIEWS: tuple[View, ...] = ("lines", "bars", "grid", "towers", "table")


@dataclass(frozen=True)
class Choice:
    """What a reader chose of a chart of responses; what is empty follows from the design."""

    x: str = ""  # columns, each with its full name
    by: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    view: View = ""
    relative_to: str = ""  # value of `by` that all values are divided by

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are named."""
        return tuple(dict.fromkeys(filter(None, (*self.by, self.x, *self.panels))))


@dataclass(frozen=True)
class Options:
    """Inputs of some kinds beside the frames."""

    choice: Choice = Choice()  # of charts of responses

    # profile to its tracking variables, for the kinds that show rounds
    rounds: Mapping[str, Rounds] = field(default_factory=dict)
    # statistic of the latencies over time: ``mean``, ``p50``, ``p99``, ``p999`` or ``max``
    statistic: str = "mean"
    latency: str = "lat"  # kind of the latencies over time, ``lat``, ``clat`` or ``slat``
    # campaign to its facts of hosts and volumes by name, read by the charts that show trends
    facts: Callable[[], Mapping[str, Mapping[str, str]]] = dict
    # summary of all results, of which a condition left some: they keep the colours they have there
    every: Callable[[], pd.DataFrame] | None = None


@dataclass(frozen=True)
class Room:
    """Number of the parts that a chart has place for."""

    most: int
    # the parts are: runs, results (repeats together) or jobs (what is compared together)
    what: Literal["runs", "results", "jobs"]
    frame: str = ""  # results without a row of it have no part


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
    needs_results: bool = True  # `read` is only called when a measured run has finished
    # invalid results are among its marks, for it shows what happened; only its words leave them out
    draws_invalid: bool = False
    # workloads are named by their cell of the design, without some columns that the kind shows
    # itself; None for the names of jobs
    across: tuple[str, ...] | None = None
    room: Room | None = None  # None for a kind that shows all, or chooses itself
    is_over_design: bool = False  # whether factors of the design are its axes, colours and panels
    # its marks are conclusions, which invalid results do not allow: others are drawn as a last
    # resort
    concludes: bool = False


# Name of a kind to its reference, in the order of lists; kinds of extensions follow. A module is
# imported when its chart is drawn.
REFERENCES = {
    "latency": "volbench.present.plots.charts.latency_rows:LATENCY",
    "series": "volbench.present.plots.charts.run_series:SERIES",
    "histogram": "volbench.present.plots.charts.latency_distribution:HISTOGRAM",
    "ecdf": "volbench.present.plots.charts.latency_distribution:ECDF",
    "latency-map": "volbench.present.plots.charts.latency_maps:LATENCY_MAP",
    "device": "volbench.present.plots.charts.device_view:DEVICE",
    "warmup": "volbench.present.plots.charts.warmup_curves:WARMUP",
    "within": "volbench.present.plots.charts.rate_search_chart:WITHIN_CHART",
    "rounds": "volbench.present.plots.charts.steady_rounds:ROUNDS_CHART",
    "storm": "volbench.present.plots.charts.storm_columns:STORM",
    "trend": "volbench.present.plots.charts.comparison_charts:TREND",
}


# Responses that people draw most
RESPONSES = ("iops", "bw", "p50", "p99", "p999", "mean", "max")
# Other word for a chart to the command that draws it
OTHER_WORDS = {
    "bandwidth": "plot bw",
    "heatmap": "plot iops --as grid",
    "bars3d": "plot iops --as towers",
    "ranking": "plot iops --x volume",
    "lines": "plot series",
}


class _Registry(Mapping[str, Kind[Any]]):
    """Kinds by their name, each imported when it is first needed."""

    def __init__(self, references: Mapping[str, str]) -> None:
        self._references = dict(references)
        for extension in extensions():
            self._references |= extension.chart_kinds

    def __getitem__(self, name: str) -> Kind[Any]:
        kind: Kind[Any] = load(self._references[name])
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(self._references)

    def __len__(self) -> int:
        return len(self._references)


KINDS: Mapping[str, Kind[Any]] = _Registry(REFERENCES)
