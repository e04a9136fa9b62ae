"""Exported metrics, read by Prometheus's own tool, and the dashboard that shows them."""

import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser

import volbench
from tests.extensions.importer.sources import CASES, take
from tests.extensions.monitoring.dashboard import QUERIES, WINDOW
from tests.real import measure, promtool
from volbench.cli.main import cli
from volbench.errors import InputError
from volbench.extensions.monitoring.node_metrics import MEMORY, ON_DEVICE, ON_HOST
from volbench.extensions.monitoring.openmetrics import render_openmetrics

Samples = dict[str, dict[tuple[str, ...], list[tuple[int, float]]]]

STRICT: Callable[[str], Iterable[Metric]] = parser.text_string_to_metric_families

FRAMES = ("device", "series", "summary")


@pytest.fixture(scope="module", name="campaign")
def _campaign(tmp_path_factory: pytest.TempPathFactory) -> volbench.Dataset:
    return volbench.open_campaign(measure(tmp_path_factory.mktemp("real"), "small"))


@pytest.fixture(scope="module", name="text")
def _text(campaign: volbench.Dataset) -> str:
    return render_openmetrics({name: campaign.frame(name) for name in FRAMES})


@pytest.fixture(scope="module", name="stored")
def _stored(text: str, tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """Return what Prometheus holds after the backfill: metric, labels, and samples in time."""
    folder = tmp_path_factory.mktemp("prometheus")
    metrics = folder / "metrics.prom"
    metrics.write_text(text, encoding="utf-8")
    promtool("tsdb", "create-blocks-from", "openmetrics", metrics, folder / "blocks")
    (folder / "blocks" / "wal").mkdir()
    stored: Samples = {}
    for line in promtool("tsdb", "dump", folder / "blocks").splitlines():
        labels, value, stamp = line.rsplit(" ", 2)
        reported = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        name = reported.pop("__name__")
        key = tuple(reported.get(entry, "") for entry in ("run", "device", "mode", "statistic"))
        stored.setdefault(name, {}).setdefault(key, []).append((int(stamp), float(value)))
    return stored


def test_every_sample_is_stored(text: str, stored: Samples) -> None:
    """The backfill takes each line: none is out of order, none is dropped."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) > 40
    assert sum(len(own) for series in stored.values() for own in series.values()) == len(lines)


def test_a_strict_parser_accepts_the_text(text: str) -> None:
    """The text keeps the rules of OpenMetrics about types, units, suffixes and order."""
    families = {family.name: family for family in STRICT(text)}
    assert families["node_cpu_seconds"].unit == "seconds"
    assert families["node_cpu_seconds"].type == "counter"
    assert text.endswith("\n# EOF\n")


def test_device_counters_equal_the_frame(campaign: volbench.Dataset, stored: Samples) -> None:
    """Counters end at the sum of all intervals, for each device."""
    device = campaign.frame("device")
    assert not device.empty
    reported = device.dropna(subset=["device"])
    amounts = {
        "node_disk_reads_completed_total": reported["read_iops"] * reported["interval_s"],
        "node_disk_writes_completed_total": reported["write_iops"] * reported["interval_s"],
        "node_disk_written_bytes_total": reported["write_bw_bytes_per_s"] * reported["interval_s"],
        "node_disk_io_time_seconds_total": reported["active_percent"]
        / 100
        * reported["interval_s"],
    }
    for name, amount in amounts.items():
        ends = amount.groupby(reported["device"]).sum().to_dict()
        found = {key[1]: samples[-1][1] for key, samples in stored.get(name, {}).items()}
        assert found == pytest.approx(ends, rel=0.02, abs=1.0), name


def test_rates_of_counters_are_those_of_the_frame(
    campaign: volbench.Dataset, stored: Samples
) -> None:
    """Two neighbouring samples give back the share of CPU time between them."""
    rows = campaign.frame("device").drop_duplicates("utc").dropna(subset=["iowait_percent"])
    [samples] = [own for key, own in stored["node_cpu_seconds_total"].items() if "iowait" in key]
    by_stamp = dict(samples)
    stamps = sorted(by_stamp)
    compared = 0
    for utc, share, length in zip(
        rows["utc"], rows["iowait_percent"], rows["interval_s"], strict=True
    ):
        stamp = round(pd.Timestamp(utc).timestamp() * 1000)
        before = stamps[stamps.index(stamp) - 1]
        if abs(stamp - before - 1000 * length) <= 50:
            grown = by_stamp[stamp] - by_stamp[before]
            assert grown == pytest.approx(share / 100 * length, abs=1e-5)
            compared += 1
    assert compared >= 2


def test_fio_metrics_equal_the_frame(campaign: volbench.Dataset, stored: Samples) -> None:
    """Each sample of the series stands at its own time with its own value."""
    series = campaign.series()
    for column, name, statistic in (
        ("iops", "volbench_iops", ""),
        ("bw_bytes_per_s", "volbench_bandwidth_bytes_per_second", ""),
        ("lat_mean_s", "volbench_latency_seconds", "mean"),
    ):
        expected = {
            (str(row["run"]), round(pd.Timestamp(str(row["utc"])).timestamp() * 1000)): row[column]
            for row in series.dropna(subset=[column]).to_dict("records")
        }
        found = {
            (key[0], stamp): value
            for key, samples in stored[name].items()
            if key[3] == statistic
            for stamp, value in samples[:-1]
        }
        assert found == pytest.approx(expected, rel=1e-9), name


def test_facts_of_a_run_are_exported_for_its_duration(
    campaign: volbench.Dataset, stored: Samples
) -> None:
    """From its start to its last sample, and no two minutes without."""
    runs = {key[0]: [stamp for stamp, _ in own] for key, own in stored["volbench_run_info"].items()}
    assert set(runs) == set(campaign.runs)
    for stamps in runs.values():
        assert 1500 < stamps[-1] - stamps[0] < 60_000


def test_invalid_label_names_and_values_are_escaped() -> None:
    """Labels that Prometheus would refuse are renamed and kept apart; values are escaped."""
    summary = pd.DataFrame(
        [
            dict.fromkeys(
                ("profile", "role", "repeat", "phase", "tool", "rw", "direct", "block_bytes"), "x"
            )
            | dict.fromkeys(("iodepth", "numjobs", "ioengine", "fio_version"), "x")
            | {"campaign": 'a"b\\c\nd', "run": "1", "host": "vm", "job": "j", "volume": "/v"}
            | {"label_disk-type": "P15", "label_disk.type": "P20"}
            | {"started_utc": "2026-01-01T00:00:00Z"}
        ]
    )
    series = summary.assign(
        group="g", direction="read", utc="2026-01-01T00:00:01Z", iops=1.0, bw_bytes_per_s=1.0
    )
    for statistic in ("mean", "p50", "p99", "p999", "max"):
        series[f"lat_{statistic}_s"] = float("nan")
    text = render_openmetrics({"series": series, "summary": summary})
    [info] = [family for family in STRICT(text) if family.name == "volbench_run"]
    labels = info.samples[0].labels
    assert labels["campaign"] == 'a"b\\c\nd'
    assert (labels["label_disk_type"], labels["label_disk_type_"]) == ("P15", "P20")


def test_a_campaign_without_timestamps_is_an_error(
    campaign: volbench.Dataset, tmp_path: Path
) -> None:
    """An empty campaign is an error with a hint, not an empty file."""
    empty = {name: campaign.frame(name).head(0) for name in FRAMES}
    with pytest.raises(InputError, match="no result has timestamps"):
        (tmp_path / "x").write_text(render_openmetrics(empty))


@pytest.mark.slow
def test_the_command_writes_the_requested_frames(
    campaign: volbench.Dataset, text: str, tmp_path: Path
) -> None:
    """Both frames unless one is named; a folder gets a file, and ``-`` is standard output."""
    run = partial(CliRunner().invoke, cli, catch_exceptions=False)
    arguments = ["export", str(campaign.path), "--format", "openmetrics"]
    assert run(arguments).stdout == text
    device = run([*arguments, "--frame", "device"]).stdout
    assert "node_cpu_seconds_total{" in device
    assert "volbench_iops{" not in device
    run([*arguments, "--frame", "series", "--output", str(tmp_path)])
    series = (tmp_path / "metrics.prom").read_text(encoding="utf-8")
    assert "volbench_iops{" in series
    assert "node_cpu_seconds_total{" not in series


def test_imported_logs_count_from_the_time_of_their_result(tmp_path: Path) -> None:
    """Fio 3.33 reports when it ended and how long it took: exact to two seconds."""
    case = CASES / "fio-3.33/logs-averaged"
    _, data = take(case, into=tmp_path / "c")
    ended_s = json.loads((case / "stdout").read_text())["timestamp_ms"] / 1000
    frames = {name: data.frame(name) for name in ("series", "summary")}
    lines = render_openmetrics(frames).splitlines()
    times = [float(line.split()[-1]) for line in lines if line.startswith("volbench_iops{")]
    assert ended_s - 2 < max(times) < ended_s + 1
    assert max(times) - min(times) == pytest.approx(1.9, abs=0.1)


FIO_NAMES = {"volbench_iops", "volbench_bandwidth_bytes_per_second", "volbench_latency_seconds"}


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
