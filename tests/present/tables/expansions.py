"""A campaign that measured a volume before, during and after its expansion."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import Mock

from tests.present.tables.table_rows import summary

PARTS = ("before", "during", "after")
IDENTITY = {"campaign": "c", "host": "loop", "direction": "write"}


def expanded_campaign(*, meanwhile: float, end_s: float | None = 4.5) -> Any:  # noqa: ANN401 - a protocol
    """Return a campaign whose volume was expanded from second 2.5 on.

    Args:
        meanwhile: IOPS from second 2 to second 5 of the run; 1000 before, 900 to 1100 around it.
        end_s: end of the expansion; None for one that had not ended.
    """
    rates: dict[str, list[float]] = {
        "before": [10, 900, 1100, 1000, 10],
        "during": [1000, 1000, *3 * [meanwhile], 1000],
        "after": [990] * 5,
    }
    runs: list[dict[str, Any]] = [
        {**IDENTITY, "run": f"00{n}-a-{part}-r1", "arm": part, "iops": iops, "lat_p99_s": 0.001}
        for n, (part, iops) in enumerate(zip(PARTS, (1000.0, 950.0, 990.0), strict=True), 1)
    ]
    series = [
        {**IDENTITY, "run": run["run"], "t_s": float(t_s), "iops": float(rate)}
        | {"bw_bytes_per_s": rate * 4096.0, "lat_mean_s": 1 / rate if rate else math.nan}
        for run in runs
        for t_s, rate in enumerate(rates[run["arm"]], 1)
    ]
    events: list[tuple[float | None, str, str | None]] = [(2.5, "expand", "96Mi")]
    events += [(end_s, "expanded", None)] if end_s else []
    marks = [
        {"campaign": "c", "run": "002-a-during-r1", "t_s": t_s, "kind": kind, "text": words}
        for t_s, kind, words in events
    ]
    frames = {
        "summary": [row for run in runs for row in summary(**run)],
        "series": series,
        "marks": marks,
    }
    return Mock(rows=frames.__getitem__)
