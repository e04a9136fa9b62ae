"""Plot descriptions as figures of matplotlib, and as SVG, PNG and PDF files."""

from volbench.errors import InputError

try:
    from volbench.present.renderers.matplotlib.figure import draw, save, svg_text
except ModuleNotFoundError as error:
    raise InputError(
        f"charts need matplotlib: {error}",
        hint="the controller image leaves it out: copy the campaign to another machine",
    ) from error

__all__ = ["draw", "save", "svg_text"]
