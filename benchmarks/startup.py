"""How long `volbench --help` takes beside `python -c "import click"`, taken in turn."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    'python -c "import click"': [sys.executable, "-c", "import click"],
    "volbench --help": [sys.executable, "-m", "volbench", "--help"],
    "volbench profile list": [sys.executable, "-m", "volbench", "profile", "list"],
}


def seconds(command: list[str]) -> float:
    """Return the wall time of one process."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - fixed above
    return time.perf_counter() - started


def main() -> None:
    """Print median and ratio of each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            taken[name].append(seconds(command))
    base = statistics.median(next(iter(taken.values())))
    for name, values in taken.items():
        median = statistics.median(values)
        print(f"{name:28} median {median * 1000:6.1f} ms  {median / base:5.2f} x")


if __name__ == "__main__":
    main()
