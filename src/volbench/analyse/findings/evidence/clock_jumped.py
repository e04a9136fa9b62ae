"""clock-jumped: the host's clock was set while the run went on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from volbench.analyse.findings.rule import Rule, Window
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import host_rows
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity

_JUMP_S = 1.0


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield the greatest step between the time of day and the length of the intervals."""
    del context
    rows = host_rows(view)
    if len(rows) < 2:
        return
    rows = rows.dropna(subset=["utc", "interval_s"])
    if len(rows) < 2:
        return
    day = pd.to_datetime(rows["utc"], utc=True, format="ISO8601")
    day_s = (day - day.iloc[0]).dt.total_seconds().to_numpy(dtype=float)
    steps = np.diff(day_s) - rows["interval_s"].to_numpy(dtype=float)[1:]
    at = int(np.argmax(np.abs(steps)))
    if abs(steps[at]) < _JUMP_S:
        return
    t_s = rows["t_s"].to_numpy(dtype=float)
    yield RULE.finding(
        view,
        f"The clock of the host jumped by {steps[at]:+.3g} s.",
        {"jump_s": float(steps[at])},
        window=Window(float(t_s[at]), float(t_s[at + 1])),
    )


RULE = Rule(
    id="clock-jumped",
    title="the clock jumped",
    severity=Severity.WARNING,
    looks_at=(
        "Time of day against the measured length of the intervals, in the device's samples: a"
        " difference of 1 s or more from one to the next. A clock that is slewed gently stays far"
        " below that."
    ),
    why=(
        "Rates are divided by time, and series of several sources are laid over each other by the"
        " time of day."
    ),
    advice="Let the clock settle (chronyc tracking, timedatectl), then measure again.",
    check=check,
)
