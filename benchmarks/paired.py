"""How wide paired and unpaired intervals are under drift, and how often they are wrong: tables.

Two arms of one workload run in blocks, in the order in which volbench plans them. The true ratio is
known. The first table draws the logarithms of the rates; the second takes them from simulated
volumes in virtual time, with all their noise. Seeds are fixed. With --real TARGET, equal arms run
on a real volume instead, without and with a load beside that starts in the middle of a campaign and
grows: another fio in --beside FOLDER, which should be on the same disk.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from benchmarks.virtual_volume import Load, VirtualVolume
from scipy.stats import binomtest, t, wilcoxon

from volbench import compare
from volbench.analyse.compare.repeat_statistics import (
    Group,
    Interval,
    contrast,
    unpaired_contrast,
)
from volbench.analyse.frames.resample import Floats
from volbench.extensions.lab.scenario import Scenario
from volbench.plan.expansion.expand import balanced

RATIO = 1.02
SEED = 7  # odd seeds only; this one also chose the threshold of the order, 11 confirmed it
RUN_S = 5.0
DIFFERENCE = np.array([0.0, math.log(RATIO)])


@dataclass(frozen=True)
class Design:
    """A machine and a number of blocks."""

    name: str
    blocks: int
    noise: float  # deviation of the logarithm of a run's rate
    drift: float = 0.0  # change over the campaign, as a share
    wave: float = 0.0  # amplitude of a wave with three periods in the campaign
    jumps: float = 0.0  # deviation of a level that changes from block to block
    stalls: float = 0.0  # share of runs that lose much more

    @cached_property
    def places(self) -> np.ndarray:
        """Place of base and candidate among all runs, a row a block."""
        orders = [balanced((0, 1), block) for block in range(self.blocks)]
        return np.array(
            [[2 * block + order.index(arm) for arm in (0, 1)] for block, order in enumerate(orders)]
        )

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return logarithms of rates without a difference: a row a block, base and candidate."""
        share = self.places / (2 * self.blocks - 1)
        logs = np.log1p(self.drift * share) + self.wave * np.sin(6 * math.pi * share)
        logs += self.noise * rng.standard_normal(share.shape)
        logs += self.jumps * rng.standard_normal((self.blocks, 1))
        stalled = rng.random(share.shape) < self.stalls
        drawn: Floats = logs - np.where(stalled, rng.exponential(10 * self.noise, share.shape), 0)
        return drawn


DESIGNS = (
    *(Design(f"{n} blocks, no drift", n, 0.01) for n in (3, 5, 7, 10, 30)),
    *(Design(f"{n} blocks, drift 20 %", n, 0.005, 0.2) for n in (3, 5, 7, 10, 30)),
    Design("5 blocks, drift 20 %, noise 20 %", 5, 0.2, 0.2),
    Design("10 blocks, drift 20 %, noise 20 %", 10, 0.2, 0.2),
    Design("5 blocks, drift 5 %", 5, 0.01, 0.05),
    Design("10 blocks, waves of 20 %", 10, 0.005, wave=0.2),
    Design("30 blocks, waves of 20 %", 30, 0.005, wave=0.2),
    Design("10 blocks, levels jump by 10 %", 10, 0.01, jumps=0.1),
    Design("10 blocks, a tenth stalled", 10, 0.01, stalls=0.1),
)


def groups(logs: Floats, places: np.ndarray) -> tuple[Group, Group]:
    """Return base and candidate."""
    base, candidate = (
        Group(
            np.exp(logs[:, arm]),
            blocks=list(range(len(logs))),
            starts=[f"{place:06d}" for place in places[:, arm]],
        )
        for arm in (0, 1)
    )
    return base, candidate


def plain_t(base: Group, candidate: Group) -> Interval:
    """Return Student's t on the ratios in blocks, whatever their order."""
    shifts = np.log(candidate.values) - np.log(base.values)
    half = t.ppf(0.975, len(shifts) - 1) * shifts.std(ddof=1) / math.sqrt(len(shifts))
    ends = (shifts.mean() - half, shifts.mean(), shifts.mean() + half)
    return Interval(*(math.exp(end) for end in ends))


def _rejects(test: Callable[[Floats], float], base: Group, candidate: Group) -> bool:
    return test(np.log(candidate.values) - np.log(base.values)) < 0.05


