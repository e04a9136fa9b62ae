"""volbench report: everything about campaigns in one HTML file."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import CAMPAIGNS, examples, output_option
from volbench.cli.output import binary_output, report_folder
from volbench.errors import InputError, quoted

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset


@click.command(
    "report",
    epilog=examples("volbench report results", "volbench report before after -o comparison.html"),
)
@CAMPAIGNS
@output_option(
    metavar="FILE",
    help="HTML file; - is standard output. Default: report/index.html in the campaign folder. "
    "Needed for several campaigns.",
)
@click.option("--title", help="Title of the page.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
def report(
    campaigns: tuple[str | Path, ...], output: str | None, title: str | None, *, is_opened: bool
) -> None:
    """Write the report of the campaigns in DIR: one HTML file that needs no network.

    DIR is a campaign folder, a folder with campaigns at any depth, or a file or folder with results
    of fio; several are compared.
    """
    import pyarrow as pa

    from volbench.api.many_campaigns import open_campaigns
    from volbench.api.report_content import report_page

    # Arrow's own pool keeps what is let go: 80 MB of the report of 3,450 runs.
    pa.set_memory_pool(pa.system_memory_pool())
    if output and Path(output).suffix.lower() in {".pdf", ".png", ".svg"}:
        raise InputError(f"{output}: a report is an HTML page", hint="name it page.html")
    dataset = open_campaigns(*campaigns)
    target = output or _default_place(dataset)
    page = report_page(dataset, title=title)
    with binary_output(target, default_name="index.html") as sink:
        sink.write(page.encode())
    if is_opened and target != "-":
        _open(Path(target))


def _open(path: Path) -> None:
    """Show a page in the browser of the desktop; without a desktop, print how to see it."""
    page = path / "index.html" if path.is_dir() else path
    # Without any of these webbrowser starts browsers for terminals
    is_desktop = any(map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))
    if not is_desktop or not webbrowser.open(page.absolute().as_uri()):
        click.echo(f"note: no browser here; on a desktop: xdg-open {quoted(page)}", err=True)


def _default_place(dataset: Dataset) -> str:
    """Return the report folder of the only campaign; a file here for results in a cache."""
    if len(dataset.names) > 1:
        message = f"the report of {len(dataset.names)} campaigns needs a file"
        raise InputError(message, hint="name it with --output, such as --output comparison.html")
    (name, data), *_ = dataset.names.items()
    return f"{name}-report.html" if data.is_cached else str(report_folder(dataset))
