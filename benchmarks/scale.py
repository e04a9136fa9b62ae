"""CPU time and peak memory of reading commands on campaigns of 49 to 3,450 runs.

The results are made from one recorded fio document: rates, latencies, options and the logs beside
it differ from file to file, by a seed. They are imported as a campaign, which also computes its
verdicts and findings; then each command reads the stored tables.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measured import (
    Command,
    Cost,
    Figure,
    compile_sources,
    cost_of,
    print_figures,
    volbench,
)

CASE = Path(__file__).parents[1] / "tests/cases/fio-3.36/randrw-jsonplus/stdout"
LOG_SECONDS = 60
PATTERNS = ("randread", "randwrite", "read", "write", "randrw")
BLOCKS = ("4k", "16k", "64k", "256k", "1024k")
DEPTHS = (1, 4, 16, 64)
HOSTS = 20
DIRECTIONS = ("read", "write")
LOGS = ("iops", "bw", "lat")
SPREAD = ("iops_min", "iops_max", "iops_mean", "iops_stddev")
TARGETS_S = {49: 2, 343: 3, 1018: 4, 3450: 6}
"""Runs to the maximum of CPU seconds of a reading command."""
TARGET_MB = 400
JUDGE_TARGET_S = {3450: 30}
"""Of computing all verdicts and findings once."""


def scaled(part: Mapping[str, object], *, rate: float, block_bytes: int) -> dict[str, object]:
    """Return one direction of a result at another rate and block size; its latencies are kept.

    All numbers fit each other, as fio's do: findings are about the runs, not about the arithmetic.
    """
    ios = round(float(str(part["iops"])) * rate * LOG_SECONDS)
    iops, io_bytes = ios / LOG_SECONDS, ios * block_bytes
    spread = {
        name: iops * float(str(part[name])) / float(str(part["iops"]) or 1) for name in SPREAD
    }
    return {
        **part,
        **(spread if ios else dict.fromkeys(SPREAD, 0.0)),
        "iops": iops,
        "bw_bytes": io_bytes // LOG_SECONDS,
        "bw": io_bytes // LOG_SECONDS // 1024,
        "bw_mean": io_bytes / LOG_SECONDS / 1024,
        "io_bytes": io_bytes,
        "io_kbytes": io_bytes // 1024,
        "total_ios": ios,
        "runtime": 1000 * LOG_SECONDS if ios else 0,
    }


def write_result(
    root: Path,
    number: int,
    document: Mapping[str, object],
    *,
    jobs: int = 1,
    kinds: Sequence[str] = LOGS,
    step_ms: int = 1000,
) -> None:
    """Write one result and its logs, all of which depend on the number alone.

    Args:
        jobs: number of jobs in parallel, in one entry of fio, with logs each.
        kinds: of the logs.
        step_ms: interval of their lines.
    """
    rng = np.random.default_rng(number)
    pattern, block = PATTERNS[number % 5], BLOCKS[number // 5 % 5]
    depth, repeat = DEPTHS[number // 25 % 4], number // 100
    name = f"{pattern}-{block}-qd{depth}"
    folder = root / f"host{repeat % HOSTS:02}" / f"repeat{repeat // HOSTS + 1}" / name
    folder.mkdir(parents=True)
    made: dict[str, Any] = copy.deepcopy(dict(document))
    job = made["jobs"][0]
    job["jobname"] = name
    options = {"rw": pattern, "bs": block, "iodepth": str(depth), "filename": "/dev/sdb"}
    logs = {f"write_{kind}_log": "fio" for kind in LOGS}
    job["job options"] |= options | logs | {"log_avg_msec": str(step_ms)}
    if jobs > 1:
        job["job options"] |= {"numjobs": str(jobs), "group_reporting": "1"}
    moving = [one for one in DIRECTIONS if one in pattern or pattern == "randrw"]
    for direction in DIRECTIONS:
        rate = float(rng.gamma(9, 1 / 9)) if direction in moving else 0.0
        block_kib = int(block.removesuffix("k"))
        slower = rate / (1 + block_kib / 64)
        job[direction] = scaled(job[direction], rate=slower, block_bytes=1024 * block_kib)
    (folder / "fio.json").write_text(json.dumps(made))
    times_ms = range(step_ms, 1000 * LOG_SECONDS + 1, step_ms)
    for log in range(1, jobs + 1):
        for kind in kinds:
            share = jobs if kind in {"iops", "bw"} else 1
            levels = {way: level_of(job[way], kind) / share for way in moving}
            noise = iter(rng.normal(1, 0.02, len(times_ms) * len(moving)).tolist())
            rows = [
                f"{at_ms}, {round(level * next(noise))}, {DIRECTIONS.index(way)}, 0, 0\n"
                for at_ms in times_ms
                for way, level in levels.items()
            ]
            (folder / f"fio_{kind}.{log}.log").write_text("".join(rows))


def level_of(part: Mapping[str, Any], kind: str) -> float:
    """Return the usual value of a log, in the unit of fio."""
    if kind in {"lat", "clat", "slat"}:
        return float(part[f"{kind}_ns"]["mean"])
    return float(part["iops" if kind == "iops" else "bw"])


def make_results(root: Path, *, runs: int) -> None:
    """Write as many results as a campaign is to have runs."""
    document = json.loads(CASE.read_text(encoding="utf-8"))
    for number in range(runs):
        write_result(root, number, document)


def forget_judgements(campaign: Path) -> None:
    """Remove the stored verdicts and findings, so that the next command computes them."""
    for name in ("verdicts.parquet", "findings.parquet", "aggregate.parquet", "rules-stamp"):
        (campaign / "tables" / name).unlink()


def figures_of(name: str, cost: Cost, *, runs: int, target_s: float | None) -> Iterator[Figure]:
    """Yield time and memory of a command."""
    yield Figure(f"{name}, {runs:,} runs", cost.cpu_s, "s", target_s)
    target_mb = None if target_s is None else TARGET_MB
    yield Figure(f"{name}, {runs:,} runs, memory", cost.peak_mb, "MB", target_mb)


def measure(root: Path, *, runs: int) -> Iterator[Figure]:
    """Import results, judge them, and read the campaign with each command."""
    results, campaign, sink = root / f"results{runs}", root / f"campaign{runs}", root / "export.csv"
    if not campaign.exists():
        if not results.exists():
            make_results(results, runs=runs)
        labels = ("--labels", "{host}/{repeat}/{job}")
        cost = cost_of(volbench("import", results, *labels, "--output", campaign))
        yield from figures_of("`import`, verdicts and findings", cost, runs=runs, target_s=None)
    cost_of(volbench("check", campaign))  # stores the tables where rules have changed
    forget_judgements(campaign)
    judged = cost_of(volbench("check", campaign))
    yield Figure(
        f"verdicts and findings, {runs:,} runs",
        judged.cpu_s,
        "s",
        JUDGE_TARGET_S.get(runs),
        note=f"{1000 * judged.cpu_s / runs:.1f} ms a run; {judged.peak_mb:.0f} MB",
    )
    for words in (("show",), ("check",), ("export", "--output", str(sink))):
        cost = cost_of(volbench(words[0], campaign, *words[1:]))
        yield from figures_of(f"`{words[0]}`", cost, runs=runs, target_s=TARGETS_S.get(runs))
    sink.unlink()


def main() -> int:
    """Print the figures of each size beside their targets; 1 when one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="*", default=[*TARGETS_S])
    parser.add_argument("--keep", type=Path, help="folder for the campaigns; default: temporary")
    chosen = parser.parse_args()
    compile_sources()
    bare = cost_of(Command([sys.executable, "-c", "import pandas"]))
    figures = [Figure("`import pandas`", bare.cpu_s, "s", note=f"{bare.peak_mb:.0f} MB")]
    with tempfile.TemporaryDirectory() as folder:
        for runs in chosen.runs:
            for figure in measure(chosen.keep or Path(folder), runs=runs):
                print(f"{figure.name}: {figure.value:.3g} {figure.unit}", flush=True)
                figures.append(figure)
    return print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