def signs(shifts: Floats) -> float:
    """Return the p-value of the sign test."""
    return float(binomtest(int((shifts > 0).sum()), len(shifts)).pvalue)


def ranks(shifts: Floats) -> float:
    """Return the p-value of Wilcoxon's signed ranks."""
    return float(wilcoxon(shifts).pvalue)


@dataclass
class Tally:
    """How one method did."""

    held: int = 0
    wrong: int = 0
    widths: tuple[float, ...] = ()

    def add(self, interval: Interval, null: Interval) -> None:
        """Count an interval of arms that differ, and one of equal arms."""
        self.held += not interval.excludes(RATIO)
        self.wrong += null.excludes(1)
        self.widths += (math.log(interval.high / interval.low),)


METHODS: dict[str, Callable[[Group, Group], Interval]] = {
    "volbench": lambda base, candidate: contrast(base, candidate).interval(),
    "unpaired": lambda base, candidate: unpaired_contrast(base, candidate).interval(),
    "t without order": plain_t,
}


def judged(
    draw: Callable[[np.random.Generator], Floats], places: np.ndarray, trials: int
) -> tuple[dict[str, Tally], dict[str, int]]:
    """Return the tallies of intervals, and how often rank tests find a difference of equal arms."""
    rng = np.random.default_rng(SEED)
    tallies = {name: Tally() for name in METHODS}
    false = {"sign test": 0, "signed ranks": 0}
    found = dict.fromkeys(false, 0)
    for _ in range(trials):
        logs = draw(rng)
        equal, differing = groups(logs, places), groups(logs + DIFFERENCE, places)
        for name, method in METHODS.items():
            tallies[name].add(method(*differing), method(*equal))
        for name, test in (("sign test", signs), ("signed ranks", ranks)):
            false[name] += _rejects(test, *equal)
            found[name] += _rejects(test, *differing)
    return tallies, {f"{name} false": count for name, count in false.items()} | {
        f"{name} found": count for name, count in found.items()
    }


NOISES: dict[str, dict[str, object]] = {
    "jitter 5 %, correlated over 1 s": {"jitter": "5%"},
    "jitter 20 %, correlated over 10 s": {"jitter": {"size": "20%", "memory": "10s"}},
    "neighbours": {"neighbour": {"share": "30%", "for": "2s", "every": "8s"}},
}


def on_volume(
    noise: dict[str, object], *, blocks: int, drift: float
) -> Callable[[np.random.Generator], Floats]:
    """Return what draws a campaign on a new simulated volume that drifts over the campaign."""
    design = Design("", blocks, 0.0)
    minutes = 2 * blocks * RUN_S / 60
    load = Load("read", 4096, 16, RUN_S)

    def draw(rng: np.random.Generator) -> Floats:
        document = {
            "name": "volume",
            "size": "1g",
            "seed": int(rng.integers(1 << 30)),
            "service": {"read": "1ms", "write": "1ms", "slots": 16},
            "drift": f"{100 * drift / minutes}%",
            "noise": noise,
        }
        volume = VirtualVolume(Scenario.model_validate(document))
        rates = [sum(tick.ios for tick in volume.run(load).ticks) for _ in range(2 * blocks)]
        logs: Floats = np.log(rates)[design.places]
        return logs

    return draw


def row(name: str, tallies: dict[str, Tally], counts: dict[str, int], trials: int) -> str:
    """Return a Markdown row."""
    width = float(np.median(tallies["volbench"].widths))
    unpaired = float(np.median(tallies["unpaired"].widths))
    cells = [name]
    for tally in tallies.values():
        cells += [f"{100 * tally.held / trials:.1f}", f"{100 * tally.wrong / trials:.1f}"]
    cells.insert(3, f"± {100 * math.expm1(width / 2):.2g} %")
    cells.insert(4, f"{unpaired / width:.2g}")
    cells.append(f"{float(np.median(tallies['t without order'].widths)) / width:.2g}")
    cells += [f"{100 * count / trials:.1f}" for count in counts.values()]
    return "| " + " | ".join(cells) + " |"


REAL = """\
name: equal
repeat: {blocks}
device_sample: 0
defaults:
  {{ioengine: libaio, direct: 1, bs: 4k, iodepth: 16, size: 256m, runtime: 2s, time_based: 1}}
jobs: {{reads: {{rw: randread}}}}
variants: {{a: {{}}, b: {{}}}}
"""


