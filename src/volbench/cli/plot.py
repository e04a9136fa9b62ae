"""volbench plot: one chart of a campaign, or all that apply."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.outputs import binary_output
from volbench.dataset import open_campaigns
from volbench.model.columns import FRAMES
from volbench.present.figures import KINDS, applicable, draw_chart, warmup_chart
from volbench.present.figures.save import save
from volbench.units import parse_price, parse_size


@click.command("plot")
@click.argument("kind", type=click.Choice([*KINDS, "all"]), metavar="KIND")
@click.argument(
    "campaigns",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR...",
)
@click.option(
    "--format",
    "image",
    type=click.Choice(["svg", "png", "pdf"]),
    default="svg",
    show_default=True,
    help="Of the picture.",
)
@click.option(
    "--into",
    metavar="PATH",
    help="File or folder; - is standard output. Default: a file in the campaign's report folder.",
)
@click.option("--title", help="Title over the chart.")
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
    image: str,
    into: str | None,
    title: str | None,
    size: str,
    price: str | None,
) -> None:
    """Draw the chart KIND of the campaign in DIR; `all` draws every chart that applies.

    Kinds: iops, bandwidth, latency, distribution, sweep, heatmap, series, device, warmup, storm.
    Only storm takes several campaigns; they stand side by side.
    """
    amount, currency = parse_price(price)
    warmup = warmup_chart(size_bytes=parse_size(size), price_per_hour=amount, currency=currency)
    if len(campaigns) > 1 and kind not in _SIDE_BY_SIDE:
        raise click.UsageError(f"{kind} draws one campaign; only storm takes several")
    dataset = open_campaigns(*campaigns)
    names = FRAMES if kind == "all" else KINDS[kind].frame_names
    frames = {name: dataset.frame(name) for name in names}
    if into is None:
        folder = next(iter(dataset.names.values())).report_folder
        folder.mkdir(exist_ok=True)
        into = str(folder)
    for name in applicable(frames) if kind == "all" else (kind,):
        figure = draw_chart(warmup if name == "warmup" else name, frames, title=title)
        with binary_output(into, default_name=f"{name}.{image}") as sink:
            save(figure, sink, format=image)


_SIDE_BY_SIDE = ("storm",)
"""Charts of several campaigns."""
