"""Registry of the kinds of charts: a new kind is a file beside the others and a line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from volbench.present.plots.kind import Kind

# Name to module and constant below this package, in the order of lists
_PLACES = {
    "iops": "results.job_rows.IOPS_BARS",
    "bandwidth": "results.job_rows.BANDWIDTH_BARS",
    "latency": "results.job_rows.LATENCY",
    "sweep": "results.sweep_lines.SWEEP",
    "heatmap": "results.option_grids.HEATMAP",
    "series": "time.run_series.SERIES",
    "depth": "results.option_bars.DEPTH",
    "numjobs": "results.option_bars.NUMJOBS",
    "sets": "results.result_sets.SETS",
    "knee": "results.sweep_lines.KNEE",
    "ceiling": "results.ceiling.CEILING",
    "bars3d": "results.option_grids.BARS3D",
    "cpu": "results.job_rows.CPU",
    "inflight": "results.in_flight.IN_FLIGHT",
    "mixes": "results.option_grids.MIXES",
    "mixes3d": "results.option_grids.MIXES3D",
    "distribution": "distribution.latency_curves.DISTRIBUTION",
    "histogram": "distribution.latency_steps.HISTOGRAM",
    "hdr": "distribution.latency_curves.HDR",
    "ecdf": "distribution.latency_curves.ECDF",
    "ridgeline": "distribution.latency_steps.RIDGELINE",
    "violin": "distribution.rate_violins.VIOLIN",
    "latency-map": "distribution.latency_maps.LATENCY_MAP",
    "lines": "time.run_series.LINES",
    "device": "time.device_view.DEVICE",
    "warmup": "time.warmup_curves.WARMUP",
    "convergence": "time.steady_rounds.CONVERGENCE",
    "window": "time.steady_rounds.WINDOW",
    "fleet": "fleet.fleet_strips.FLEET",
    "storm": "fleet.storm_columns.STORM",
    "trend": "compare.trend_lines.TREND",
}


class _Registry(Mapping[str, "Kind[Any]"]):
    """Kinds by their name, each imported when it is first needed."""

    def __getitem__(self, name: str) -> Kind[Any]:
        module, _, constant = _PLACES[name].rpartition(".")
        kind: Kind[Any] = getattr(import_module(f"volbench.present.plots.{module}"), constant)
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


# Every kind by its name. The names alone cost no import.
KINDS: Mapping[str, Kind[Any]] = _Registry()
