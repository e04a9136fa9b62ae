"""Monitoring: metrics of running and finished campaigns for Prometheus and Grafana."""

from volbench.extension import ExportFormat, Extension

extension = Extension(
    name="monitoring",
    options=dict.fromkeys(
        ("run", "measure", "audit", "warmup", "watch", "resume"),
        "volbench.extensions.monitoring.metrics_server:METRICS",
    ),
    export_formats={
        "openmetrics": ExportFormat(
            "metrics.prom",
            "volbench.extensions.monitoring.openmetrics:export_metrics",
            "time series for Prometheus",
        ),
        "grafana": ExportFormat(
            "dashboard.json",
            "volbench.extensions.monitoring.grafana:export_dashboard",
            "a dashboard of them for Grafana",
        ),
    },
)
