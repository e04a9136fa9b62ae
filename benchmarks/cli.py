"""CPU time of commands on a campaign of eight runs, beside `import click` and `import pandas`.

Targets of the design: help, list and completion at most 2x click; a dry run, show, check and
export at most 1.5x pandas; charts and reports in seconds. Checking a profile of 2,000 cells counts
fio's time as well.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from measured import Command, Figure, compile_sources, cost_of, medians, print_figures, volbench

CLICK, PANDAS = "import click", "import pandas"
COMPLETE = {
    "_VOLBENCH_COMPLETE": "bash_complete",
    "COMP_WORDS": "volbench show --",
    "COMP_CWORD": "2",
}
CELLS = 2000


@dataclass(frozen=True)
class Limited:
    """A command and its limit.

    Attributes:
        command: to measure.
        most: CPU seconds, or a multiple of `beside`.
        beside: the import that it is compared with; empty for seconds.
    """

    command: Command
    most: float
    beside: str = ""


def matrix_profile() -> str:
    """Return a profile with a matrix of 2,000 cells."""
    depths = ", ".join(str(depth) for depth in range(1, CELLS // 20 + 1))
    return (
        "name: cells\n"
        "defaults: {ioengine: libaio, direct: 1, size: 64m, runtime: 10s, time_based: 1}\n"
        "matrix:\n"
        "  rw: [read, write, randread, randwrite]\n"
        "  bs: [4k, 8k, 16k, 64k, 1m]\n"
        f"  iodepth: [{depths}]\n"
    )


def limited_commands(folder: Path, campaign: Path) -> dict[str, Limited]:
    """Return every measured command by name."""
    complete = "from volbench.cli.main import main; main()"
    page, drawn, cells = folder / "page.html", folder / "drawn", folder / "cells.yaml"
    drawn.mkdir(exist_ok=True)
    cells.write_text(matrix_profile(), encoding="ascii")
    return {
        "--help": Limited(volbench("--help"), 2, CLICK),
        "profile list": Limited(volbench("profile", "list"), 2, CLICK),
        "completion": Limited(Command([sys.executable, "-c", complete], COMPLETE), 2, CLICK),
        "run --dry-run": Limited(
            volbench("run", "quick", "--dry-run", "--on", folder), 1.5, PANDAS
        ),
        "show": Limited(volbench("show", campaign), 1.5, PANDAS),
        "check": Limited(volbench("check", campaign), 1.5, PANDAS),
        "export": Limited(volbench("export", campaign), 1.5, PANDAS),
        "plot iops": Limited(volbench("plot", "iops", campaign, "-o", drawn), 2),
        "plot all": Limited(volbench("plot", "all", campaign, "-o", drawn), 8),
        "report": Limited(volbench("report", campaign, "-o", page), 5),
        f"profile check of {CELLS:,} cells": Limited(volbench("profile", "check", cells), 3),
    }


def main() -> int:
    """Print median CPU seconds of each command beside its target; 1 when one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--campaign", type=Path, help="default: a new one of 8 runs")
    given = parser.parse_args()
    compile_sources()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        campaign = given.campaign or folder / "campaign"
        if given.campaign is None:
            cost_of(volbench("run", "quick", "--on", folder, "-o", campaign, "--yes"))
        limited = limited_commands(folder, campaign)
        imports = {name: Command([sys.executable, "-c", name]) for name in (CLICK, PANDAS)}
        commands = imports | {name: one.command for name, one in limited.items()}
        costs = medians(commands, rounds=given.rounds)
    figures = [Figure(f"`{name}`", costs[name].cpu_s, "s") for name in imports]
    for name, one in limited.items():
        cpu_s = costs[name].cpu_s
        if one.beside:
            unit = f"x {one.beside.removeprefix('import ')}"
            ratio = cpu_s / costs[one.beside].cpu_s
            figures.append(Figure(f"`{name}`", ratio, unit, one.most, note=f"{cpu_s:.2f} s"))
        else:
            figures.append(Figure(f"`{name}`", cpu_s, "s", one.most))
    return print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
