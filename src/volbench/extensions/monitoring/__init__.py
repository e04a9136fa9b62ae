"""Monitoring: metrics of running and finished campaigns for Prometheus and Grafana."""

from volbench.extension import ExportFormat, Extension

extension = Extension(
    name="monitoring",
    export_formats={
        "openmetrics": ExportFormat(
            "metrics.txt",
            "volbench.extensions.monitoring.openmetrics:export_metrics",
            "time series for Prometheus",
        ),
        "grafana": ExportFormat(
            "dashboard.json",
            "volbench.extensions.monitoring.grafana:export_dashboard",
            "a dashboard for these",
        ),
    },
)
