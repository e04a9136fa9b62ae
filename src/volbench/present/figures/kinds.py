"""Every kind of chart by name. A new kind is one line here and one file beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from volbench.present.figures.bars import BANDWIDTH, IOPS
from volbench.present.figures.chart import Chart
from volbench.present.figures.device import DEVICE
from volbench.present.figures.distribution import DISTRIBUTION
from volbench.present.figures.heatmap import HEATMAP
from volbench.present.figures.latency import LATENCY
from volbench.present.figures.series import SERIES
from volbench.present.figures.storm import STORM
from volbench.present.figures.sweep import SWEEP
from volbench.present.figures.warmup import WARMUP

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
_ASKED_FOR: tuple[Chart, ...] = ()

KINDS: Mapping[str, Chart] = MappingProxyType(
    {chart.name: chart for chart in (*_EVERYDAY, *_ASKED_FOR)}
)
"""Every kind of chart by name."""

EVERYDAY = tuple(chart.name for chart in _EVERYDAY)
"""Kinds that stand in every report; the others are drawn when they are asked for."""
