"""Charts, findings and verdicts as objects that a notebook shows and a program reads."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from volbench.analyse.compare.comparison import Comparison, headlines
from volbench.analyse.compare.comparison_result import row_of
from volbench.present.formatting import Row, printable, records
from volbench.present.plots.chart import build_plot, kind_of
from volbench.present.plots.colour_themes import theme_of
from volbench.present.plots.description import Plot, numbers
from volbench.present.plots.kinds import ALWAYS_READ, Options
from volbench.present.renderers import format_of
from volbench.present.tables.compare_table import comparison_table, notes
from volbench.present.tables.findings_table import findings_table, findings_text
from volbench.present.tables.html_table import html_table
from volbench.present.tables.render_table import render_table
from volbench.store.atomic_files import write_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_PX_PER_IN = 96
# Columns of verdicts that are None where nothing can be said: NaN in a frame
_NUMBERS = (*("ratio", "ratio_low", "ratio_high", "confidence"), *("p_value", "detectable_percent"))


@dataclass(frozen=True, repr=False)
class Chart:
    """A chart of campaigns: a picture in a notebook, a file, or the numbers that it shows.

    Attributes:
        plot: its description: panels, axes, marks, title and caption.
        theme: ``light``, ``dark`` or ``print``.
    """

    plot: Plot
    theme: str = "light"

    @property
    def numbers(self) -> pd.DataFrame:
        """A row for each mark, in base SI units, as ``volbench plot --csv`` writes them."""
        return numbers(self.plot)

    @cached_property
    def figure(self) -> Figure:
        """The matplotlib figure; what is changed in it is shown and saved as changed.

        Raises:
            InputError: there is no such theme.
        """
        from volbench.present.renderers.matplotlib import draw  # noqa: PLC0415 - slow to import

        return draw(self.plot, theme=self.theme)

    def html(self) -> str:
        """Return a page that draws the chart with zoom and hover texts, and needs no network.

        Raises:
            InputError: the chart has towers, which only pictures show.
        """
        from volbench.present.renderers.interactive import chart_page  # noqa: PLC0415 - slow

        return chart_page([self.plot], title=self.plot.title, theme=self.theme)

    def save(self, path: str | Path) -> Path:
        """Write the chart to a file whose extension is svg, png, pdf or html; return its path.

        An html page draws the description, without changes of `figure`.

        Raises:
            InputError: it has another extension.
            VolbenchError: the file cannot be written.
        """
        file = Path(path)
        ending = format_of(file)
        content = self.html().encode() if ending == "html" else _picture(self.figure, ending)
        write_output(file, content, kind=f".{ending}")
        return file

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the picture in print resolution, and its size in CSS pixels."""
        figure = self.figure
        width, height = (round(inches * _PX_PER_IN) for inches in figure.get_size_inches())
        return _picture(figure, "png"), {"width": width, "height": height}

    def __repr__(self) -> str:
        """Return title and main numbers, for readers who cannot see the chart."""
        return printable(f"<Chart {self.plot.name}: {self.plot.title}. {self.plot.description}>")


def _picture(figure: Figure, ending: str) -> bytes:
    from volbench.present.renderers.matplotlib import save  # noqa: PLC0415 - slow to import

    sink = io.BytesIO()
    save(figure, sink, format=ending)
    return sink.getvalue()


@dataclass(frozen=True, repr=False)
class Findings:
    """Data-quality warnings of campaigns: a row each, with evidence, reason and advice.

    Attributes:
        frame: with the columns of the frame ``findings``.
        runs: number of finished runs that were checked.
    """

    frame: pd.DataFrame
    runs: int

    def __len__(self) -> int:
        """Return the number of findings."""
        return len(self.frame)

    def __iter__(self) -> Iterator[Row]:
        """Yield each finding as plain values."""
        return iter(records(self.frame))

    def __repr__(self) -> str:
        """Return what ``volbench check`` prints."""
        return findings_text(list(self), runs=self.runs).rstrip("\n")

    def _repr_html_(self) -> str:
        return str(html_table(findings_table(list(self))))


@dataclass(frozen=True, repr=False)
class Verdicts:
    """Verdicts of a comparison: a row for each workload, metric and candidate.

    Attributes:
        comparison: with ratios, intervals and remarks.
    """

    comparison: Comparison

    @property
    def frame(self) -> pd.DataFrame:
        """The columns of ``volbench compare --format csv``, in base SI units.

        ``ratio`` is candidate over base, and its ends at ``confidence`` are NaN where there are too
        few repeats; ``words`` is the verdict.
        """
        frame = pd.DataFrame([row_of(verdict) for verdict in self.comparison.rows])
        frame[list(_NUMBERS)] = frame[list(_NUMBERS)].astype("float64")
        return frame

    @property
    def summary(self) -> list[str]:
        """The answer in a sentence for each candidate."""
        return headlines(self.comparison)

    @property
    def remarks(self) -> list[str]:
        """What ``volbench compare`` prints below the table, a sentence each."""
        return [*notes(self.comparison), *self.comparison.remarks]

    def plot(self, *, title: str = "", theme: str = "light") -> Chart:
        """Return the ratios with their intervals as a chart.

        Raises:
            InputError: no ratio is known.
        """
        from volbench.present.plots.charts.comparison_charts import forest_plot  # noqa: PLC0415 - slow

        return Chart(forest_plot(self.comparison, title=title), theme)

    def __len__(self) -> int:
        """Return the number of verdicts."""
        return len(self.comparison.rows)

    def __repr__(self) -> str:
        """Return what ``volbench compare`` prints, at 100 columns."""
        return render_table(comparison_table(self.comparison), "table", width=100).rstrip("\n")

    def _repr_html_(self) -> str:
        return str(html_table(comparison_table(self.comparison)))


def chart_of(
    what: str, read: Callable[[str], pd.DataFrame], *, options: Options, title: str, theme: str
) -> Chart:
    """Return a chart of the frames that it needs.

    Args:
        what: kind of chart, or responses such as ``iops,p99``.
        read: returns a frame by name.
        options: inputs beside the frames.
        title: as for `CampaignData.plot`, like the theme.
        theme: same.
    """
    names = {*ALWAYS_READ, *kind_of(what.lower()).frame_names}
    frames = {name: read(name) for name in names}
    plot = build_plot(what.lower(), frames, title=title or None, options=options)
    theme_of(theme)
    return Chart(plot, theme)
