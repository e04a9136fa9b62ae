"""Figures as SVG, PNG and PDF files that are the same every time."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import BinaryIO

from matplotlib.figure import Figure

from volbench.errors import InputError, VolbenchError
from volbench.present.renderers import PICTURE_FORMATS
from volbench.present.renderers.matplotlib.look import styled

_METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "volbench"},
    "png": {"Software": "volbench"},
    "pdf": {"CreationDate": None, "Creator": "volbench", "Producer": "volbench"},
}
_REFERENCE = re.compile(r'(\bid="|href="#|url\(#)')


def save(figure: Figure, path: Path | BinaryIO, *, format: str) -> None:  # noqa: A002 - the word matplotlib and the command line use
    """Write a figure to a path or to an open binary file.

    Raises:
        InputError: the format is not one of svg, png and pdf.
        VolbenchError: the file can't be written.
    """
    if format not in PICTURE_FORMATS:
        raise InputError(
            f"a chart can't be written as {format!r}",
            hint=f"choose one of {', '.join(PICTURE_FORMATS)}",
        )
    try:
        with styled():
            figure.savefig(path, format=format, metadata=_METADATA[format])
    except OSError as error:
        raise VolbenchError(
            f"the chart can't be written: {error.strerror or error}",
            hint="check that the folder exists, permissions and free space",
            context={"path": str(path)},
        ) from error


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG element that can stand in a page beside others.

    The ids inside begin with the figure's label, so that those of two charts never collide.
    """
    sink = io.BytesIO()
    save(figure, sink, format="svg")
    text = sink.getvalue().decode("utf-8")
    prefix = re.sub(r"\W", "-", str(figure.get_label()) or "chart")
    return _REFERENCE.sub(rf"\g<1>{prefix}-", text[text.index("<svg") :]).strip()
