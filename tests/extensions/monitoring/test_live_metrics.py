"""Metrics of a running campaign: their values, their labels, and that the dashboard finds them."""

import os
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.extensions.monitoring.dashboard import QUERIES
from volbench.extensions.monitoring.live_metrics import LiveMetrics
from volbench.model.campaign.event import (
    CampaignStarted,
    Event,
    HostBack,
    HostSilent,
    Progress,
    RunEnded,
    RunProgress,
    RunStarted,
)
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.store.archive import read_campaign
from volbench.store.layout import Layout
from volbench.store.log_files import open_log

RECORDED = Path(__file__).parents[2] / "campaigns" / "format-1"
Values = dict[str, list[tuple[dict[str, str], float]]]


@pytest.fixture(name="campaign")
def _campaign() -> Campaign:
    plan = read_campaign(RECORDED)[1].campaign
    runs = tuple(run.model_copy(update={"host": "vm01"}) for run in plan.runs)
    host = Host(name="vm01", labels={"volume type": 'gp"3'})
    return plan.model_copy(update={"runs": runs, "hosts": (host,)})


@pytest.fixture(name="layout")
def _layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def sampled(layout: Layout, run: Run, *, text: str = "") -> None:
    """Put the samples of the recorded run into a run's folder; or a text instead of them."""
    with open_log(RECORDED / "runs" / "001-mix-r1" / "device.log.zst") as log:
        recorded = log.read().decode()
    layout.run(run.id).path.mkdir(parents=True)
    layout.run(run.id).samples.write_text(text or recorded, encoding="utf-8")


