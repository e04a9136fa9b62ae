"""Plot descriptions as figures of matplotlib, and as SVG, PNG and PDF files."""

from volbench.errors import InputError

try:
    from matplotlib import artist as artists

    # Its docstrings list all options of each class, which takes a third of its import.
    tables, artists.kwdoc = artists.kwdoc, lambda artist: ""  # noqa: ARG005 - its name counts
    from volbench.present.renderers.matplotlib.figure import draw, save, svg_text
except ModuleNotFoundError as error:
    raise InputError(
        f"matplotlib, which draws charts, cannot be imported: {error}",
        hint="install matplotlib; the controller image has none: fetch the campaign with"
        " volbench k8s fetch, and draw it on your machine",
    ) from error
artists.kwdoc = tables

__all__ = ["draw", "save", "svg_text"]
