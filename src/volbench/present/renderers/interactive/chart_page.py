"""Self-contained HTML page of charts: Bokeh's library, volbench's scripts and the charts' data.

Scripts are allowed by their hash (Content Security Policy level 3, 2.3.1); no other runs, and no
request can leave the page. Browsers unpack gzip themselves (Compression Standard, WHATWG, 2023).
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import get_args

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from volbench import __version__
from volbench.errors import InputError
from volbench.present.export.frame_export import export_frame
from volbench.present.formatting import printable
from volbench.present.plots.colour_themes import RAMPS, THEMES
from volbench.present.plots.description import (
    COLUMN_FORMATS,
    IDENTITY,
    Axis,
    Panel,
    Plot,
    Series,
    numbers,
)
from volbench.present.plots.marks import AnyMark, Mark
from volbench.present.renderers.interactive.plot_json import Json, json_form, plain

# BokehJS, which the build puts beside this module (scripts/build_hook.py)
LIBRARY = "bokeh.min.js"
# In the order in which they use each other
_SCRIPTS = (
    *("formats.js", "decoding.js", "looks.js", "axes.js", "marks.js", "hover.js"),
    *("legend.js", "charts.js", "page.js"),
)
# Dataclasses whose defaults the JSON form leaves out
_PARTS = (
    *(Plot, Panel, Axis, Series),
    *Mark.__subclasses__(),
    *(part for part in get_args(AnyMark) if part is not Mark),
)


_PX_PER_IN = 96
_LABELS_PX = 64


@dataclass(frozen=True)
class _EmbeddedPlot:
    """A chart that the page draws."""

    title: str  # its heading
    answer: str  # below it; empty for none
    caption: str  # in sentences
    payload: str  # base64 of the compressed JSON form
    height_px: int  # room that it takes, so that drawing it moves nothing


def chart_page(plots: Sequence[Plot], *, title: str, theme: str = "") -> str:
    """Return a page that draws plots and offers their numbers, without any request."""
    if flat := [plot.name for plot in plots if plot.has_towers]:
        raise InputError(
            f"the chart {flat[0]} cannot be drawn in a page", hint="choose --format svg, png or pdf"
        )
    scripts, library = _chart_scripts(), _asset(LIBRARY)
    return (
        _environment()
        .get_template("chart_page.html.j2")
        .render(
            title=printable(title),
            theme=theme,
            version=__version__,
            style=Markup(_asset("page.css")),  # noqa: S704 - shipped with the package
            script=Markup(scripts),  # noqa: S704 - shipped with the package
            # by which a browser recognises a script (CSP level 3, 2.3.1)
            script_hashes=[
                f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
                for text in (scripts, library)
            ],
            library=_packed(library),
            charts=[(_embedded(plot), plot.name, _csv_link(plot)) for plot in plots],
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


def _embedded(plot: Plot) -> _EmbeddedPlot:
    sentences = (part.rstrip(".") + "." for part in plot.caption if part)
    text = json.dumps(json_form(plot), separators=(",", ":"), ensure_ascii=False)
    heights = (max(40, height * _PX_PER_IN) + _LABELS_PX for height in plot.heights)
    return _EmbeddedPlot(
        title=printable(plot.title),
        answer=printable(plot.answer),
        caption=printable(" ".join(sentences)),
        payload=_packed(text),
        height_px=round(sum(heights)) + _LABELS_PX,
    )


def _packed(content: str | bytes) -> str:
    """Return a text as base64 of gzip, the same for the same text."""
    raw = content.encode() if isinstance(content, str) else content
    return base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode()


@cache
def _chart_scripts() -> str:
    scripts = "".join(_asset(name) for name in _SCRIPTS)
    return f"const SETTINGS = {json.dumps(_settings())};\n{scripts}"


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _settings() -> Json:
    return {
        "column_formats": COLUMN_FORMATS,
        "defaults": {part.__name__: _defaults(part) for part in _PARTS},
        "identity": IDENTITY,
        "ramps": dict(RAMPS),
        "themes": {
            name: {
                "colours": dict(theme.colours),
                "hatches": dict(theme.hatches),
                "is_grey": theme.is_grey,
            }
            for name, theme in THEMES.items()
        },
    }


def _defaults(kind: type) -> Json:
    """Return the attributes that the JSON form leaves out where they have their default."""
    return {
        field.name: plain(field.default)
        for field in dataclasses.fields(kind)
        if field.default is not dataclasses.MISSING
    }
