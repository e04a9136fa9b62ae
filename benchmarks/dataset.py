"""Many campaigns as one dataset: how long opening them and asking them takes, beside plain pandas.

Made-up campaigns (their runs and tables; no raw files) with 600 seconds of series a run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import volbench
from volbench.api.many_campaigns import View
from volbench.extensions.object_storage.sql_query import local_parts, run_query
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, Run, RunState, Section, Volume, VolumeKind
from volbench.model.frames.columns import DERIVED, FRAMES
from volbench.present.export.frame_export import write_parts
from volbench.store.archive import Archive, Provenance, create_campaign
from volbench.store.journal import Journal, read_history
from volbench.store.parquet_tables import StoredTables, fingerprint_of, schema_of

TYPES = ("gp2", "gp3", "P15", "pd-ssd")
QUERY = """
select label_volume_type, quantile_cont(s.iops, 0.99) as p99
from series s join summary using (run, direction) group by all order by all
"""
VOLUME = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")


def make(root: Path, number: int, *, runs: int, samples: int) -> None:
    """Write one campaign with its tables."""
    name, kind = f"c{number:04}", TYPES[number % len(TYPES)]
    plan = tuple(
        Run(
            id=f"{place:03}-job-r{place}",
            profile="p",
            job="job",
            repeat=place,
            volume=VOLUME,
            host="vm",
            sections=(Section(name="job", options={"rw": "randread"}),),
        )
        for place in range(1, runs + 1)
    )
    host = Host(name="vm", labels={"volume_type": kind})
    campaign = Campaign(
        name=name, created_utc="2026-01-01T00:00:00Z", runs=plan, seed=number, hosts=(host,)
    )
    provenance = Provenance(volbench_version="0", python_version="3")
    layout = create_campaign(root / name, Archive(campaign=campaign, provenance=provenance))
    with Journal(layout.journal) as journal:
        for run in plan:
            journal.write("run", run=run.id, state=RunState.FINISHED, reason="")
    rng = np.random.default_rng(number)
    shared = {"campaign": name, "host": "vm", "profile": "p", "job": "job", "group": "job"}
    shared |= {"role": "data", "volume": "/data", "phase": "measured", "direction": "read"}
    ids = np.array([run.id for run in plan])
    summary = pd.DataFrame({"run": ids, "iops": rng.gamma(9, 100, runs), **shared})
    summary = summary.assign(status="finished", label_volume_type=kind, repeat=np.arange(runs) + 1)
    series = pd.DataFrame(
        {
            "run": ids.repeat(samples),
            "t_s": np.tile(np.arange(1.0, samples + 1), runs),
            **{column: rng.gamma(9, 100, runs * samples) for column in ("iops", "lat_mean_s")},
            "bw_bytes_per_s": rng.gamma(9, 1e6, runs * samples),
            **shared,
        }
    )
    told = {"summary": summary, "series": series}
    tables = {}
    for frame in (frame for frame in FRAMES if frame not in DERIVED):
        schema = schema_of(FRAMES[frame])
        if frame == "summary":
            schema = schema.append(pa.field("label_volume_type", pa.string()))
        rows = told.get(frame, pd.DataFrame()).reindex(columns=schema.names)
        tables[frame] = pa.Table.from_pandas(rows, schema=schema, preserve_index=False)
    mark = fingerprint_of(layout, campaign, read_history(layout.journal))
    StoredTables(layout, mark).keep(tables)


def timed(action: Callable[[], object], rounds: int) -> float:
    """Return the median of seconds that an action takes."""
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        took.append(time.perf_counter() - start)
    return statistics.median(took)


def with_pandas(root: Path) -> pd.DataFrame:
    """Answer the same question as people do without a database."""
    campaigns = volbench.open_campaigns(root)
    kinds = campaigns.summary().set_index(["run", "direction"])["label_volume_type"]
    series = campaigns.frame("series").join(kinds, on=["run", "direction"])
    return series.groupby("label_volume_type")["iops"].quantile(0.99).reset_index(name="p99")


def main() -> None:
    """Measure and print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=100)
    parser.add_argument("--runs", type=int, default=10, help="of each campaign")
    parser.add_argument("--samples", type=int, default=600, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, dataset = Path(folder) / "results", Path(folder) / "dataset"
        for number in range(told.campaigns):
            make(root, number, runs=told.runs, samples=told.samples)
        opened = volbench.open_campaigns(root)
        for name in ("summary", "series"):
            write_parts(opened.parts(name), frame_name=name, into=dataset)
        files = local_parts(dataset).files
        ways: dict[str, Callable[[], object]] = {
            "open_campaigns": lambda: volbench.open_campaigns(root),
            "sql over campaign folders": lambda: opened.sql(QUERY),
            "sql over an exported dataset": lambda: run_query(
                QUERY, lambda name: View(files=list(files.get(name, [])))
            ),
            "frames in pandas": lambda: with_pandas(root),
        }
        answers = opened.sql(QUERY), with_pandas(root)
        assert np.allclose(answers[0]["p99"], answers[1]["p99"])  # noqa: S101 - equal work
        rows = told.campaigns * told.runs * told.samples
        print(f"{told.campaigns} campaigns, {told.runs} Runs each, {rows:,} rows of series")
        for name, action in ways.items():
            print(f"{name:30} {timed(action, told.rounds):7.2f} s")


if __name__ == "__main__":
    main()
