"""volbench plot: one chart of one or several campaigns, or all that apply."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.help_pages import VerbCommand
from volbench.cli.options import (
    PATH,
    WHERE,
    examples,
    headed,
    names_option,
    newest_campaign,
    option_group,
    output_option,
)
from volbench.cli.output import binary_output, report_folder
from volbench.errors import InputError, quoted
from volbench.present.plots.colour_themes import THEMES
from volbench.present.plots.kinds import KINDS, RESPONSES, STATISTICS, VIEWS, Choice
from volbench.present.renderers import CHART_FORMATS, format_of
from volbench.store.atomic_files import make_output_folder

if TYPE_CHECKING:
    import pandas as pd

    from volbench.present.plots.description import Plot
    from volbench.present.plots.kinds import Options

_MAX_NAME = 60  # Characters of a condition in the name of a file
_MAX_WIDER = 1.02  # Times the width that was asked for
_INCHES = click.FloatRange(2, 100)


@dataclass(frozen=True)
class ChartOutput:
    """Style and destination of charts."""

    choice: Choice  # what each factor of the design is
    title: str | None  # over the chart; None for its own
    theme: str | None  # of its colours; None for light, and for the reader's own in a page
    image: str | None  # format; None to take it from the name of the file
    # file or folder; ``-`` for standard output; None for the campaign's report folder
    output: str | None
    numbers: str | None  # file or folder for its numbers; None for none
    width_in: float | None  # None leaves it to the chart, like the others
    height_in: float | None
    dpi: float | None  # of PNG
    font_size: float | None  # of most letters, in points; others stay in proportion

    @property
    def format(self) -> str:
        """Format of the files; ``html`` is a page that holds all charts."""
        file = Path(self.output or "")
        if self.image or not file.suffix or file.is_dir():
            return self.image or "svg"
        return format_of(file)

    def sized(self, plot: Plot) -> Plot:
        """Return a plot with width and height as chosen."""
        return replace(
            plot,
            width_in=self.width_in or plot.width_in,
            height_in=self.height_in or plot.height_in,
        )

    def make_folders(self) -> None:
        """Make the folders of all charts and their numbers, where they do not exist."""
        is_page = "html" in {self.image, Path(self.output or "").suffix[1:].lower()}
        for target in (self.numbers, None if is_page else self.output):
            if not target or Path(target).is_dir():
                continue
            if target == "-" or Path(target).suffix[1:].lower() in {*CHART_FORMATS, "csv"}:
                raise InputError(
                    f"{target} cannot hold all charts: it is not a folder",
                    hint="name a folder with --output; it is created if it does not exist",
                )
            make_output_folder(Path(target))

    def write(self, plot: Plot, *, folder: Path) -> None:
        """Write a chart as a picture, and its numbers."""
        from volbench.present.renderers.matplotlib import draw, save

        target = self.output or str(folder)
        figure = draw(plot, theme=self.theme or "light", font_size=self.font_size)
        needed_in = float(figure.get_size_inches()[0])
        if self.width_in and needed_in > _MAX_WIDER * self.width_in:
            raise InputError(
                f"the chart {plot.name} does not fit in a width of {self.width_in:g} inches",
                hint=f"write --width {math.ceil(10 * needed_in) / 10:g} or more, or a smaller"
                " --font-size",
            )
        with binary_output(target, default_name=f"{plot.name}.{self.format}") as sink:
            self._write_numbers(plot)
            save(figure, sink, format=self.format, dpi=self.dpi)

    def write_page(self, plots: Sequence[Plot], *, folder: Path, name: str) -> None:
        """Write one page with interactive charts, and their numbers if they are wanted."""
        from volbench.present.renderers.interactive import chart_page

        first, stem = plots[0], plots[0].name if len(plots) == 1 else "charts"
        title = first.title if len(plots) == 1 else self.title or name
        page = chart_page(plots, title=title, theme=self.theme or "")
        with binary_output(self.output or str(folder), default_name=f"{stem}.html") as sink:
            for plot in plots:
                self._write_numbers(plot)
            sink.write(page.encode())

    def _write_numbers(self, plot: Plot) -> None:
        from volbench.present.export.frame_export import export_frame
        from volbench.present.plots.description import numbers

        if self.numbers:
            with binary_output(self.numbers, default_name=f"{plot.name}-chart.csv") as sink:
                export_frame(numbers(plot), frame_name=plot.name, format="csv", into=sink)


def _list_kinds(context: click.Context, option: click.Parameter, value: object) -> None:
    del option
    if value and not context.resilient_parsing:
        width = shutil.get_terminal_size().columns
        click.echo(f"{', '.join(RESPONSES)} or another numeric column")
        click.echo(
            "    Over the factors that vary: --x, --by, --panels, --as. Needs a finished run."
        )
        for name, kind in KINDS.items():
            click.echo(name)
            for sentence in (kind.help, f"Needs {kind.needs}."):
                click.echo(click.wrap_text(sentence, width, "    ", "    "))
        context.exit()


def _complete_what(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    return [name for name in (*RESPONSES, *KINDS, "all") if name.startswith(incomplete)]


@click.command(
    "plot",
    cls=VerbCommand,
    epilog=examples(
        "volbench plot results/quick",
        "volbench plot iops,p99 results --by volume_type --panels rw,bs",
        "volbench plot p99 results/before results/after --x bs --where iodepth==1",
        "volbench plot iops results --as grid -o grid.png",
    ),
)
@click.argument("what", metavar="WHAT", shell_complete=_complete_what)
@click.argument("campaigns", nargs=-1, type=PATH, metavar="[DIR]...")
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_kinds,
    help="List the kinds: their content and requirements.",
)
@option_group(
    "chart",
    ChartOutput,
    option_group(
        "choice",
        Choice,
        click.option(
            "--x",
            default="",
            metavar="FACTOR",
            help="Factor along the x axis: iodepth, bs, numjobs.",
        ),
        names_option(
            "--by", "by", metavar="FACTOR,...", text="What is compared: its values have colours."
        ),
        names_option(
            "--panels",
            "panels",
            metavar="FACTOR,...",
            text="Factors whose values have a panel each.",
        ),
        click.option(
            "--as",
            "view",
            type=click.Choice([*VIEWS]),
            callback=lambda _context, _option, view: view or "",
            help="Form of the chart. Default: lines along an ordered factor, else bars; a grid"
            " where two options vary and nothing is compared.",
        ),
        click.option(
            "--relative-to",
            default="",
            metavar="VALUE",
            help="Divide by the results of this value of --by.",
        ),
        heading="Options",
    ),
    click.option("--title", help="Title over the chart."),
    click.option(
        "--theme",
        type=click.Choice([*THEMES]),
        help="Colours; print is grey, with hatches. Default: light; html follows the reader's "
        "system.",
    ),
    click.option(
        "--format",
        "image",
        type=click.Choice([*CHART_FORMATS]),
        help="Format of the chart; html is a page with zoom, hover text and legend toggles. "
        "Default: by the ending of --output, else svg.",
    ),
    headed(
        "Options",
        output_option(
            metavar="PATH",
            help="File or folder; - is standard output. Default: a file in the campaign's report "
            "folder; of several campaigns, in this folder.",
        ),
    ),
    click.option(
        "--csv",
        "numbers",
        metavar="FILE",
        help="Also write the numbers of the chart to FILE or into a folder; - is standard output.",
    ),
    click.option(
        "--width", "width_in", type=_INCHES, metavar="INCHES", help="Width of the picture."
    ),
    click.option(
        "--height", "height_in", type=_INCHES, metavar="INCHES", help="Height of the picture."
    ),
    click.option(
        "--dpi",
        type=click.FloatRange(30, 1200),
        metavar="NUMBER",
        help="Pixels per inch of a PNG. Default: 150.",
    ),
    click.option(
        "--font-size",
        type=click.FloatRange(4, 36),
        metavar="POINTS",
        help="Font size of the picture. Default: 9; titles and captions stay in proportion.",
    ),
    heading="Picture",
)
@WHERE
@click.option(
    "--percentile",
    type=click.Choice([*STATISTICS]),
    help="series: latency at this percentile instead of its mean.",
)
@click.option(
    "--latency",
    type=click.Choice(["lat", "clat", "slat"]),
    default="lat",
    show_default=True,
    help="series: total, completion or submission latency, as fio names them.",
)
def plot(
    what: str,
    campaigns: tuple[Path, ...],
    *,
    chart: ChartOutput,
    where: str,
    percentile: str | None,
    latency: str,
) -> None:
    """Draw WHAT of the campaigns in DIR over the factors that vary.

    WHAT is a response or several (iops,p99; bw, mean, lat_max, cpu_sys), a kind of chart such as
    latency or series (--list has all), or all. Default: iops.
    """
    from volbench.api.many_campaigns import chart_options, open_campaigns, plot_frame
    from volbench.model.frames.columns import FRAMES, ON_DEMAND
    from volbench.present.plots.chart import kind_of
    from volbench.present.plots.kinds import ALWAYS_READ, KINDS, RESPONSES

    if percentile and latency != "lat":
        raise InputError(
            f"--latency {latency} has no percentiles over time",
            hint="leave out --percentile for its mean, or --latency for those of total latency",
        )
    if not campaigns and (what == "-" or Path(what).exists()):
        what, campaigns = "iops", (Path(what),)
    is_last = bool(campaigns) and not campaigns[-1].exists()
    if is_last and (Path(what).exists() or str(campaigns[-1]) in {*KINDS, *RESPONSES}):
        what, campaigns = str(campaigns[-1]), (Path(what), *campaigns[:-1])
    if not (campaigns := campaigns or newest_campaign()):
        raise InputError("no campaign is named", hint=f"volbench plot {quoted(what)} DIR")
    what = what.lower()
    names = (*FRAMES, *ON_DEMAND) if what == "all" else kind_of(what).frame_names
    dataset = open_campaigns(*campaigns, where=where)
    frames = {name: plot_frame(dataset, name) for name in {*ALWAYS_READ, *names}}
    options = chart_options(dataset, chart.choice)
    if percentile:
        options = replace(options, statistic=STATISTICS[percentile])
    options = replace(options, latency=latency)
    is_campaign = [campaign.path for campaign in dataset.names.values()] == [campaigns[0]]
    folder = report_folder(dataset) if is_campaign and not chart.output else Path()
    chosen = (latency, options.statistic)
    of_time = "".join(f"-{own}" for own in chosen if own not in {"lat", "mean"})
    selected = "".join(f"-{own}" for own in (_choice_part(chart.choice), _file_part(where)) if own)
    plots = (
        replace(plot, name=plot.name + of_time * (plot.name == "series") + selected)
        for plot in _plots(what, frames, chart=chart, options=options)
    )
    if chart.format == "html":
        chart.write_page([*plots], folder=folder, name=", ".join([*dataset.names][:3]))
        return
    for plot in plots:
        chart.write(plot, folder=folder)


def _choice_part(choice: Choice) -> str:
    named = {"by": choice.by, "x": [choice.x], "panels": choice.panels, "as": [choice.view]}
    parts = ["-".join([word, *values]) for word, values in named.items() if any(values)]
    relative = f"relative-to-{_file_part(choice.relative_to)}" if choice.relative_to else ""
    return "-".join(filter(None, [*parts, relative]))


def _file_part(where: str) -> str:
    """Return a condition as part of a file name; a number distinguishes those that become equal."""
    plain = where.replace(" and ", "-").replace("==", "-").replace(" ", "")
    safe = re.sub(r"[^\w.-]+", "-", plain)[:_MAX_NAME]
    number = blake2b(where.encode(), digest_size=2).hexdigest()
    return safe if safe == plain else f"{safe}-{number}"


def _plots(
    what: str, frames: Mapping[str, pd.DataFrame], *, chart: ChartOutput, options: Options
) -> Iterable[Plot]:
    from volbench.present.plots.chart import build_plot, build_plots

    if what != "all":
        plot = build_plot(what, frames, title=chart.title, options=options)
        return [chart.sized(plot)]
    chart.make_folders()
    plots = build_plots(frames, title=chart.title, options=options)
    return (chart.sized(plot) for plot in plots if chart.format != "html" or not plot.has_towers)
