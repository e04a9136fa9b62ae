"""Any chart can show columns as colours and panels."""

from typing import Any

import pytest

from tests.present.frames_by_kind import Frames, fleet
from tests.present.frames_for_plots import frames, intervals, result
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.kinds import Choice, Options


def choosing(**choices: Any) -> Options:  # noqa: ANN401 - fields of different types
    """Return options with a choice of factors."""
    return Options(choice=Choice(**choices))


def labelled() -> Frames:
    """Return a job on four hosts of two volume types in two zones."""
    rates = {"a": 100.0, "b": 200.0, "c": 1000.0, "d": 3000.0}
    given = frames(
        [result("reads", iops=iops, host=host, run=f"reads-{host}") for host, iops in rates.items()]
    )
    given["summary"]["label_volume_type"] = ["slow", "slow", "fast", "fast"]
    given["summary"]["label_zone"] = ["1", "2", "1", None]
    return given


def test_panels_of_several_rows_keep_their_order() -> None:
    """Plots of three panels abreast stand above each other: six are too narrow to be read."""
    rows = [result(job, repeat=n) for job in ("a", "b") for n in (1, 2)]
    given = frames(rows, series=[point for row in rows for point in intervals(row, [1.0, 2.0])])
    plot = build_plot("series", given, options=choosing(panels=("repeat",)))
    places = [(panel.row, panel.column) for panel in plot.panels]
    assert places == [(row, m) for row in range(4) for m in range(3)]
    assert len(plot.widths) == 3
    assert len(plot.heights) == 4
    assert plot.panels[0].heading.startswith("repeat=1\n")


def test_wrong_columns_are_refused() -> None:
    """A misspelt column gets the nearest ones, and thirty values are too many panels."""
    with pytest.raises(InputError, match="no column 'volume_tpe'") as caught:
        build_plot("iops", labelled(), options=choosing(by=("volume_tpe",)))
    assert "volume_type" in caught.value.hint
    with pytest.raises(InputError, match="run has 30 values"):
        build_plot("latency", fleet(hosts=30), options=choosing(panels=("run",)))
