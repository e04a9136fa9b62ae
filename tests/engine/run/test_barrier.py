"""Clients that wait for each other."""

from typing import Any

import pytest

from tests.planned import a_folder, planned_run
from volbench.engine.run.barrier import (
    MARGIN_S,
    POSTPONE_S,
    READY_TIMEOUT_S,
    Barrier,
    StartSignal,
    WaitPolicy,
)
from volbench.model.profile.profile_model import Start

NOW_S = 1_000_000.0


class Fleet:
    """Machines that are silent for as long as they are said to be, and a clock that is set."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.silent_s: dict[str, float] = {}
        self.given_up: set[str] = set()
        self.late: list[str] = []

    @property
    def wait(self) -> WaitPolicy:
        """Return the policy of a campaign on them."""
        return WaitPolicy(
            ready_timeout_s=READY_TIMEOUT_S,
            silent_s=lambda run: self.silent_s.get(run.id, 0.0),
            is_given_up=lambda run: run.id in self.given_up,
            on_late=lambda runs: self.late.extend(run.id for run in runs),
        )


def a_step(
    count: int,
    *,
    start: Start = Start.TOGETHER,
    stagger_s: float = 0.0,
    quorum: int | None = None,
    fleet: Fleet | None = None,
) -> Barrier:
    """Return the barrier of some clients."""
    fleet = fleet or Fleet()
    runs = [
        planned_run(
            a_folder(),
            id=f"r{number}",
            host=f"vm{number}",
            start=start,
            start_offset_s=number * stagger_s,
        )
        for number in range(count)
    ]
    return Barrier(
        runs,
        quorum=count if quorum is None else quorum,
        wait=fleet.wait,
        clock=lambda: NOW_S + fleet.now_s,
        elapsed=lambda: fleet.now_s,
    )


def confirm(barrier: Barrier, *run_ids: str) -> None:
    """Let clients do what the barrier asks of them before it announces the start."""
    for run_id in run_ids:
        assert barrier.must_confirm(run_id)
        assert barrier.signal(run_id) is None
    for run_id in run_ids:
        barrier.confirm(run_id)


def a_ready_step(count: int, **options: Any) -> Barrier:  # noqa: ANN401 - those of a_step
    """Return the barrier of clients that are all ready and have confirmed it."""
    barrier = a_step(count, **options)
    ids = [f"r{number}" for number in range(count)]
    for run_id in ids:
        barrier.arrive(run_id)
    confirm(barrier, *ids)
    return barrier


def at(barrier: Barrier, run_id: str) -> float:
    """Let a client receive its start, and return when that is, from the beginning."""
    signal = barrier.signal(run_id)
    assert signal is not None
    assert signal.at_s is not None
    barrier.acknowledge(run_id, signal)
    return signal.at_s - NOW_S


def test_no_client_starts_before_all_are_ready() -> None:
    """The last to be ready opens the start for all, at one instant ahead of now."""
    barrier = a_step(3)
    barrier.arrive("r0")
    barrier.arrive("r2")
    assert barrier.signal("r0") is None
    barrier.arrive("r1")
    confirm(barrier, "r0", "r1", "r2")
    starts = {at(barrier, f"r{number}") for number in range(3)}
    assert len(starts) == 1
    assert starts.pop() >= MARGIN_S


@pytest.mark.parametrize("quorum", [3, 2])
def test_no_client_waits_for_one_that_ended_too_early(quorum: int) -> None:
    """A process that died before it was ready will not come; enough others may go without it."""
    barrier = a_step(3, quorum=quorum)
    barrier.arrive("r0")
    barrier.end("r1")
    assert barrier.signal("r0") is None
    barrier.arrive("r2")
    if quorum == 2:
        confirm(barrier, "r0", "r2")
    signals = [barrier.signal("r0"), barrier.signal("r2")]
    if quorum == 2:
        assert signals == [StartSignal(NOW_S + MARGIN_S + 0.15)] * 2
        return
    barrier.end("r0")
    reason = "only 2 of 3 clients are ready: vm1 ended or lost before the start"
    assert [*signals, barrier.signal("r2")] == [StartSignal(None, reason)] * 3


def test_staggered_clients_start_one_after_another() -> None:
    """Each has its own distance from the first."""
    barrier = a_ready_step(3, start=Start.STAGGERED, stagger_s=20)
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


def test_a_step_is_over_when_all_have_left() -> None:
    """The next step in turn waits for results too, but not for a machine that is silent."""
    fleet = Fleet()
    barrier = a_step(2, fleet=fleet)
    barrier.leave("r0")
    barrier.end("r1")
    assert not barrier.is_over
    fleet.silent_s["r1"] = 120
    assert barrier.is_over
    fleet.silent_s["r1"] = 0
    barrier.leave("r1")
    assert barrier.is_over


@pytest.mark.parametrize(("quorum", "starts"), [(3, False), (2, True), (1, True)])
def test_a_silent_client_is_waited_for_only_so_long(quorum: int, starts: bool) -> None:  # noqa: FBT001 - a case
    """Two minutes after the last arrival the others go without it, or are told its name."""
    fleet = Fleet()
    barrier = a_step(3, quorum=quorum, fleet=fleet)
    barrier.arrive("r0")
    fleet.now_s, fleet.silent_s["r2"] = 100, 100
    barrier.arrive("r1")
    fleet.now_s, fleet.silent_s["r2"] = 219, 219
    assert barrier.signal("r0") is None
    assert fleet.late == []
    fleet.now_s = 220
    if starts:
        confirm(barrier, "r0", "r1")
        assert at(barrier, "r0") == at(barrier, "r1")
    signal = barrier.signal("r0")
    assert signal is not None
    assert starts or signal.reason == "only 2 of 3 clients are ready: vm2 did not answer"
    assert fleet.late == ["r2"]
    barrier.arrive("r2")
    late = barrier.signal("r2")
    assert late is not None
    assert late.at_s is None


def test_a_client_that_answers_is_waited_for() -> None:
    """Laying out files takes as long as it takes; its machine answers meanwhile."""
    fleet = Fleet()
    barrier = a_step(2, quorum=1, fleet=fleet)
    barrier.arrive("r0")
    fleet.now_s, fleet.silent_s["r1"] = 7200, 1
    assert barrier.signal("r0") is None
    barrier.arrive("r1")
    confirm(barrier, "r0", "r1")
    assert at(barrier, "r0") == at(barrier, "r1")


def test_a_client_that_was_late_before_is_not_waited_for_again() -> None:
    """A host that has hung since an earlier step costs the others no more time."""
    fleet = Fleet()
    fleet.given_up = {"r1"}
    barrier = a_step(2, quorum=1, fleet=fleet)
    barrier.arrive("r0")
    confirm(barrier, "r0")
    assert at(barrier, "r0") >= MARGIN_S


@pytest.mark.parametrize(("quorum", "starts"), [(2, False), (1, True)])
def test_a_client_lost_when_all_are_ready_does_not_start_the_others_alone(
    quorum: int,
    starts: bool,  # noqa: FBT001 - a case
) -> None:
    """The start is announced when every client has answered once more, or has failed to."""
    fleet = Fleet()
    barrier = a_step(2, quorum=quorum, fleet=fleet)
    barrier.arrive("r0")
    barrier.arrive("r1")
    confirm(barrier, "r0")
    assert barrier.signal("r0") is None
    fleet.now_s = READY_TIMEOUT_S
    signal = barrier.signal("r0")
    assert signal is not None
    assert (signal.at_s is not None) is starts


def test_start_is_postponed_until_every_client_has_received_it() -> None:
    """A client whose announcement is slow starts with the others, at a later instant."""
    fleet = Fleet()
    barrier = a_ready_step(2, fleet=fleet)
    first = barrier.signal("r0")
    assert first is not None
    barrier.acknowledge("r0", first)
    assert not barrier.is_final("r0", first)
    fleet.now_s = at(barrier, "r0") - POSTPONE_S
    later = at(barrier, "r0")
    assert NOW_S + later > (first.at_s or 0)
    assert at(barrier, "r1") == later
    final = barrier.signal("r1")
    assert final is not None
    assert barrier.is_final("r1", final)


@pytest.mark.parametrize(("quorum", "starts"), [(2, False), (1, True)])
def test_client_with_an_announced_start_does_not_start_alone(
    quorum: int,
    starts: bool,  # noqa: FBT001 - a case
) -> None:
    """Its start is revoked under `all` if the other's announcement never arrives."""
    fleet = Fleet()
    barrier = a_ready_step(2, quorum=quorum, fleet=fleet)
    instants = set()
    while (signal := barrier.signal("r0")) and not fleet.late:
        instants.add(at(barrier, "r0"))
        fleet.now_s += POSTPONE_S
    assert len(instants) > 1
    assert READY_TIMEOUT_S <= fleet.now_s <= READY_TIMEOUT_S + 2 * MARGIN_S
    assert signal is not None
    if not starts:
        assert signal.reason == "only 1 of 2 clients are ready: vm1 did not answer"
        return
    at(barrier, "r0")
    assert barrier.is_final("r0", signal)


def test_client_that_an_earlier_controller_released_is_not_waited_for() -> None:
    """Its start stands already; the others get theirs without its acknowledgement."""
    barrier = a_step(2)
    barrier.release("r0")
    barrier.arrive("r1")
    confirm(barrier, "r1")
    at(barrier, "r1")
    final = barrier.signal("r1")
    assert final is not None
    assert barrier.is_final("r1", final)
