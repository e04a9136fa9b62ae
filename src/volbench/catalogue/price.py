"""volbench price: configurations ranked by price-performance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.configuration import say_what_is_configured
from volbench.cli.options import (
    CAMPAIGNS,
    WHERE,
    Quantity,
    examples,
    flag,
    names_option,
)
from volbench.cli.output import ChartFile, TableOutput, chart_options, table_options
from volbench.units import parse_size

if TYPE_CHECKING:
    from volbench.api.dataset import Dataset
    from volbench.catalogue.billing import Billing

_FRAMES = ("summary", "verdicts", "series", "device")


@click.command(
    "price",
    epilog=examples(
        "volbench price results --prices prices.yaml",
        "volbench price results --prices prices.yaml --by family --where 'bs==4k'",
        "volbench price results --prices prices.yaml --chart pareto.svg",
    ),
)
@CAMPAIGNS
@click.option(
    "--prices", "file", required=True, metavar="FILE|NAME", help="Prices; a file or a bundled one."
)
@names_option(
    "--by",
    "by",
    text="Columns or labels that define a configuration, such as family.  "
    "[default: flavor,volume_type]",
)
@WHERE
@click.option(
    "--size",
    "size_bytes",
    type=Quantity("SIZE", parse_size),
    help="Size of volumes for which none is recorded.",
)
@flag("--unsteady", "Include runs that did not reach steady state, by their means.")
@table_options()
@chart_options("cost against IOPS, with the Pareto frontier,")
def command(
    campaigns: tuple[str | Path, ...],
    file: str,
    by: tuple[str, ...],
    where: str,
    size_bytes: int | None,
    *,
    unsteady: bool,
    shown: TableOutput,
    picture: ChartFile,
) -> None:
    """Rank the configurations in DIR by price-performance, at steady state."""
    from volbench.analyse.frames.run_facts import performance
    from volbench.api.dataset import open_campaigns
    from volbench.catalogue.billing import priced_runs
    from volbench.catalogue.bundled_prices import load_prices
    from volbench.catalogue.price_performance import market
    from volbench.catalogue.price_table import market_table
    from volbench.present.plots.compare.pareto import pareto_plot

    say_what_is_configured()
    prices = load_prices(file)
    dataset = open_campaigns(*campaigns, where=where)
    frames = {name: dataset.frame(name) for name in _FRAMES}
    rows, notes = priced_runs(
        performance(frames), frames["summary"], _billing(dataset), prices, size_bytes=size_bytes
    )
    found = market(rows, currency=prices.currency, by=by, keep_unsteady=unsteady, notes=notes)
    table = market_table(found)
    if picture.chart:
        picture.write(pareto_plot(found, title=picture.title), table)
    shown.write(table)


def _billing(dataset: Dataset) -> dict[str, Billing]:
    """Return the billed resources of each run of all campaigns."""
    from volbench.catalogue.billing import billing_of

    found: dict[str, Billing] = {}
    for name, data in dataset.names.items():
        provenance = data.provenance
        prefix = f"{name}/" if len(dataset.names) > 1 else ""
        found |= billing_of(data.campaign, provenance.hosts, provenance.volumes, prefix=prefix)
    return found
