"""Grafana dashboard for exported metrics, a static file with variables.

Its panels read the names of `openmetrics`, which are the node exporter's, so the dashboard also
shows hosts that are scraped. JSON: the dashboard model of Grafana's documentation, schema version
39.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset


def export_dashboard(_dataset: Dataset, _name: str | None) -> str:
    """Return the dashboard; campaign, host, device and window of rates are chosen in Grafana."""
    return (files(__package__) / "dashboard.json").read_text(encoding="utf-8")
