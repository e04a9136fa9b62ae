"""Measure what the sampler beside a run costs it: fio's I/Os with and without, in ABBA order.

fio reads and writes 4 KiB blocks of a file in memory as fast as one core can: the hardest case, as
there is no device to wait for. The sampler looks 50 times a second instead of once, so that its
cost can be seen, and I/Os are counted by second of fio's own CPU time, which neighbours on the
machine disturb less than the clock. Prints the median ratio of neighbours and the range of all, and
what is left of it at one look a second.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.sampling.sampler import Sampler, sampler_commands
from volbench.execute.local import LocalExecutor
from volbench.store.layout import RunFolder

QUADS = 8
LOOKS_PER_S = 50
RUNTIME_S = 2
ALONE_S = 20
FIO = [
    *("fio", "--name=a", "--rw=randrw", "--bs=4k", "--size=64m", "--ioengine=psync"),
    *("--time_based", "--norandommap", f"--runtime={RUNTIME_S}", "--output-format=json"),
    "--filename=file",
]
MEMORY = Path("/dev") / "shm"
DEVICES = sorted(path.name for path in Path("/sys/block").iterdir())[:3]


def iops(folder: Path) -> float:
    """Return the I/Os of one run of fio for each second of its CPU time."""
    done = subprocess.run(  # noqa: S603 - fixed above
        FIO, cwd=folder, capture_output=True, text=True, check=True
    )
    job = json.loads(done.stdout)["jobs"][0]
    rate = float(job["read"]["iops"]) + float(job["write"]["iops"])
    return rate / ((float(job["usr_cpu"]) + float(job["sys_cpu"])) / 100)


def watched_iops(folder: Path, command: list[str]) -> float:
    """Return the IOPS of one run of fio beside a sampler."""
    sampler = Sampler(RunDirectory(LocalExecutor(), RunFolder(folder)))
    sampler.start([command])
    if sampler.problem:
        sys.exit(sampler.problem)
    found = iops(folder)
    sampler.stop()
    return found


def ratios(folder: Path, command: list[str]) -> list[float]:
    """Return watched over unwatched IOPS, from quads in the order off, on, on, off."""
    found = []
    for _ in range(QUADS):
        off = [iops(folder)]
        on = [watched_iops(folder, command), watched_iops(folder, command)]
        off.append(iops(folder))
        found.append(sum(on) / sum(off))
    return found


def interval(values: list[float]) -> tuple[float, float]:
    """Return least and greatest: they hold the median of 8 values with 99 %."""
    return min(values), max(values)


def cpu_share(folder: Path, command: list[str]) -> float:
    """Return the share of one core that a sampler takes by itself, its children too."""
    before, started = os.times(), time.monotonic()
    sampler = Sampler(RunDirectory(LocalExecutor(), RunFolder(folder)))
    sampler.start([command])
    time.sleep(ALONE_S)
    sampler.stop()
    after, elapsed_s = os.times(), time.monotonic() - started
    spent_s = after.children_user - before.children_user
    spent_s += after.children_system - before.children_system
    return spent_s / elapsed_s


def main() -> None:
    """Measure both programs and print a line for each."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        often, usual = (
            sampler_commands(LocalExecutor(), DEVICES, interval_s=seconds, life_s=60.0)
            for seconds in (1 / LOOKS_PER_S, 1.0)
        )
        for name, fast, slow in zip(("python3", "sh"), often, usual, strict=True):
            found = ratios(Path(folder), fast)
            low, high = interval(found)
            share = cpu_share(Path(folder), slow)
            cost = 1 - statistics.median(found)
            print(
                f"{name}: {LOOKS_PER_S} looks a second cost {cost:+.2%} of fio's I/Os"
                f" per CPU second (99 %: {1 - high:+.2%} to {1 - low:+.2%}, {QUADS} quads),"
                f" one a second {cost / LOOKS_PER_S:+.3%} (at most {(1 - low) / LOOKS_PER_S:.3%});"
                f" it takes {share:.2%} of one core with its start"
            )


if __name__ == "__main__":
    main()
