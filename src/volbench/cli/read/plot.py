"""volbench plot: one chart of one or several campaigns, or all that apply."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import WHERE, examples, output_option
from volbench.present.plots.kinds import KINDS
from volbench.present.renderers import CHART_FORMATS
from volbench.present.renderers.colour_themes import THEMES
from volbench.units import parse_price, parse_size


def _list_kinds(context: click.Context, option: click.Parameter, value: object) -> None:
    """Print every kind with what it shows and what it needs, and end."""
    del option
    if value and not context.resilient_parsing:
        for name, kind in KINDS.items():
            click.echo(f"{name}\n    {kind.help}\n    Needs {kind.needs}.")
        context.exit()


@click.command(
    "plot",
    epilog=examples(
        "volbench plot --list",
        "volbench plot iops results/quick",
        "volbench plot sets results/before results/after --by volume_type",
        "volbench plot sweep results --by volume_type,zone --output sweep.png",
    ),
)
@click.argument("kind", type=click.Choice([*KINDS, "all"]), metavar="KIND")
@click.argument(
    "campaigns",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR...",
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_kinds,
    help="List the kinds: what each shows and what it needs.",
)
@click.option(
    "--by",
    metavar="COLUMN[,COLUMN]",
    help="Tell apart by a column or label: each value of the first has a colour, and what is equal "
    "in it is pooled; each value of the second has a panel.",
)
@WHERE
@click.option("--title", help="Title over the chart.")
@click.option(
    "--theme",
    type=click.Choice([*THEMES]),
    help="Colours; print is grey, with hatches. Default: light; for html, as the reader's system.",
)
@click.option(
    "--format",
    "image",
    type=click.Choice([*CHART_FORMATS]),
    help="Of the chart; html is a page with zoom, hover texts and legend toggles. Default: as "
    "--output ends, else svg.",
)
@output_option(
    metavar="PATH",
    help="File or folder; - is standard output. Default: a file in the campaign's report folder.",
)
@click.option(
    "--csv",
    "numbers",
    metavar="FILE",
    help="Where the numbers go that are drawn; - is standard output. Default: beside the picture.",
)
@click.option(
    "--size",
    default="1t",
    show_default=True,
    metavar="SIZE",
    help="warmup: the volume whose warming is told in hours and money.",
)
@click.option(
    "--hourly-price",
    "price",
    metavar="PRICE",
    help='warmup: of volume and machine while it warms, such as "0.35 USD".',
)
def command(
    kind: str,
    campaigns: tuple[Path, ...],
    by: str | None,
    where: str,
    title: str | None,
    theme: str | None,
    image: str | None,
    output: str | None,
    numbers: str | None,
    size: str,
    price: str | None,
) -> None:
    """Draw the chart KIND of the campaigns in DIR; `all` draws every chart that applies."""
    from volbench.cli.read.plot_steps import Picture, columns_of, report_folder, tracked_rounds
    from volbench.dataset import open_campaigns
    from volbench.model.frames.columns import FRAMES, ON_DEMAND
    from volbench.present.plots.kind import Options

    amount, currency = parse_price(price)
    dataset = open_campaigns(*campaigns, where=where)
    names = (*FRAMES, *ON_DEMAND) if kind == "all" else KINDS[kind].frame_names
    frames = {name: dataset.frame(name) for name in {"summary", *names}}
    options = Options(tracked_rounds(dataset), parse_size(size), amount, currency)
    picture = Picture(
        columns_of(by), title, theme or "", image or "", output or "", numbers or "", options
    )
    folder = Path() if output else report_folder(dataset)
    plots = picture.plots(kind, frames)
    if picture.is_page:
        picture.write_page(list(plots), folder=folder)
        return
    for plot in plots:
        picture.write(plot, folder=folder)
