"""Renderers of plot descriptions: matplotlib for pictures, and one that draws in the page."""

from __future__ import annotations

from pathlib import Path

from volbench.errors import InputError

PICTURE_FORMATS = ("svg", "png", "pdf")
CHART_FORMATS = (*PICTURE_FORMATS, "html")


def format_of(file: Path) -> str:
    """Return the format that the extension of a file means."""
    ending = file.suffix.removeprefix(".").lower()
    if ending not in CHART_FORMATS:
        raise InputError(
            f"a chart cannot be written as {ending!r}: {file}",
            hint=f"choose one of {', '.join(CHART_FORMATS)}",
        )
    return ending
