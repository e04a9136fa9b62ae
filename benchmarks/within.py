"""How close the highest rate within a latency comes to the truth: a Markdown table.

Searches on simulated volumes in virtual time, with the code that `volbench measure --within` runs.
Truth is the rate that half of the runs of the same length keep: nine halvings of 21 runs each.
Exits with 1 if fewer than 95 % of the answers are within 5 %, if more are above the truth by more
than that, or if a search takes more than twelve runs.

With --real, one volume is served and measured by volbench and by fio's own ``latency_target``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.extensions.lab.virtual_client import VirtualWorkload, run_clients

from volbench.analyse.compare.rate_search import RateSearch, Trial
from volbench.extensions.lab.scenario import load_scenario, read_scenario
from volbench.extensions.lab.server import serve
from volbench.extensions.lab.simulated_disk import Disk
from volbench.model.profile.profile_settings import MAX_TRIALS

RUNTIME_S, DEPTH, BYTES = 5.0, 128, 64 << 20
GOAL, SHARE, TRUE_RUNS = 0.05, 0.95, 21
VOLUMES = {
    "limit of IOPS": "service: {read: {latency: 1ms, sigma: 0.3}, write: 1ms, slots: 64}\n"
    "limits: {iops: 3000}",
    "limit of bandwidth": "service: {read: {latency: 1ms, sigma: 0.3}, write: 1ms, slots: 64}\n"
    "limits: {bandwidth: 8MB/s}",
    "one server": "service: {read: {latency: 0.5ms, sigma: 0.5}, write: 1ms, slots: 1}",
    "many servers": "service: {read: {latency: 8ms, sigma: 0.4}, write: 1ms, slots: 24}",
    "credits for a second": "service: {read: {latency: 1ms, sigma: 0.2}, write: 1ms, slots: 32}\n"
    "burst: {iops: {to: 3000, baseline: 1200, credits: 1800}}",
}
NOISE = "noise: {jitter: {size: 20%, memory: 0.5s}}"
BOUNDS_S = {"many servers": 0.03}
USUAL_BOUND_S = 0.01
# So long that the credits which a rest leaves are a twentieth of what a run does
RUNTIMES_S = {"credits for a second": 30.0}


@dataclass
class Volume:
    """A simulated volume that goes on where the last run ended."""

    name: str
    noise: bool
    seed: int
    now_s: float = 0.0

    def __post_init__(self) -> None:
        """Make the disk."""
        text = "\n".join([VOLUMES[self.name], *([NOISE] if self.noise else [])])
        parts = ["name: v", "size: 64m", "restored: true", f"seed: {self.seed}", text]
        self._disk = Disk(load_scenario("\n".join(parts), path="v").parameters())

    @property
    def bound_s(self) -> float:
        """Bound on the p99 latency."""
        return BOUNDS_S.get(self.name, USUAL_BOUND_S)

    def trial(self, asked: float) -> Trial:
        """Do one run, and let the volume rest a second."""
        runtime_s = RUNTIMES_S.get(self.name, RUNTIME_S)
        workload = VirtualWorkload(
            "randread", iodepth=DEPTH, runtime_s=runtime_s, rate_iops=asked, size_bytes=BYTES
        )
        (done,) = run_clients(
            self._disk, workload, begin_s=self.now_s, size_bytes=BYTES, seed=self.seed
        )
        end_s = max(float(done.done_s.max()), self.now_s + runtime_s)
        rate = len(done.done_s) / (end_s - self.now_s)
        p99_s = float(np.percentile(done.done_s - done.sent_s, 99))
        self.now_s = end_s + 1
        return Trial(asked, rate, (p99_s,), p99_s < self.bound_s)


def truth(name: str, *, noise: bool) -> float:
    """Return the highest rate that most runs keep within the bound."""
    low, high = 0.0, 1.1 * Volume(name, noise, 1).trial(0.0).rate
    for _ in range(9):
        asked = (low + high) / 2
        kept = sum(Volume(name, noise, seed).trial(asked).is_kept for seed in range(TRUE_RUNS))
        low, high = (asked, high) if 2 * kept > TRUE_RUNS else (low, asked)
    return low


def search(name: str, *, noise: bool, seed: int) -> RateSearch:
    """Search on a new volume."""
    volume, trials = Volume(name, noise, seed), list[Trial]()
    while len(trials) < MAX_TRIALS and (rate := RateSearch(trials).next_rate()) is not None:
        trials.append(volume.trial(rate))
    return RateSearch(trials)


def rows(seeds: int) -> Iterator[tuple[str, float, list[RateSearch]]]:
    """Yield a name, the truth and the searches of each kind of volume."""
    for noise in (False, True):
        for name in VOLUMES:
            found = [search(name, noise=noise, seed=100 + seed) for seed in range(seeds)]
            yield f"{name}{', noise 20 %' if noise else ''}", truth(name, noise=noise), found


def real(scenario: str) -> None:
    """Print what volbench and fio's latency_target find on a volume that is served."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(read_scenario(scenario), Path(folder)) as volume,
    ):
        place = ["--on", volume.uri, "--allow-destroy", volume.uri, "-o", f"{folder}/c"]
        command = [sys.executable, "-m", "volbench", "measure", *place, "--within", "p99 < 5ms"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - fixed by this file
        print("volbench:", done.stdout.splitlines()[1])
        job = ["--name=t", "--ioengine=nbd", f"--uri={volume.uri}", "--rw=randread", "--bs=4k"]
        job += ["--iodepth=128", "--time_based", "--runtime=60", "--output-format=json"]
        job += ["--latency_target=5ms", "--latency_window=2s", "--latency_percentile=99"]
        printed = subprocess.run(  # noqa: S603 - fixed by this file
            ["fio", *job],  # noqa: S607 - fio is found on PATH
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        (told,) = json.loads(printed[printed.index("{\n") :])["jobs"]
        read = told["read"]
        p99_ms = read["clat_ns"]["percentile"]["99.000000"] / 1e6
        print(
            f"fio latency_target, 60 s: queue depth {told.get('latency_depth')},"
            f" {read['iops']:.0f} IOPS on average with p99 {p99_ms:.1f} ms"
        )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--real", default="", metavar="SCENARIO")
    given = parser.parse_args()
    if given.real:
        real(given.real)
        return 0
    print("| volume | truth | median answer | within 5 % | above by more | undecided | runs |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    errors: list[float] = []
    most = 0
    for name, true, searches in rows(given.seeds):
        answers = [found.kept.rate if found.kept else 0.0 for found in searches]
        own = [answer / true - 1 for answer in answers]
        counts = [len(found.trials) for found in searches]
        near, above = sum(abs(e) <= GOAL for e in own), sum(e > GOAL for e in own)
        unsure = sum(found.is_contradictory for found in searches)
        print(
            f"| {name} | {true:.0f} | {statistics.median(answers):.0f} | {near} of {len(own)} |"
            f" {above} | {unsure} | {min(counts)} to {max(counts)} |",
            flush=True,
        )
        errors += own
        most = max(most, *counts)
    near, above = sum(abs(e) <= GOAL for e in errors), sum(e > GOAL for e in errors)
    print(f"\n{near} of {len(errors)} within 5 %, {above} above by more, at most {most} runs")
    is_good = near >= SHARE * len(errors) and above <= (1 - SHARE) * len(errors)
    return 0 if is_good and most <= MAX_TRIALS else 1


if __name__ == "__main__":
    sys.exit(main())
