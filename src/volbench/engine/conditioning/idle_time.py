"""A volume is left alone before a Run: the end of the Run before it in, the right moment out."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from volbench.engine.run.stop_request import Stop
from volbench.model.campaign.event import Listener, Progress, RunProgress
from volbench.model.campaign.planned_run import Run

PAUSED = "paused"
"""State of a Run's progress while its volume is left alone."""

LATE_S = 60.0
"""A pause that took so much longer than asked is told: credits went on to refill."""

_STEP_S = 0.5


def pause_before(run: Run, *, ended_utc: str, listener: Listener, stop: Stop) -> float:
    """Wait until the volume was left alone for as long as the plan says.

    What has passed since the Run before it ended counts, whoever waited: credits refill all the
    same while no controller runs.

    Args:
        run: that comes next.
        ended_utc: when the Run before it ended, ISO 8601; empty for none.
        listener: told about progress.
        stop: the user's wish, which ends the wait.

    Returns:
        How long the volume was left alone, in seconds.
    """
    began_s = time.time()
    since_s = min(began_s, _seconds(ended_utc)) if ended_utc else began_s
    while (rested_s := time.time() - since_s) < run.pause_before_s and not stop.requested:
        listener(RunProgress(run, Progress(rested_s, run.pause_before_s, state=PAUSED)))
        time.sleep(min(_STEP_S, run.pause_before_s - rested_s))
    return rested_s


def _seconds(utc: str) -> float:
    return datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()
