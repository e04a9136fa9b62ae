"""volbench price: what performance costs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from volbench.cli.catalogue.price_steps import draw_market, market_of
from volbench.cli.options import WHERE, examples
from volbench.cli.read.table_charts import chart_options
from volbench.plan.prices import load_prices
from volbench.present.tables.price_table import market_records, market_table
from volbench.present.tables.result_tables import show_table
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
    help="What makes an offer, such as family, or labels.  [default: flavor,volume_type]",
)
@WHERE
@click.option("--size", metavar="SIZE", help="Of volumes whose size nobody told.")
@click.option(
    "--unsteady", is_flag=True, help="Count Runs that were not shown to be steady, by their means."
)
@click.option("--json", "as_json", is_flag=True, help="Print every number as JSON.")
@chart_options("cost against IOPS, with the front,")
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
    as_json: bool,
) -> None:
    """Put steady performance in DIR beside its price: what an I/O costs, ranked."""
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
    if as_json:
        click.echo(json.dumps(market_records(found), indent=2, ensure_ascii=False))
    else:
        show_table(market_table(found))
