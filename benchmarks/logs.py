"""Logs of single I/Os to figures by second: volbench's count beside csv and pandas.

Each reader runs in a process of its own, which tells its CPU seconds and its peak memory. The work
is IOPS, bandwidth, mean, p50, p99, p99.9 and maximum by second and direction; csv only reads.
"""

from __future__ import annotations

import argparse
import csv
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MILLION = 1_000_000
COLUMNS = ["time_ms", "value", "direction", "bytes"]


def write_log(path: Path, rows: int) -> None:
    """Write a log as fio 3.33 does: 33,000 rows a second, latencies near 0.4 ms with a tail."""
    import numpy as np  # noqa: PLC0415 - not into the memory of the readers that do without

    chance = np.random.default_rng(1)
    with path.open("w", encoding="ascii") as log:
        for first in range(0, rows, MILLION):
            count = min(MILLION, rows - first)
            values = chance.lognormal(13, 0.6, count).astype(int).tolist()
            ways = chance.integers(0, 2, count).tolist()
            times = (np.arange(first, first + count) // 33).tolist()
            parts = zip(times, values, ways, strict=True)
            log.writelines(f"{time}, {value}, {way}, 4096, 0\n" for time, value, way in parts)


def read_volbench(path: Path) -> int:
    """Read a log as a stream."""
    from volbench.fio.histogram import bin_mid_ns, percentile_ns  # noqa: PLC0415 - see above
    from volbench.fio.logstream import count_stream  # noqa: PLC0415 - see above

    with path.open("rb") as stream:
        windows = count_stream(stream, interval_ms=1000).windows
    for window in windows.values():
        bins = {bin_mid_ns(number): count for number, count in window.bins.items()}
        _ = [percentile_ns(bins, percentile) for percentile in (50, 99, 99.9)]
    return len(windows)


def read_pandas(path: Path) -> int:
    """Read a log at once with the C engine of pandas, with exact percentiles."""
    import pandas as pd  # noqa: PLC0415 - see above

    frame = pd.read_csv(path, header=None, names=COLUMNS, usecols=range(4), dtype="int64")
    groups = frame.groupby([frame["time_ms"] // 1000, "direction"])
    frames = (groups["bytes"].agg(["count", "sum"]), groups["value"].agg(["mean", "max"]))
    _ = [groups["value"].quantile(percentile) for percentile in (0.5, 0.99, 0.999)]
    return len(frames[0])


def read_csv(path: Path) -> int:
    """Only read a log, with csv.DictReader into a list."""
    with path.open(encoding="ascii", newline="") as log:
        return len(list(csv.DictReader(log, fieldnames=[*COLUMNS, "priority"])))


READERS = {"volbench": read_volbench, "pandas": read_pandas, "csv": read_csv}


def measure(reader: str, path: Path) -> tuple[float, float]:
    """Return CPU seconds and peak MB of a reader in its own process."""
    command = [sys.executable, __file__, "--reader", reader, "--log", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ours
    cpu_s, peak_mb = done.stdout.split()
    return float(cpu_s), float(peak_mb)


def main() -> None:
    """Write a log, read it in turn, print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20 * MILLION)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--reader", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        READERS[options.reader](options.log)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
        return
    with tempfile.TemporaryDirectory() as folder:
        whole, small = Path(folder, "whole.log"), Path(folder, "small.log")
        write_log(whole, options.rows)
        write_log(small, min(MILLION, options.rows))
        for reader in options.readers:
            path = small if reader == "csv" else whole
            taken = [measure(reader, path) for _ in range(options.rounds)]
            rows = min(MILLION, options.rows) if reader == "csv" else options.rows
            cpu_s, peak_mb = (statistics.median(part) for part in zip(*taken, strict=True))
            print(f"{reader:10} {rows:>11,} rows  {cpu_s:7.2f} s CPU  {peak_mb:8.0f} MB")


if __name__ == "__main__":
    main()
