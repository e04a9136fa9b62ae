"""What `volbench price` does between reading its options and printing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from volbench.analyse.price.billing import Billing, billing_of, priced_runs
from volbench.analyse.price.price_performance import Market, market
from volbench.analyse.price.steady_performance import performance
from volbench.cli.table_charts import write_picture
from volbench.dataset import Dataset, open_campaigns
from volbench.model.catalogue.price_list import Prices
from volbench.present.plots.compare.pareto import pareto_plot
from volbench.present.tables.catalogue.price_table import market_table
from volbench.present.tables.render_table import csv_text

_FRAMES = ("summary", "verdicts", "series", "device")


def market_of(
    folders: Sequence[Path],
    prices: Prices,
    *,
    where: str,
    by: str,
    size_bytes: int | None,
    keep_unsteady: bool,
) -> Market:
    """Read campaigns, and put what they measured beside its price.

    Raises:
        InputError: nothing can be counted, or a condition or column can't be read.
    """
    dataset = open_campaigns(*folders, where=where)
    frames = {name: dataset.frame(name) for name in _FRAMES}
    rows, notes = priced_runs(
        performance(frames), frames["summary"], _billing(dataset), prices, size_bytes=size_bytes
    )
    columns = [name.strip() for name in by.split(",") if name.strip()]
    return market(
        rows, currency=prices.currency, by=columns, keep_unsteady=keep_unsteady, notes=notes
    )


def _billing(dataset: Dataset) -> dict[str, Billing]:
    """Return what each run of all campaigns was measured on."""
    found: dict[str, Billing] = {}
    for name, data in dataset.names.items():
        provenance = data.provenance
        prefix = f"{name}/" if len(dataset.names) > 1 else ""
        found |= billing_of(data.campaign, provenance.hosts, provenance.volumes, prefix=prefix)
    return found


def draw_market(found: Market, chart: str, *, title: str, theme: str) -> None:
    """Write the chart of offers, and their numbers beside it.

    Raises:
        InputError: nothing can be drawn, or a file can't be written.
    """
    plot = pareto_plot(found, title=title)
    write_picture(plot, chart, theme=theme, numbers=csv_text(market_table(found).records()))
