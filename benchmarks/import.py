"""Cost of an import: CPU and wall time of results with three logs each, verdicts included.

``--collection N`` imports N results with 31 logs each in the mean, as a published collection of
3,450 results and 106,950 logs has them: 1 to 16 jobs with five logs of 240 lines.

Beside it what one would write instead: the same files read with json and pandas, without checks,
verdicts or a campaign.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measured import Command, Figure, compile_sources, cost_of, print_figures, volbench
from scale import CASE, LOGS, make_results, write_result

RESULT_S, LOG_S = 0.010, 0.001
"""Maximum of CPU seconds for each result, and for each log."""
PANDAS = """
import json, sys
from pathlib import Path
import pandas as pd
root = Path(sys.argv[1])
names = ["msec", "value", "direction", "block", "offset"]
results = [pd.json_normalize(json.loads(path.read_text())["jobs"]) for path in root.rglob("*.json")]
logs = [pd.read_csv(path, names=names).assign(log=str(path)) for path in root.rglob("*.log")]
pd.concat(results).to_pickle(sys.argv[2])
pd.concat(logs).groupby(["log", "direction", "msec"])["value"].mean().to_pickle(sys.argv[2])
"""


def measure(root: Path, *, runs: int) -> Iterator[Figure]:
    """Import results, and read the same files with pandas."""
    results, logs = root / f"results{runs}", runs * len(LOGS)
    make_results(results, runs=runs)
    labels = ("--labels", "{host}/{repeat}/{job}")
    cost = cost_of(volbench("import", results, *labels, "-q", "--output", root / f"campaign{runs}"))
    plain = cost_of(Command([sys.executable, "-c", PANDAS, str(results), str(root / "frame")]))
    name = f"import of {runs:,} results and {logs:,} logs"
    target_s = runs * RESULT_S + logs * LOG_S
    wall = f"{cost.wall_s:.1f} s of wall time, {cost.peak_mb:.0f} MB"
    yield Figure(name, cost.cpu_s, "s", target_s, note=wall)
    wall = f"{plain.wall_s:.1f} s of wall time, {plain.peak_mb:.0f} MB"
    yield Figure("the same files by json and pandas", plain.cpu_s, "s", note=wall)


JOBS = (1, 2, 4, 8, 16)
ALL_LOGS = (*LOGS, "clat", "slat")
COLLECTION_S, COLLECTION_MB = 110 / 3450, 800
"""Maximum of CPU seconds for each result of a collection, and of memory for all of it."""


def measure_collection(root: Path, *, runs: int) -> Iterator[Figure]:
    """Import results of many jobs with all their logs."""
    results = root / f"collection{runs}"
    document = json.loads(CASE.read_text(encoding="utf-8"))
    for number in range(runs):
        write_result(results, number, document, jobs=JOBS[number % 5], kinds=ALL_LOGS, step_ms=250)
    labels = ("--labels", "{host}/{repeat}/{job}")
    cost = cost_of(volbench("import", results, *labels, "-q", "--output", root / f"all{runs}"))
    name = f"import of {runs:,} results and {sum(1 for _ in results.rglob('*.log')):,} logs"
    wall = f"{cost.wall_s:.1f} s of wall time"
    yield Figure(name, cost.cpu_s, "s", runs * COLLECTION_S, note=wall)
    yield Figure(f"{name}, memory", cost.peak_mb, "MB", COLLECTION_MB)


def main() -> int:
    """Print the figures of each size beside their targets; 1 when one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="*", default=[343])
    parser.add_argument("--collection", type=int, nargs="*", default=[])
    chosen = parser.parse_args()
    compile_sources()
    with tempfile.TemporaryDirectory() as folder:
        return print_figures(
            [
                *(figure for runs in chosen.runs for figure in measure(Path(folder), runs=runs)),
                *(
                    figure
                    for runs in chosen.collection
                    for figure in measure_collection(Path(folder), runs=runs)
                ),
            ]
        )


if __name__ == "__main__":
    sys.exit(main())
