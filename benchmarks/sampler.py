"""What sampler and logs cost the run that they observe: IOPS and p99 with and without them.

fio runs with and without volbench's sampler and logs, in the order off, on, on, off, on the `null`
engine (no device: the CPU is all there is) and, as root, on a loop device over a file in memory.
Then the sampler alone, looking 50 times a second instead of once, so that its cost can be seen.
I/Os count by second of fio's CPU time where the CPU is the limit: neighbours on the machine disturb
that less than the clock. p99 is interpolated in fio's bins, which are 1.6 % wide.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from measured import Figure, print_figures

from volbench.execute.agent import supervisor

LOOKS_PER_S = 50
ALONE_S = 20
LOOP_BYTES = 256 * 1024**2
TARGET_PERCENT = 1.0
OWN_PERCENT, OWN_MB = 0.3, 20.0
"""Of one core, and of memory: what the supervisor may take by itself at one look a second."""
MEMORY = Path("/dev") / "shm"
DEVICES = sorted(path.name for path in Path("/sys/block").iterdir())[:3]
COMMON = ("fio", "--name=a", "--bs=4k", "--time_based", "--output-format=json+")
JOBS: dict[str, tuple[str, ...]] = {
    "null engine": ("--ioengine=null", "--rw=randrw", "--size=1g", "--norandommap"),
    "loop device": ("--ioengine=libaio", "--rw=randread", "--direct=1", "--iodepth=4"),
    "file in memory": ("--ioengine=psync", "--rw=randrw", "--size=64m", "--filename=file"),
}
LOGS = (
    *("--log_avg_msec=1000", "--log_unix_epoch=1"),
    *("--write_bw_log=series", "--write_iops_log=series", "--write_lat_log=series"),
)
"""The logs that volbench lets fio write at its default of one sample a second."""


@dataclass(frozen=True)
class Outcome:
    """What one run of fio did.

    Attributes:
        iops: by the clock.
        ios_per_cpu_s: by fio's own CPU time.
        p99_ns: completion latency of the busier direction.
    """

    iops: float
    ios_per_cpu_s: float
    p99_ns: float


def p99_of(bins: Mapping[str, int]) -> float:
    """Return the 99th percentile of fio's bins, evenly spread between their midpoints."""
    counts = sorted((int(middle), count) for middle, count in bins.items())
    rank = 0.99 * sum(count for _, count in counts)
    below = 0
    for (low, count), (high, _) in pairwise([*counts, counts[-1]]):
        if below + count >= rank:
            return low + (high - low) * (rank - below) / count
        below += count
    raise AssertionError("the last bin holds the last rank")


def outcome_of(folder: Path, arguments: Sequence[str]) -> Outcome:
    """Run fio once."""
    done = subprocess.run(  # noqa: S603 - fixed by this file
        arguments, cwd=folder, capture_output=True, text=True, check=True
    )
    job = json.loads(done.stdout)["jobs"][0]
    ways = [job[way] for way in ("read", "write") if job[way]["total_ios"]]
    iops = sum(float(way["iops"]) for way in ways)
    busy = max(ways, key=lambda way: float(way["iops"]))
    cpu_share = (float(job["usr_cpu"]) + float(job["sys_cpu"])) / 100
    return Outcome(iops, iops / cpu_share, p99_of(busy["clat_ns"]["bins"]))


@contextmanager
def sampled(folder: Path, interval_s: float) -> Iterator[int]:
    """Sample beside what is inside the block, and yield the process id of the supervisor."""
    control = tempfile.mkdtemp(dir=folder)
    supervisor.launch(
        argv=["sleep", "600"],
        cwd=control,
        stderr=f"{control}/stderr",
        control=f"{control}/c",
        longest_s=600.0,
        sampling={"devices": DEVICES, "interval_s": interval_s, "is_tail_followed": False},
    )
    try:
        state = supervisor.read_json(f"{control}/c/state")
        yield supervisor.number_in(state, "supervisor_pid")
    finally:
        supervisor.send_signal(f"{control}/c", signal.SIGKILL)
        while not (Path(control) / "c/end").exists():
            time.sleep(0.05)


def quads(
    count: int, off: Callable[[], Outcome], on: Callable[[], Outcome]
) -> list[tuple[Outcome, Outcome, Outcome, Outcome]]:
    """Return outcomes in the order off, on, on, off, so that a drift of the machine cancels."""
    return [(off(), on(), on(), off()) for _ in range(count)]


def cost_figure(name: str, ratios: Sequence[float], *, more_is_worse: bool) -> Figure:
    """Return the median cost of observation in percent, from ratios of on to off."""
    sign = 1 if more_is_worse else -1
    costs = sorted(100 * sign * (ratio - 1) for ratio in ratios)
    note = f"{costs[0]:+.2f} to {costs[-1]:+.2f} % in {len(costs)} quads"
    span = (costs[0], costs[-1])  # of 8 values: holds their median with 99 %
    return Figure(name, statistics.median(costs), "%", TARGET_PERCENT, note, span)


