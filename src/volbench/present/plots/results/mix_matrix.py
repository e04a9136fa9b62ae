"""Read/write mix by block size: mean IOPS as a heat map and as towers, as in SNIA's reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.labels import palette
from volbench.present.plots.metrics import IOPS
from volbench.present.plots.time.steady_rounds import judge_rounds
from volbench.units import format_count, format_size

_STATISTICS = ("mean", "least", "greatest")


@dataclass(frozen=True)
class _Mixes:
    """Means over mixes and block sizes.

    Attributes:
        cells: a row for each with its place ``_x`` and ``_y``.
        x: mixes with most reads first.
        y: small blocks below.
        outcome: of the rounds, a sentence.
    """

    cells: pd.DataFrame
    x: Axis
    y: Axis
    outcome: str

    @property
    def caption(self) -> tuple[str, ...]:
        """Sentences below the chart."""
        means = f"Means of {int(self.cells['rounds'].max())} rounds, with min and max"
        return means, self.outcome, "Mixes are reads/writes"


def read(frames: Frames, options: Options) -> _Mixes | str:
    """Return the cells that have one mix and one block size."""
    judged = judge_rounds(frames, options)
    if isinstance(judged, str):
        return judged
    matrix = judged.matrix
    cells = matrix[(matrix["mix"] != "") & matrix["block_bytes"].notna()].reset_index(drop=True)
    mixes = sorted({int(percent) for percent in cells["read_percent"]}, reverse=True)
    blocks = sorted(set(cells["block_bytes"]))
    if len(mixes) * len(blocks) < 2:
        return "no table: it takes jobs of several read/write mixes (rwmixread) or block sizes"
    placed = cells.rename(columns={name: f"iops_{name}" for name in _STATISTICS}).assign(
        _x=[mixes.index(int(percent)) for percent in cells["read_percent"]],
        _y=[blocks.index(block) for block in cells["block_bytes"]],
    )
    names = tuple(f"{percent}/{100 - percent}" for percent in mixes)
    sizes = tuple(format_size(float(block)) for block in blocks)
    x = Axis("Read/write mix (percent)", scale="category", categories=names, limits=_ends(names))
    y = Axis("Block size", scale="category", categories=sizes, limits=_ends(sizes))
    return _Mixes(placed, x, y, judged.outcome)


def _ends(names: tuple[str, ...]) -> tuple[float, float]:
    return -0.5, len(names) - 0.5


def build_map(mixes: _Mixes) -> Plot:
    """Draw the means as a heat map, each cell with its range."""
    columns = [f"iops_{name}" for name in _STATISTICS]
    texts = [_cell_text(*values) for values in mixes.cells[columns].to_numpy(dtype=float)]
    cells = marks.Cells(mixes.cells.assign(_text=texts), value="iops_mean", text="_text")
    return Plot(
        panels=(Panel(x=mixes.x, y=mixes.y, marks=(cells,), background="quiet"),),
        heights=(0.5 * len(mixes.y.categories),),
        width_in=max(9.0, 2.0 + 1.3 * len(mixes.x.categories)),
        caption=mixes.caption,
    )


def _cell_text(mean: float, low: float, high: float) -> str:
    text = format_count(mean)
    return f"{text}\n{format_count(low)} to {format_count(high)}" if high > low else text


def build_towers(mixes: _Mixes) -> Plot:
    """Draw a tower for each mix and block size, from zero."""
    data = mixes.cells.assign(_series=[palette(place) for place in mixes.cells["_y"]])
    towers = marks.Bars3D(data, by="_series", value="iops_mean")
    z = IOPS.axis(1.02 * float(data["iops_mean"].max()))
    panel = Panel(x=mixes.x, y=mixes.y, z=z, marks=(towers,))
    return Plot(panels=(panel,), heights=(5.4,), caption=mixes.caption)


def describe(mixes: _Mixes) -> str:
    """Return the outcome of the rounds and the best cell in one sentence."""
    best = mixes.cells.nlargest(1, "iops_mean").iloc[0]
    return (
        f"Mean IOPS over {len(mixes.x.categories)} mixes and {len(mixes.y.categories)} block "
        f"sizes: max {format_count(float(best['iops_mean']))} at {best['mix']} and "
        f"{format_size(float(best['block_bytes']))}; {mixes.outcome[:1].lower()}"
        f"{mixes.outcome[1:]}."
    )


MIXES = Kind(
    name="mixes",
    title="IOPS by read/write mix and block size",
    frame_names=("summary",),
    help="A heat map of mean IOPS over read/write mixes and block sizes.",
    needs="repeats of jobs with several read/write mixes or block sizes",
    read=read,
    build=build_map,
    describe=describe,
)
MIXES3D = replace(
    MIXES,
    name="mixes3d",
    help="Mean IOPS over read/write mixes and block sizes as towers.",
    build=build_towers,
)
