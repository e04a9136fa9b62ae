"""Nightly campaigns whose levels are known: plans and tables without raw files."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from tests.present.frames_for_plots import rates
from volbench.model.campaign.planned_run import Campaign, Run, RunState, Section, Volume, VolumeKind
from volbench.model.frames.columns import DERIVED, FRAMES
from volbench.model.results.provenance import HostFacts
from volbench.store.archive import Archive, Provenance, create_campaign
from volbench.store.journal import Journal, read_history
from volbench.store.parquet_tables import StoredTables, fingerprint_of, frame_of, table_of

FIRST = datetime(2026, 1, 1, 2, tzinfo=UTC)
WORKLOADS: tuple[tuple[str, int], ...] = tuple(
    (pattern, block)
    for block in (4096, 65536, 1 << 20)
    for pattern in ("randread", "randwrite", "read")
)
Level = Callable[[int, int], float]
"""Night and place of the workload to its true IOPS."""


def steady(_night: int, place: int) -> float:
    """Return the same rate every night."""
    return 1000.0 * (1 + place)


def dropping(*, at: int, place: int = 0, factor: float = 0.85) -> Level:
    """Return rates of which one drops in a night, and stays there."""

    def level(night: int, own: int) -> float:
        return steady(night, own) * (factor if own == place and night >= at else 1.0)

    return level


def rows_of_night(
    night: int,
    *,
    level: Level = steady,
    workloads: Sequence[tuple[str, int]] = WORKLOADS,
    noise: float = 0.02,
    prefix: str = "",
    seed: int = 1,
) -> list[dict[str, object]]:
    """Return the summary of one night, a run for each workload.

    Args:
        night: its number, from 0.
        level: true IOPS.
        workloads: patterns and block sizes.
        noise: deviation of the logarithms.
        prefix: of the names of jobs.
        seed: of the noise.
    """
    rng = np.random.default_rng([seed, night])
    start = FIRST + timedelta(days=night)
    rows: list[dict[str, object]] = []
    for place, (pattern, block) in enumerate(workloads):
        iops = level(night, place) * float(np.exp(rng.normal(0, noise)))
        job = f"{prefix}{pattern}-{block // 1024}k"
        began = start + timedelta(minutes=place)
        rows.append(
            rates(job, iops, block_bytes=block, rw=pattern, iodepth=4, lat_p99_s=4.0 / iops)
            | {"direction": "write" if "write" in pattern else "read", "fio_version": "fio-3.36"}
            | {"campaign": f"{start:%Y-%m-%d}", "run": f"{place + 1:03}-{job}-r1"}
            | {"profile": "nightly", "volume": "/dev/sdb"}
            | {"started_utc": f"{began:%Y-%m-%dT%H:%M:%S}.000Z"}
        )
    return rows


def summary_of(nights: int, **options: object) -> pd.DataFrame:
    """Return the summary of many nights.

    Args:
        nights: how many.
        options: of `rows_of_night`.
    """
    rows = [
        row | {"run": f"{night}/{row['run']}"}
        for night in range(nights)
        for row in rows_of_night(night, **options)  # type: ignore[arg-type]  # by name
    ]
    return frame_of(table_of("summary", rows))


def make_nights(
    root: Path, nights: int, *, kernel_from: int = 0, rate_from: int = 0, **options: object
) -> Path:
    """Write a campaign for each night below a folder, which is returned.

    Args:
        root: the folder.
        nights: how many.
        kernel_from: first night with a newer kernel; 0 for none.
        rate_from: first night whose jobs are limited by `rate_iops`; 0 for none.
        options: of `rows_of_night`.
    """
    for night in range(nights):
        kernel = "6.8" if kernel_from and night >= kernel_from else "6.1"
        rate = {"rate_iops": "900"} if rate_from and night >= rate_from else {}
        rows = rows_of_night(night, **options)  # type: ignore[arg-type]  # by name
        _write(root, rows, kernel=kernel, extra=rate)
    return root


def _write(
    root: Path, rows: Sequence[Mapping[str, object]], *, kernel: str, extra: Mapping[str, str]
) -> None:
    name = str(rows[0]["campaign"])
    volume = Volume(role="data", kind=VolumeKind.DEVICE, target="/dev/sdb")
    runs = tuple(
        Run(
            id=str(row["run"]),
            profile="nightly",
            job=str(row["job"]),
            volume=volume,
            sections=(Section(name=str(row["job"]), options={"rw": str(row["rw"]), **extra}),),
        )
        for row in rows
    )
    campaign = Campaign(name=name, created_utc=f"{name}T01:00:00Z", runs=runs, seed=1)
    host = HostFacts(host="local", kernel=kernel)
    provenance = Provenance(volbench_version="0", python_version="3", hosts=(host,))
    layout = create_campaign(root / name, Archive(campaign=campaign, provenance=provenance))
    with Journal(layout.journal) as journal:
        for run in runs:
            layout.run(run.id).path.mkdir()
            layout.run(run.id).job_file.touch()  # object storage keeps no empty folders
            journal.write("run", run=run.id, state=RunState.FINISHED, reason="")
    own = {"summary": rows}
    tables = {frame: table_of(frame, own.get(frame, ())) for frame in FRAMES}
    mark = fingerprint_of(layout, campaign, read_history(layout.journal))
    stored = StoredTables(layout, mark, campaign)
    stored.keep([{frame: table for frame, table in tables.items() if frame not in DERIVED}])
    stored.keep([{frame: table for frame, table in tables.items() if frame in DERIVED}])
