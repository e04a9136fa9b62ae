"""Every table that volbench declares, filled with long names and texts."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from tests.analyse.compared_rows import no_findings, rows_of
from tests.analyse.round_rows import row as round_row
from tests.extensions.catalogue.typed_limits import limits_of
from tests.nightly_campaigns import WORKLOADS, dropping, summary_of
from tests.present.tables.table_rows import ROW
from volbench.analyse.compare.comparison import Comparison, Question, compare
from volbench.analyse.compare.expected_bounds import Answer, Verdict
from volbench.analyse.compare.promised_limits import Delivery, Outcome, Promise
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.analyse.compare.workload_trends import TrendQuestion, find_trends
from volbench.analyse.frames.design import design_of
from volbench.cli.profiles import load_profiles
from volbench.execute.local import LocalExecutor
from volbench.extensions.catalogue.catalogue_tables import (
    machines_table,
    market_table,
    price_lists_table,
    prices_table,
    type_table,
    types_table,
)
from volbench.extensions.catalogue.machine_types import machine_types
from volbench.extensions.catalogue.price_list import load_prices, price_names
from volbench.extensions.catalogue.price_performance import Market, Offer
from volbench.extensions.catalogue.volume_types import catalogue, find_type
from volbench.extensions.kubernetes.k8s_verbs import controllers_table
from volbench.extensions.lab.scenario import read_scenario
from volbench.extensions.lab.scenario_tables import scenarios_table, truth_table
from volbench.model.campaign.host import Host, Inventory
from volbench.model.campaign.planned_run import (
    Campaign,
    Run,
    RunNote,
    RunState,
    Section,
    Volume,
    VolumeKind,
)
from volbench.model.frames.columns import SUMMARY
from volbench.model.frames.expectation import parse_expectation
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.plan.bundled_files import profile_index, profile_names
from volbench.present.formatting import Row
from volbench.present.tables.aggregate_table import aggregate_table
from volbench.present.tables.audit_table import audit_table
from volbench.present.tables.compare_table import comparison_table, trends_table
from volbench.present.tables.design_table import Judgements, cells_table, design_table, groups_table
from volbench.present.tables.expectations_table import expectations_table
from volbench.present.tables.findings_table import findings_table
from volbench.present.tables.hosts_tables import (
    ClientStatus,
    facts_table,
    hosts_table,
    status_table,
    survey_table,
)
from volbench.present.tables.plan_tables import profile_table, profiles_table, runs_table
from volbench.present.tables.processes_table import processes_table
from volbench.present.tables.rounds_table import rounds_tables
from volbench.present.tables.summary_table import summary_table
from volbench.present.tables.table import Table
from volbench.present.tables.use_table import use_table
from volbench.store.parquet_tables import frame_of, table_of

LONG_JOB = "random-read-write-70-30-4k-iodepth-00016"
LONG_HOST = "ip-10-20-30-40.eu-west-1.compute.internal"
LONG = "One I/O at a time shows the latency of the device, and sixteen show its IOPS limit." * 3


def results() -> list[dict[str, object]]:
    """Return results of jobs with long names on several hosts, with labels and directions."""
    numbers = ("iops", "bw_bytes_per_s", "lat_mean_s", "lat_p50_s", "clat_p99_s", "lat_max_s")
    base: dict[str, object] = dict.fromkeys(column.name for column in SUMMARY)
    base |= dict.fromkeys(numbers, 12345.678)
    base |= {"campaign": "2026-premium-ssd", "rw": "randrw", "block_bytes": 262144}
    base |= {"iodepth": 128, "direct": True, "status": "finished"}
    return [
        base
        | {"run": f"{host}/001-{job}-r{repeat}", "host": host, "job": job, "group": job}
        | {"direction": direction, "repeat": repeat, "label_zone": f"west-europe-{host}"}
        | {"label_volume_type": f"azure/P{len(host)}0-premium"}
        for host in ("vm-01", "vm-storage-02")
        for job in ("randread-4k-iodepth-16", "write-1m")
        for repeat in (1, 2)
        for direction in ("read", "write")
    ]


def many_results(count: int) -> list[dict[str, object]]:
    """Return results of jobs and hosts whose names have forty letters."""
    first = results()[0]
    return [
        first
        | {"run": f"{place:04}", "host": f"{place % 3}{LONG_HOST}"}
        | {"job": f"{LONG_JOB[:-5]}{place // 3:05}"}
        for place in range(count)
    ]


def rounds() -> list[Table[Any]]:
    """Return the tables of rounds that are tracked by two variables."""
    track = tuple(Track(job=LONG_JOB, metric=metric) for metric in (Metric.IOPS, Metric.LAT_MEAN))
    rows = [
        round_row(LONG_JOB, number, "read", 12345.678, read_percent=100, block=4096)
        | {"lat_mean_s": 0.00123}
        for number in range(1, 8)
    ]
    summary = frame_of(table_of("summary", rows))
    return rounds_tables({"c": ({"snia": Rounds(track=track)}, summary)})


def finding(run: str) -> Row:
    """Return a row of the findings frame with long texts."""
    row: dict[str, object] = {"campaign": "2026-premium-ssd", "run": run, "severity": "warning"}
    row |= {"rule": "smaller-than-memory", "direction": "write", "from_s": 10.0, "to_s": 250.0}
    return row | {"message": LONG, "evidence": '{"ratio": 2}', "why": LONG, "advice": LONG}


def plan() -> Campaign:
    """Return a plan on a volume with a long path."""
    volume = Volume(role="data", kind=VolumeKind.FILE, target="/mnt/" + "long/" * 12 + "file")
    options = {"rw": "randwrite", "bs": "4096", "iodepth": "16", "direct": "1", "numjobs": "4"}
    job, sections = "randwrite-4k-iodepth-16", (Section(name="j"),)
    first = Run(
        id=f"001-{job}-r1", profile="p", job=job, volume=volume, options=options, sections=sections
    )
    runs = (first, first.model_copy(update={"id": f"002-{job}-r1"}))
    return Campaign(name="c", created_utc="2026-01-02T03:04:05Z", runs=runs, seed=7)


def market() -> Table[Any]:
    """Return configurations with intervals, fees and long names."""
    interval, costs = Interval(1234.5, 1200.1, 1299.9), (12.5, 99.75)
    offers = [
        Offer(
            name=f"Standard_D{size}s_v5, azure/P30",
            values={},
            workload=job,
            asked="",
            family="Dsv5",
            monthly=costs,
            runs=5,
            volumes=1,
            unsteady=2,
            unjudged=1,
            iops=interval,
            bw_bytes_per_s=interval,
            cost_per_1000_iops=interval,
            cost_per_100_mb_per_s=interval,
            cost_per_gib=interval,
            rank=size,
            indistinct=("Standard_D8s_v5, azure/P30",),
            is_on_front=True,
        )
        for size in (2, 16)
        for job in ("randread", "randwrite")
    ]
    return market_table(Market(tuple(offers), "USD", ()))


def comparison() -> Table[Any]:
    """Return a comparison of several candidates, split by a label."""
    sides = {"before-upgrade": rows_of(1000), "after-kernel-6.18": rows_of(2000, seed=2)}
    sides["after-kernel-6.19"] = rows_of(1500, seed=3)
    return comparison_table(_compared(sides))


def _compared(sides: dict[str, Any]) -> Comparison:
    findings = dict.fromkeys(sides, no_findings())
    return compare(sides, findings, Question(metrics=("iops", "p99")))


def trends() -> Any:  # noqa: ANN401 - a table of any rows
    """Return workloads over nights of which one dropped, with two facts beside it."""
    summary = summary_of(20, level=dropping(at=14), workloads=WORKLOADS[:2])
    facts = {
        name: {"kernel": f"6.1.0-{place // 14}-cloud-amd64", "os": f"Debian {12 + place // 14}"}
        for place, name in enumerate(summary["campaign"].unique())
    }
    return trends_table(find_trends(summary, no_findings(), TrendQuestion(), facts=facts))


def profiles() -> list[Any]:
    """Return the bundled profiles."""
    return list(load_profiles(LocalExecutor(), profile_names()))


def hosts() -> Inventory:
    """Return two hosts with everything that a host may have."""
    listed = tuple(
        Host(
            name=f"vm-storage-{number:02}.internal",
            address=f"10.0.0.{number}",
            user="benchmark",
            volumes={"data": "/dev/disk/azure/scsi1/lun0", "os": "/var/tmp/volbench"},
            labels={"volume_type": "azure/P30", "zone": "west-europe-1"},
        )
        for number in (1, 2)
    )
    groups = {"fast": (listed[0].name,), "all-of-them": tuple(host.name for host in listed)}
    return Inventory(hosts=listed, groups=groups)


def delivery(host: str, direction: str) -> Delivery:
    """Return the audit of a volume that falls short of its type and of its machine."""
    return Delivery(
        campaign="2026-premium-ssd",
        host=host,
        volume="/dev/disk/azure/scsi1/lun0",
        direction=direction,
        is_iops=True,
        promise=Promise(5000, 30_000, 1e9, 0.999, "azure/P30 machine=azure/Standard_B2s"),
        rate=Interval(4123.4, 4200.5, 4301.6),
        share=Interval(0.2, 0.3, 0.4),
        seconds=3600,
        effective=123,
        depths=(16, 64, 256, 1024),
        gain=0.004,
        causes=("limited to 4.2k IOPS by the host", "another volume took a part"),
        outcome=Outcome.FALLS_SHORT,
        reason=LONG,
        time_outcome=Outcome.UNDECIDED,
        more_s=7320,
    )


def expectations() -> Table[Any]:
    """Return an answer that is undecided, on a job with a long name."""
    value, advice = Interval(0.0049, 0.005, 0.0051), "about 17 more repeats would decide"
    asked = parse_expectation("p99 < 5ms")
    return expectations_table([Verdict(asked, LONG, "write", Answer.UNDECIDED, value, 3, advice)])


def surveyed(name: str) -> dict[str, str]:
    """Return a surveyed host with long facts."""
    cells = {"host": name, "fio": "fio-3.33", "kernel": "6.18.44-generic", "CPUs": "96"}
    cells |= {"memory": "384 GiB"}
    cells |= {"clock": "+1.2 ms ± 300 us", "volumes": "data: /dev/sdb 1 TiB, holds ext4\nos: /tmp"}
    return cells | {"problem": LONG}


NAMES = ("vm-storage-01", "vm-storage-02")
STATES = {f"{n:03}-randread-r1": RunNote(RunState.FAILED, LONG) for n in (1, 2)}
AGGREGATE: list[Row] = [
    {"campaign": c, "job": "randread-4k-iodepth-16", "direction": "read", "clients": 50}
    for c in ("before", "after")
]
CONTROLLER: dict[str, object] = {
    "name": "aks-disk-premium-ssd-v2-3f09a1",
    "state": "waiting",
    "submitted_utc": "2026-11-22T18:00:00Z",
    "ended_utc": "",
    "reason": LONG,
}


def processes() -> pd.DataFrame:
    """Return the frame of two hosts, on which a process in a container did most."""
    cgroup = "/kubepods.slice/kubepods-burstable.slice/cri-containerd-0123456789ab.scope"
    row: dict[str, object] = {"campaign": "night", "run": "001-watch-r1-vm0", "job": "watch"}
    row |= {"t_s": 5.0}
    row |= {"utc": "2026-11-27T00:00:05.000Z", "interval_s": 5.0, "pid": 4711}
    row |= {"process": "postgres: writer", "cgroup": cgroup, "container": "0123456789ab"}
    row |= {"read_bytes": 1 << 40, "write_bytes": 1 << 34, "cancelled_write_bytes": 1 << 20}
    return pd.DataFrame([row | {"host": name} for name in NAMES])


TABLES: dict[str, Callable[[], Table[Any]]] = {
    "summary": lambda: summary_table(
        results(), states=STATES, warnings=dict.fromkeys(("vm-01/001-write-1m-r1",), "3!")
    ),
    "cells": lambda: cells_table(design_of(results() + many_results(9)), Judgements()),
    "groups": lambda: groups_table(design_of(results() + many_results(90)), Judgements()),
    "design": lambda: design_table(design_of(results() + many_results(9))),
    "long names": lambda: summary_table(many_results(9)),
    "rounds": lambda: rounds()[0],
    "round window": lambda: rounds()[-1],
    "volume type": lambda: type_table(
        find_type("azure/P15", catalogue()), limits_of("azure/P15", types=catalogue())
    ),
    "scenarios": lambda: scenarios_table([read_scenario("warm-up-curve")]),
    "states": lambda: summary_table([], states=STATES),
    "aggregate": lambda: aggregate_table(AGGREGATE),
    "profile": lambda: profile_table(profiles()[0]),
    "profiles": lambda: profiles_table(profile_index()),
    "runs": lambda: runs_table(plan(), expected_s={}),
    "processes": lambda: processes_table(processes()),
    "comparison": comparison,
    "trend": trends,
    "findings": lambda: findings_table([finding("001-randread-4k-iodepth-16-r1")]),
    "hosts": lambda: hosts_table(hosts()),
    "survey": lambda: survey_table([*map(surveyed, NAMES)], [{"name": name} for name in NAMES]),
    "status": lambda: status_table(
        [ClientStatus("vm-storage-01", 1, running="001-randread-4k-iodepth-16-r1", since_utc=LONG)],
        notes=["c: not running"],
    ),
    "controllers": lambda: controllers_table([CONTROLLER, CONTROLLER | {"reason": "", "n": 2}]),
    "facts": lambda: facts_table(LONG, {"mount_options": LONG, "size_bytes": 10**12}),
    "market": market,
    "prices": lambda: prices_table(load_prices(price_names()[0])),
    "price lists": lambda: price_lists_table({LONG: load_prices(price_names()[0])}),
    "use": lambda: use_table([ROW, ROW | {"label": "randread-4k-iodepth-16 of aks-disk"}]),
    "types": lambda: types_table(catalogue()),
    "machines": lambda: machines_table(machine_types()),
    "audit": lambda: audit_table(
        [delivery(host, role) for host in NAMES for role in ("read", "write")]
    ),
    "expectations": expectations,
    "truth": lambda: truth_table(read_scenario("warm-up-curve")),
}
