"""Self-contained HTML page of charts, as written by ``plot --format html``."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from volbench import __version__
from volbench.errors import InputError
from volbench.present.export.frame_export import export_frame
from volbench.present.formatting import printable
from volbench.present.plots.description import Plot, numbers
from volbench.present.renderers.interactive.embedded_data import (
    asset,
    chart_scripts,
    digest,
    embed,
    library,
    pack,
)


def chart_page(plots: Sequence[Plot], *, title: str, theme: str = "") -> str:
    """Return a page that draws plots and offers their numbers, without any request.

    Args:
        plots: at least one.
        theme: a name in `THEMES`; empty to follow the reader's system.
    """
    if flat := [plot.name for plot in plots if plot.has_towers]:
        raise InputError(
            f"the chart {flat[0]} cannot be drawn in a page",
            hint="choose --format svg, png or pdf",
        )
    scripts = chart_scripts()
    return (
        _environment()
        .get_template("chart_page.html.j2")
        .render(
            title=printable(title),
            theme=theme,
            version=__version__,
            style=Markup(asset("page.css")),  # noqa: S704 - shipped with the package
            script=Markup(scripts),  # noqa: S704 - shipped with the package
            script_hashes=[digest(text) for text in (scripts, library())],
            library=pack(library()),
            charts=[(embed(plot), plot.name, _csv_link(plot)) for plot in plots],
        )
    )


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader(__package__, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _csv_link(plot: Plot) -> str:
    stream = io.BytesIO()
    export_frame(numbers(plot), frame_name=plot.name, format="csv", into=stream)
    return "data:text/csv;base64," + base64.b64encode(stream.getvalue()).decode()
