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
from volbench.model.profile.profile_model import Rounds
from volbench.present.export.frame_export import export_frame
from volbench.present.figures import KINDS, Chart, applicable, chart_numbers, draw_chart
from volbench.present.figures.save import FORMATS, save


@dataclass(frozen=True)
class Picture:
    """What was asked of a picture.

    Attributes:
        by: columns that are told apart.
        title: over it; None for the chart's own.
        theme: of its colours.
        image: format; "" to take it from the name of the file.
        output: file or folder; ``-`` for standard output; "" for the campaign's report folder.
        numbers: where its numbers go; "" for beside it.
    """

    by: tuple[str, ...]
    title: str | None
    theme: str
    image: str
    output: str
    numbers: str

    def write(self, chart: Chart, frames: Mapping[str, pd.DataFrame], *, folder: Path) -> None:
        """Draw a chart, and write it and its numbers.

        Raises:
            InputError: there is nothing to draw, or it can't be written.
        """
        place = self.output or str(folder)
        figure = draw_chart(chart, frames, title=self.title, by=self.by, theme=self.theme)
        told = chart_numbers(chart, frames, by=self.by)
        image = self._format(place)
        with binary_output(place, default_name=f"{chart.name}.{image}") as sink:
            save(figure, sink, format=image)
        if beside := self.numbers or _beside(place):
            with binary_output(beside, default_name=f"{chart.name}.csv") as sink:
                export_frame(told, frame_name=chart.name, format="csv", into=sink)

    def _format(self, place: str) -> str:
        ending = Path(place).suffix.removeprefix(".").lower()
        return self.image or (ending if ending in FORMATS else "svg")


def charts_of(
    kind: str, frames: Mapping[str, pd.DataFrame], *, terms: Sequence[Chart], picture: Picture
) -> list[Chart]:
    """Return the chart of a kind, or every chart that applies for ``all``.

    Args:
        kind: its name.
        frames: of the campaigns.
        terms: charts made with terms, instead of those in `KINDS`.
        picture: where they go.

    Raises:
        InputError: several charts would go into one file.
    """
    charts = {**KINDS, **{chart.name: chart for chart in terms}}
    if kind != "all":
        return [charts[kind]]
    for place in (picture.output, picture.numbers):
        if place and not Path(place).is_dir():
            raise InputError(
                f"all charts can't go into {place}: it is no folder",
                hint="make a folder, and name it with --output",
            )
    return [charts[name] for name in applicable(frames, among=list(KINDS))]


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


def list_kinds(context: click.Context, option: click.Parameter, value: object) -> None:
    """Print every kind with what it shows and what it needs, and end."""
    del option
    if value and not context.resilient_parsing:
        for name, chart in KINDS.items():
            click.echo(f"{name}\n    {chart.help}\n    Needs {chart.needs}.")
        context.exit()


def _beside(place: str) -> str:
    """Return where numbers stand beside a picture; "" beside standard output."""
    if place == "-":
        return ""
    return place if Path(place).is_dir() else str(Path(place).with_suffix(".csv"))
