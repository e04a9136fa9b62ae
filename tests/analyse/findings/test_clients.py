"""Doubts about runs that belong together: starts apart, clients that are missing."""

from collections.abc import Mapping, Sequence

import pytest

from tests.analyse.findings.conftest import a_run, a_view, found, summary_row
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import Campaign


@pytest.mark.slow
@pytest.mark.parametrize(
    ("starts_s", "bounds_s", "named"),
    [
        ((100.0, 100.012, 100.03), (0.004, 0.004, 0.004), []),
        ((100.0, 100.0, 108.64), (0.002, 0.002, 0.002), ["vm2"]),
        ((206.0, 100.0, 206.1), (0.002, 0.002, 0.002), ["vm0 and vm2"]),
        ((100.0, 100.6, 100.0), (0.15, 0.15, 0.15), []),
        ((None, 100.0, None), (None, 0.001, None), []),
    ],
)
def test_a_slow_client_is_compared_with_the_others(
    starts_s: tuple[float | None, ...], bounds_s: tuple[float | None, ...], named: list[str]
) -> None:
    """A retry alone, and a controller that was killed between two starts, are both seen."""
    columns: list[dict[str, object]] = [
        {"step_start_s": start_s, "clock_bound_s": bound_s}
        for start_s, bound_s in zip(starts_s, bounds_s, strict=True)
    ]
    first, *others = a_step(*["finished"] * 3, columns=columns)
    messages = [finding.message for finding in found(*others, first, rule="start-skew")]
    assert len(messages) == len(named)
    for message, names in zip(messages, named, strict=True):
        assert f"apart: {names} started after the others" in message
        assert " ± 4 ms" in message


def a_step(*states: str, columns: Sequence[Mapping[str, object]] = ()) -> list[RunView]:
    """Return the views of clients that did one step, with some columns of each one's summary."""
    more = columns or [{}] * len(states)
    runs = [
        a_run(name=f"vm{number}").model_copy(update={"host": f"vm{number}", "step": 1})
        for number in range(len(states))
    ]
    campaign = Campaign(name="c", created_utc="", runs=tuple(runs), seed=1)
    return [
        a_view(run, summary=[summary_row(run, status=state, **own)], campaign=campaign)
        for run, state, own in zip(runs, states, more, strict=True)
    ]


def test_clients_that_are_missing_are_named_once() -> None:
    """The first that did finish tells who did not; with all there, nobody is missing."""
    first, second, lost = a_step("finished", "finished", "failed")
    (entry,) = found(second, lost, first, rule="missing-clients")
    assert "Only 2 of 3 clients" in entry.message
    assert "vm2 did not" in entry.message
    assert found(first, lost, second, rule="missing-clients") == []
    whole = a_step("finished", "finished")
    assert found(*whole, rule="missing-clients") == []
