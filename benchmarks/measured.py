"""Costs of processes, and the table of measured figures beside their targets.

CPU time is compared, not wall time, wherever a target allows it: other work on the machine changes
it least. Sources are compiled first, as those of an installed volbench are.
"""

from __future__ import annotations

import compileall
import datetime as dt
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

VOLBENCH = (sys.executable, "-m", "volbench")
_SOURCES = Path(__file__).parents[1] / "src"


@dataclass(frozen=True)
class Cost:
    """What a process and its children used.

    Attributes:
        cpu_s: user and system time.
        wall_s: from its start to its end.
        peak_mb: largest resident set.
    """

    cpu_s: float
    wall_s: float
    peak_mb: float


@dataclass(frozen=True)
class Command:
    """A command to measure.

    Attributes:
        argv: its arguments.
        environment: variables beside those of this process.
    """

    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A measured figure.

    Attributes:
        name: what was measured.
        value: in `unit`.
        unit: such as ``s`` or ``x pandas``.
        target: maximum in the same unit; None where there is none.
        note: such as the same figure in another unit.
        span: confidence interval of the value; with the target inside, nothing is decided.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    note: str = ""
    span: tuple[float, float] | None = None

    @property
    def verdict(self) -> str:
        """Whether it is within its target; empty without one."""
        if self.target is None:
            return ""
        low, high = self.span or (self.value, self.value)
        if low <= self.target < high:
            return "inconclusive"
        return "met" if high <= self.target else "MISSED"


def cost_of(command: Command) -> Cost:
    """Return what a command used.

    Raises:
        RuntimeError: it failed, with the end of its messages.
    """
    environment = {**os.environ, **command.environment}
    with tempfile.TemporaryFile() as messages:
        began_s = time.perf_counter()
        child = subprocess.Popen(  # noqa: S603 - commands of the benchmarks
            list(command.argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
            env=environment,
        )
        _, status, used = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - began_s
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            messages.seek(0)
            text = messages.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(command.argv)}: {text}")
    return Cost(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1000)


def volbench(*words: str | Path) -> Command:
    """Return a command of volbench."""
    return Command([*VOLBENCH, *map(str, words)])


def medians(commands: Mapping[str, Command], *, rounds: int) -> dict[str, Cost]:
    """Return the median cost of each command; they take turns, so that a busy machine slows all."""
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(cost_of(command))
    return {
        name: Cost(
            statistics.median(cost.cpu_s for cost in costs),
            statistics.median(cost.wall_s for cost in costs),
            max(cost.peak_mb for cost in costs),
        )
        for name, costs in taken.items()
    }


def compile_sources() -> None:
    """Write the bytecode of volbench, as an installation does; reading it needs no setting."""
    compileall.compile_dir(_SOURCES, quiet=1)


def conditions() -> str:
    """Return date, machine and load: a figure means nothing without them."""
    load = os.getloadavg()[0]
    return (
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{os.cpu_count()} CPUs, load {load:.1f}"
    )


def print_figures(figures: Sequence[Figure]) -> int:
    """Print a Markdown table of figures beside their targets.

    Returns:
        The exit status of a benchmark: 1 when a target is missed.
    """
    print(f"\n{conditions()}\n")
    print("| figure | measured | target | measured / target | |")
    print("| --- | --- | --- | --- | --- |")
    for figure in figures:
        target, ratio = "", ""
        if figure.target is not None:
            target = f"{figure.target:g} {figure.unit}"
            ratio = f"{figure.value / figure.target:.2f}"
        note = f" ({figure.note})" if figure.note else ""
        value = f"{figure.value:.3g} {figure.unit}{note}"
        print(f"| {figure.name} | {value} | {target} | {ratio} | {figure.verdict} |")
    return int(any(figure.verdict == "MISSED" for figure in figures))
