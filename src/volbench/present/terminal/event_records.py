"""Events of a campaign as JSON, one object per line, for schedulers and scripts.

The fields are documented in docs/reference/events.md. Fields may be added; none is renamed, removed
or given another unit while `FORMAT` stays the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TextIO

from volbench.errors import VolbenchError
from volbench.model.campaign.event import (
    CampaignEnded,
    CampaignStarted,
    Event,
    HostBack,
    HostSilent,
    Notice,
    RunEnded,
    RunProgress,
    RunsNotNeeded,
    RunStarted,
)
from volbench.model.campaign.planned_run import Run
from volbench.present.terminal.progress import Clock
from volbench.store.journal import utc_now

FORMAT = 1
PROGRESS_S = 5.0  # Minimum time between two progress events of a run in the same state

Record = Mapping[str, object]


def event_record(event: Event) -> Record:
    """Return the fields of an event, without its time."""
    if isinstance(event, RunStarted | RunProgress | RunEnded):
        return {**_run_facts(event), **_run(event.run)}
    match event:
        case CampaignStarted():
            return _started(event)
        case RunsNotNeeded():
            runs = [run.id for run in event.runs]
            return {"event": "runs-not-needed", "runs": runs, "reason": event.reason}
        case Notice():
            return {"event": "notice", "message": event.message, "host": event.host or None}
        case HostSilent() | HostBack():
            name = "host-silent" if isinstance(event, HostSilent) else "host-back"
            return {"event": name, "host": event.host, "silent_s": round(event.silent_s, 1)}
        case CampaignEnded():
            return {"event": "campaign-ended", **asdict(event)}


def _run_facts(event: RunStarted | RunProgress | RunEnded) -> Record:
    match event:
        case RunStarted():
            return {"event": "run-started", "expected_s": event.expected_s}
        case RunProgress():
            return {"event": "run-progress", **asdict(event.progress)}
        case RunEnded():
            return {"event": "run-ended", "state": event.state.value, "reason": event.reason}


def error_record(error: VolbenchError) -> Record:
    """Return the fields of the error that ended a command."""
    return {
        "event": "error",
        "message": error.message,
        "hint": error.hint,
        "exit_code": error.exit_code,
        "transient": error.transient,
    }


def results_record(
    rows: Sequence[Mapping[str, object]], *, expectations: Sequence[Mapping[str, object]] = ()
) -> Record:
    """Return the fields of the table of results, and of the answers to expectations."""
    return {"event": "results", "runs": list(rows), "expectations": list(expectations)}


def _started(event: CampaignStarted) -> Record:
    campaign = event.campaign
    return {
        "event": "campaign-started",
        "format": FORMAT,
        "campaign": campaign.name,
        "key": campaign.key,
        "hosts": [host.name for host in campaign.hosts],
        "absent": [absent.host for absent in campaign.absent],
        "runs": [run.id for run in event.pending],
        "expected_s": event.expected_s,
    }


def _run(run: Run) -> dict[str, object]:
    return {
        "run": run.id,
        "host": run.host,
        "client": run.client,
        "step": run.step,
        "profile": run.profile,
        "job": run.job,
        "phase": run.phase.value,
        "repeat": run.repeat,
    }


class EventStream:
    """Listener that writes each event as a line of JSON.

    A reader that goes away ends the stream, not the campaign.
    """

    def __init__(self, stream: TextIO, *, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._reported: dict[str, tuple[str, float]] = {}

    def __call__(self, event: Event, /) -> None:
        """Write one event; progress of a run every few seconds, and when its state changes."""
        if isinstance(event, RunProgress) and not self._is_due(event):
            return
        self.write(event_record(event))

    def write(self, record: Record) -> None:
        """Write the fields of an event after its time."""
        with suppress(OSError):
            self._stream.write(json.dumps({"time_utc": utc_now(), **record}) + "\n")
            self._stream.flush()

    def _is_due(self, event: RunProgress) -> bool:
        state, now_s = event.progress.state, self._clock()
        before = self._reported.get(event.run.id)
        if before is not None and before[0] == state and now_s - before[1] < PROGRESS_S:
            return False
        self._reported[event.run.id] = state, now_s
        return True
