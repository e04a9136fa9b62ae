"""What `volbench plot` does with a chart: where pictures and numbers go, and the list of kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pandas as pd

from volbench.cli.outputs import binary_output
from volbench.dataset import Dataset
from volbench.errors import InputError
from volbench.model.profile.profile_settings import Rounds
from volbench.present.export.frame_export import export_frame
from volbench.present.figures import KINDS, applicable, chart_numbers, draw_chart
from volbench.present.plots.description import numbers
from volbench.present.plots.kind import Options
from volbench.present.plots.kinds import KINDS as DESCRIBED
from volbench.present.renderers.matplotlib import FORMATS, save


@dataclass(frozen=True)
class Picture:
    """What was asked of a picture.

    Attributes:
        by: columns that are told apart.
        title: over it; None for the chart's own.
        theme: of its colours; "" for light, and for the reader's own in a page.
        image: format; "" to take it from the name of the file.
        output: file or folder; ``-`` for standard output; "" for the campaign's report folder.
        numbers: where its numbers go; "" for beside it.
        options: for the kinds that take some.
    """

    by: tuple[str, ...]
    title: str | None
    theme: str
    image: str
    output: str
    numbers: str
    options: Options

    def write(self, kind: str, frames: Mapping[str, pd.DataFrame], *, folder: Path) -> None:
        """Draw a chart, and write it and its numbers.

        Raises:
            InputError: there is nothing to draw, or it can't be written.
        """
        place = self.output or str(folder)
        theme = self.theme or "light"
        figure = draw_chart(
            kind, frames, title=self.title, by=self.by, theme=theme, options=self.options
        )
        table = chart_numbers(kind, frames, by=self.by, options=self.options)
        image = self.format_at(place)
        with binary_output(place, default_name=f"{kind}.{image}") as sink:
            save(figure, sink, format=image)
        if beside := self.numbers or _beside(place):
            with binary_output(beside, default_name=f"{kind}.csv") as sink:
                export_frame(table, frame_name=kind, format="csv", into=sink)

    def write_page(
        self, kinds: Sequence[str], frames: Mapping[str, pd.DataFrame], *, folder: Path
    ) -> None:
        """Write one page with interactive charts, and their numbers if they are wanted.

        Raises:
            InputError: there is nothing to draw, it can't be written, or a kind needs a picture.
        """
        from volbench.present.plots.chart import build_plot
        from volbench.present.renderers.interactive import chart_page, is_interactive

        plots = [
            build_plot(kind, frames, title=self.title, by=self.by, options=self.options)
            for kind in kinds
            if kind in DESCRIBED or len(kinds) == 1
        ]
        shown = [plot for plot in plots if len(kinds) == 1 or is_interactive(plot)]
        title = shown[0].title if len(shown) == 1 else self.title or folder.resolve().parent.name
        page = chart_page(shown, title=title, theme=self.theme)
        name = kinds[0] if len(kinds) == 1 else "charts"
        with binary_output(self.output or str(folder), default_name=f"{name}.html") as sink:
            sink.write(page.encode())
        if self.numbers:
            for plot in shown:
                with binary_output(self.numbers, default_name=f"{plot.name}.csv") as sink:
                    export_frame(numbers(plot), frame_name=plot.name, format="csv", into=sink)

    def format_at(self, place: str) -> str:
        """Return the format of what is written to a place."""
        ending = Path(place).suffix.removeprefix(".").lower()
        return self.image or (ending if ending in (*FORMATS, "html") else "svg")


def kinds_of(kind: str, frames: Mapping[str, pd.DataFrame], *, picture: Picture) -> tuple[str, ...]:
    """Return a kind, or every kind that applies for ``all``.

    Args:
        kind: its name.
        frames: of the campaigns.
        picture: where the charts go.

    Raises:
        InputError: several charts would go into one file.
    """
    if kind != "all":
        return (kind,)
    is_page = picture.format_at(picture.output) == "html"
    for place in (picture.numbers, *([] if is_page else [picture.output])):
        if place and not Path(place).is_dir():
            raise InputError(
                f"all charts can't go into {place}: it is not a folder",
                hint="make a folder, and name it with --output",
            )
    return applicable(frames, among=list(KINDS))


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


def list_kinds() -> None:
    """Print every kind with what it shows and what it needs."""
    for name, chart in KINDS.items():
        click.echo(f"{name}\n    {chart.help}\n    Needs {chart.needs}.")


def _beside(place: str) -> str:
    """Return where numbers stand beside a picture; "" beside standard output."""
    if place == "-":
        return ""
    return place if Path(place).is_dir() else str(Path(place).with_suffix(".csv"))
