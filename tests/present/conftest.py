"""Every chart that a test draws keeps the rules of charts."""

import pytest

from tests.present.chart_rules import broken_rules
from volbench.present.plots.colour_themes import Theme
from volbench.present.plots.description import Plot
from volbench.present.renderers.matplotlib import figure, look


@pytest.fixture(autouse=True)
def _rules(monkeypatch: pytest.MonkeyPatch) -> None:

    def checked(plot: Plot, theme: Theme) -> look.Looks:
        assert broken_rules(plot) == []
        return look.looks_of(plot, theme)

    monkeypatch.setattr(figure, "looks_of", checked)