@contextmanager
def load_beside(folder: Path | None, seconds: float) -> Iterator[None]:
    """Write beside the block: from the middle of the time on, at a rate that doubles thrice."""
    steps = 4
    rates = [] if folder is None else [f"{4 << step}m" for step in range(steps)]
    jobs = [
        argument
        for place, rate in enumerate(rates)
        for argument in (
            f"--name=step{place}",
            f"--startdelay={seconds / 2 + place * seconds / 2 / steps:.0f}",
            f"--runtime={seconds / 2 / steps:.0f}",
            f"--rate={rate}",
        )
    ]
    common = [f"--directory={folder}", "--filename=beside", "--size=256m", "--rw=randwrite"]
    common += ["--direct=1", "--ioengine=libaio", "--iodepth=8", "--bs=64k", "--time_based=1"]
    command = ["fio", *common, *jobs]
    load = subprocess.Popen(command, stdout=subprocess.DEVNULL) if jobs else None  # noqa: S603 - the words above
    try:
        yield
    finally:
        if load is not None:
            load.terminate()
            load.wait()


def real(target: str, beside: Path | None, campaigns: int, blocks: int) -> str:
    """Return a Markdown row: equal arms on a real volume, paired and not."""
    found, drifts = {"paired": Tally(), "unpaired": Tally()}, []
    for _ in range(campaigns):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            profile, into = Path(folder, "p.yaml"), Path(folder, "out")
            profile.write_text(REAL.format(blocks=blocks))
            command = [sys.executable, "-m", "volbench", "run", str(profile), "--on", target]
            with load_beside(beside, 2 * blocks * 3.5):
                subprocess.run(  # noqa: S603 - the words above
                    [*command, "--output", str(into), "--yes"], check=True, capture_output=True
                )
            (row,) = compare(into, metric="iops", keep_invalid=True).comparison.rows
        if row.interval is None or not row.design.endswith("blocks"):
            raise SystemExit(f"{target}: no blocks")
        found["paired"].add(row.interval, row.interval)
        unpaired = unpaired_contrast(row.base_group, row.candidate_group).interval()
        found["unpaired"].add(unpaired, unpaired)
        drifts.append(row.base_group.drift(0.05) or 0.0)
    width, other = (float(np.median(tally.widths)) for tally in found.values())
    cells = [f"{blocks} blocks, {'a load beside' if beside else 'as it is'}", str(campaigns)]
    cells += [f"{math.expm1(float(np.median(np.abs(drifts)))):.0%}"]
    cells += [f"± {math.expm1(width / 2):.2g}", str(found["paired"].wrong)]
    cells += [f"± {math.expm1(other / 2):.2g}", str(found["unpaired"].wrong)]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print a Markdown table for drawn and for simulated volumes, or for a real one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", metavar="TARGET", help="directory, device or file")
    parser.add_argument("--beside", type=Path, metavar="FOLDER")
    parser.add_argument("--campaigns", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--simulated-trials", type=int, default=200)
    options = parser.parse_args()
    if options.real:
        print("| design | campaigns | drift | paired | false | unpaired | false |")
        print("|" + " --- |" * 7)
        for beside in dict.fromkeys([None, options.beside]):
            print(real(options.real, beside, options.campaigns, options.blocks), flush=True)
        return
    columns = ["design", "held", "false", "typical width", "unpaired is wider by"]
    columns += ["unpaired: held", "false", "t without order: held", "false", "is wider by"]
    columns += ["sign test: false", "signed ranks: false", "sign test: found", "ranks: found"]
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    for design in DESIGNS:
        found = judged(design.draw, design.places, options.trials)
        print(row(design.name, *found, options.trials), flush=True)
    trials = options.simulated_trials
    for name, noise in NOISES.items():
        for blocks, drift in ((5, 0.0), (5, 0.2), (10, 0.0), (10, 0.2)):
            places = Design("", blocks, 0.0).places
            found = judged(on_volume(noise, blocks=blocks, drift=drift), places, trials)
            text = f"simulated: {name}, {blocks} blocks, drift {100 * drift:.0f} %"
            print(row(text, *found, trials), flush=True)


if __name__ == "__main__":
    main()
