"""Read/write mix by block size: mean IOPS as a heat map and as towers, as in SNIA's reports."""

from __future__ import annotations

import pandas as pd

from volbench.present.plots.description import Axis, Bars3D, Cells, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.labels import OPTION_NAMES, palette
from volbench.present.plots.time.steady_rounds import JudgedRounds, describe, judge_rounds
from volbench.present.plots.time.steady_rounds import missing as missing_rounds
from volbench.units import format_count, format_size

_TITLE = "IOPS by read/write mix and block size"
_MIX = "Read/write mix (percent)"
_NEEDS = "repeats of jobs with several read/write mixes or block sizes"


def _matrix(judged: JudgedRounds) -> pd.DataFrame:
    """Return the cells that have one mix and one block size."""
    matrix = judged.matrix
    return matrix[(matrix["mix"] != "") & matrix["block_bytes"].notna()].reset_index(drop=True)


def _cells(judged: JudgedRounds) -> tuple[pd.DataFrame, Axis, Axis]:
    """Return the cells with their places: mixes with most reads first, small blocks below."""
    cells = _matrix(judged).rename(
        columns={name: f"iops_{name}" for name in ("mean", "least", "greatest", "min", "max")}
    )
    mixes = sorted({int(percent) for percent in cells["read_percent"]}, reverse=True)
    blocks = sorted(set(cells["block_bytes"]))
    placed = cells.assign(
        _x=[mixes.index(int(percent)) for percent in cells["read_percent"]],
        _y=[blocks.index(block) for block in cells["block_bytes"]],
    )
    names = tuple(f"{percent}/{100 - percent}" for percent in mixes)
    x = Axis(_MIX, scale="category", categories=names)
    sizes = tuple(format_size(float(block)) for block in blocks)
    return placed, x, Axis(OPTION_NAMES["block_bytes"], scale="category", categories=sizes)


def _caption(judged: JudgedRounds, cells: pd.DataFrame) -> tuple[str, ...]:
    rounds = int(cells["rounds"].max())
    return f"Means of {rounds} rounds, with min and max", judged.outcome, "Mixes are reads/writes"


def build_map(frames: Frames, options: Options) -> Plot:
    """Draw the means as a heat map, each cell with its range."""
    judged = judge_rounds(frames, options.rounds)
    cells, x, y = _cells(judged)
    texts = [
        _cell_text(mean, low, high)
        for mean, low, high in zip(
            cells["iops_mean"], cells[_low(cells)], cells[_high(cells)], strict=True
        )
    ]
    mark = Cells(data=cells.assign(_text=texts), x="_x", y="_y", value="iops_mean", text="_text")
    return Plot(
        panels=(Panel(x=x, y=y, marks=(mark,), background="quiet"),),
        heights=(0.5 * len(y.categories),),
        width_in=max(9.0, 2.0 + 1.3 * len(x.categories)),
        caption=_caption(judged, cells),
    )


def _low(cells: pd.DataFrame) -> str:
    return "iops_min" if "iops_min" in cells else "iops_least"


def _high(cells: pd.DataFrame) -> str:
    return "iops_max" if "iops_max" in cells else "iops_greatest"


def _cell_text(mean: float, low: float, high: float) -> str:
    text = format_count(mean)
    return f"{text}\n{format_count(low)} to {format_count(high)}" if high > low else text


def build_towers(frames: Frames, options: Options) -> Plot:
    """Draw a tower for each mix and block size, from zero."""
    judged = judge_rounds(frames, options.rounds)
    cells, x, y = _cells(judged)
    data = cells.assign(_series=[palette(place) for place in cells["_y"]])
    top = 1.02 * float(cells["iops_mean"].max())
    mark = Bars3D(
        data=data,
        by="_series",
        x="_x",
        y="_y",
        value="iops_mean",
        z=Axis("IOPS", "count", limits=(0.0, top)),
    )
    return Plot(
        panels=(Panel(x=x, y=y, marks=(mark,)),), heights=(5.4,), caption=_caption(judged, cells)
    )


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_rounds(frames):
        return reason
    cells = _matrix(judge_rounds(frames, {}))
    if cells["block_bytes"].nunique() * cells["read_percent"].nunique() < 2:
        return "no table: it takes jobs of several read/write mixes (rwmixread) or block sizes"
    return ""


MIXES = Kind(
    name="mixes",
    title=_TITLE,
    frame_names=("summary",),
    help="A heat map of mean IOPS over read/write mixes and block sizes.",
    needs=_NEEDS,
    missing=missing,
    build=build_map,
    describe=describe,
)
MIXES3D = Kind(
    name="mixes3d",
    title=_TITLE,
    frame_names=("summary",),
    help="Mean IOPS over read/write mixes and block sizes as towers.",
    needs=_NEEDS,
    missing=missing,
    build=build_towers,
    describe=describe,
)
