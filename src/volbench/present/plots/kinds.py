"""Registry of the kinds of charts: a new kind is a file beside the others and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from volbench.present.plots.distribution.histogram_panels import HISTOGRAM
from volbench.present.plots.distribution.latency_curves import DISTRIBUTION, ECDF, HDR
from volbench.present.plots.distribution.latency_maps import LATENCY_MAP
from volbench.present.plots.distribution.rate_violins import VIOLIN
from volbench.present.plots.distribution.repeat_ridges import RIDGELINE
from volbench.present.plots.fleet.fleet_strips import FLEET
from volbench.present.plots.fleet.storm_columns import STORM
from volbench.present.plots.kind import Kind
from volbench.present.plots.results.heatmap import HEATMAP
from volbench.present.plots.results.job_bars import BANDWIDTH_BARS, IOPS_BARS
from volbench.present.plots.results.latency_percentiles import LATENCY
from volbench.present.plots.results.mix_matrix import MIXES, MIXES3D
from volbench.present.plots.time.device_view import DEVICE
from volbench.present.plots.time.run_lines import LINES
from volbench.present.plots.time.run_series import SERIES
from volbench.present.plots.time.steady_rounds import CONVERGENCE, WINDOW
from volbench.present.plots.time.warmup_curves import WARMUP

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            IOPS_BARS,
            BANDWIDTH_BARS,
            LATENCY,
            HEATMAP,
            SERIES,
            DISTRIBUTION,
            HISTOGRAM,
            HDR,
            ECDF,
            RIDGELINE,
            VIOLIN,
            LATENCY_MAP,
            LINES,
            DEVICE,
            WARMUP,
            CONVERGENCE,
            WINDOW,
            MIXES,
            MIXES3D,
            FLEET,
            STORM,
        )
    }
)
"""Every kind by its name, in the order of lists."""
