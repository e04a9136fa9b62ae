"""Renderers of plot descriptions: matplotlib for pictures, and one that draws in the page."""

PICTURE_FORMATS = ("svg", "png", "pdf")
CHART_FORMATS = (*PICTURE_FORMATS, "html")
