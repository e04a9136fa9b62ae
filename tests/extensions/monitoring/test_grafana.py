"""The dashboard reads exported metrics, and Prometheus understands every query in it."""

import json
import re
from pathlib import Path

from click.testing import CliRunner

from tests.extensions.monitoring.dashboard import DASHBOARD, QUERIES, WINDOW
from tests.finished_campaign import half_finished
from tests.real import promtool
from volbench.cli.main import cli
from volbench.extensions.monitoring.node_metrics import MEMORY, ON_DEVICE, ON_HOST

FIO_NAMES = {"volbench_iops", "volbench_bandwidth_bytes_per_second", "volbench_latency_seconds"}


def test_the_dashboard_is_exported(tmp_path: Path) -> None:
    """The verb writes the file that Grafana imports, with its variables."""
    root = half_finished(tmp_path / "c").root
    done = CliRunner().invoke(cli, ["export", str(root), "--format", "grafana"])
    assert json.loads(done.stdout) == DASHBOARD
    variables = [own["name"] for own in DASHBOARD["templating"]["list"]]
    assert variables == ["datasource", "campaign", "instance", "device", "window"]


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    """Each expression is read by promtool as a recording rule, with the variables put in."""
    rules = [
        {"record": f"panel:{number}", "expr": query.replace(WINDOW, "5s")}
        for number, query in enumerate(QUERIES)
    ]
    file = tmp_path / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"SUCCESS: {len(QUERIES)} rules found" in promtool("check", "rules", file)


def test_every_query_names_an_exported_metric() -> None:
    """No panel waits for a metric that is never exported."""
    exported = {f"{counter.family.name}_total" for counter in (*ON_DEVICE, *ON_HOST)}
    exported |= {family.name for _, _, family in MEMORY} | FIO_NAMES
    used = {name for query in QUERIES for name in re.findall(r"\b((?:node|volbench)_\w+)\{", query)}
    assert used <= exported
    assert used >= FIO_NAMES


def test_panels_do_not_overlap() -> None:
    """No two panels cover one another, and each has an id of its own."""
    panels = DASHBOARD["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in panels})
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
