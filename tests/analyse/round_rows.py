"""Rows of the summary as rounds of SNIA's tests leave them."""


def row(
    job: str, repeat: int, direction: str, iops: float, *, read_percent: int, block: int
) -> dict[str, object]:
    """Return a row of the summary."""
    return {
        "campaign": "c",
        "run": f"{job}-{repeat}",
        "profile": "snia",
        "job": job,
        "group": job,
        "repeat": repeat,
        "phase": "measured",
        "status": "finished",
        "direction": direction,
        "rw": "randrw",
        "rwmixread": read_percent,
        "block_bytes": block,
        "iops": iops,
        "bw_bytes_per_s": iops * block,
        "lat_mean_s": 1 / iops,
        "total_ios": round(iops * 60),
    }