def scraped(metrics: LiveMetrics, events: Iterable[Event]) -> Values:
    """Return what Prometheus reads after some events."""
    for event in events:
        metrics(event)
    registry = CollectorRegistry()
    registry.register(metrics)
    text = generate_latest(registry).decode()
    return {
        sample.name: [
            (other.labels, other.value) for other in family.samples if other.name == sample.name
        ]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def begun(campaign: Campaign, *runs: Run) -> list[Event]:
    """Return the events of a campaign of which some runs are in progress."""
    progress = Progress(2.0, 10.0, read_iops=500.0, read_bw_bytes_per_s=2e6)
    return [
        CampaignStarted(campaign, campaign.runs),
        *(RunStarted(run, 10.0) for run in runs),
        *(RunProgress(run, progress) for run in runs),
    ]


def test_devices_have_the_names_and_values_of_the_node_exporter(
    campaign: Campaign, layout: Layout
) -> None:
    """Counters are the kernel's since boot, of the last whole sample of the log."""
    run = campaign.runs[0]
    sampled(layout, run)
    found = scraped(LiveMetrics(layout, {"vm01": 2}), begun(campaign, run))
    labels, value = found["node_disk_read_bytes_total"][0]
    assert value == 558365682 * 512
    assert labels == {
        "job": "volbench",
        "campaign": campaign.name,
        "instance": "vm01",
        "run": run.id,
        "fio_job": run.job,
        "role": run.volume.role,
        "volume": run.volume.target,
        "device": "vda",
    }
    modes = {own["mode"]: seconds for own, seconds in found["node_cpu_seconds_total"]}
    assert sum(modes.values()) == pytest.approx(25206, rel=0.01)  # two CPUs, as if they were one
    assert modes["iowait"] == 85132 / 100 / 2
    assert found["node_memory_Dirty_bytes"][0][1] == 3520 * 1024
    assert found["node_disk_io_time_seconds_total"][0][1] == 1747.720
    assert found["node_pressure_io_stalled_seconds_total"][0][1] == 510.236402


def test_progress_is_that_of_the_terminal(campaign: Campaign, layout: Layout) -> None:
    """Runs by state, time left, rates of fio; unknown values are left out."""
    first, second, *_ = campaign.runs
    failed = RunEnded(first, RunState.FAILED, "full")
    events = [*begun(campaign, first), failed, *begun(campaign, second)[1:]]
    now = 100.0
    found = scraped(LiveMetrics(layout, {}, clock=lambda: now), events)
    counts = {labels["state"]: value for labels, value in found["volbench_runs"]}
    assert counts == {"waiting": 0, "running": 1, "finished": 0, "failed": 1}
    assert found["volbench_run_elapsed_seconds"][0][1] == 2.0
    assert found["volbench_run_expected_seconds"][0][1] == 10.0
    ((labels, iops),) = found["volbench_iops"]
    assert (labels["direction"], labels["run"], iops) == ("read", second.id, 500.0)
    assert "node_disk_read_bytes_total" not in found  # there is no sample


def test_a_run_has_its_job_volume_and_options(campaign: Campaign, layout: Layout) -> None:
    """Options and labels of the host; names are made fit for Prometheus, values are escaped."""
    found = scraped(LiveMetrics(layout, {}), begun(campaign, campaign.runs[0]))
    ((labels, value),) = found["volbench_run_info"]
    assert value == 1
    assert labels["label_volume_type"] == 'gp"3'
    assert {"profile", "phase", "rw", "block_bytes", "iodepth"} <= labels.keys()


def test_a_device_that_clients_share_is_counted_once(campaign: Campaign, layout: Layout) -> None:
    """Its labels are those that hold for both: otherwise sums over runs would count it twice."""
    first, second, *_ = campaign.runs
    for run in (first, second):
        sampled(layout, run)
    found = scraped(LiveMetrics(layout, {}), begun(campaign, first, second))
    ((labels, _),) = found["node_disk_writes_completed_total"]
    assert "run" not in labels
    assert labels["volume"] == first.volume.target


@pytest.mark.parametrize("ending", ["T 17953", "T 1795344357 25208\ncpu 1 2 3\n", "! mark\n"])
def test_a_sample_that_is_being_written_is_ignored(
    campaign: Campaign, layout: Layout, ending: str
) -> None:
    """The last whole one counts, also where earlier ones are beyond what is read."""
    run = campaign.runs[0]
    disk = " 254 0 vda 1 0 {0} 1 1 1 1 1 0 1 1\n"
    many = "".join(f"T {n} {n}\n{disk.format(n)}.\n" for n in range(4000))
    sampled(layout, run, text=f"volbench-samples 1 page 4096\n{many}{ending}")
    found = scraped(LiveMetrics(layout, {}), begun(campaign, run))
    assert found["node_disk_read_bytes_total"][0][1] == 3999 * 512


def test_a_silent_host_has_no_counters(campaign: Campaign, layout: Layout) -> None:
    """A rate of zero would be wrong: what its device does is not reported."""
    run = campaign.runs[0]
    sampled(layout, run)
    age_s = time.time() - 30 - 2 * run.device_sample_s
    metrics = LiveMetrics(layout, {})
    os.utime(layout.run(run.id).samples, (age_s + 15, age_s + 15))
    assert "node_disk_read_bytes_total" in scraped(metrics, begun(campaign, run))
    os.utime(layout.run(run.id).samples, (age_s - 5, age_s - 5))
    found = scraped(metrics, [*begun(campaign, run), HostSilent("vm01", 12.0)])
    assert "node_disk_read_bytes_total" not in found
    assert [labels["instance"] for labels, _ in found["volbench_host_silent"]] == ["vm01"]
    assert "volbench_host_silent" not in scraped(metrics, [HostBack("vm01", 20.0)])


def test_the_dashboard_finds_its_metrics(campaign: Campaign, layout: Layout) -> None:
    """Every panel has data while a campaign runs; only fio's latency is known after a run."""
    run = campaign.runs[0]
    sampled(layout, run)
    progress = replace(Progress(1.0), write_iops=1.0, write_bw_bytes_per_s=1.0)
    events = [*begun(campaign, run), RunProgress(run, progress)]
    found = scraped(LiveMetrics(layout, {}), events)
    used = {name for query in QUERIES for name in re.findall(r"(?:node|volbench)_\w+", query)}
    assert used - found.keys() == {"volbench_latency_seconds"}


def test_nothing_is_served_before_the_campaign_starts(layout: Layout) -> None:
    """Prometheus may be quicker than the first host."""
    assert scraped(LiveMetrics(layout, {}), []) == {}
