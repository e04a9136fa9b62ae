"""volbench price: what performance costs."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import WHERE, examples
from volbench.cli.table_charts import chart_options
from volbench.cli.table_output import TableOutput, table_options
from volbench.units import parse_size


@click.command(
    "price",
    epilog=examples(
        "volbench price results --prices prices.yaml",
        "volbench price results --prices prices.yaml --by family --where 'bs==4k'",
        "volbench price results --prices prices.yaml --chart pareto.svg",
    ),
)
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR...",
)
@click.option(
    "--prices", "file", required=True, metavar="FILE|NAME", help="Prices; a file or a bundled one."
)
@click.option(
    "--by",
    default="",
    metavar="COLUMN,...",
    help="What makes a configuration, such as family, or labels.  [default: flavor,volume_type]",
)
@WHERE
@click.option("--size", metavar="SIZE", help="Size of volumes for which none is recorded.")
@click.option(
    "--unsteady", is_flag=True, help="Include runs that did not reach steady state, by their means."
)
@table_options()
@chart_options("cost against IOPS, with the Pareto frontier,")
def command(
    folders: tuple[Path, ...],
    file: str,
    by: str,
    where: str,
    size: str | None,
    chart: str | None,
    title: str,
    theme: str,
    *,
    unsteady: bool,
    shown: TableOutput,
) -> None:
    """Rank the configurations in DIR by price-performance: what a steady I/O costs."""
    from volbench.cli.catalogue.price_steps import draw_market, market_of
    from volbench.plan.prices import load_prices
    from volbench.present.tables.catalogue.price_table import market_table

    found = market_of(
        folders,
        load_prices(file),
        where=where,
        by=by,
        size_bytes=None if size is None else parse_size(size),
        keep_unsteady=unsteady,
    )
    if chart is not None:
        draw_market(found, chart, title=title, theme=theme)
    shown.write(market_table(found))
