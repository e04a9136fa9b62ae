"""Metrics of a campaign under way, scraped by the real Prometheus."""

import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.command_line import call
from tests.extensions.monitoring.dashboard import QUERIES, WINDOW
from tests.extensions.monitoring.prometheus_server import Prometheus, free_port
from volbench.analyse.frames.kernel_counters import SampleReader
from volbench.store.log_files import open_log

PROFILE = """\
name: live
defaults: {ioengine: psync, size: 4m, runtime: RUNTIME, time_based: 1, direct: 0}
jobs:
  reads: {rw: randrw, bs: 4k, rate_iops: 200}
"""


@pytest.fixture(name="port")
def _port() -> int:
    return free_port()


@pytest.fixture(name="prometheus")
def _prometheus(tmp_path: Path, port: int) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path, port)
    yield server
    server.stop()


def write_profile(folder: Path, runtime: str) -> Path:
    """Write a profile that makes little I/O, to run in a folder."""
    path = folder / "live.yaml"
    path.write_text(PROFILE.replace("RUNTIME", runtime), encoding="utf-8")
    return path


@pytest.mark.slow
def test_prometheus_scrapes_a_campaign(tmp_path: Path, port: int, prometheus: Prometheus) -> None:
    """It stores what the campaign recorded, and every panel of the dashboard shows it."""
    into = tmp_path / "out"
    profile = write_profile(tmp_path, "8s")
    serve = ("--metrics", str(port))
    done = call("run", profile, "--on", tmp_path, "--output", into, *serve)
    assert done.returncode == 0, done.stderr
    assert f"metrics: http://127.0.0.1:{port}/metrics" in done.stderr

    (facts,) = prometheus.query("last_over_time(volbench_run_info[1m])")
    labels = facts["metric"]
    assert isinstance(labels, dict)
    assert {"campaign": "out", "instance": "local", "fio_job": "reads"}.items() <= labels.items()
    reader = SampleReader()
    with open_log(next(into.glob("runs/*/device.log*"))) as log:
        samples = reader.feed(log.read().decode())
    for device in samples[0].disks:
        counts = {float(sample.disks[device].writes) for sample in samples}
        (series,) = prometheus.query(f'node_disk_writes_completed_total{{device="{device}"}}[1m]')
        values = series["values"]
        assert isinstance(values, list)
        assert {float(value) for _, value in values} <= counts
    # The middle of what fio saw: after a stall of the machine it makes up for what it missed.
    rates = 'quantile_over_time(0.5, volbench_iops{direction="read"}[1m])'
    (rate,) = prometheus.query(rates)
    assert 150 < float(rate["value"][1]) < 250  # type: ignore[index]  # [time, text]

    last = prometheus.query("timestamp(last_over_time(volbench_run_elapsed_seconds[1m]))")
    at_s = float(last[0]["value"][1])  # type: ignore[index]  # [time, text]
    for query in QUERIES:
        chosen = query.replace(WINDOW, "5s")
        for name in ("campaign", "instance", "device"):
            chosen = chosen.replace(f"${name}", ".+")
        # At any moment: there is no data where a busy machine did not answer a scrape in time
        has_data = bool(prometheus.query(f"last_over_time(({chosen})[15s:500ms])", at_s=at_s))
        assert has_data is ("volbench_latency" not in query), chosen


def test_a_port_in_use_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """No campaign folder is left that would have to be resumed."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        into = tmp_path / "out"
        run = ("run", write_profile(tmp_path, "1s"), "--on", tmp_path, "--output", into)
        done = call(*run, "--metrics", str(port))
    assert done.returncode == 2
    assert f"port {port}: Address already in use" in done.stderr
    assert not into.exists()


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else works without it."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    into = tmp_path / "out"
    run = ("run", write_profile(tmp_path, "1s"), "--on", tmp_path, "--output", into)
    done = call(*run, "--metrics", "0")
    assert done.returncode == 2
    assert "prometheus-client" in done.stderr.partition("hint: install it: ")[2]
    assert not into.exists()
