"""The dashboard fits Grafana's own model, and Prometheus understands every query in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.real import promtool
from volbench.errors import InputError
from volbench.extensions.monitoring.grafana import PANELS, render_dashboard
from volbench.extensions.monitoring.node_metrics import MEMORY, ON_DEVICE, ON_HOST
from volbench.model.frames.columns import DEVICE, SERIES

FIO_NAMES = {"volbench_iops", "volbench_bandwidth_bytes_per_second", "volbench_latency_seconds"}


def frames(*, every_s: float = 1.0) -> dict[str, pd.DataFrame]:
    """Return frames of a campaign of three seconds."""
    device = pd.DataFrame(columns=[column.name for column in DEVICE], index=range(3))
    device["utc"] = [f"2026-01-01T00:00:0{second}.500Z" for second in range(3)]
    device["interval_s"], device["campaign"] = every_s, "c"
    series = pd.DataFrame(columns=[column.name for column in SERIES])
    return {"device": device, "series": series}


@pytest.fixture(name="dashboard")
def _dashboard() -> dict[str, Any]:
    return dict(json.loads(render_dashboard(frames())))


def without_nothing(value: object) -> object:
    """Return JSON without empty lists, empty objects and nulls, which mean the same as none."""
    if isinstance(value, dict):
        reported = {name: without_nothing(own) for name, own in value.items()}
        return {name: own for name, own in reported.items() if own not in (None, {}, [], "")}
    return [without_nothing(own) for own in value] if isinstance(value, list) else value


def holds(model: object, reported: object, path: str = "") -> list[str]:
    """Return where a model lacks, or changes, what was told."""
    if isinstance(reported, dict) and isinstance(model, dict):
        return [
            missing
            for name, own in reported.items()
            for missing in holds(model.get(name), own, f"{path}.{name}")
        ]
    if isinstance(reported, list) and isinstance(model, list) and len(reported) == len(model):
        return [
            missing
            for place, (left, right) in enumerate(zip(model, reported, strict=True))
            for missing in holds(left, right, f"{path}[{place}]")
        ]
    return [] if model == reported else [path]


def test_a_running_campaign_is_followed() -> None:
    """The dashboard opens on the last minutes and refreshes itself, also without a result."""
    empty = {name: frame.head(0) for name, frame in frames().items()}
    dashboard = json.loads(render_dashboard(empty, running=["c"]))
    assert dashboard["time"] == {"from": "now-15m", "to": "now"}
    assert dashboard["refresh"] == "5s"
    chosen = {own["name"]: own["current"]["value"] for own in dashboard["templating"]["list"][1:]}
    assert chosen["campaign"] == ["c"]


def test_grafana_knows_every_field(dashboard: dict[str, Any]) -> None:
    """Read into the classes that Grafana generates from its schema, nothing gets lost."""
    read = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
    assert holds(without_nothing(read), without_nothing(dashboard)) == []


def test_a_field_that_grafana_does_not_know_is_found(dashboard: dict[str, Any]) -> None:
    """The check above sees a misspelt field."""
    dashboard["panels"][0]["gridpos"] = {"h": 1}
    read = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
    assert holds(without_nothing(read), without_nothing(dashboard)) == [".panels[0].gridpos"]


def test_prometheus_understands_every_query(dashboard: dict[str, Any], tmp_path: Path) -> None:
    """Each expression is read by promtool as a recording rule, with the variables put in."""
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(queries) >= len(PANELS)
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$window", "5s")}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"SUCCESS: {len(queries)} rules found" in promtool("check", "rules", file)


def test_every_query_names_an_exported_metric(dashboard: dict[str, Any]) -> None:
    """No panel waits for a metric that is never exported."""
    exported = {f"{counter.family.name}_total" for counter in (*ON_DEVICE, *ON_HOST)}
    exported |= {family.name for _, _, family in MEMORY} | FIO_NAMES
    used = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b((?:node|volbench)_\w+)\{", target["expr"])
    }
    assert used <= exported
    assert used >= FIO_NAMES


def test_panels_do_not_overlap(dashboard: dict[str, Any]) -> None:
    """No two panels cover one another, and each has an id of its own."""
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in dashboard["panels"]})
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in dashboard["panels"])


def test_the_dashboard_opens_on_the_time_range_of_the_campaign(dashboard: dict[str, Any]) -> None:
    """Time, campaign and the window of rates are those of the data."""
    assert dashboard["time"] == {
        "from": "2025-12-31T23:59:55.000Z",
        "to": "2026-01-01T00:00:07.000Z",
    }
    chosen = {entry["name"]: entry.get("current", {}) for entry in dashboard["templating"]["list"]}
    assert chosen["campaign"]["value"] == ["c"]
    assert chosen["window"]["value"] == "5s"
    slow = json.loads(render_dashboard(frames(every_s=10.0)))
    [window] = [entry for entry in slow["templating"]["list"] if entry["name"] == "window"]
    assert window["current"]["value"] == "1m"


def test_a_campaign_without_timestamps_is_reported() -> None:
    """Nothing to show is an error with a hint."""
    empty = {name: frame.head(0) for name, frame in frames().items()}
    with pytest.raises(InputError, match="no result has timestamps"):
        render_dashboard(empty)
