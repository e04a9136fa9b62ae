"""Doubts about Runs that belong together: starts apart, clients that are missing."""

from __future__ import annotations

import pytest

from tests.analyse.findings.conftest import a_run, a_view, found, told
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import Campaign


@pytest.mark.parametrize(
    ("late_s", "bound_s", "count"),
    [(0.05, 0.003, 0), (2.0, 0.003, 1), (-2.0, 0.003, 1), (2.0, 3.0, 0), (None, None, 0)],
)
def test_a_start_apart_from_the_others(
    late_s: float | None, bound_s: float | None, count: int
) -> None:
    """Seconds are told, milliseconds are not; nor is what the clocks themselves may be off."""
    run = a_run()
    row = told(run, start_late_s=late_s, clock_bound_s=bound_s)
    findings = found(a_view(run, summary=[row]), rule="late-start")
    assert [one.evidence["late_s"] for one in findings] == [late_s] * count


def a_step(*states: str) -> list[RunView]:
    """Return the views of clients that did one step."""
    runs = [
        a_run(name=f"vm{number}").model_copy(update={"host": f"vm{number}", "step": 1})
        for number in range(len(states))
    ]
    campaign = Campaign(name="c", created_utc="", runs=tuple(runs), seed=1)
    return [
        a_view(run, summary=[told(run, status=state)], campaign=campaign)
        for run, state in zip(runs, states, strict=True)
    ]


def test_clients_that_are_missing_are_named_once() -> None:
    """The first that did finish tells who did not; with all there, nobody is missing."""
    first, second, lost = a_step("finished", "finished", "failed")
    (one,) = found(second, lost, first, rule="missing-clients")
    assert "Only 2 of 3 clients" in one.message
    assert "vm2 did not" in one.message
    assert found(first, lost, second, rule="missing-clients") == []
    whole = a_step("finished", "finished")
    assert found(*whole, rule="missing-clients") == []
