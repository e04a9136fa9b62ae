"""Frames as a campaign would give them, for the tests of plots and of frame shaping."""

from collections.abc import Sequence

import pandas as pd

from volbench.store.parquet_tables import frame_of, table_of

Row = dict[str, object]

AKS: tuple[tuple[str, str, int, int, bool, float], ...] = (
    ("test1", "write", 4096, 1, True, 480),
    ("test2", "write", 4096, 1, False, 11500),
    ("test3", "write", 4096, 1, True, 400),
    ("test4", "write", 4096, 16, True, 1080),
    ("test5", "write", 131072, 1, True, 398),
    ("test6", "write", 262144, 1, False, 478),
    ("test7", "randwrite", 4096, 1, False, 1103),
    ("test8", "randwrite", 262144, 16, False, 470),
    ("test9", "randwrite", 4096, 16, False, 1100),
)
"""Job, pattern, block, depth, direct and IOPS of nine jobs against a limit of 1,100."""

SPREAD = {"mean": 1.0, "min": 0.2, "max": 40.0, "p50": 0.8, "p90": 1.5, "p99": 6.0, "p999": 20.0}
"""Latencies as multiples of the mean."""


def identity(job: str, *, repeat: int = 1) -> Row:
    """Return the columns that every frame shares."""
    row: Row = {"campaign": "trial", "run": f"{job}-{repeat}", "host": "local"}
    row |= {"profile": "aks-disk", "job": job, "group": job, "role": "data", "volume": "/data"}
    return row | {"repeat": repeat, "phase": "measured"}


def rates(job: str, iops: float, *, block_bytes: int = 4096, **columns: object) -> Row:
    """Return a row of the summary without latencies: a direct randwrite unless told otherwise."""
    row = identity(job) | {"tool": "fio", "status": "finished"}
    row |= {"direction": "write", "rw": "randwrite", "direct": True, "block_bytes": block_bytes}
    row |= {"iodepth": 1, "numjobs": 1, "ioengine": "libaio"}
    return row | {"iops": iops, "bw_bytes_per_s": iops * block_bytes} | columns


def result(job: str, *, iops: float = 1000.0, repeat: int = 1, **columns: object) -> Row:
    """Return a row of the summary: a direct 4k randwrite unless told otherwise."""
    row = rates(job, iops) | identity(job, repeat=repeat)
    for statistic, factor in SPREAD.items():
        row[f"lat_{statistic}_s"] = factor / iops
        row[f"clat_{statistic}_s"] = 0.9 * factor / iops
    return row | columns


def only_bandwidth(job: str) -> Row:
    """Return a row without IOPS and latency, like an imported result."""
    unknown = {f"{kind}_{name}_s": None for kind in ("lat", "clat") for name in SPREAD}
    row = result(job, iodepth=1, direct=False, ioengine=None, bw_bytes_per_s=1.9e9)
    return row | unknown | {"iops": None}


def aks(**columns: object) -> list[Row]:
    """Return the nine jobs with a declared limit of 1,100 IOPS."""
    return [
        result(job, iops=iops, rw=rw, block_bytes=block, iodepth=depth, direct=direct)
        | {"bw_bytes_per_s": iops * block, "limit_iops": 1100.0}
        | columns
        for job, rw, block, depth, direct, iops in AKS
    ]


def sweep(*, depths: Sequence[int] = (1, 4, 16), blocks: Sequence[int] = (4096,)) -> list[Row]:
    """Return a grid of jobs whose IOPS are a hundred times the depth."""
    return [
        result(
            f"{rw}-{depth}-{block}",
            rw=rw,
            direction=rw.removeprefix("rand"),
            iodepth=depth,
            block_bytes=block,
            iops=100.0 * depth,
        )
        for rw in ("randread", "randwrite")
        for depth in depths
        for block in blocks
    ]


def bins(row: Row, counts: dict[float, int], *, latency: str = "lat") -> list[Row]:
    """Return rows of the histogram; each key is the upper edge of a bin in seconds."""
    known = identity("x")
    return [
        {name: row[name] for name in (*known, "direction")}
        | {"latency": latency, "count": count}
        | {"bin_s": high * 0.99, "bin_low_s": high * 0.98, "bin_high_s": high}
        for high, count in counts.items()
    ]


def intervals(row: Row, iops: Sequence[float]) -> list[Row]:
    """Return rows of the series, one a second."""
    known = identity("x")
    return [
        {name: row[name] for name in (*known, "direction")}
        | {"t_s": float(second), "iops": value, "bw_bytes_per_s": value * 4096}
        | {"lat_mean_s": 1 / value if value else None}
        for second, value in enumerate(iops, start=1)
    ]


def samples(
    row: Row, iops: Sequence[float | None], *, ended_s: float, **columns: object
) -> list[Row]:
    """Return rows of the device frame, one a second, of a device that writes 4 KiB each time."""
    known = identity("x")
    return [
        {name: row[name] for name in known}
        | {"device": "sdx", "level": "volume", "t_s": float(second), "interval_s": 1.0}
        | {"after_fio": second > ended_s, "read_iops": 0.0, "read_bw_bytes_per_s": 0.0}
        | {"write_iops": value, "write_bw_bytes_per_s": None if value is None else value * 4096}
        | {"write_lat_s": 1 / value if value else None, "io_errors": 0}
        | {"write_request_bytes": 4096.0 if value else None}
        | {"queue_depth": 1.0, "active_percent": 99.0, "cpu_busy_percent": 5.0}
        | {"iowait_percent": 2.0, "steal_percent": 0.0, "dirty_bytes": 1e6, "writeback_bytes": 0.0}
        | columns
        for second, value in enumerate(iops, start=1)
    ]


def warming(rows: Sequence[Row]) -> list[Row]:
    """Return verdicts that blocks got warm in each run."""
    return [
        {**identity(str(row["job"])), "direction": row["direction"], "causes": "warming"}
        for row in rows
    ]


def frames(
    summary: Sequence[Row],
    *,
    series: Sequence[Row] = (),
    histogram: Sequence[Row] = (),
    device: Sequence[Row] = (),
    verdicts: Sequence[Row] = (),
) -> dict[str, pd.DataFrame]:
    """Return frames with the column contract's types, as a campaign hands them out."""
    rows = {"summary": summary, "series": series, "histogram": histogram, "device": device}
    rows |= {"verdicts": verdicts, "percentiles": (), "marks": (), "shares": ()}
    return {name: frame_of(table_of(name, list(reported))) for name, reported in rows.items()}
