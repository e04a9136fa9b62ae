"""Rows of the summary as rounds of SNIA's tests leave them."""

from tests.present.frames_for_plots import rates


def row(
    job: str, repeat: int, direction: str, iops: float, *, read_percent: int, block: int
) -> dict[str, object]:
    """Return a row of the summary."""
    return (
        rates(job, iops, block_bytes=block, direction=direction, rw="randrw")
        | {"campaign": "c", "run": f"{job}-{repeat}", "profile": "snia", "repeat": repeat}
        | {"rwmixread": read_percent, "lat_mean_s": 1 / iops, "total_ios": round(iops * 60)}
    )
