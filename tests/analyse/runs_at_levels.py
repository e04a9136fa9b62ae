"""Runs of a given rate, second by second, for the search of their bottleneck."""

from collections.abc import Sequence

import numpy as np

from tests.analyse.findings.conftest import (
    BLOCK,
    Limits,
    a_run,
    a_view,
    percentile_rows,
    series_rows,
    summary_row,
)
from tests.analyse.noise import noisy
from volbench.analyse.frames.run_view import RunView


def ran(
    rates: Sequence[float],
    options: dict[str, str | None] | None = None,
    *,
    limits: Limits | None = None,
    block_bytes: int = BLOCK,
    lat_s: tuple[float, float, float] = (0.0145, 0.0140, 0.0025),
    device: Sequence[dict[str, object]] = (),
) -> RunView:
    """Return a run with a row a second; `lat_s`: mean, percentile 1 and least latency."""
    changes = {"bs": str(block_bytes), **(options or {})}
    run = a_run(changes, name=f"at-{rates[0]:.0f}", limits=limits or Limits())
    size = {"total_ios": int(sum(rates)), "io_bytes": int(sum(rates)) * block_bytes}
    row = summary_row(
        run,
        **size,
        runtime_s=float(len(rates)),
        iops=float(np.mean(rates)),
        bw_bytes_per_s=float(np.mean(rates)) * block_bytes,
        lat_mean_s=lat_s[0],
        lat_min_s=lat_s[2],
    )
    series = [
        {**series_row, "bw_bytes_per_s": rate * block_bytes}
        for series_row, rate in zip(series_rows(run, rates), rates, strict=True)
    ]
    kinds = {"lat": lat_s[1], "clat": lat_s[1], "slat": 2e-6}
    lows = [
        {**percentile_rows(run)[0], "percentile": 1.0, "latency": kind, "value_s": value}
        for kind, value in kinds.items()
    ]
    return a_view(run, summary=[row], series=series, percentiles=lows, device=list(device))


def level(iops: float, seconds: int = 60, *, cv: float = 0.005, seed: int = 1) -> list[float]:
    """Return a level with little noise."""
    return [float(rate) for rate in iops / 1000 * noisy(seconds, cv=cv, seed=seed)]
