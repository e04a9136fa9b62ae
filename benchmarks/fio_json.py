"""How long reading fio's json+ takes beside json.loads and pandas.json_normalize."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from volbench.fio.results.json_output import parse_output

CASE = Path(__file__).parent.parent / "tests/cases/fio-3.33/randrw-jsonplus/stdout"


def main() -> None:
    """Print the median of each reader and its ratio to json.loads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    text = CASE.read_text()
    readers: dict[str, Callable[[], object]] = {
        "json.loads": lambda: json.loads(text),
        "volbench parse_output": lambda: parse_output(text),
        "pandas.json_normalize": lambda: pd.json_normalize(json.loads(text)["jobs"]),
    }
    taken: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, read in readers.items():
            started = time.perf_counter()
            read()
            taken[name].append(time.perf_counter() - started)
    base = statistics.median(taken["json.loads"])
    print(f"{CASE.parent.name}: {len(text) / 1024:.0f} KiB")
    for name, values in taken.items():
        median = statistics.median(values)
        print(f"{name:24} median {median * 1000:6.2f} ms  {median / base:5.1f} x")


if __name__ == "__main__":
    main()