def ratio_of(quad: Sequence[Outcome], value: Callable[[Outcome], float]) -> float:
    """Return what a value is with observation, as a multiple of what it is without."""
    first, second, third, last = map(value, quad)
    return (second + third) / (first + last)


def disturbance(
    folder: Path, name: str, job: Sequence[str], *, logs: Sequence[str] = LOGS, count: int
) -> Iterator[Figure]:
    """Yield the cost of the sampler, and of logs, as volbench uses them, in I/Os and in p99."""
    arguments = [*COMMON, *job, "--runtime=3"]

    def observed() -> Outcome:
        with sampled(folder, 1.0):
            return outcome_of(folder, [*arguments, *logs])

    found = quads(count, lambda: outcome_of(folder, arguments), observed)
    is_cpu = name == "null engine"
    beside = "sampler and logs" if logs else "sampler"
    words = "I/Os per CPU second" if is_cpu else "IOPS"
    rates = [
        ratio_of(quad, lambda one: one.ios_per_cpu_s if is_cpu else one.iops) for quad in found
    ]
    p99s = [ratio_of(quad, lambda one: one.p99_ns) for quad in found]
    if is_cpu and logs:
        bare_s = statistics.median(1 / one.ios_per_cpu_s for quad in found for one in quad[::3])
        cost_ns = 1e9 * bare_s * (1 / statistics.median(rates) - 1)
        print(f"logs cost {cost_ns:.0f} ns of CPU an I/O, which takes {1e9 * bare_s:.0f} ns")
    yield cost_figure(f"{name}: {beside}, {words}", rates, more_is_worse=False)
    yield cost_figure(f"{name}: {beside}, p99", p99s, more_is_worse=True)


def sampler_figures(folder: Path, *, count: int) -> Iterator[Figure]:
    """Yield the cost of the sampler at one look a second, measured at 50, and its own use."""
    arguments = [*COMMON, *JOBS["file in memory"], "--runtime=2"]

    def observed() -> Outcome:
        with sampled(folder, 1 / LOOKS_PER_S):
            return outcome_of(folder, arguments)

    found = quads(count, lambda: outcome_of(folder, arguments), observed)
    ratios = [ratio_of(quad, lambda one: one.ios_per_cpu_s) for quad in found]
    cost = 100 * (1 - statistics.median(ratios))
    share, resident_mb = own_cost(folder)
    title = "sampler at one look a second"
    note = f"{cost:.2f} % at {LOOKS_PER_S}"
    yield Figure(f"{title}, I/Os per CPU second", cost / LOOKS_PER_S, "%", TARGET_PERCENT, note)
    yield Figure(f"{title}, share of one core", 100 * share, "%", OWN_PERCENT)
    yield Figure(f"{title}, resident memory", resident_mb, "MB", OWN_MB)


def own_cost(folder: Path) -> tuple[float, float]:
    """Return the share of one core and the megabytes that the supervisor takes by itself."""
    with sampled(folder, 1.0) as pid:
        process = Path(f"/proc/{pid}")

        def spent_s() -> float:
            return int((process / "schedstat").read_text().split()[0]) / 1e9

        before_s, started_s = spent_s(), time.monotonic()
        time.sleep(ALONE_S)
        share = (spent_s() - before_s) / (time.monotonic() - started_s)
        resident = (process / "status").read_text().partition("VmRSS:")[2].split()[0]
    return share, int(resident) * 1024 / 1e6


@contextmanager
def loop_device(folder: Path) -> Iterator[str]:
    """Yield a loop device over a new file."""
    file = folder / "loop.img"
    file.write_bytes(os.urandom(1024**2) * (LOOP_BYTES // 1024**2))
    attach = ["/sbin/losetup", "--find", "--show", "--direct-io=off", str(file)]
    done = subprocess.run(attach, capture_output=True, text=True, check=True)  # noqa: S603 - fixed
    device = done.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["/sbin/losetup", "--detach", device], check=True)  # noqa: S603 - see above


def main() -> int:
    """Print the cost of observation beside its target; 1 when it is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quads", type=int, default=8)
    count = parser.parse_args().quads
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        folder = Path(name)
        null = JOBS["null engine"]
        figures += disturbance(folder, "null engine", null, logs=(), count=count)
        figures += disturbance(folder, "null engine", null, count=count)
        if os.geteuid():
            print("loop devices need root", file=sys.stderr)
        else:
            with loop_device(folder) as device:
                job = [*JOBS["loop device"], f"--filename={device}"]
                figures += disturbance(folder, "loop device", job, count=count)
        figures += sampler_figures(folder, count=count)
    return print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
