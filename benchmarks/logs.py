"""Logs of single I/Os to figures by second: volbench's reader beside pandas and csv.

Each reader runs in a process of its own, which tells its CPU seconds and its peak memory. The work
is IOPS, bandwidth, mean, p50, p99, p99.9 and maximum by second and direction; csv only reads.
``--averaged`` measures another case instead: the averaged logs of 32 jobs over 24 hours.
"""

from __future__ import annotations

import argparse
import csv
import io
import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

MILLION = 1_000_000
COLUMNS = ["time_ms", "value", "direction", "bytes"]
JOBS = 32
DAY_S = 86_400


def write_log(path: Path, rows: int) -> None:
    """Write a log as fio 3.33 does: 33,000 rows a second, latencies near 0.4 ms with a tail."""
    import numpy as np  # noqa: PLC0415 - not into the memory of the readers that do without
    import pyarrow as pa  # noqa: PLC0415 - see above
    from pyarrow import csv as arrow_csv  # noqa: PLC0415 - see above

    chance = np.random.default_rng(1)
    options = arrow_csv.WriteOptions(include_header=False)
    raw = pa.CompressedOutputStream(str(path), "zstd") if path.suffix == ".zst" else path.open("wb")
    with closing(raw) as log:
        for first in range(0, rows, MILLION):
            count = min(MILLION, rows - first)
            columns = [
                np.arange(first, first + count) // 33,
                chance.lognormal(13, 0.6, count).astype(np.int64),
                chance.integers(0, 2, count),
                np.full(count, 4096),
                np.zeros(count, dtype=np.int64),
            ]
            block = io.BytesIO()
            table = pa.table(dict(zip([*COLUMNS, "priority"], columns, strict=True)))
            arrow_csv.write_csv(table, block, options)
            log.write(block.getvalue().replace(b",", b", "))


def write_averaged(folder: Path) -> None:
    """Write the bw, iops and lat logs of many jobs over a day, reads and writes, with jitter."""
    import random  # noqa: PLC0415 - see above

    chance = random.Random(1)  # noqa: S311 - test data, no secret
    for job in range(1, JOBS + 1):
        rows = "".join(
            f"{second * 1000 + chance.randrange(20)}, {chance.randrange(300, 500)}, {way}, 0, 0\n"
            for second in range(1, DAY_S)
            for way in (0, 1)
        )
        for kind in ("bw", "iops", "lat"):
            (folder / f"l_{kind}.{job}.log").write_text(rows, encoding="ascii")


def read_volbench(path: Path, runtime_s: float | None = None) -> int:
    """Read a log, or all logs of a folder, as the ingest does."""
    from volbench.fio.logs.log_rows import Log, Recording  # noqa: PLC0415 - see above
    from volbench.fio.logs.section_logs import parse_log_name, read_series  # noqa: PLC0415 - see above
    from volbench.store.log_files import open_log, plain_name  # noqa: PLC0415 - see above

    logs = []
    for one in sorted(path.iterdir()) if path.is_dir() else [path]:
        kind, clone = parse_log_name(plain_name(one)) or ("lat", 1)
        logs.append(Log(kind, clone, str(one), partial(open_log, one)))
    recording = Recording(interval_s=1.0, fio_version=(3, 33), runtime_s=runtime_s)
    return sum(len(series.t_s) for series in read_series(logs, recording).directions)


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


def apart(*arguments: str) -> str:
    """Run this script in a process of its own; a parent must be small, as peaks are inherited."""
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603 - ours


def measure(reader: str, path: Path) -> tuple[float, float]:
    """Return CPU seconds and peak MB of a reader."""
    cpu_s, peak_mb = apart("--reader", reader, "--log", str(path)).split()
    return float(cpu_s), float(peak_mb)


def print_medians(reader: str, path: Path, rows: int, rounds: int) -> None:
    """Measure a reader and print it."""
    taken = [measure(reader, path) for _ in range(rounds)]
    cpu_s, peak_mb = (statistics.median(part) for part in zip(*taken, strict=True))
    print(f"{reader:10} {rows:>11,} rows  {cpu_s:7.2f} s CPU  {peak_mb:8.0f} MB", flush=True)


def main() -> None:
    """Write a log, read it in turn, print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20 * MILLION)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--compressed", action="store_true", help="volbench reads zstd")
    parser.add_argument("--averaged", action="store_true")
    parser.add_argument("--reader", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write_averaged(options.log) if options.averaged else write_log(options.log, options.rows)
        return
    if options.reader:
        READERS[options.reader](options.log)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.averaged:
            apart("--write", "--averaged", "--log", folder)
            rows = JOBS * 3 * 2 * (DAY_S - 1)
            print_medians("volbench", Path(folder), rows, options.rounds)
            return
        whole = Path(folder, "whole_lat.1.log" + (".zst" if options.compressed else ""))
        small = Path(folder, "small_lat.1.log")
        few = min(MILLION, options.rows)
        apart("--write", "--log", str(whole), "--rows", str(options.rows))
        apart("--write", "--log", str(small), "--rows", str(few))
        for reader in options.readers:
            path = small if reader == "csv" else whole
            rows = few if reader == "csv" else options.rows
            print_medians(reader, path, rows, options.rounds)


if __name__ == "__main__":
    main()
