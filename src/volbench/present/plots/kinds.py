"""Registry of the kinds of charts: a new kind is a file beside the others and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from volbench.present.plots.kind import Kind
from volbench.present.plots.results.heatmap import HEATMAP
from volbench.present.plots.results.job_bars import BANDWIDTH_BARS, IOPS_BARS
from volbench.present.plots.results.latency_percentiles import LATENCY
from volbench.present.plots.time.run_series import SERIES

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            IOPS_BARS,
            BANDWIDTH_BARS,
            LATENCY,
            HEATMAP,
            SERIES,
        )
    }
)
"""Every kind by its name, in the order of lists."""
