"""Every kind of chart by name. A new kind is one line here and one file beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from volbench.present.figures.bars import BANDWIDTH, IOPS
from volbench.present.figures.bars3d import BARS3D
from volbench.present.figures.ceiling import CEILING
from volbench.present.figures.chart import Chart
from volbench.present.figures.cpu import CPU
from volbench.present.figures.depthbars import CLONES, DEPTH
from volbench.present.figures.device import DEVICE
from volbench.present.figures.distribution import DISTRIBUTION
from volbench.present.figures.fleet import FLEET
from volbench.present.figures.hdr import ECDF, HDR
from volbench.present.figures.heatmap import HEATMAP
from volbench.present.figures.histogram import HISTOGRAM
from volbench.present.figures.knee import KNEE
from volbench.present.figures.latency import LATENCY
from volbench.present.figures.latencymap import LATENCY_MAP
from volbench.present.figures.lines import LINES
from volbench.present.figures.mixes import MIXES, MIXES3D
from volbench.present.figures.ridgeline import RIDGELINE
from volbench.present.figures.rounds import CONVERGENCE, WINDOW
from volbench.present.figures.series import SERIES
from volbench.present.figures.sets import SETS
from volbench.present.figures.storm import STORM
from volbench.present.figures.sweep import SWEEP
from volbench.present.figures.violin import VIOLIN
from volbench.present.figures.warmup import WARMUP
from volbench.present.plots.kind import Kind
from volbench.present.plots.kinds import KINDS as PLOT_KINDS

_EVERYDAY: tuple[Chart, ...] = (
    IOPS,
    BANDWIDTH,
    LATENCY,
    DISTRIBUTION,
    SWEEP,
    HEATMAP,
    SERIES,
    DEVICE,
    WARMUP,
    STORM,
)
_ASKED_FOR: tuple[Chart, ...] = (
    DEPTH,
    CLONES,
    SETS,
    KNEE,
    CEILING,
    BARS3D,
    HISTOGRAM,
    HDR,
    ECDF,
    RIDGELINE,
    LINES,
    LATENCY_MAP,
    VIOLIN,
    FLEET,
    CPU,
    CONVERGENCE,
    WINDOW,
    MIXES,
    MIXES3D,
)

KINDS: Mapping[str, Chart | Kind] = MappingProxyType(
    {**{chart.name: chart for chart in (*_EVERYDAY, *_ASKED_FOR)}, **PLOT_KINDS}
)
"""Every kind of chart by name."""

DEFAULT_CHARTS = tuple(chart.name for chart in _EVERYDAY)
"""Kinds that stand in every report; the others are drawn when they are asked for."""
