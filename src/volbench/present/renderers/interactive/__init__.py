"""Interactive charts: plot descriptions in a page, drawn there by Bokeh's JavaScript library."""

from volbench.present.renderers.interactive.chart_page import (
    LIBRARY,
    EmbeddedPlot,
    asset,
    chart_page,
    chart_scripts,
    digest,
    embed,
    pack,
)

__all__ = [
    "LIBRARY",
    "EmbeddedPlot",
    "asset",
    "chart_page",
    "chart_scripts",
    "digest",
    "embed",
    "pack",
]
