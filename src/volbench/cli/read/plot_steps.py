"""What `volbench plot` does with a chart: where pictures and numbers go, and the list of kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from volbench.cli.outputs import binary_output
from volbench.dataset import Dataset
from volbench.errors import InputError
from volbench.model.profile.profile_settings import Rounds
from volbench.present.export.frame_export import export_frame
from volbench.present.plots.chart import build_plot, build_plots
from volbench.present.plots.description import Plot, numbers
from volbench.present.plots.kind import Options
from volbench.present.renderers import CHART_FORMATS
from volbench.present.renderers.interactive import chart_page, is_interactive
from volbench.present.renderers.matplotlib import draw, save

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Picture:
    """How a chart is drawn, and where it goes.

    Attributes:
        by: columns whose values have a colour, or a panel.
        title: over it; None for the chart's own.
        theme: of its colours; empty for light, and for the reader's own in a page.
        image: format; empty to take it from the name of the file.
        output: file or folder; ``-`` for standard output; empty for the campaign's report folder.
        numbers: where its numbers go; empty for beside it.
        options: for the kinds that take some.
    """

    by: tuple[str, ...]
    title: str | None
    theme: str
    image: str
    output: str
    numbers: str
    options: Options

    def plots(self, kind: str, frames: Frames) -> Iterable[Plot]:
        """Return the chart of a kind, or every chart that applies for ``all``.

        Raises:
            InputError: there is nothing to draw, or several charts would go into one file.
        """
        if kind != "all":
            return [build_plot(kind, frames, title=self.title, by=self.by, options=self.options)]
        for place in (self.numbers, "" if self.is_page else self.output):
            if place and not Path(place).is_dir():
                raise InputError(
                    f"all charts can't go into {place}: it is not a folder",
                    hint="make a folder, and name it with --output",
                )
        plots = build_plots(frames, title=self.title, by=self.by, options=self.options)
        return (plot for plot in plots if not self.is_page or is_interactive(plot))

    @property
    def is_page(self) -> bool:
        """Whether a page is written, which holds all charts."""
        return self._format == "html"

    @property
    def _format(self) -> str:
        ending = Path(self.output).suffix.removeprefix(".").lower()
        return self.image or (ending if ending in CHART_FORMATS else "svg")

    def write(self, plot: Plot, *, folder: Path) -> None:
        """Write a chart as a picture, and its numbers.

        Raises:
            InputError: it can't be written.
        """
        place = self.output or str(folder)
        with binary_output(place, default_name=f"{plot.name}.{self._format}") as sink:
            save(draw(plot, theme=self.theme or "light"), sink, format=self._format)
        if beside := self.numbers or _beside(place):
            _write_numbers(plot, beside)

    def write_page(self, plots: Sequence[Plot], *, folder: Path) -> None:
        """Write one page with interactive charts, and their numbers if they are wanted.

        Raises:
            InputError: it can't be written, or a kind needs a picture.
        """
        first, name = plots[0], plots[0].name if len(plots) == 1 else "charts"
        title = first.title if len(plots) == 1 else self.title or folder.resolve().parent.name
        page = chart_page(plots, title=title, theme=self.theme)
        with binary_output(self.output or str(folder), default_name=f"{name}.html") as sink:
            sink.write(page.encode())
        for plot in plots if self.numbers else ():
            _write_numbers(plot, self.numbers)


def _write_numbers(plot: Plot, place: str) -> None:
    with binary_output(place, default_name=f"{plot.name}.csv") as sink:
        export_frame(numbers(plot), frame_name=plot.name, format="csv", into=sink)


def report_folder(dataset: Dataset) -> Path:
    """Return the folder of the first campaign's report, which is made if need be.

    Raises:
        InputError: it can't be made.
    """
    folder = next(iter(dataset.names.values())).report_folder
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} can't be made: {error.strerror}", hint="name another place with --output"
        ) from error
    return folder


def tracked_rounds(dataset: Dataset) -> dict[str, Rounds]:
    """Return the tracking variables of each profile that has some."""
    return {
        profile: rounds
        for data in dataset.names.values()
        for profile, rounds in data.campaign.rounds.items()
    }


def columns_of(by: str | None) -> tuple[str, ...]:
    """Return the columns that ``--by`` names."""
    return tuple(part.strip() for part in by.split(",")) if by else ()


def _beside(place: str) -> str:
    """Return where numbers stand beside a picture; "" beside standard output."""
    if place == "-":
        return ""
    return place if Path(place).is_dir() else str(Path(place).with_suffix(".csv"))
