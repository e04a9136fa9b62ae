"""CPU time and peak memory of reading commands on campaigns of 49 to 3,450 runs.

The results are made from one recorded fio document: rates, latencies, options and the logs beside
it differ from file to file, by a seed. They are imported as a campaign, which also computes its
verdicts and findings; then each command reads the stored tables.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CASE = Path(__file__).parents[1] / "tests/cases/fio-3.36/randrw-jsonplus/stdout"
SIZES = (8, 49, 343, 1018, 3450)
LOG_SECONDS = 60
PATTERNS = ("randread", "randwrite", "read", "write", "randrw")
BLOCKS = ("4k", "16k", "64k", "256k", "1m")
DEPTHS = (1, 4, 16, 64)
HOSTS = 20
DIRECTIONS = ("read", "write")
LOGS = {"iops": 1000, "bw": 4000, "lat": 1_000_000}
"""Kind of log to its usual value, in the unit of fio."""
CLI = "from volbench.cli.main import main; main()"


@dataclass(frozen=True)
class Cost:
    """What a process used.

    Attributes:
        cpu_s: user and system time.
        peak_mb: its largest resident set.
    """

    cpu_s: float
    peak_mb: float


def scaled(part: Mapping[str, object], *, rate: float) -> dict[str, object]:
    """Return one direction of a result at another rate; its latencies scale the other way."""
    changed: dict[str, object] = dict(part)
    for name in ("iops", "iops_min", "iops_max", "iops_mean", "bw", "bw_bytes", "bw_mean"):
        value = part.get(name)
        if isinstance(value, int | float):
            changed[name] = type(value)(value * rate)
    for name in ("io_bytes", "io_kbytes", "total_ios"):
        value = part.get(name)
        if isinstance(value, int):
            changed[name] = int(value * rate * LOG_SECONDS)
    if part["total_ios"] and rate:
        changed["runtime"] = 1000 * LOG_SECONDS
    return changed


def write_result(root: Path, number: int, document: Mapping[str, object]) -> None:
    """Write one result and its logs, all of which depend on the number alone."""
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
    job["job options"] |= options | logs | {"log_avg_msec": "1000"}
    moving = [one for one in DIRECTIONS if one in pattern or pattern == "randrw"]
    for direction in DIRECTIONS:
        rate = float(rng.gamma(9, 1 / 9)) if direction in moving else 0.0
        job[direction] = scaled(job[direction], rate=rate)
    (folder / "fio.json").write_text(json.dumps(made))
    for kind, level in LOGS.items():
        rows = [
            f"{1000 * second}, {max(1, round(level * float(rng.normal(1, 0.02))))}, {way}, 0, 0\n"
            for second in range(1, LOG_SECONDS + 1)
            for way, direction in enumerate(DIRECTIONS)
            if direction in moving
        ]
        (folder / f"fio_{kind}.1.log").write_text("".join(rows))


def make_results(root: Path, *, runs: int) -> None:
    """Write as many results as a campaign is to have runs."""
    document = json.loads(CASE.read_text(encoding="utf-8"))
    for number in range(runs):
        write_result(root, number, document)


def cost_of(arguments: Sequence[str]) -> Cost:
    """Return what a Python process used.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryFile() as messages:
        child = subprocess.Popen(  # noqa: S603 - arguments are our own
            [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=messages
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            messages.seek(0)
            raise RuntimeError(f"{' '.join(arguments)}: {messages.read().decode()[-2000:]}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)


def volbench(*words: str) -> Cost:
    """Return what a command of volbench used."""
    return cost_of(["-c", CLI, *words])


def measure(root: Path, *, runs: int) -> list[tuple[str, Cost]]:
    """Import results, and read the campaign with each command."""
    results, campaign, sink = root / f"results{runs}", root / f"campaign{runs}", root / "export.csv"
    make_results(results, runs=runs)
    labels = "{host}/{repeat}/{job}"
    costs = [
        ("import", volbench("import", str(results), "--labels", labels, "--output", str(campaign)))
    ]
    for words in (
        ("show", str(campaign)),
        ("check", str(campaign)),
        ("export", str(campaign), "--output", str(sink)),
    ):
        costs.append((words[0], volbench(*words)))
        sink.unlink(missing_ok=True)
    return costs


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="*", default=SIZES)
    parser.add_argument("--keep", type=Path, help="folder for the campaigns; default: temporary")
    chosen = parser.parse_args()
    bare = cost_of(["-c", "import pandas"])
    print(f"import pandas: {bare.cpu_s:.2f} s, {bare.peak_mb:.0f} MB")
    with tempfile.TemporaryDirectory() as folder:
        for runs in chosen.runs:
            for name, cost in measure(chosen.keep or Path(folder), runs=runs):
                print(
                    f"{runs:5} runs {name:8} {cost.cpu_s:7.2f} s CPU"
                    f" ({cost.cpu_s / bare.cpu_s:.1f}x pandas), peak {cost.peak_mb:.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
