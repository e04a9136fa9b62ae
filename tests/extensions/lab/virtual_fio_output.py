"""fio's output for requests of virtual clients: the JSON of ``json+`` and the averaged logs.

The shape is that of fio 3.33; the latency bins are those of its ``stat.h`` (64 bins a group, each
group twice as wide as the one before).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.extensions.lab.virtual_client import READ, WRITE, Requests, VirtualWorkload

VERSION = "fio-3.33"
SUBMISSION_S = 3e-6
"""Part of each latency that is reported as submission latency (slat)."""

_NAMES = {READ: "read", WRITE: "write"}
_PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
_DEPTHS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Span:
    """When a run took place."""

    begin_s: float  # in the time of the requests
    begin_utc_s: float  # seconds since 1970
    elapsed_s: float  # how long it took

    @property
    def end_utc_s(self) -> float:
        """Seconds since 1970."""
        return self.begin_utc_s + self.elapsed_s


def render_json(
    name: str,
    jobs: Sequence[Requests],
    workload: VirtualWorkload,
    options: Mapping[str, Mapping[str, str]],
    *,
    span: Span,
) -> str:
    """Return what fio writes with ``--output-format=json+``."""
    document = {
        "fio version": VERSION,
        "timestamp": int(span.end_utc_s),
        "timestamp_ms": int(span.end_utc_s * 1000),
        "global options": dict(options["global"]),
        "jobs": [_job(name, requests, workload, options["job"], span) for requests in jobs],
    }
    return json.dumps(document, indent=2) + "\n"


def _job(
    name: str, requests: Requests, workload: VirtualWorkload, options: Mapping[str, str], span: Span
) -> dict[str, Any]:
    job: dict[str, Any] = {
        "jobname": name,
        "groupid": 0,
        "error": 0,
        "eta": 0,
        "elapsed": int(span.elapsed_s) + 1,
        "job options": dict(options),
    }
    for direction, word in _NAMES.items():
        mine = requests.direction == direction
        latency_s = (requests.done_s - requests.sent_s)[mine]
        job[word] = _direction(latency_s, workload.block_bytes, span.elapsed_s)
    job["trim"] = _direction(np.empty(0), workload.block_bytes, span.elapsed_s)
    job["sync"] = {"total_ios": 0, "lat_ns": _latency(np.empty(0))}
    used = max(depth for depth in _DEPTHS if depth <= workload.iodepth)
    levels = {f"{depth}" if depth < 64 else ">=64": 0.0 for depth in _DEPTHS}
    levels[f"{used}" if used < 64 else ">=64"] = 100.0
    return job | {
        "job_runtime": round(span.elapsed_s * 1000),
        "usr_cpu": 1.0,
        "sys_cpu": 2.0,
        "ctx": len(requests.sent_s),
        "majf": 0,
        "minf": 20,
        "iodepth_level": levels,
    }


def _direction(
    latency_s: NDArray[np.float64], block_bytes: int, runtime_s: float
) -> dict[str, Any]:
    count = len(latency_s)
    moved = count * block_bytes
    submission_s = np.minimum(SUBMISSION_S, latency_s / 2)
    return {
        "io_bytes": moved,
        "io_kbytes": moved // 1024,
        "bw_bytes": round(moved / runtime_s) if count else 0,
        "bw": round(moved / runtime_s / 1024) if count else 0,
        "iops": round(count / runtime_s, 6) if count else 0.0,
        "runtime": round(runtime_s * 1000) if count else 0,
        "total_ios": count,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": _latency(submission_s),
        "clat_ns": _latency(latency_s - submission_s),
        "lat_ns": _latency(latency_s),
    }


def _latency(seconds: NDArray[np.float64]) -> dict[str, Any]:
    nanoseconds = np.round(seconds * 1e9).astype(np.int64)
    if not len(nanoseconds):
        return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    middles, counts = np.unique(_bin_middles(nanoseconds), return_counts=True)
    reached = np.cumsum(counts) / len(nanoseconds)
    ranks = np.searchsorted(reached, np.asarray(_PERCENTILES) / 100 - 1e-12)
    return {
        "min": int(nanoseconds.min()),
        "max": int(nanoseconds.max()),
        "mean": round(float(nanoseconds.mean()), 6),
        "stddev": round(float(nanoseconds.std(ddof=1)), 6) if len(nanoseconds) > 1 else 0.0,
        "N": len(nanoseconds),
        "percentile": {
            f"{percentile:.6f}": int(middles[rank])
            for percentile, rank in zip(_PERCENTILES, ranks, strict=True)
        },
        "bins": {str(m): int(c) for m, c in zip(middles.tolist(), counts.tolist(), strict=True)},
    }


def _bin_middles(nanoseconds: NDArray[np.int64]) -> NDArray[np.int64]:
    group = np.frexp(nanoseconds.astype(np.float64))[1] - 7  # 0 for 64 to 127
    width: NDArray[np.int64] = np.left_shift(1, np.maximum(group, 0)).astype(np.int64)
    return nanoseconds // width * width + width // 2


def render_logs(
    number: int, requests: Requests, *, block_bytes: int, window_s: float, span: Span
) -> dict[str, str]:
    """Return file name to text of the logs of one job, averaged over windows.

    Bandwidth and IOPS have a row for each whole window with completions; a latency row is written
    by the first completion after its window. A stall leaves a gap.
    """
    rows: dict[str, list[tuple[float, int, int]]] = {
        kind: [] for kind in ("bw", "iops", "lat", "slat", "clat")
    }
    latency_s = requests.done_s - requests.sent_s
    submission_s = np.minimum(SUBMISSION_S, latency_s / 2)
    values = {"lat": latency_s, "slat": submission_s, "clat": latency_s - submission_s}
    since_s = requests.done_s - span.begin_s
    for direction in np.unique(requests.direction).tolist():
        mine = np.flatnonzero(requests.direction == direction)
        mine = mine[np.argsort(since_s[mine], kind="stable")]
        windows, first, counts = np.unique(
            (since_s[mine] / window_s).astype(np.int64), return_index=True, return_counts=True
        )
        for window, count in zip(windows.tolist(), counts.tolist(), strict=True):
            end_s = (window + 1) * window_s
            if end_s <= span.elapsed_s + 1e-9:
                kib = int(count * block_bytes / window_s / 1024)
                rows["bw"].append((end_s, kib, direction))
                rows["iops"].append((end_s, int(count / window_s), direction))
        written_s = [*since_s[mine][first[1:]].tolist(), span.elapsed_s]
        for kind, value in values.items():
            means = np.add.reduceat(value[mine], first) / counts * 1e9
            rows[kind] += [
                (at, round(mean), direction)
                for at, mean in zip(written_s, means.tolist(), strict=True)
            ]
    return {
        f"series_{kind}.{number}.log": "".join(
            f"{round((span.begin_utc_s + at) * 1000)}, {value}, {direction}, 0, 0\n"
            for at, value, direction in sorted(found)
        )
        for kind, found in rows.items()
    }
