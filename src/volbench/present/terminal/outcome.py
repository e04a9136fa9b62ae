"""States of the runs of a campaign, counted and listed in the order of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from volbench.model.campaign.planned_run import Campaign, Run, RunState


class StateNote(Protocol):
    """State of a run with its reason."""

    @property
    def state(self) -> RunState:
        """The state."""

    @property
    def reason(self) -> str:
        """The tool's own words or volbench's; empty when it finished."""


@dataclass(frozen=True)
class RunStateNote:
    """The state of one run and why.

    Attributes:
        state: the state.
        reason: fio's own words or volbench's, empty when it finished.
    """

    state: RunState
    reason: str = ""


PLANNED: StateNote = RunStateNote(RunState.PLANNED)


def note_of(run: Run, states: Mapping[str, StateNote]) -> StateNote:
    """Return the note of a run; one without a note was planned and never ran."""
    return states.get(run.id, PLANNED)


def count_states(campaign: Campaign, states: Mapping[str, StateNote]) -> dict[RunState, int]:
    """Return the number of runs in each state, states without runs left out."""
    counts = dict.fromkeys(RunState, 0)
    for run in campaign.runs:
        counts[note_of(run, states).state] += 1
    return {state: count for state, count in counts.items() if count}


def unfinished(campaign: Campaign, states: Mapping[str, StateNote]) -> list[tuple[Run, StateNote]]:
    """Return the runs that did not finish though they were needed, in the order of the plan."""
    noted = [(run, note_of(run, states)) for run in campaign.runs]
    return [(run, note) for run, note in noted if not note.state.is_settled]


def first_line(reason: str) -> str:
    """Return the first line of a reason that says something."""
    return next(
        (line.strip() for line in reason.splitlines() if line.strip()), "no reason was recorded"
    )
