"""Clients that wait for each other."""

from __future__ import annotations

import pytest

from volbench.engine.campaign.barrier import MARGIN_S, Barrier, Call
from volbench.model.campaign.planned_run import Run, Section
from volbench.model.campaign.target import Volume, VolumeKind
from volbench.model.profile.profile_model import Start

NOW_S = 1_000_000.0
VOLUME = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")


def a_step(
    count: int, *, start: Start = Start.TOGETHER, stagger_s: float = 0.0, least: int | None = None
) -> Barrier:
    """Return the meeting of some clients."""
    runs = [
        Run(
            id=f"r{number}",
            profile="p",
            job="j",
            volume=VOLUME,
            sections=(Section(name="j"),),
            client=number + 1,
            start=start,
            start_offset_s=number * stagger_s,
        )
        for number in range(count)
    ]
    return Barrier(runs, least=count if least is None else least, clock=lambda: NOW_S)


def at(meeting: Barrier, run_id: str) -> float:
    """Return when a client starts, from now."""
    call = meeting.call(run_id)
    assert call is not None
    assert call.at_s is not None
    return call.at_s - NOW_S


def test_nobody_starts_before_everybody_is_ready() -> None:
    """The last to be ready opens the start for all, at one instant ahead of now."""
    meeting = a_step(3)
    meeting.arrive("r0")
    meeting.arrive("r2")
    assert meeting.call("r0") is None
    meeting.arrive("r1")
    starts = {at(meeting, f"r{number}") for number in range(3)}
    assert len(starts) == 1
    assert starts.pop() >= MARGIN_S


@pytest.mark.parametrize("least", [3, 2])
def test_nobody_waits_for_one_that_ended_too_early(least: int) -> None:
    """A process that died before it was ready will not come; enough others may go without it."""
    meeting = a_step(3, least=least)
    meeting.arrive("r0")
    meeting.end("r1")
    assert meeting.call("r0") is None
    meeting.arrive("r2")
    calls = [meeting.call("r0"), meeting.call("r2")]
    if least == 2:
        assert calls == [Call(NOW_S + MARGIN_S + 0.15)] * 2
        return
    meeting.end("r0")
    assert [*calls, meeting.call("r2")] == [Call(None, "only 2 of 3 clients are ready")] * 3


def test_staggered_clients_start_one_after_another() -> None:
    """Each has its own distance from the first."""
    meeting = a_step(3, start=Start.STAGGERED, stagger_s=20)
    for number in range(3):
        meeting.arrive(f"r{number}")
    first = at(meeting, "r0")
    assert [at(meeting, f"r{number}") - first for number in range(3)] == [0, 20, 40]


def test_in_turn_each_waits_for_the_end_of_the_one_before() -> None:
    """Being ready is not enough; its predecessor has to be through, however it ended."""
    meeting = a_step(3, start=Start.SEQUENTIAL)
    for number in range(3):
        meeting.arrive(f"r{number}")
    assert at(meeting, "r0") == MARGIN_S
    assert meeting.call("r1") is None
    meeting.leave("r0")
    assert at(meeting, "r1") == MARGIN_S
    assert meeting.call("r2") is None


@pytest.mark.parametrize(("least", "starts"), [(3, False), (2, True), (1, True)])
def test_a_lost_client_holds_nobody_up(least: int, starts: bool) -> None:  # noqa: FBT001 - a case
    """The others start if they are enough; if not, each is told why, and none waits."""
    meeting = a_step(3, least=least)
    meeting.arrive("r0")
    meeting.arrive("r1")
    assert meeting.call("r0") is None
    meeting.leave("r2")
    call = meeting.call("r0")
    assert call is not None
    assert (call.at_s is not None) is starts
    if not starts:
        assert call == Call(None, "only 2 of 3 clients are ready")


def test_a_client_that_ended_does_not_close_the_start_for_others() -> None:
    """What was opened stays open, although the first has long ended."""
    meeting = a_step(2)
    meeting.arrive("r0")
    meeting.arrive("r1")
    first = at(meeting, "r0")
    meeting.leave("r0")
    assert at(meeting, "r1") == first
