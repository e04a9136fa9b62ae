"""What all charts share: frames enter a Chart, a Figure and a sentence about it leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from textwrap import fill
from typing import cast

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.transforms import ScaledTranslation, Transform

from volbench.analyse.frames.job_frames import left_out, measured
from volbench.present.figures.captions import setting
from volbench.present.formatting import Row, flag, number, pattern, printable, size, text
from volbench.present.style import GREY

Frames = Mapping[str, pd.DataFrame]

WIDTH_IN = 9.0


@dataclass(frozen=True)
class Chart:
    """One kind of chart.

    Attributes:
        name: as the command line calls it.
        title: over the chart unless another is given.
        frame_names: the frames it reads.
        draw: frames and title to a new Figure; only called when `lack` finds nothing.
        help: what it shows, one sentence.
        lack: why the frames have nothing for it, empty when they have.
        describe: its main numbers in one sentence, for who can't see it.
        needs: what a campaign must have for it, a few words.
        numbers: the rows that it draws; None to take them from the lines and bars drawn.
    """

    name: str
    title: str
    frame_names: tuple[str, ...]
    draw: Callable[[Frames, str], Figure]
    help: str
    lack: Callable[[Frames], str]
    describe: Callable[[Frames], str]
    needs: str = "a finished measured Run"
    numbers: Callable[[Frames], pd.DataFrame] | None = None


@dataclass
class Panel:
    """A place in a larger figure that a chart is drawn into.

    Attributes:
        figure: the place.
        notes: what the chart would have written at its foot.
    """

    figure: SubFigure
    notes: list[str] = field(default_factory=list)


_PANEL: ContextVar[Panel | None] = ContextVar("panel", default=None)


@contextmanager
def drawn_into(panel: Panel) -> Iterator[None]:
    """Let `new_figure` hand out a place in a larger figure while the block runs."""
    token = _PANEL.set(panel)
    try:
        yield
    finally:
        _PANEL.reset(token)


def new_figure(
    *, title: str, note: str = "", height_in: float, width_in: float = WIDTH_IN
) -> Figure:
    """Return an empty figure with a title, and a note at its foot."""
    panel = _PANEL.get()
    if panel is not None:
        panel.figure.suptitle(printable(title), x=0.012, ha="left", fontsize=10, fontweight="bold")
        panel.notes.append(note)
        return cast("Figure", panel.figure)
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(w_pad=0.08, h_pad=0.08)  # type: ignore[call-arg]  # of ConstrainedLayoutEngine
    columns = int(width_in * 10)
    shown = fill(printable(title), columns)
    figure.suptitle(shown, x=0.012, ha="left", fontsize=12, fontweight="bold")
    if note:
        write_note(figure, note, width_in=width_in)
    return figure


def write_note(figure: Figure, note: str, *, width_in: float = WIDTH_IN) -> None:
    """Write, or write anew, the note at a figure's foot."""
    wrapped = fill(printable(note), int(width_in * 14))
    figure.supxlabel(wrapped, x=0.012, ha="left", fontsize=8, color=GREY)


def beside(axes: Axes, *, x_in: float = 0, y_in: float = 0) -> Transform:
    """Return the axes' own coordinates, 0 to 1, moved by inches."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes stand in no figure")
    return axes.transAxes + ScaledTranslation(x_in, y_in, figure.dpi_scale_trans)


def lack_of_runs(frames: Frames) -> str:
    """Return why there is nothing to draw at all, empty when a measured Run finished."""
    summary = frames["summary"]
    if len(measured(summary)):
        return ""
    states = left_out(summary)
    if not states:
        return "no Run of the campaign's measured phase has ended yet"
    return "no measured Run finished: " + ", ".join(f"{n} {state}" for state, n in states.items())


def caption(summary: pd.DataFrame, *parts: str) -> str:
    """Return the note at the foot: campaign, further parts, and what is not shown."""
    campaigns = [str(name) for name in summary["campaign"].dropna().unique()]
    names = ", ".join(campaigns[:MOST_NAMED])
    if len(campaigns) > MOST_NAMED:
        names += f" and {len(campaigns) - MOST_NAMED} more"
    told = [f"Campaign{'s' * (len(campaigns) > 1)} {names}"]
    told += [part for part in (setting(summary), *parts) if part]
    for state, count in left_out(summary).items():
        if state == "failed":
            told.append(f"{count} Run{'s' if count > 1 else ''} failed and {_be(count)} not shown")
        else:
            told.append(
                f"{count} Run{'s' if count > 1 else ''} {_was(count)} {state} "
                f"and {_be(count)} not shown"
            )
    return ". ".join(told) + "."


IDENTITY = (
    "label",
    "by",
    "campaign",
    "profile",
    "host",
    "volume",
    "job",
    "group",
    "direction",
    "rw",
    "block_bytes",
    "iodepth",
    "numjobs",
    "direct",
    "repeats",
)
"""Columns that tell what a row of numbers is of."""


def table(rows: Sequence[Row] | pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the numbers of rows, those columns that tell what they are of first."""
    frame = pd.DataFrame(rows)
    return frame[[name for name in (*IDENTITY, *columns) if name in frame]]


def shape(row: Row) -> str:
    """Return what a job did, such as ``randwrite 4k, depth 16, buffered``."""
    parts = [pattern(row)]
    if size(row, "block_bytes") != "n/a":
        parts[0] += f" {size(row, 'block_bytes')}"
    if number(row, "iodepth") > 1:
        parts.append(f"depth {number(row, 'iodepth'):.0f}")
    if number(row, "numjobs") > 1:
        parts.append(f"{number(row, 'numjobs'):.0f} clones")
    if flag(row, "direct") == "no" and not text(row, "volume").startswith("nbd"):
        parts.append("buffered")
    if text(row, "tool") == "dd":
        parts.append("dd")
    return ", ".join(parts)


def job_names(rows: Sequence[Row]) -> list[str]:
    """Return a label for each row: the job and what it did, on one line when there are many."""
    names = [text(row, "label") for row in rows]
    if len(rows) <= TWO_LINES:
        pairs = zip(names, rows, strict=True)
        return [f"{wrap_name(name)}\n{shape(row)}" for name, row in pairs]
    if max(map(len, names)) <= 24:
        return [f"{name}   {shape(row)}" for name, row in zip(names, rows, strict=True)]
    return [wrap_name(name, columns=60) for name in names]


MOST_NAMED = 6
"""Up to how many campaigns are named in the note."""
TWO_LINES = 20
"""Up to how many rows a label takes two lines."""


def rows_height_in(names: Sequence[str]) -> float:
    """Return the height that rows of these names take, so that no two names touch."""
    lines = max((name.count("\n") for name in names), default=0) + 1
    return len(names) * (0.1 + 0.17 * lines)


def wrap_name(name: str, *, columns: int = 34) -> str:
    """Return a long name on several lines, broken at its own joints where it has some."""
    if len(name) <= columns:
        return name
    loose = "".join(c + "\u200b" if c in "-_/." else c for c in name)
    lines, line = [], ""
    for piece in loose.replace(" ", " \u200b").split("\u200b"):
        if line and len(line) + len(piece) > columns:
            lines.append(line)
            line = ""
        line += piece
        while len(line) > columns:
            lines.append(line[:columns])
            line = line[columns:]
    return "\n".join(part.strip() for part in [*lines, line] if part)


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
