"""Time that volbench adds to local runs, beside a shell loop over the same job files and bench-fio.

Ten runs of one second read 4 KiB blocks of one file. Time before the first run and between two
runs is taken from a wrapper of fio on PATH that notes when fio starts and ends, in the same way for
all three, with the CPU time that the program that started it and its children have used by then.
bench-fio (package fio-plot) takes part when it is installed. Targets are wall times: on a busy
machine look at the CPU time too.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measured import VOLBENCH, Figure, compile_sources, print_figures

RUNS = 10
SIZE_BYTES = 4 * 1024**2
PROFILE = f"""\
name: overhead
defaults: {{ioengine: psync, size: {SIZE_BYTES}, bs: 4k, runtime: 1s, time_based: 1}}
repeat: {RUNS}
jobs:
  read: {{rw: randread, direct: 1, rate_iops: 500, filename: file}}
"""
WRAPPER = """\
#!/bin/bash
case " $* " in *" --parse-only "*|*" --version "*|*help*) exec {fio} "$@" ;; esac
note() {{ read -r -a stat </proc/$PPID/stat; echo "$EPOCHREALTIME ${{stat[*]:13:4}}" >> {log}; }}
note
{fio} "$@"
status=$?
note
exit $status
"""
"""Fields 14 to 17 of /proc/PID/stat are clock ticks of user and system time, own and children's."""
TARGETS_MS = {"before the first run": 700.0, "between two runs": 50.0}
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Moment:
    """A start or an end of fio.

    Attributes:
        at_s: time of day.
        own_cpu_s: used by the program that starts fio until then.
        all_cpu_s: with its children that have ended.
    """

    at_s: float
    own_cpu_s: float
    all_cpu_s: float


@dataclass(frozen=True)
class Overhead:
    """Seconds that a program takes beside fio.

    Attributes:
        before: wall and CPU time from its start to the first start of fio.
        between: the same from each end of fio to its next start.
        after_s: wall time from the last end of fio to its own.
    """

    before: tuple[float, float]
    between: list[tuple[float, float]]
    after_s: float


def moment_of(line: str) -> Moment:
    """Return what a line of the wrapper says."""
    at, *fields = line.split()
    ticks = [_TICK_S * int(field) for field in fields]
    return Moment(float(at), sum(ticks[:2]), sum(ticks))


def measured(folder: Path, command: Sequence[str]) -> Overhead:
    """Run a command with the wrapper on PATH and return what it took beside fio."""
    log = folder / "fio-times"
    log.write_text("", encoding="ascii")
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    started_s = time.time()
    done = subprocess.run(  # noqa: S603 - commands of this file
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    ended_s = time.time()
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stdout}{done.stderr}")
    moments = [moment_of(line) for line in log.read_text(encoding="ascii").splitlines()]
    first, last = moments[0], moments[-1]
    between = [
        (start.at_s - end.at_s, start.own_cpu_s - end.own_cpu_s)
        for end, start in zip(moments[1:-1:2], moments[2::2], strict=True)
    ]
    return Overhead((first.at_s - started_s, first.all_cpu_s), between, ended_s - last.at_s)


def prepare(folder: Path) -> None:
    """Write the wrapper, the profile and the file to read."""
    fio = shutil.which("fio")
    if fio is None:
        sys.exit("fio is not installed")
    for name in ("bin", "volume"):
        (folder / name).mkdir()
    (folder / "volume" / "file").write_bytes(os.urandom(SIZE_BYTES))
    (folder / "profile.yaml").write_text(PROFILE, encoding="ascii")
    wrapper = folder / "bin" / "fio"
    log = shlex.quote(str(folder / "fio-times"))
    wrapper.write_text(WRAPPER.format(fio=shlex.quote(fio), log=log), encoding="utf-8")
    wrapper.chmod(0o755)


def volbench(folder: Path, number: int) -> list[str]:
    """Return the command of a campaign."""
    command = [*VOLBENCH, "run", "profile.yaml", "--on", "volume"]
    output = ["--output", str(folder / f"campaign-{number}")]
    return [*command, *output, "--allow-destroy", str(folder / "volume" / "file")]


def shell_loop(folder: Path, number: int) -> list[str]:
    """Return a loop over the job files of a campaign."""
    script = 'for job in "$1"/runs/*/job.fio; do fio --output-format=json+ "$job" || exit; done'
    return ["sh", "-c", script, "loop", str(folder / f"campaign-{number}")]


def bench_fio(folder: Path, number: int) -> list[str]:
    """Return the command of bench-fio for the same work; empty when it is not installed."""
    program = shutil.which("bench-fio")
    if program is None:
        return []
    target = ["--target", str(folder / "volume" / "file"), "--type", "file", "--direct", "1"]
    job = ["--mode", "randread", "--engine", "psync", "--iodepth", "1", "--numjobs", "1"]
    length = ["--size", str(SIZE_BYTES), "--runtime", "1", "--time-based", "--loops", str(RUNS)]
    output = ["--quiet", "--output", str(folder / f"bench-fio-{number}")]
    return [program, *target, *job, *length, "--extra-opts", "rate_iops=500", *output]


def figures_of(program: str, overheads: Sequence[Overhead], *, limited: bool) -> list[Figure]:
    """Return the medians of a program; only volbench has targets."""
    gaps = list(itertools.chain.from_iterable(overhead.between for overhead in overheads))
    times = {
        "before the first run": [overhead.before for overhead in overheads],
        "between two runs": gaps,
    }
    figures = []
    for name, pairs in times.items():
        wall_ms, cpu_ms = (1000 * statistics.median(column) for column in zip(*pairs, strict=True))
        if name == "between two runs":  # ticks of 10 ms: only a mean is fine enough
            cpu_ms = 1000 * statistics.fmean(cpu for _, cpu in pairs)
        least, most = (1000 * choose(wall for wall, _ in pairs) for choose in (min, max))
        note = f"{least:.0f} to {most:.0f} ms; CPU {cpu_ms:.0f} ms"
        target = TARGETS_MS[name] if limited else None
        figures.append(Figure(f"{program}: {name}", wall_ms, "ms", target, note))
    after_ms = 1000 * statistics.median(overhead.after_s for overhead in overheads)
    return [*figures, Figure(f"{program}: after the last run", after_ms, "ms")]


def main() -> int:
    """Measure all programs in turn and print the median of each time; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    compile_sources()
    found: dict[str, list[Overhead]] = {"volbench": [], "shell loop": [], "bench-fio": []}
    with tempfile.TemporaryDirectory(prefix="overhead-") as name:
        folder = Path(name)
        prepare(folder)
        for number in range(rounds):
            for program, command_of in zip(found, (volbench, shell_loop, bench_fio), strict=True):
                if command := command_of(folder, number):
                    found[program].append(measured(folder, command))
    figures = []
    for program, overheads in found.items():
        if overheads:
            figures += figures_of(program, overheads, limited=program == "volbench")
        else:
            print(f"{program} is not installed", file=sys.stderr)
    return print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
