"""Time that volbench adds to local runs, beside a shell loop over the same job files and bench-fio.

Ten runs of one second read 4 KiB blocks of one file. Time before the first run and between two
runs is taken from a wrapper of fio on PATH that notes when fio starts and ends, in the same way for
all three. bench-fio (package fio-plot) takes part when it is installed. Medians of all rounds; run
it on a quiet machine.
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
from dataclasses import dataclass
from pathlib import Path

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
#!/bin/sh
case " $* " in *" --parse-only "*|*" --version "*|*help*) exec {fio} "$@" ;; esac
date +%s.%N >> {log}
{fio} "$@"
status=$?
date +%s.%N >> {log}
exit $status
"""


@dataclass(frozen=True)
class Overhead:
    """Seconds that a program takes beside fio.

    Attributes:
        before_s: from its start to the first start of fio.
        between_s: from each end of fio to its next start.
        after_s: from the last end of fio to its own.
    """

    before_s: float
    between_s: list[float]
    after_s: float


def measured(folder: Path, command: list[str]) -> Overhead:
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
    times = [float(line) for line in log.read_text(encoding="ascii").split()]
    between = [start - end for end, start in zip(times[1:-1:2], times[2::2], strict=True)]
    return Overhead(times[0] - started_s, between, ended_s - times[-1])


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
    command = [sys.executable, "-m", "volbench", "run", "profile.yaml", "--on", "volume"]
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


def main() -> None:
    """Measure all programs in turn and print the median of each time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    found: dict[str, list[Overhead]] = {"volbench": [], "shell loop": [], "bench-fio": []}
    with tempfile.TemporaryDirectory(prefix="overhead-") as name:
        folder = Path(name)
        prepare(folder)
        for number in range(rounds):
            for program, command_of in zip(found, (volbench, shell_loop, bench_fio), strict=True):
                if command := command_of(folder, number):
                    found[program].append(measured(folder, command))
    for program, overheads in found.items():
        if not overheads:
            print(f"{program:10} not installed")
            continue
        before, between, after = (
            statistics.median(seconds) * 1000
            for seconds in (
                [overhead.before_s for overhead in overheads],
                list(itertools.chain.from_iterable(found.between_s for found in overheads)),
                [overhead.after_s for overhead in overheads],
            )
        )
        print(
            f"{program:10} {before:6.0f} ms before the first run, {between:5.0f} ms between two, "
            f"{after:6.0f} ms after the last"
        )


if __name__ == "__main__":
    main()
