"""A kind is one file and one line of the registry: everything else follows."""

import io
import json

import pandas as pd
import pytest

from tests.present.frames_for_plots import frames, result
from volbench.errors import InputError
from volbench.present.plots import kinds
from volbench.present.plots.chart import build_plot, build_plots
from volbench.present.plots.description import Axis, Panel, Plot, numbers
from volbench.present.plots.kinds import Choice, Frames, Kind, Options
from volbench.present.plots.marks import Points
from volbench.present.renderers.interactive.plot_json import json_form
from volbench.present.renderers.matplotlib import draw, save


def read(frames_: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row for each run."""
    return frames_["summary"][["job", "iops", "bw_bytes_per_s"]]


def build(data: pd.DataFrame) -> Plot:
    """Draw a point for each run."""
    points = Points(data, x="iops", y="bw_bytes_per_s", series="palette-0")
    panel = Panel(x=Axis("IOPS", "count"), y=Axis("Bandwidth", "rate"), marks=(points,))
    return Plot(panels=(panel,), heights=(2.0,))


SCATTER = Kind(
    name="scatter",
    title="IOPS and bandwidth",
    help="A point for each run.",
    needs="a finished run",
    read=read,
    build=build,
    describe=lambda data: f"{len(data)} runs.",
)
"""All that a contributor writes."""


@pytest.fixture(name="added")
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = {**kinds.KINDS, SCATTER.name: SCATTER}
    for module in ("volbench.present.plots.kinds", "volbench.present.plots.chart"):
        monkeypatch.setattr(f"{module}.KINDS", registry)


@pytest.mark.slow
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
    with pytest.raises(InputError, match="takes neither --x, --panels, --as nor"):
        build_plot("scatter", given, options=Options(choice=Choice(panels=("job",))))
    with pytest.raises(InputError, match="no column 'volume_tpe'") as caught:
        build_plot("iops", given, options=Options(choice=Choice(by=("volume_tpe",))))
    assert "volume" in caught.value.hint
    assert "scatter" in [other.name for other in build_plots(given)]
    assert plot.description == form["description"] == "2 runs."


def test_the_nearest_kind_is_suggested_for_an_unknown_one() -> None:
    """A misspelt kind gives the nearest one."""
    with pytest.raises(InputError, match="neither a chart nor a column 'latncy'") as caught:
        build_plot("latncy", frames([result("a")]))
    assert caught.value.hint == "did you mean `latency`?"
