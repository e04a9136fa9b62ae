"""Fixtures of the tests of charts."""

from __future__ import annotations

from functools import partial

import pytest

from volbench.present.plots import chart


@pytest.fixture
def short_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let refusals try three charts for their hint, not all, which takes most of a second."""
    few = partial(chart.build_plots, kinds=("iops", "bandwidth", "latency"))
    monkeypatch.setattr(chart, "build_plots", few)
