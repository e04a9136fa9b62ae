"""Bounds of what leads a report."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from volbench.api import report_content
from volbench.present.report import lead_charts


@pytest.mark.parametrize(
    ("profile", "phase", "volumes", "penalty", "leads"),
    [
        ("imported", "measured", 1, 0.5, False),
        ("warmup-curve", "measured", 1, 0.5, True),
        ("warmup-curve", "measured", 1, 0.09, False),
        ("warmup-curve", "measured", 1, 0.11, True),
        ("imported", "warmup", 1, 0.5, True),
        ("warmup-curve", "measured", 3, 0.5, False),
    ],
)
def test_a_warm_up_leads_where_the_campaign_was_made_for_it(
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    phase: str,
    volumes: int,
    penalty: float,
    *,
    leads: bool,
) -> None:
    """Neither slow first seconds of a collection lead, nor fresh blocks that are 9 % slower."""
    monkeypatch.setattr(lead_charts, "curves", lambda *_: [SimpleNamespace(penalty=penalty)])
    rows = pd.DataFrame(
        {"run": f"r{n}", "host": "h", "volume": f"v{n}", "profile": profile, "phase": phase}
        for n in range(volumes)
    )
    empty = pd.DataFrame(columns=["run", "severity"])
    assert lead_charts.is_warm_up(lambda n: empty if n == "findings" else rows) is leads


@pytest.mark.parametrize("steps", [2, 3])
def test_many_parallel_steps_are_a_fleet(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Two storms lead a report, three do not."""
    monkeypatch.setattr(lead_charts, "storm_steps", lambda _: list(range(steps)))
    same = {"profile": "p", "job": "j", "repeat": 1, "phase": "measured", "status": "finished"}
    rows = pd.DataFrame({"run": run, **same} for run in "ab")
    assert lead_charts.is_storm(lambda _: rows) is (steps == 2)


def test_a_storm_of_one_setting_of_many_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that ran at once lead where they are at least half of the runs."""
    monkeypatch.setattr(report_content, "report_plots", lambda *_: [SimpleNamespace(name="storm")])
    monkeypatch.setattr(report_content, "rounds_of", lambda _: ())
    for count in (4, 5):
        dataset: Any = SimpleNamespace(runs=range(count))
        shown = report_content._plots(dataset, {1, 2})  # noqa: SLF001 - a report needs a campaign
        assert len(shown) == 5 - count
