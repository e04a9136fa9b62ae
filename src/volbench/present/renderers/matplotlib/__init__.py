"""Plot descriptions as figures of matplotlib, and as SVG, PNG and PDF files."""

from volbench.errors import InputError

try:
    from volbench.present.renderers.matplotlib.figure import draw, save, svg_text
except ModuleNotFoundError as error:
    raise InputError(
        f"matplotlib, which draws charts, cannot be imported: {error}",
        hint="install matplotlib; the controller image has none: fetch the campaign with"
        " volbench k8s fetch, and draw it on your machine",
    ) from error

__all__ = ["draw", "save", "svg_text"]
