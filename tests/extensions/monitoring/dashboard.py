"""The dashboard, and the queries of its panels."""

import json
from importlib.resources import files
from typing import Any

DASHBOARD: dict[str, Any] = json.loads(
    (files("volbench.extensions.monitoring") / "dashboard.json").read_text(encoding="utf-8")
)
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
WINDOW = "$window"  # Variable: the time over which counters become rates
