"""A kind is one file and one line of the registry: everything else follows."""

from __future__ import annotations

import io
import json

import pytest

from tests.present.frames_for_figures import frames, result
from volbench.errors import InputError
from volbench.present.plots import kinds
from volbench.present.plots.chart import applicable, build_plot, describe
from volbench.present.plots.description import Axis, Panel, Plot, Points, numbers
from volbench.present.plots.json_form import json_form
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.renderers.matplotlib import draw, save


def build(frames_: Frames, _: Options) -> Plot:
    """Draw a point for each run."""
    data = frames_["summary"][["job", "iops", "bw_bytes_per_s"]]
    panel = Panel(
        x=Axis("IOPS", "count"),
        y=Axis("Bandwidth", "rate"),
        marks=(Points(data=data, x="iops", y="bw_bytes_per_s", series="palette-0"),),
    )
    return Plot(panels=(panel,), heights=(2.0,))


SCATTER = Kind(
    name="scatter",
    title="IOPS and bandwidth",
    frame_names=("summary",),
    help="A point for each run.",
    needs="a finished run",
    missing=missing_runs,
    build=build,
    describe=lambda frames_: f"{len(frames_['summary'])} runs.",
)
"""All that a contributor writes."""


@pytest.fixture(name="added")
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = {**kinds.KINDS, SCATTER.name: SCATTER}
    for module in ("volbench.present.plots.kinds", "volbench.present.plots.chart"):
        monkeypatch.setattr(f"{module}.KINDS", registry)


@pytest.mark.usefixtures("added")
def test_a_new_kind_has_picture_numbers_and_json() -> None:
    """One entry of the registry gives file, CSV, JSON for the page, panels, description."""
    given = frames([result("a"), result("b", iops=200.0)])
    plot = build_plot("scatter", given)
    sink = io.BytesIO()
    save(draw(plot), sink, format="png")
    assert sink.getvalue().startswith(b"\x89PNG")
    assert numbers(plot).to_csv(index=False).splitlines() == [
        "job,iops,bw_bytes_per_s",
        "a,1000.0,4096000.0",
        "b,200.0,819200.0",
    ]
    form = json_form(plot)
    assert json.loads(json.dumps(form, allow_nan=False)) == form
    assert form["title"] == "IOPS and bandwidth"
    assert len(build_plot("scatter", given, by=["host", "job"]).panels) == 2
    assert "scatter" in applicable(given)
    assert describe("scatter", given) == "2 runs."


def test_unknown_kind_is_corrected() -> None:
    """A misspelt kind gives the nearest one."""
    with pytest.raises(InputError, match="no chart 'latncy'") as caught:
        build_plot("latncy", frames([result("a")]))
    assert caught.value.hint == "did you mean latency?"
