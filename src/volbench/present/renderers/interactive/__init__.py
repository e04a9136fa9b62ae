"""Interactive charts: plot descriptions in a page, drawn there by Bokeh's JavaScript library."""

from volbench.present.renderers.interactive.chart_page import (
    EmbeddedPlot,
    asset,
    chart_page,
    chart_scripts,
    digest,
    embed,
    library,
    pack,
)

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
