"""Rules on the clients of a step: clock-jumped, late-start, start-skew, missing-clients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import Observation, rule, several
from volbench.analyse.frames.run_view import RunView, clock_bounds_s, host_rows
from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_model import Start
from volbench.units import format_latency

_JUMP_S = 1.0
# Starts of thirty hosts that share two cores were within 0.1 s; half a second is no chance
_LATE_S = 0.5
_MOST_NAMED = 5


@rule(
    "the clock jumped",
    looks_at=(
        "Time of day against the measured length of the intervals, in the device's samples: a"
        " difference of 1 s or more from one to the next. A clock that is slewed gently stays far"
        " below that."
    ),
    why=(
        "Rates are divided by time, and series of several sources are aligned by the time of day."
    ),
    advice="Let the clock settle (chronyc tracking, timedatectl), then measure again.",
)
def clock_jumped(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the largest step between the time of day and the length of the intervals."""
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
    if abs(steps[at]) >= _JUMP_S:
        t_s = rows["t_s"].to_numpy(dtype=float)
        yield Observation(
            f"The clock of the host jumped by {steps[at]:+.4g} s.",
            {"jump_s": float(steps[at])},
            window=(float(t_s[at]), float(t_s[at + 1])),
        )


@rule(
    "the client did not start with the others",
    looks_at=(
        "Planned start and start of I/O by the host's clock: more than 0.5 s apart, beyond the"
        " uncertainty of the clock offset."
    ),
    why=(
        "Clients that run at different times do not load shared storage at the same time, so their"
        " aggregate is lower than under the planned load."
    ),
    advice="Compare only the time in which all clients ran. Check the host's load, then run again.",
)
def late_start(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the distance from the planned start, beyond the uncertainty of the clock."""
    late = view.summary["start_late_s"].dropna()
    if late.empty:
        return
    bound_s = float(view.summary["clock_bound_s"].fillna(0.0).iloc[0])
    late_s = float(late.iloc[0])
    if abs(late_s) - bound_s > _LATE_S:
        word = "after" if late_s > 0 else "before"
        yield Observation(
            f"The client started {format_latency(abs(late_s))} {word} the planned start.",
            {"late_s": late_s, "clock_bound_s": bound_s},
        )


@rule(
    "the clients did not start together",
    looks_at=(
        "When the clients of a step passed their start, by one clock: more than 0.5 s apart, beyond"
        " the uncertainty of the clock offsets and the planned delays."
    ),
    why=(
        "A client that ran before or after the others did not share the storage with them. A run"
        " that was repeated alone, after a failure, has had all of it to itself."
    ),
    advice="Run the whole step again on all clients: volbench resume DIR --redo-step STEP.",
)
def start_skew(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield how far apart the clients started, at the first run of a step."""
    if not view.run.step or view.run.start is Start.SEQUENTIAL:
        return
    step = [run for run in context.step(view) if run.id in context.finished]
    if len(step) < 2 or view.run.id != step[0].id:
        return
    starts = [(run, _start_s(context.by_id[run.id])) for run in step]
    starts_s = {run.id: start_s for run, start_s in starts if start_s is not None}
    if len(starts_s) < 2:
        return
    first_s = min(starts_s.values())
    skew_s = max(starts_s.values()) - first_s
    bound_s = clock_bounds_s(context.by_id[run_id].summary for run_id in starts_s)
    if skew_s - bound_s <= _LATE_S:
        return
    late = [_name(run) for run in step if starts_s.get(run.id, first_s) - first_s > _LATE_S]
    more = [f"{len(late) - _MOST_NAMED} more"] if len(late) > _MOST_NAMED else []
    yield Observation(
        f"The clients of this step started {format_latency(skew_s)} ± {format_latency(bound_s)}"
        f" apart: {several([*late[:_MOST_NAMED], *more])} after the others.",
        {"start_skew_s": skew_s, "start_skew_bound_s": bound_s},
    )


def _start_s(view: RunView) -> float | None:
    """Return when a run passed its start, less the delay that was planned for it."""
    starts = view.summary["step_start_s"].dropna()
    return None if starts.empty else float(starts.iloc[0]) - view.run.start_offset_s


def _name(run: Run) -> str:
    return f"{run.host} client {run.client}" if run.client else run.host


@rule(
    "clients are missing",
    looks_at="How many clients finished a step of the campaign, and how many were planned.",
    why=(
        "An aggregate over the remaining clients looks like one over all of them, and each of them"
        " had a larger share of what they share."
    ),
    advice=(
        "Look at why the others failed, then do the campaign again; volbench resume --retry-failed"
        " runs only the missing ones, without the load of the others."
    ),
)
def missing_clients(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield who is missing, at the first run of a step that some clients did not finish."""
    campaign = view.campaign
    step = context.step(view)
    planned = len(step) + campaign.clients_absent
    first = next(run.id for run in step if run.id in context.finished)
    if not view.run.step or planned == 1 or view.run.id != first:
        return
    missing = [run for run in step if run.id not in context.finished]
    if not (missing or campaign.absent):
        return
    names = [_name(run) for run in missing]
    names += [absent.host for absent in campaign.absent]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    did = len(step) - len(missing)
    yield Observation(
        f"Only {did} of {planned} clients finished this step:"
        f" {', '.join(names[:_MOST_NAMED])}{more} did not.",
        {"clients": float(planned), "missing": float(planned - did)},
    )
