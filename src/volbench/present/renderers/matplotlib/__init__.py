"""Plot descriptions as figures of matplotlib, and as SVG, PNG and PDF files."""

from volbench.present.renderers.matplotlib.figure import draw, save, svg_text

__all__ = ["draw", "save", "svg_text"]
