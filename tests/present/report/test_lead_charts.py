"""Bounds of what leads a report."""

from types import SimpleNamespace

import pandas as pd
import pytest

from tests.present.frames_for_plots import frames, result, sweep
from volbench.present.report import lead_charts
from volbench.present.report.lead_charts import _few_storms, lead_plots


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


def test_bars_leave_room_for_names_of_three_lines() -> None:
    """Mixed jobs of several volumes: Bokeh draws a line of 11.5 px in 0.16 inches."""
    rows = [
        result(f"job-{n}", rw="rw", direction=way, iodepth=n + 1)
        | {"numjobs": n % 3, "volume": f"/d{n % 3}"}
        for n in range(10)
        for way in ("read", "write")
    ]
    (lead, *_) = lead_plots(frames(rows))
    categories = lead.panels[0].y.categories
    assert {name.count("\n") for name in categories} == {2}
    assert lead.heights[0] >= len(categories) * 3 * 0.16


def test_the_caption_counts_the_patterns_that_lead() -> None:
    """Of eight grids over two options the first screen has room for two."""
    rows = [
        row | dict.fromkeys(("job", "group"), f"{row['job']}-{mix}") | {"ioengine": f"engine-{mix}"}
        for mix in (20, 40, 60, 80)
        for row in sweep(depths=(1, 4, 16), blocks=(4096, 16384, 65536))
    ]
    [plot, *_] = lead_plots(frames(rows))
    assert plot.name == "heatmap"
    assert len(plot.panels) == 4  # IOPS and latency of each
    assert any("Showing 2 of 8 patterns" in sentence for sentence in plot.caption)
