"""Grafana dashboard for exported metrics.

The panels show what matters while a disk is tested: what the device did, what the host waited
for and kept in memory, and beside them fio's own view. All read the names of `openmetrics`, which
are the node exporter's, so the dashboard also shows hosts that are scraped. JSON: the dashboard
model of Grafana's documentation, schema version 39.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from volbench.analyse.frames.resample import seconds
from volbench.errors import InputError
from volbench.extensions.monitoring.openmetrics import TIMED, timed_frames

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WINDOW = "$window"  # Variable: the time over which counters become rates

_HOSTS = 'campaign=~"$campaign",instance=~"$instance"'
_DISKS = f'{_HOSTS},device=~"$device"'
_WIDTH, _HEIGHT = 12, 8
# Time shown before the first and after the last sample: one interval of the slowest panel. Noticed
# by: tests/test_grafana.py::test_the_dashboard_opens_on_the_time_range_of_the_campaign
_MARGIN_S = 5.0
_LAST = ("now-15m", "now")
_WINDOWS = {"5s": 5, "10s": 10, "30s": 30, "1m": 60, "5m": 300}
# A rate over four samples still has two when one is late. Noticed by:
# tests/test_grafana.py::test_the_dashboard_opens_on_the_time_range_of_the_campaign
_SAMPLES = 4


Query = tuple[str, str]  # PromQL, and the legend of its lines; `$window` is the time of a rate


@dataclass(frozen=True)
class Panel:
    """One panel."""

    title: str  # over it
    unit: str  # as Grafana names it
    about: str  # what it shows
    queries: tuple[Query, ...]  # a line or more each


def _rate(counter: str, labels: str = _DISKS) -> str:
    return f"rate({counter}{{{labels}}}[{WINDOW}])"


def _both(counter: str, *names: str, per: str = "") -> tuple[Query, ...]:
    """Return the rates of reads and of writes, or their ratio: 0 / 0 is NaN, drawn as a gap.

    Args:
        counter: with ``{}`` for the word that names the direction.
    """
    below = [f" / {_rate(per.format(kind))}" if per else "" for kind in ("reads", "writes")]
    return tuple(
        (_rate(counter.format(name)) + ratio, f"{{{{instance}}}} {{{{device}}}} {direction}")
        for name, ratio, direction in zip(names, below, ("read", "write"), strict=True)
    )


def _of_fio(metric: str, more: str = "") -> tuple[Query, ...]:
    return ((f"{metric}{{{_HOSTS}}}", f"{{{{instance}}}} {{{{fio_job}}}} {{{{direction}}}}{more}"),)


_COMPLETED = "node_disk_{}_completed_total"
_PRESSURE = "node_pressure_io_{}_seconds_total"
_IOWAIT = _rate("node_cpu_seconds_total", f'{_HOSTS},mode="iowait"')
_BETWEEN = "A difference from the device's rate comes from a cache or the kernel."

PANELS: tuple[Panel, ...] = (
    Panel(
        "Bandwidth of the device",
        "Bps",
        "Bytes per second that the device read and wrote.",
        _both("node_disk_{}_bytes_total", "read", "written"),
    ),
    Panel(
        "IOPS of the device",
        "iops",
        "Requests per second that the device completed.",
        _both(_COMPLETED, "reads", "writes"),
    ),
    Panel(
        "Active time",
        "percentunit",
        "Share of the time with a request in flight. At 100 % a disk with several queues may still "
        "have room.",
        ((_rate("node_disk_io_time_seconds_total"), "{{instance}} {{device}}"),),
    ),
    Panel(
        "CPU waiting for I/O",
        "percentunit",
        "Share of all CPUs that was idle while I/O was pending.",
        ((f"avg by (campaign, instance) ({_IOWAIT})", "{{instance}} iowait"),),
    ),
    Panel(
        "Latency of the device",
        "s",
        "Mean time of a request in queue and device.",
        _both("node_disk_{}_time_seconds_total", "read", "write", per=_COMPLETED),
    ),
    Panel(
        "Size of requests",
        "bytes",
        "Mean size of a request, after the kernel merged and split them.",
        _both("node_disk_{}_bytes_total", "read", "written", per=_COMPLETED),
    ),
    Panel(
        "Dirty pages",
        "bytes",
        "Memory of the host that waits to be written, or is being written.",
        (
            (f"node_memory_Dirty_bytes{{{_HOSTS}}}", "{{instance}} dirty"),
            (f"node_memory_Writeback_bytes{{{_HOSTS}}}", "{{instance}} writeback"),
        ),
    ),
    Panel(
        "I/O pressure",
        "percentunit",
        "Share of the time in which some task, or every task, waited for I/O.",
        (
            (_rate(_PRESSURE.format("waiting"), _HOSTS), "{{instance}} some"),
            (_rate(_PRESSURE.format("stalled"), _HOSTS), "{{instance}} all"),
        ),
    ),
    Panel("IOPS (fio)", "iops", _BETWEEN, _of_fio("volbench_iops")),
    Panel("Bandwidth (fio)", "Bps", _BETWEEN, _of_fio("volbench_bandwidth_bytes_per_second")),
    Panel(
        "Latency (fio)",
        "s",
        "Mean, and percentiles where fio logged single I/Os.",
        _of_fio("volbench_latency_seconds", " {{statistic}}"),
    ),
)


def export_dashboard(dataset: Dataset, name: str | None) -> str:
    """Return a dashboard of campaigns, which follows those that are running."""
    running = [data.campaign.name for data in dataset.names.values() if data.is_running]
    return render_dashboard(timed_frames(dataset, name), running=running)


def render_dashboard(frames: Mapping[str, pd.DataFrame], *, running: Sequence[str] = ()) -> str:
    """Return a dashboard that opens on the time of the campaigns.

    Args:
        frames: ``device`` and ``series``, or one of them; they determine the time range, the
            campaigns and the window of rates.
        running: names of campaigns that are running; with any, it opens on the last minutes and
            refreshes itself.
    """
    timed = [frames[name] for name in TIMED if name in frames]
    begin, end = _LAST if running else _times(timed)
    names = [*running, *(str(name) for frame in timed for name in frame["campaign"].unique())]
    campaigns = list(dict.fromkeys(names))
    dashboard = {
        "title": "volbench: " + ", ".join(campaigns[:3]) + (" ..." if len(campaigns) > 3 else ""),
        "description": "Storage benchmarks: the device, the host, and fio's own view.",
        "tags": ["volbench", "storage"],
        "timezone": "utc",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": 39,
        "time": {"from": begin, "to": end},
        "refresh": "5s" if running else "",
        "annotations": {"list": []},
        "templating": {"list": _variables(campaigns, window=_window(frames))},
        "panels": [_panel(panel, index) for index, panel in enumerate(PANELS)],
    }
    return json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"


def _times(timed: Sequence[pd.DataFrame]) -> tuple[str, str]:
    moments = pd.concat([seconds(frame["utc"]) for frame in timed]).dropna()
    if moments.empty:
        raise InputError(
            "no result has timestamps",
            hint="a dashboard shows the frames device and series of finished runs; imported logs"
            " have a time of day only with fio's log_unix_epoch",
        )
    return _iso(moments.min() - _MARGIN_S), _iso(moments.max() + _MARGIN_S)


def _iso(moment_s: float) -> str:
    return pd.Timestamp(moment_s, unit="s", tz="UTC").strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _window(frames: Mapping[str, pd.DataFrame]) -> str:
    """Return the shortest window that holds enough samples."""
    every_s = frames["device"]["interval_s"].median() if "device" in frames else 1.0
    fit = [name for name, length_s in _WINDOWS.items() if length_s >= _SAMPLES * every_s]
    return (fit or [*_WINDOWS][-1:])[0] if pd.notna(every_s) else "5s"


def _variables(campaigns: Sequence[str], *, window: str) -> list[dict[str, object]]:
    """Return what can be chosen above the panels."""
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        _choice("campaign", "volbench_run_info", chosen=campaigns),
        _choice("instance", 'node_cpu_seconds_total{campaign=~"$campaign"}'),
        _choice("device", f"node_disk_io_time_seconds_total{{{_HOSTS}}}"),
        {
            "name": "window",
            "label": "Rate over",
            "type": "custom",
            "query": ",".join(_WINDOWS),
            "current": {"text": window, "value": window, "selected": True},
            "options": [
                {"text": name, "value": name, "selected": name == window} for name in _WINDOWS
            ],
        },
    ]


def _choice(label: str, series: str, *, chosen: Sequence[str] = ()) -> dict[str, object]:
    """Return a variable that holds the values a label has; all of them by default."""
    value = list(chosen) or ["$__all"]
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": f"label_values({series}, {label})",
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": value if chosen else ["All"], "value": value, "selected": True},
    }


def _panel(panel: Panel, index: int) -> dict[str, object]:
    """Return a panel, two in a row."""
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": index % 2 * _WIDTH, "y": index // 2 * _HEIGHT},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": query,
                "legendFormat": legend,
                "range": True,
                "editorMode": "code",
            }
            for number, (query, legend) in enumerate(panel.queries)
        ],
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10},
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["mean", "max"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }
