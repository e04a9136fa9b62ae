"""Clients that wait for each other."""

from __future__ import annotations

import pytest

from volbench.engine.campaign.barrier import MARGIN_S, Barrier, StartSignal
from volbench.model.campaign.planned_run import Run, Section
from volbench.model.campaign.target import Volume, VolumeKind
from volbench.model.profile.profile_model import Start

NOW_S = 1_000_000.0
VOLUME = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")


def a_step(
    count: int, *, start: Start = Start.TOGETHER, stagger_s: float = 0.0, quorum: int | None = None
) -> Barrier:
    """Return the barrier of some clients."""
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
    return Barrier(runs, quorum=count if quorum is None else quorum, clock=lambda: NOW_S)


def at(barrier: Barrier, run_id: str) -> float:
    """Return when a client starts, from now."""
    signal = barrier.signal(run_id)
    assert signal is not None
    assert signal.at_s is not None
    return signal.at_s - NOW_S


def test_nobody_starts_before_everybody_is_ready() -> None:
    """The last to be ready opens the start for all, at one instant ahead of now."""
    barrier = a_step(3)
    barrier.arrive("r0")
    barrier.arrive("r2")
    assert barrier.signal("r0") is None
    barrier.arrive("r1")
    starts = {at(barrier, f"r{number}") for number in range(3)}
    assert len(starts) == 1
    assert starts.pop() >= MARGIN_S


@pytest.mark.parametrize("quorum", [3, 2])
def test_nobody_waits_for_one_that_ended_too_early(quorum: int) -> None:
    """A process that died before it was ready will not come; enough others may go without it."""
    barrier = a_step(3, quorum=quorum)
    barrier.arrive("r0")
    barrier.end("r1")
    assert barrier.signal("r0") is None
    barrier.arrive("r2")
    signals = [barrier.signal("r0"), barrier.signal("r2")]
    if quorum == 2:
        assert signals == [StartSignal(NOW_S + MARGIN_S + 0.15)] * 2
        return
    barrier.end("r0")
    assert [*signals, barrier.signal("r2")] == [
        StartSignal(None, "only 2 of 3 clients are ready")
    ] * 3


def test_staggered_clients_start_one_after_another() -> None:
    """Each has its own distance from the first."""
    barrier = a_step(3, start=Start.STAGGERED, stagger_s=20)
    for number in range(3):
        barrier.arrive(f"r{number}")
    first = at(barrier, "r0")
    assert [at(barrier, f"r{number}") - first for number in range(3)] == [0, 20, 40]


def test_in_turn_each_waits_for_the_end_of_the_one_before() -> None:
    """Being ready is not enough; its predecessor has to be through, however it ended."""
    barrier = a_step(3, start=Start.SEQUENTIAL)
    for number in range(3):
        barrier.arrive(f"r{number}")
    assert at(barrier, "r0") == MARGIN_S
    assert barrier.signal("r1") is None
    barrier.leave("r0")
    assert at(barrier, "r1") == MARGIN_S
    assert barrier.signal("r2") is None


@pytest.mark.parametrize(("quorum", "starts"), [(3, False), (2, True), (1, True)])
def test_a_lost_client_holds_nobody_up(quorum: int, starts: bool) -> None:  # noqa: FBT001 - a case
    """The others start if they are enough; if not, each is told why, and none waits."""
    barrier = a_step(3, quorum=quorum)
    barrier.arrive("r0")
    barrier.arrive("r1")
    assert barrier.signal("r0") is None
    barrier.leave("r2")
    signal = barrier.signal("r0")
    assert signal is not None
    assert (signal.at_s is not None) is starts
    if not starts:
        assert signal == StartSignal(None, "only 2 of 3 clients are ready")


def test_a_client_that_ended_does_not_close_the_start_for_others() -> None:
    """What was opened stays open, although the first has long ended."""
    barrier = a_step(2)
    barrier.arrive("r0")
    barrier.arrive("r1")
    first = at(barrier, "r0")
    barrier.leave("r0")
    assert at(barrier, "r1") == first
