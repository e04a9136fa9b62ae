"""Bounds of what leads a report."""

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
    row = {"run": ["a"], "volume": ["v"], "profile": ["own"], "phase": ["warmup"]}
    frames = {name: pd.DataFrame(row) for name in ("summary", "series")}
    assert (lead_charts.worst_warm_up(frames) is not None) is leads


@pytest.mark.parametrize(
    ("profile", "phase", "volumes", "leads"),
    [
        ("imported", "measured", 1, False),
        ("warmup-curve", "measured", 1, True),
        ("imported", "warmup", 1, True),
        ("warmup-curve", "measured", 3, False),
    ],
)
def test_a_warm_up_leads_where_the_campaign_was_made_for_it(
    monkeypatch: pytest.MonkeyPatch, profile: str, phase: str, volumes: int, *, leads: bool
) -> None:
    """Slow first seconds of a disk in a collection are not the warm-up of a volume."""
    monkeypatch.setattr(lead_charts, "curves", lambda *_: [SimpleNamespace(penalty=0.5)])
    rows = [
        {"run": f"r{n}", "volume": f"v{n}", "profile": profile, "phase": phase}
        for n in range(volumes)
    ]
    frames = {name: pd.DataFrame(rows) for name in ("summary", "series")}
    assert (lead_charts.worst_warm_up(frames) is not None) is leads


@pytest.mark.parametrize(("steps", "leads"), [(2, True), (3, False)])
def test_many_parallel_steps_are_a_fleet(
    monkeypatch: pytest.MonkeyPatch, steps: int, *, leads: bool
) -> None:
    """Two storms lead a report, three do not."""
    monkeypatch.setattr(lead_charts, "storm_steps", lambda _: list(range(steps)))
    assert bool(_few_storms({"summary": pd.DataFrame()})) is leads
