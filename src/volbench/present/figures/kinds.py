"""Kinds of charts by name: those with a description, and those still drawn as before."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from volbench.present.figures.chart import Chart
from volbench.present.figures.device import DEVICE
from volbench.present.figures.distribution import DISTRIBUTION
from volbench.present.figures.fleet import FLEET
from volbench.present.figures.hdr import ECDF, HDR
from volbench.present.figures.histogram import HISTOGRAM
from volbench.present.figures.latencymap import LATENCY_MAP
from volbench.present.figures.lines import LINES
from volbench.present.figures.mixes import MIXES, MIXES3D
from volbench.present.figures.ridgeline import RIDGELINE
from volbench.present.figures.rounds import CONVERGENCE, WINDOW
from volbench.present.figures.storm import STORM
from volbench.present.figures.violin import VIOLIN
from volbench.present.figures.warmup import WARMUP
from volbench.present.plots.kind import Kind
from volbench.present.plots.kinds import KINDS as PLOT_KINDS

_OLD: tuple[Chart, ...] = (
    DISTRIBUTION,
    DEVICE,
    WARMUP,
    STORM,
    HISTOGRAM,
    HDR,
    ECDF,
    RIDGELINE,
    LINES,
    LATENCY_MAP,
    VIOLIN,
    FLEET,
    CONVERGENCE,
    WINDOW,
    MIXES,
    MIXES3D,
)

KINDS: Mapping[str, Chart | Kind] = MappingProxyType(
    {**{chart.name: chart for chart in _OLD}, **PLOT_KINDS}
)
"""Every kind of chart by name."""

DEFAULT_CHARTS = (
    "iops",
    "bandwidth",
    "latency",
    "distribution",
    "sweep",
    "heatmap",
    "series",
    "device",
    "warmup",
    "storm",
)
"""Kinds that stand in every report; the others are drawn when they are asked for."""
