"""How often the verdict of an audit is right, on simulated volumes whose shortfall is known.

A volume is promised a limit on IOPS. It has a lower one, or it has that one and stalls for a part
of the time, or it shares a device that is just fast enough with the load of others. Queue depths
are chosen as `volbench audit` does, by the same code: each depth once while it gains, then twice
those that are fast enough; each run lasts 40 s. What is true is the mean rate of the same volume on
an idle host at depths that suffice, so that its own jitter is a shortfall. Figures are those of the
odd seeds.

    .venv/bin/python benchmarks/audit.py --scenarios 600
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.truth import table
from benchmarks.truth_cases import NOISES, SIZE, Case, Draw, Parts, _noise
from benchmarks.truth_views import BETWEEN_S, _run, simulate
from benchmarks.virtual_volume import Load, VirtualVolume

from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.compare.promised_limits import MARGIN, Delivery, Outcome, deliveries
from volbench.analyse.findings import finding_rows
from volbench.engine.campaign.depth_stopping import DepthJudge
from volbench.extensions.lab.scenario import Scenario
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.finding import Cause
from volbench.store.layout import Layout
from volbench.store.parquet_tables import frame_of, table_of

SHORTFALLS = (0.0, 0.01, 0.05, 0.2)
KINDS = ("limit", "stalls", "neighbours")
_DEPTHS, _REPEATS, _RUNTIME_S = (16, 64, 256, 1024), 3, 40
_DEEP_ENOUGH = 64  # So many I/Os in flight suffice for the promise of every volume
_SPARE = 1.5  # Rate of a depth that suffices, without any limit, as a multiple of the promise
_TIME_PERCENT = 99.9  # Promised share of time
_WHOLE_IOS = 5e-4  # A second counts whole I/Os, and the first of a run is left out
_CLEARLY = 0.05  # Shortfall of a volume that must never be said to deliver


@dataclass(frozen=True)
class Score:
    """Verdict on a volume.

    Loss of more than the rest of the promised share of time is a shortfall in time, also where the
    mean is as promised.

    Attributes:
        shortfall: nominal.
        true: missing share of the promise, of the whole simulated time, without stolen CPU time.
        found: the verdict.
    """

    seed: int
    kind: str
    shortfall: float
    noise: int
    true: float
    found: Delivery

    @property
    def is_wrong(self) -> bool:
        """Whether the verdict contradicts what is true."""
        if self.found.outcome is Outcome.DELIVERS:
            return self.true > MARGIN
        is_of_time = self.found.time_outcome is Outcome.FALLS_SHORT
        least = 1 - _TIME_PERCENT / 100 if is_of_time else MARGIN
        return self.found.outcome is Outcome.FALLS_SHORT and self.true < least


def score(seed: int) -> Score:
    """Simulate a volume, audit it, and compare."""
    number, draw = seed // 2, Draw(seed)
    shortfall = SHORTFALLS[number % len(SHORTFALLS)]
    noise = NOISES[number // len(SHORTFALLS) % len(NOISES)]
    kind = KINDS[number // len(SHORTFALLS) // len(NOISES) % len(KINDS)]
    case = _adaptive(_case(draw, kind, shortfall, noise, seed))
    found, *_ = _deliveries(simulate(case).context)
    return Score(seed, kind, shortfall, noise, _true_shortfall(case), found)


def _case(draw: Draw, kind: str, shortfall: float, noise: int, seed: int) -> Case:
    promised = round(draw.between(300, 20_000))
    latency_s = draw.between(1e-4, min(1e-2, _DEEP_ENOUGH / promised / 2.5))
    service = {"latency": latency_s, "sigma": draw.even(0.05, 0.4)}
    volume: Parts = {"name": kind, "size": SIZE, "seed": seed, "restored": True}
    volume["service"] = {"read": service, "write": service}
    volume["limits"] = {"iops": promised * (1 - shortfall * (kind == "limit"))}
    if noise:
        volume["noise"] = _noise(draw, noise)
    if kind == "neighbours" and shortfall:
        volume["service"]["slots"] = max(1, round(promised * latency_s * 1.02))
        burst_s = draw.between(1, 6)
        # Others take half or more of the device while they are busy
        every_s = burst_s * min(1.0, draw.even(0.5, 0.9)) / shortfall
        others = {"share": shortfall * every_s / burst_s, "for": burst_s, "every": every_s}
        volume["noise"] = {**volume.get("noise", {}), "neighbour": others}
    order = [*_DEPTHS] * _REPEATS
    if kind == "stalls" and shortfall:
        volume["stalls"] = _stalls(draw, shortfall, len(order) * (_RUNTIME_S + BETWEEN_S))
    return Case(
        kind=kind,
        noise=noise,
        scenario=Scenario.model_validate(volume),
        loads=tuple(Load("read", 4096, depth, _RUNTIME_S) for depth in order),
        platform="cloud",
        truth=Cause.IOPS_LIMIT,
        declared=Limits(iops=promised, time_percent=_TIME_PERCENT),
    )


class _Judge(DepthJudge):
    """Judge of simulated runs, whose rates are not in files.

    Args:
        rates: run id to IOPS, filled while they run.
    """

    def __init__(self, campaign: Campaign, rates: dict[str, float]) -> None:
        super().__init__(Layout(Path()), campaign, is_finished=lambda run: run.id in rates)
        self._known = rates

    def _rate(self, run: Run) -> float:
        return self._known[run.id]


def _adaptive(case: Case) -> Case:
    """Return the case with the loads alone that an audit runs."""
    jobs, runs = [f"qd{depth}" for depth in _DEPTHS], []
    for number, load in enumerate(case.loads):
        changed = {"job": f"qd{load.iodepth}", "repeat": 1 + number // len(_DEPTHS)}
        runs.append(_run(case, load, number).model_copy(update=changed))
    campaign = Campaign(name=case.kind, created_utc="", runs=runs, seed=1, ladders=(jobs,))
    rates: dict[str, float] = {}
    judge, disk, loads = _Judge(campaign, rates), VirtualVolume(case.scenario), []
    for run, load in zip(campaign.runs, case.loads, strict=True):
        if judge.before(run) is None:
            ticks = disk.run(load).ticks
            rates[run.id] = math.fsum(tick.ios for tick in ticks) / load.runtime_s
            disk.rest(BETWEEN_S)
            loads.append(load)
    return replace(case, loads=tuple(loads))


def _stalls(draw: Draw, share: float, total_s: float) -> list[Parts]:
    """Return stalls of 0.2 to 3 s that together take a share of the time, in order."""
    lengths: list[float] = []
    while sum(lengths) < share * total_s:
        lengths.append(min(draw.between(0.2, 3), share * total_s - sum(lengths) + 0.05))
    slot_s = total_s / len(lengths)
    starts = [slot_s * n + draw.even(0, max(0.0, slot_s - 3.2)) for n in range(len(lengths))]
    return [
        {"at": round(start, 2), "for": round(length, 2)}
        for start, length in zip(starts, lengths, strict=True)
    ]


def _true_shortfall(case: Case) -> float:
    """Return what is missing over all runs, on the same volume with an idle host."""
    scenario = case.scenario
    if scenario.noise is not None:
        quiet = scenario.noise.model_copy(update={"steal": None})
        scenario = scenario.model_copy(update={"noise": quiet})
    disk, ios, seconds = VirtualVolume(scenario), 0.0, 0.0
    promised, latency_s = case.declared.iops, scenario.service.read.latency_s
    if promised is None:
        raise AssertionError("every case has a promise")
    for load in case.loads:
        series = disk.run(load)
        if load.iodepth / latency_s >= _SPARE * promised:
            ios += math.fsum(tick.ios for tick in series.ticks)
            seconds += load.runtime_s
        disk.rest(BETWEEN_S)
    return 1 - ios / seconds / promised


def _deliveries(context: Context) -> list[Delivery]:
    made = {"verdicts": verdict_rows, "findings": finding_rows}

    def frame(name: str) -> pd.DataFrame:
        if name in made:
            return frame_of(table_of(name, made[name](context)))
        return pd.concat([getattr(view, name) for view in context.views], ignore_index=True)

    return deliveries(frame, {view.run.id: view.run for view in context.views})


def report(found: Sequence[Score]) -> str:
    """Return the table of verdicts by kind, shortfall and noise."""
    rows = []
    for kind in KINDS:
        for shortfall in SHORTFALLS:
            for noise in NOISES:
                mine = [
                    each
                    for each in found
                    if (each.kind, each.shortfall, each.noise) == (kind, shortfall, noise)
                ]
                count = Counter(each.found.outcome for each in mine)
                rows.append(
                    [
                        f"{kind}, {100 * shortfall:g} %, noise {noise} %",
                        len(mine),
                        *(count[outcome] for outcome in _SHOWN),
                        sum(each.is_wrong for each in mine),
                    ]
                )
    return table(["shortfall", "volumes", *_SHOWN, "wrong"], rows)


_SHOWN = (Outcome.DELIVERS, Outcome.FALLS_SHORT, Outcome.UNDECIDED)


def goals(found: Sequence[Score]) -> str:
    """Return the figures that have goals."""
    clear = [each for each in found if each.true >= _CLEARLY]
    missed = sum(each.found.outcome is Outcome.DELIVERS for each in clear)
    quiet = [each for each in clear if not each.noise]
    right = sum(each.found.outcome is Outcome.FALLS_SHORT for each in quiet)
    sound = sum(not each.is_wrong for each in found)
    claimed = sum(each.found.time_outcome is Outcome.DELIVERS for each in found)
    covers = sum(
        each.found.shortfall.low - _WHOLE_IOS <= each.true <= each.found.shortfall.high + _WHOLE_IOS
        for each in found
    )
    rows = [
        ["'delivers' of a volume that lacks 5 % or more", f"{missed} of {len(clear)}", "0"],
        ["right or undecided", f"{sound} of {len(found)}", "98 %"],
        ["'falls short' at 5 % or more without noise", f"{right} of {len(quiet)}", "95 %"],
        ["99.9 % of the time claimed from four minutes", f"{claimed} of {len(found)}", "0"],
        ["interval has the true shortfall", f"{covers} of {len(found)}", ""],
    ]
    return table(["figure", "measured", "goal"], rows)


def main() -> None:
    """Audit the volumes and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", type=int, default=600)
    parser.add_argument("--even", action="store_true", help="the seeds to choose rules on")
    parser.add_argument("--wrong", action="store_true", help="print the seeds of wrong verdicts")
    options = parser.parse_args()
    begun = time.monotonic()
    with ProcessPoolExecutor(2) as pool:
        seeds = range(int(not options.even), 2 * options.scenarios, 2)
        found = list(pool.map(score, seeds, chunksize=4))
    print(goals(found), report(found), f"{time.monotonic() - begun:.0f} s", sep="\n\n")
    if options.wrong:
        print("\nwrong:", [each.seed for each in found if each.is_wrong])


if __name__ == "__main__":
    main()
