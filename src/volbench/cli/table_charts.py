"""Option `--chart`: a chart of a table, and its numbers as CSV beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from volbench.cli.outputs import binary_output
from volbench.errors import InputError
from volbench.present.renderers import PICTURE_FORMATS

if TYPE_CHECKING:
    from volbench.present.plots.description import Plot

_Verb = TypeVar("_Verb", bound=Callable[..., object])


def chart_options(shows: str) -> Callable[[_Verb], _Verb]:
    """Return the options of a verb that prints a table and may draw it.

    Args:
        shows: what is drawn, after "Draw".
    """

    def add(verb: _Verb) -> _Verb:
        for option in reversed(_options(shows)):
            verb = option(verb)
        return verb

    return add


def _options(shows: str) -> list[Callable[[_Verb], _Verb]]:
    return [
        click.option(
            "--chart",
            metavar="FILE",
            callback=_checked,
            help=f"Draw {shows} into a .svg, .png or .pdf file; the numbers go beside it as CSV.",
        ),
        click.option("--title", default="", help="Title over the chart."),
        click.option(
            "--theme",
            type=click.Choice(["light", "dark", "print"]),
            default="light",
            show_default=True,
            help="Colours of the chart; print is grey.",
        ),
    ]


def _checked(context: click.Context, option: click.Parameter, chart: str | None) -> str | None:
    """Refuse other files than pictures before anything is read."""
    del context, option
    if chart is not None:
        _format_of(chart)
    return chart


def _format_of(chart: str) -> str:
    """Return the format of a picture by the ending of its file.

    Raises:
        InputError: the file has no ending of a picture.
    """
    image = Path(chart).suffix.removeprefix(".").lower()
    if image not in PICTURE_FORMATS:
        raise InputError(
            f"{chart} is not the name of a picture",
            hint=f"end it with .{', .'.join(PICTURE_FORMATS)}",
        )
    return image


def write_picture(plot: Plot, chart: str, *, theme: str, numbers: str) -> None:
    """Write a chart, and what it shows as CSV beside it.

    Args:
        plot: the chart.
        chart: file of the picture.
        theme: of its colours.
        numbers: the CSV.

    Raises:
        InputError: a file can't be written.
    """
    from volbench.present.renderers.matplotlib import draw, save

    image = _format_of(chart)
    figure = draw(plot, theme=theme)
    with binary_output(chart, default_name=f"chart.{image}") as sink:
        save(figure, sink, format=image)
    beside = str(Path(chart).with_suffix(".csv"))
    with binary_output(beside, default_name="chart.csv") as sink:
        sink.write(numbers.encode())
