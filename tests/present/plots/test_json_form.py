import base64
import json

import numpy as np
import pandas as pd

from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.marks import Lines, Points
from volbench.present.renderers.interactive.plot_json import json_form


def plot_of(data: pd.DataFrame) -> Plot:
    """Return a line and points over the same data."""
    marks = (Lines(data, by="way", x="x", y="y"), Points(data, x="x", y="y", size=3.0))
    panel = Panel(x=Axis("Time", "duration", "time", (0, 9.0)), y=Axis("IOPS"), marks=marks)
    series = (Series("read", "read", "read"),)
    return Plot(panels=(panel,), heights=(1.0,), series=series, name="n", title="T")


def test_form_is_plain_json_and_reproducible() -> None:
    """Marks share a table; attributes with their default are left out; NaN is null."""
    data = pd.DataFrame({"x": [0.0, 1.0], "y": [1e-6, np.nan], "way": ["read", None]})
    form = json_form(plot_of(data))
    assert json.loads(json.dumps(form, allow_nan=False)) == form
    assert form == json_form(plot_of(data.copy()))
    assert form["tables"] == [
        {
            "x": {"values": [0.0, 1.0]},
            "y": {"values": [1e-6, None]},
            "way": {"texts": ["read"], "places": [0, -1]},
        }
    ]
    assert form["panels"] == [
        {
            "x": {"label": "Time", "format": "duration", "scale": "time", "limits": [0, 9.0]},
            "y": {"label": "IOPS"},
            "marks": [
                {"type": "Lines", "table": 0, "by": "way", "x": "x", "y": "y"},
                {"type": "Points", "table": 0, "x": "x", "y": "y", "size": 3.0},
            ],
        }
    ]


def test_long_columns_are_packed_and_thinned() -> None:
    """A hundred thousand points become two thousand floats, the spike and the gap among them."""
    y = np.full(100_000, 5.0)
    y[4_321], y[50_000:51_000] = 900.0, np.nan
    data = pd.DataFrame({"x": np.arange(100_000.0), "y": y, "way": "read"})
    form = json_form(plot_of(data))
    tables = form["tables"]
    assert isinstance(tables, list)
    packed = np.frombuffer(base64.b64decode(tables[0]["y"]["floats"]), dtype="<f4")
    assert len(packed) <= 2000
    assert np.nanmax(packed) == 900.0
    assert np.isnan(packed).any()
