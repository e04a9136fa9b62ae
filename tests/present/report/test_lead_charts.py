"""Bounds of what leads a report."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from volbench.present.report import lead_charts
from volbench.present.report.lead_charts import _few_storms


@pytest.mark.parametrize(("penalty", "leads"), [(0.09, False), (0.11, True)])
def test_a_warm_up_leads_from_a_tenth_on(
    monkeypatch: pytest.MonkeyPatch, penalty: float, *, leads: bool
) -> None:
    """Fresh blocks that are 9 % slower are not worth the first screen."""
    curve = SimpleNamespace(penalty=penalty)
    monkeypatch.setattr(lead_charts, "curves", lambda *_: [curve])
    frames = {name: pd.DataFrame({"run": ["a"]}) for name in ("summary", "series")}
    assert (lead_charts.worst_warm_up(frames) is not None) is leads


@pytest.mark.parametrize(("steps", "leads"), [(2, True), (3, False)])
def test_many_parallel_steps_are_a_fleet(
    monkeypatch: pytest.MonkeyPatch, steps: int, *, leads: bool
) -> None:
    """Two storms lead a report, three do not."""
    monkeypatch.setattr(lead_charts, "storm_steps", lambda _: list(range(steps)))
    assert bool(_few_storms({"summary": pd.DataFrame()})) is leads
