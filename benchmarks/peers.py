"""CPU time and memory of charts beside fio-plot, of the same results of fio.

    PYTHONPATH=. python benchmarks/peers.py [--fio-plot PATH] [--rounds N]

fio-plot is the usual way to charts of fio's results (`pip install fio-plot`, in an environment of
its own). Both draw PNGs of 98 results: 14 workloads at 7 queue depths, of which a picture of
fio-plot holds seven. A machine's speed cancels in the ratios: all commands take turns within one
run. Beside them stands what no peer does: the first line of `measure`, and all charts of 8 runs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from made_up_campaign import CASE, make_campaign
from measured import Command, Figure, compile_sources, cost_of, medians, print_figures, volbench

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
SIZES_KIB = (4, 8, 16, 32, 64, 128, 256)
ONE_WORKLOAD = ["--where", "bs==4k and rw==randread"]
ONE_RUN = ["series", "--where", "iodepth==1 and bs==4k and rw==randread"]
DEPTH_BARS = ["iops,lat_mean", "--as", "bars"]
FIRST_LINE_S, ALL_CHARTS_S = 0.5, 5.0
# Chart to the options of fio-plot, those of volbench, and at most how many times its CPU time
CHARTS: dict[str, tuple[list[str], list[str], float]] = {
    "depth bars of 98": (["-l", "-r", "randread"], DEPTH_BARS, 1.1),
    "depth bars of the same 7": (["-l", "-r", "randread"], [*DEPTH_BARS, *ONE_WORKLOAD], 1.1),
    "3D bars": (["-L", "-t", "iops", "-r", "randread"], ["iops", "--as", "towers"], 1.0),
    "a run over time": (["-g", "-t", "iops", "-r", "randread", "-d", "1", "-n", "1"], ONE_RUN, 1.1),
}


def write_results(folder: Path) -> None:
    """Write 98 results of fio, named as bench-fio names them, and logs of those at depth 1."""
    for rw, kib, depth in product(("randread", "randwrite"), SIZES_KIB, DEPTHS):
        output = json.loads(CASE.read_bytes())
        (job,) = output["jobs"]
        job["jobname"] = rw
        logs = f"{rw}-iodepth-{depth}-numjobs-1"
        options = {"rw": rw, "bs": f"{kib}k", "iodepth": str(depth), "numjobs": "1"}
        options |= {"write_iops_log": logs, "log_avg_msec": "1000"} if depth == 1 else {}
        job["job options"] |= options
        idle = "write" if rw == "randread" else "read"
        job[idle] = dict.fromkeys(job[idle], 0) | {"io_bytes": 0, "total_ios": 0}
        iops = min(depth / 9e-5, 40_000, 9e8 / kib / 1024)
        busy = job[rw.removeprefix("rand")]
        busy |= {"iops": iops, "bw": int(iops * kib), "bw_bytes": int(iops * kib * 1024)}
        busy |= {"runtime": 60_000, "total_ios": int(60 * iops)}
        busy["lat_ns"] |= {"mean": depth / iops * 1e9, "max": int(9e9 * depth / iops)}
        busy["clat_ns"] |= busy["lat_ns"]
        busy["io_bytes"] = busy["total_ios"] * kib * 1024
        place = folder / f"{kib}k"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{rw}-{depth}-1.json").write_text(json.dumps(output))
        if depth == 1:
            lines = (f"{1000 * s}, {int(iops)}, 0, 0, 0\n" for s in range(1, 61))
            (place / f"{logs}_iops.1.log").write_text("".join(lines))


def first_line_s(folder: Path) -> float:
    """Return the CPU seconds that `measure` takes until its first line."""
    command = volbench("measure", "--on", folder, "--size", "1m", "--dry-run")
    child = subprocess.Popen(  # noqa: S603 - fixed by this file
        command.argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if child.stdout is not None:
        child.stdout.read(1)
    spent_ns = int(Path(f"/proc/{child.pid}/schedstat").read_text().split()[0])
    child.kill()
    child.communicate()
    return spent_ns / 1e9


def main() -> int:
    """Print ratios of CPU time and memory beside the goals; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fio-plot", default=shutil.which("fio-plot") or "fio-plot")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    compile_sources()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_results(folder / "results")
        cost_of(volbench("import", folder / "results", "-o", folder / "all"))
        commands: dict[str, Command] = {}
        for name, (peer, own, _) in CHARTS.items():
            source, drawn = folder / "results" / "4k", folder / f"{name}.png"
            commands[f"fio-plot: {name}"] = Command(
                [given.fio_plot, "-i", str(source), "-T", "t", "-o", str(drawn), *peer]
            )
            what, *choice = own
            drawn = folder / f"own {name}.png"
            commands[name] = volbench("plot", what, folder / "all", "-o", drawn, *choice)
        made = make_campaign(folder).root
        commands["all charts"] = volbench("plot", "all", made, "-o", folder / "charts")
        costs = medians(commands, rounds=given.rounds)
        line_s = statistics.median(first_line_s(folder) for _ in range(given.rounds))
    figures = [
        Figure("first line of `measure`", line_s, "s", FIRST_LINE_S),
        Figure("all charts of 8 runs", costs["all charts"].cpu_s, "s", ALL_CHARTS_S),
    ]
    for name, (_, _, most) in CHARTS.items():
        own_cost, peer_cost = costs[name], costs[f"fio-plot: {name}"]
        note = " against ".join(
            f"{cost.cpu_s:.2f} s, {cost.peak_mb:.0f} MB" for cost in (own_cost, peer_cost)
        )
        ratio = own_cost.cpu_s / peer_cost.cpu_s
        figures.append(Figure(name, ratio, "x fio-plot", most, note=note))
    return print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
