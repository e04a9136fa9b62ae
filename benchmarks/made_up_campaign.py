"""Campaign folders of any size, without running fio: real output with other numbers enters.

Each run has what fio and the sampler would have left: json+, logs over time and the host's own
counters.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, Run, RunState, Section, Volume, VolumeKind
from volbench.model.profile.profile_settings import Limits
from volbench.store.archive import Archive, Provenance, create_campaign
from volbench.store.journal import Journal
from volbench.store.layout import Layout, RunFolder

CASE = Path(__file__).parents[1] / "tests/cases/fio-3.33/randrw-jsonplus/stdout"
EPOCH_S = 1_795_272_000
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)
BLOCKS_KIB = (4, 8, 16, 64, 128)


@dataclass(frozen=True)
class Size:
    """How large a campaign is: jobs (at most 40), repeats of each, and seconds of each run."""

    jobs: int = 4
    repeats: int = 2
    seconds: int = 20


SMALL = Size()


def make_campaign(
    root: Path, *, name: str = "made-up", size: Size = SMALL, note: str = "", speed: float = 1.0
) -> Layout:
    """Write a finished campaign of mixed jobs over depths and block sizes.

    Args:
        root: the campaign becomes a folder in it.
        name: of campaign and folder.
        size: of the campaign; a run has a point of its series for each second.
        note: of every job.
        speed: multiplies all rates.
    """
    runs = tuple(_runs(size, note=note))
    campaign = Campaign(
        name=name,
        created_utc="2026-11-21T00:00:00Z",
        runs=runs,
        seed=7,
        command=("volbench", "run", note or "desk"),
        hosts=(Host(name="vm1", labels={"volume_type": note or "P15"}),),
    )
    provenance = Provenance(volbench_version="0", python_version="3")
    layout = create_campaign(root / name, Archive(campaign=campaign, provenance=provenance))
    output = json.loads(CASE.read_bytes())
    with Journal(layout.journal) as journal:
        for place, run in enumerate(runs):
            started_s = EPOCH_S + place * (size.seconds + 10)
            _write(layout.run(run.id), run, output, started_s, seconds=size.seconds, speed=speed)
            journal.write("run", run=run.id, state=RunState.FINISHED, reason="")
    return layout


def _runs(size: Size, *, note: str) -> Iterator[Run]:
    volume = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")
    for number in range(size.jobs * size.repeats):
        job, repeat = number % size.jobs, number // size.jobs + 1
        depth, block = DEPTHS[job % len(DEPTHS)], BLOCKS_KIB[job // len(DEPTHS)]
        yield Run(
            id=f"{number + 1:03d}-mix-{block}k-d{depth}-r{repeat}",
            profile="desk",
            job=f"mix-{block}k-d{depth}",
            volume=volume,
            host="vm1",
            repeat=repeat,
            note=note,
            limits=Limits(iops=40_000, bandwidth_bytes_per_s=300_000_000),
            options={
                "rw": "randrw",
                "bs": str(block * 1024),
                "iodepth": str(depth),
                "direct": "1",
                "ioengine": "libaio",
            },
            sections=(Section(name=f"mix-{block}k-d{depth}"),),
        )


def _write(
    folder: RunFolder,
    run: Run,
    output: dict[str, Any],
    started_s: int,
    *,
    seconds: int,
    speed: float,
) -> None:
    """Write the files of one run; the same run has the same numbers each time."""
    folder.path.mkdir()
    # Made-up numbers, the same each time.
    chance = random.Random(run.id)  # noqa: S311 - no secret is made of them
    depth, block_bytes = int(run.options["iodepth"]), int(run.options["bs"])
    base_iops = (
        speed * 2_000 * depth**0.6 * (4096 / block_bytes) ** 0.5 * chance.uniform(0.97, 1.03)
    )
    output["timestamp_ms"] = (started_s + seconds) * 1000
    (job,) = output["jobs"]
    job["jobname"] = run.job
    job["job options"] |= dict(run.options)
    for direction in ("read", "write"):
        reported = job[direction]
        reported["iops"] = base_iops
        reported["bw_bytes"] = int(base_iops * block_bytes)
        reported["runtime"] = seconds * 1000
        reported["total_ios"] = int(base_iops * seconds)
        reported["io_bytes"] = reported["total_ios"] * block_bytes
    folder.fio_output.write_text(json.dumps(output), encoding="utf-8")
    status = {"started_utc": f"2026-11-21T{place_of_day(started_s)}.000Z"}
    folder.status.write_text(json.dumps(status), encoding="utf-8")
    folder.job_file.write_text(
        f"# {run.note}\n[mix]\nrw=randrw\niodepth={depth}\n", encoding="utf-8"
    )
    _write_logs(folder, chance, started_s, seconds, base_iops, block_bytes)
    _write_samples(folder, chance, started_s, seconds, base_iops, block_bytes)


def place_of_day(epoch_s: int) -> str:
    """Return the time of day of an instant."""
    return f"{epoch_s // 3600 % 24:02d}:{epoch_s // 60 % 60:02d}:{epoch_s % 60:02d}"


def _write_logs(
    folder: RunFolder,
    chance: random.Random,
    started_s: int,
    seconds: int,
    base_iops: float,
    block_bytes: int,
) -> None:
    """Write IOPS, bandwidth and latency logs, a line a second and direction."""
    lines: dict[str, list[str]] = {"iops": [], "bw": [], "lat": []}
    for second in range(1, seconds + 1):
        stamp_ms = (started_s + second) * 1000
        for direction in (0, 1):
            iops = int(base_iops * chance.uniform(0.9, 1.1))
            lines["iops"].append(f"{stamp_ms}, {iops}, {direction}, 0, 0")
            lines["bw"].append(f"{stamp_ms}, {iops * block_bytes // 1024}, {direction}, 0, 0")
            lines["lat"].append(f"{stamp_ms}, {int(2e9 / max(iops, 1))}, {direction}, 0, 0")
    for name, rows in lines.items():
        (folder.path / f"series_{name}.1.log").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _write_samples(
    folder: RunFolder,
    chance: random.Random,
    started_s: int,
    seconds: int,
    base_iops: float,
    block_bytes: int,
) -> None:
    """Write the host's counters as its kernel would tell them, a look a second."""
    facts: dict[str, object] = {
        "role": "data",
        "target": "/data",
        "kind": "directory",
        "path": "/data",
    }
    facts |= {"device": "sdb", "major": 8, "minor": 16}
    folder.facts.write_text(json.dumps(facts), encoding="utf-8")
    parts = ["volbench-samples 1 page 4096"]
    done = 0
    for second in range(seconds + 1):
        done += int(base_iops * chance.uniform(0.9, 1.1)) if second else 0
        sectors, busy_ms = done * block_bytes // 512, second * 990
        counters = f"{done} 0 {sectors} {done} {done} 0 {sectors} {done} 1 {busy_ms} {2 * done}"
        parts.append(f"T {started_s + second}.000 {1000 + second}.000")
        parts.append(f"cpu  {second * 5} 0 {second * 10} {second * 180} {second * 5} 0 0 0 0 0")
        parts.append(f"   8      16 sdb {counters} 0 0 0 0 0 0")
        parts.append(
            "Dirty:               204 kB\nWriteback:             4 kB\npswpin 0\npswpout 0"
        )
        parts.append(f"some avg10=0 avg60=0 avg300=0 total={second * 20000}")
        parts.append(f"full avg10=0 avg60=0 avg300=0 total={second * 10000}")
        parts.append(".")
        parts += ["\n! started"] if second == 0 else []
    parts.append("\n! ended\n! tail none: no dirty pages left")
    folder.samples.write_text("\n".join(parts) + "\n", encoding="utf-8")
