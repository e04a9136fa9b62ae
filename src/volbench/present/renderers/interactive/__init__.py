"""Interactive charts: plot descriptions in a page, drawn there by Bokeh's JavaScript library."""

from volbench.present.renderers.interactive.chart_page import chart_page

__all__ = ["chart_page"]
