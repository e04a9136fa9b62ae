"""Results of loops over fio with known truth, under names that people give to files and jobs."""

import json
from itertools import product
from pathlib import Path
from random import Random

# Latency in seconds, limit of IOPS, and limit of bytes per second of each volume
VOLUMES = {
    "premium": (900e-6, 5_000.0, 120e6),
    "standard": (1500e-6, 2_000.0, 60e6),
    "local": (90e-6, 42_000.0, 900e6),
}
PATTERNS, SIZES, DEPTHS, REPEATS = ("randread", "randwrite"), (4096, 65536), (1, 16, 64), 3
# Path of a result, and name of its job
NAMINGS = {
    "counted": ("{v}/{rw}-{bs}-{qd}-{r}.json", "{rw}-{bs}-{qd}"),
    "folders": ("run{r}/{v}/{rw}/{k}k/{qd}.json", "fio"),
    "one-job": ("{v}/{rw}{k}k{qd}/result-{r}.json", "bench"),
    "sentences": ("{v} {rw} ({k}k, depth {qd}) repeat {r}.json", "Random IO on {v}"),
}


def true_rate(volume: str, rw: str, bs: int, depth: int) -> float:
    """Return the IOPS of a volume without noise."""
    latency_s, iops, bandwidth = VOLUMES[volume]
    slower = 1.25 if rw == "randwrite" else 1.0
    return min(depth / (latency_s * slower), iops * (0.9 if slower > 1 else 1), bandwidth / bs)


def write_loop(folder: Path, naming: str) -> None:
    """Write three repeats of each setting, whose rates differ by some 3 %."""
    path, job = NAMINGS[naming]
    chance, ended = Random(5), 1_790_000_000  # noqa: S311 - noise of results
    cells = product(range(REPEATS), VOLUMES, PATTERNS, SIZES, DEPTHS)
    for r, v, rw, bs, qd in cells:
        ended += 63
        words = {"v": v, "rw": rw, "bs": bs, "k": bs // 1024, "qd": qd, "r": r}
        iops = true_rate(v, rw, bs, qd) * chance.gauss(1, 0.03)
        options = {"name": job.format(**words), "filename": f"/dev/{v}", "rw": rw, "bs": str(bs)}
        options |= {"iodepth": str(qd), "runtime": "60", "time_based": "1", "direct": "1"}
        file = folder / path.format(**words)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(_result({**options, "ioengine": "libaio"}, iops, ended)))


def _result(options: dict[str, str], iops: float, ended: int) -> dict[str, object]:
    bs, mean_ns, ios = int(options["bs"]), int(options["iodepth"]) / iops * 1e9, int(iops * 60)
    percentiles = {"50.000000": int(0.9 * mean_ns), "99.000000": int(3 * mean_ns)}
    lat = {"min": int(0.6 * mean_ns), "max": int(9 * mean_ns), "mean": mean_ns, "stddev": 0.0}
    side: dict[str, object] = {"io_bytes": ios * bs, "io_kbytes": ios * bs // 1024, "iops": iops}
    side |= {"bw_bytes": int(iops * bs), "bw": int(iops * bs / 1024), "runtime": 60_000}
    side |= {"total_ios": ios, "short_ios": 0, "drop_ios": 0}
    side |= {"lat_ns": lat, "clat_ns": {**lat, "percentile": percentiles}}
    job: dict[str, object] = {"jobname": options["name"], "groupid": 0, "error": 0}
    job |= {"job options": options, "job_runtime": 60_000}
    job[options["rw"].removeprefix("rand")] = side
    return {"fio version": "fio-3.36", "timestamp": ended, "jobs": [job]}
