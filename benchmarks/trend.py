"""How soon a change of level is found over nights, and how often one that is not there: a table.

Each night both tools see the series up to that night. A change is found when its first night is
reported at most two nights too early, in the night itself or later. A false alarm is any first
report of a change for the worse, or a night outside the limits, in a year without one. Seeds are
fixed and odd. Apache Otava is run with its defaults if it is installed (`pip install
apache-otava`); with --tolerance, both ignore smaller changes.

    .venv/bin/python benchmarks/trend.py --series 100
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

try:
    from otava.analysis import compute_change_points
except ImportError:
    compute_change_points = None

from volbench.analyse.compare.level_changes import FoundChange, find_level_changes
from volbench.analyse.compare.workload_trends import limits_of, reference_length
from volbench.analyse.frames.resample import Floats
from volbench.extensions.confirming.host_speed import slowdown
from volbench.model.frames.columns import CALIBRATION

YEAR = 350
MAX_EARLY = 2  # nights by which the first bad night may be named too early
AFTER = 14  # nights behind a shift
FIRST, LAST = 40, 100  # nights of the shift
MIN_OTAVA = 10  # values below which its test refuses its own candidates


@dataclass(frozen=True)
class Design:
    """Nights without a shift."""

    name: str
    noise: float = 0.05  # deviation of the logarithms
    missing: float = 0.0  # share of the nights
    linked: float = 0.0  # correlation of neighbours
    bad: float = 0.0  # share of nights that are a third slower
    hosts: float = 0.0  # difference of a second host, which takes over in night 20

    def draw(self, rng: np.random.Generator, nights: int) -> Floats:
        """Return logarithms."""
        noise = rng.standard_normal(nights)
        for night in range(1, nights):
            noise[night] *= np.sqrt(1 - self.linked**2)
            noise[night] += self.linked * noise[night - 1]
        logs: Floats = self.noise * noise
        logs -= 0.4 * (rng.random(nights) < self.bad)
        logs[20:] += self.hosts
        return logs

    def kept(self, rng: np.random.Generator, nights: int) -> np.ndarray:
        """Return which nights have results."""
        return rng.random(nights) >= self.missing


DESIGNS = (
    *(Design(f"noise {noise} %", noise / 100) for noise in (2, 5, 10, 20)),
    Design("noise 5 %, a fifth of the nights missing", missing=0.2),
    Design("noise 5 %, host 10 % faster from night 20", hosts=0.1),
    Design("noise 5 %, neighbours correlated by 0.3", linked=0.3),
    Design("noise 5 %, one night in 50 a third slower", bad=0.02),
)
SHIFTS = (0.02, 0.05, 0.10, 0.20)

Found = Sequence[tuple[int, int]]
"""First night of the new level, and the night in which it was reported, of each change."""


def is_worse(logs: Floats, change: FoundChange) -> bool:
    """Return whether the nights of a change are below all before."""
    new = logs[change.place : change.found + 1]
    return bool(np.median(new) < np.median(logs[: change.place]))


def own(logs: Floats, tolerance: float) -> Found:
    """Return what volbench reports: changes for the worse, and nights outside the limits."""
    changes = find_level_changes(logs, worse=-1, least_step=tolerance or 0.01)
    found = [(change.place, change.found) for change in changes if is_worse(logs, change)]
    for count in range(5, len(logs) + 1):
        first = next((change.place for change in changes if change.found < count), count)
        reference = reference_length(count, None, first)
        if 4 <= reference < count:
            low, _, _ = limits_of(np.exp(logs[:reference]), rows=1, resolution=0.0)
            beyond = np.exp(logs[count - 1]) < low
            if beyond and all(abs(place - count + 1) > AFTER for place, _ in found):
                found.append((count - 1, count - 1))
    return found


# Share of the variance of a night that lasts over a repetition right after it: a model, not a
# measurement. With 0, a repetition is another night; with 1, it says nothing.
SHARED = 0.5
# Variance of the median of three, as a share of that of one
OF_THREE = 0.45


def confirmed(found: Found, logs: Floats, level: Floats, noise: float) -> Found:
    """Return what a repetition of the alarming night confirms (`trend --confirm`).

    It is confirmed where it is nearer to the alarming value than to the nights before.
    """
    rng = np.random.default_rng(len(found))
    scatter = noise * np.sqrt(SHARED * (1 - SHARED) + OF_THREE * (1 - SHARED))

    def again(night: int) -> float:
        lasting = SHARED * (logs[night] - level[night])
        return float(level[night] + lasting + scatter * rng.normal())

    def before(place: int) -> float:
        return float(np.median(logs[:place])) if place else 0.0

    return [
        (place, night) for place, night in found if again(night) < (logs[night] + before(place)) / 2
    ]


def otava(logs: Floats, tolerance: float) -> Found:
    """Return what Otava reports as new for the worse: farther than 3 nights from all before."""
    values, seen, found = np.exp(logs), [], []
    for count in range(MIN_OTAVA, len(values) + 1):
        try:
            changes, _ = compute_change_points(list(values[:count]), min_magnitude=tolerance)
        except ValueError:  # a window with one value on a side
            continue
        for change in changes:
            if all(abs(change.index - place) > 3 for place in seen):
                seen.append(change.index)
                if change.stats.mean_2 < change.stats.mean_1:
                    found.append((change.index, count - 1))
    return found


Tool = Callable[[Floats, float], Found]


def false_alarms(
    tool: Tool, design: Design, series: int, tolerance: float, *, confirms: bool = False
) -> float:
    """Return the mean number of reports for the worse in a year without a shift."""
    count = 0
    for seed in range(1, 2 * series, 2):
        rng = np.random.default_rng(seed)
        logs = design.draw(rng, YEAR)
        kept = design.kept(rng, YEAR)
        found = tool(logs[kept], tolerance)
        if confirms:
            level = design.hosts * (np.arange(YEAR) >= 20)[kept]
            found = confirmed(found, logs[kept], level, design.noise)
        count += len(found)
    return count / series


def delays(
    tool: Tool,
    design: Design,
    shift: float,
    series: int,
    tolerance: float,
    *,
    confirms: bool = False,
) -> Floats:
    """Return the number of nights at the new level until it was found; infinite for not found."""
    nights = []
    for seed in range(1, 2 * series, 2):
        rng = np.random.default_rng(seed)
        at = int(rng.integers(FIRST, LAST))
        logs = design.draw(rng, at + AFTER)
        logs[at:] += np.log1p(-shift)
        kept = design.kept(rng, at + AFTER)
        place = int(np.count_nonzero(kept[:at]))
        reported = tool(logs[kept], tolerance)
        if confirms:
            level = design.hosts * (np.arange(at + AFTER) >= 20.0)
            level[at:] += np.log1p(-shift)
            reported = confirmed(reported, logs[kept], level[kept], design.noise)
        found = [
            night - place + 1
            for first, night in reported
            if night >= place and first >= place - MAX_EARLY
        ]
        nights.append(min(found, default=np.inf))
    return np.array(nights, dtype=float)


def real(path: Path, tolerance: float) -> None:
    """Print a row for each metric of a CSV file: alarms a year, and those that remain.

    Columns that begin with ``cal_`` are the speed of the host that night, where more is better; of
    the others, those that end with ``_ms`` are latencies. The repetition of an alarming night is
    the night after it, for nobody measured the same night twice.
    """
    nights = pd.read_csv(path, parse_dates=["date"]).sort_values("date")
    speeds = [tuple(row) for row in nights.filter(like="cal_").to_numpy(dtype=float)]
    for metric in nights.select_dtypes("number").columns.difference(["run"]):
        if metric.startswith("cal_"):
            continue
        is_known = nights[metric].gt(0).to_numpy()
        logs = np.log(nights[metric].to_numpy(dtype=float)[is_known])
        logs = -logs if metric.endswith("_ms") else logs
        known = [speed for speed, is_there in zip(speeds, is_known, strict=True) if is_there]
        found = own(logs, tolerance)
        excused = [each for each in found if host_explains(each, logs, known)]
        rest = [each for each in found if each not in excused]
        held = [each for each in rest if next_night_agrees(each, logs)]
        rates = (f"{len(some) * YEAR / len(logs):.1f}" for some in (found, rest, held))
        print(f"| {path.stem} | {metric} | {len(logs)} | {' | '.join(rates)} |", flush=True)


def host_explains(found: tuple[int, int], logs: Floats, speeds: Sequence[Sequence[float]]) -> bool:
    """Return whether the host was as much slower that night as its result was."""
    first, night = found
    usual = [speed for speed in speeds[:first] if np.isfinite(speed).all()]
    if not usual or not np.isfinite(speeds[night]).all():
        return False
    own_speed, others = (
        [(*speed, *speed[-1:] * (len(CALIBRATION) - len(speed))) for speed in some]
        for some in ([speeds[night]], usual)
    )
    share, _ = slowdown(own_speed[0], others)
    return share > 0 and float(np.median(logs[:first]) - logs[night]) <= -np.log(1 - share)


def next_night_agrees(found: tuple[int, int], logs: Floats) -> bool:
    """Return whether the night after an alarm is nearer to it than to the nights before."""
    first, night = found
    if night + 1 >= len(logs):
        return True
    return float(logs[night + 1]) < (logs[night] + np.median(logs[:first])) / 2


def main() -> None:
    """Print a Markdown row for each design and tool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--tolerance", type=float, default=0.0)
    parser.add_argument("--otava-series", type=int, default=10, help="it takes a minute a year")
    parser.add_argument("--only", default="", help="designs whose name has this")
    parser.add_argument("--real", type=Path, nargs="*", default=[], help="CSV files of nights")
    options = parser.parse_args()
    tools: dict[str, Tool] = {"volbench": own, "volbench, --confirm": own}
    if compute_change_points is not None:
        tools["Otava"] = otava
    if options.real:
        print(
            "| layout | metric | nights | alarms a year | but for slower hosts | next night too |"
        )
        print("|" + " --- |" * 6)
        for path in options.real:
            real(path, options.tolerance)
        return
    shifts = " | ".join(f"{100 * shift:.0f} %" for shift in SHIFTS)
    print(f"| nights | tool | false alarms a year | {shifts} |\n|" + " --- |" * 7)
    for design in DESIGNS:
        if options.only not in design.name:
            continue
        for name, tool in tools.items():
            series = options.otava_series if tool is otava else options.series
            terms, again = (series, options.tolerance), name.endswith("--confirm")
            cells = [f"{false_alarms(tool, design, *terms, confirms=again):.2f}"]
            for shift in SHIFTS:
                nights = delays(tool, design, shift, *terms, confirms=again)
                cells.append(f"{100 * np.mean(nights <= 3):.0f} / {100 * np.mean(nights <= 7):.0f}")
            print(f"| {design.name} | {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
