"""CPU time of commands on a campaign of eight runs, beside `import click` and `import pandas`.

Commands and imports take turns, so that a busy machine slows both; medians are compared. The limits
are those of the design: help, list and completion at most 2x click; show, check, export and a dry
run at most 1.5x pandas; charts and reports in seconds.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

VOLBENCH = [sys.executable, "-m", "volbench"]
COMPLETE = {
    "_VOLBENCH_COMPLETE": "bash_complete",
    "COMP_WORDS": "volbench show --",
    "COMP_CWORD": "2",
}
CLICK, PANDAS = 'python -c "import click"', 'python -c "import pandas"'


@dataclass(frozen=True)
class Measured:
    """A command and what it may take.

    Attributes:
        command: its arguments.
        most: CPU seconds, or a multiple of `beside`.
        beside: name of the measurement that it is compared with; "" for seconds.
        environment: variables beside those of this process.
    """

    command: Sequence[str]
    most: float = 0.0
    beside: str = ""
    environment: tuple[tuple[str, str], ...] = ()


def measurements(folder: Path, campaign: Path) -> dict[str, Measured]:
    """Return every measurement by name."""
    on_campaign = {"show": "show", "check": "check", "export": "export"}
    page, drawn = str(folder / "page.html"), str(folder / "drawn")
    main = "from volbench.cli.main import main; main()"
    return {
        CLICK: Measured([sys.executable, "-c", "import click"]),
        PANDAS: Measured([sys.executable, "-c", "import pandas"]),
        "--help": Measured([*VOLBENCH, "--help"], 2, CLICK),
        "profile list": Measured([*VOLBENCH, "profile", "list"], 2, CLICK),
        "completion": Measured(
            [sys.executable, "-c", main], 2, CLICK, environment=tuple(COMPLETE.items())
        ),
        "run --dry-run": Measured(
            [*VOLBENCH, "run", "quick", "--dry-run", "--on", str(folder)], 1.5, PANDAS
        ),
        **{
            name: Measured([*VOLBENCH, verb, str(campaign)], 1.5, PANDAS)
            for name, verb in on_campaign.items()
        },
        "plot iops": Measured([*VOLBENCH, "plot", "iops", str(campaign), "-o", drawn], 2),
        "plot all": Measured([*VOLBENCH, "plot", "all", str(campaign), "-o", drawn], 8),
        "report": Measured([*VOLBENCH, "report", str(campaign), "-o", page], 5),
    }


def cpu_s(measured: Measured) -> float:
    """Return the CPU seconds of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603 - fixed by this file
        measured.command,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **dict(measured.environment)},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def verdict(measured: Measured, median_s: float, medians: dict[str, float]) -> str:
    """Return a median beside its limit."""
    if not measured.most:
        return ""
    if not measured.beside:
        return f"limit {measured.most:g} s{'' if median_s <= measured.most else '  EXCEEDED'}"
    ratio = median_s / medians[measured.beside]
    word = "" if ratio <= measured.most else "  EXCEEDED"
    return f"{ratio:5.2f} x {measured.beside.split()[-1][:-1]}, limit {measured.most:g} x{word}"


def main() -> None:
    """Print median CPU seconds of each command, and its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--campaign", type=Path, help="default: a new one of 8 runs")
    parser.add_argument("--report", type=Path, help="a large campaign, whose report may take 15 s")
    given = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "drawn").mkdir()
        campaign = given.campaign or folder / "campaign"
        if given.campaign is None:
            run = ["run", "quick", "--on", temporary, "-o", str(campaign), "--yes"]
            subprocess.run([*VOLBENCH, *run], check=True, capture_output=True)  # noqa: S603 - same
        wanted = measurements(folder, campaign)
        if given.report:
            page = str(folder / "large.html")
            wanted["report of many runs"] = Measured(
                [*VOLBENCH, "report", str(given.report), "-o", page], 15
            )
        taken: dict[str, list[float]] = {name: [] for name in wanted}
        for _ in range(given.rounds):
            for name, measured in wanted.items():
                taken[name].append(cpu_s(measured))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    for name, median_s in medians.items():
        print(f"{name:26} {median_s:7.3f} s  {verdict(wanted[name], median_s, medians)}")


if __name__ == "__main__":
    main()
