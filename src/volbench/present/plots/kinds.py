"""Registry of the kinds of charts: a new kind is a file beside the others and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from volbench.present.plots.kind import Kind
from volbench.present.plots.results.ceiling import CEILING
from volbench.present.plots.results.cpu_time import CPU
from volbench.present.plots.results.heatmap import HEATMAP
from volbench.present.plots.results.job_bars import BANDWIDTH_BARS, IOPS_BARS
from volbench.present.plots.results.knee import KNEE
from volbench.present.plots.results.latency_percentiles import LATENCY
from volbench.present.plots.results.option_bars import DEPTH, NUMJOBS
from volbench.present.plots.results.option_towers import BARS3D
from volbench.present.plots.results.result_sets import SETS
from volbench.present.plots.results.sweep_lines import SWEEP
from volbench.present.plots.time.run_series import SERIES

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            IOPS_BARS,
            BANDWIDTH_BARS,
            LATENCY,
            SWEEP,
            HEATMAP,
            SERIES,
            DEPTH,
            NUMJOBS,
            SETS,
            KNEE,
            CEILING,
            BARS3D,
            CPU,
        )
    }
)
"""Every kind by its name, in the order of lists."""
