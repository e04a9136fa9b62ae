"""Interactive charts: plot descriptions in a page, drawn there by Bokeh's JavaScript library."""

from volbench.present.renderers.interactive.chart_page import chart_page
from volbench.present.renderers.interactive.embedded_data import (
    asset,
    chart_scripts,
    digest,
    library,
    pack,
)
from volbench.present.renderers.interactive.embedded_plot import EmbeddedPlot, embed

__all__ = [
    "EmbeddedPlot",
    "asset",
    "chart_page",
    "chart_scripts",
    "digest",
    "embed",
    "library",
    "pack",
]
