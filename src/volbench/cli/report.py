"""volbench report: everything about campaigns in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import CAMPAIGNS, examples, output_option
from volbench.cli.output import binary_output, note_owner, report_folder
from volbench.errors import InputError
from volbench.store.atomic_files import make_output_folder, write_output

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
    "Needed for several campaigns. With --site: a folder.",
)
@click.option(
    "--site",
    "is_site",
    is_flag=True,
    help="Write a page for each campaign, and an index of them, into the folder of --output.",
)
@click.option("--title", help="Title of the page.")
def report(
    campaigns: tuple[str | Path, ...],
    output: str | None,
    title: str | None,
    *,
    is_site: bool,
) -> None:
    """Write the report of the campaigns in DIR: one HTML file that needs no network.

    DIR is a campaign folder, or a folder with campaigns at any depth; several are shown side by
    side, and each by itself.
    """
    import pyarrow as pa

    from volbench.api.many_campaigns import open_campaigns
    from volbench.api.report_content import report_page

    # Arrow's own pool keeps what is let go: 80 MB of the report of 3,450 runs.
    pa.set_memory_pool(pa.system_memory_pool())
    dataset = open_campaigns(*campaigns)
    if is_site:
        _write_site(dataset, output, title=title)
        return
    target = output or _default_place(dataset)
    page = report_page(dataset, title=title)
    with binary_output(target, default_name="index.html") as sink:
        sink.write(page.encode())


def _write_site(dataset: Dataset, output: str | None, *, title: str | None) -> None:
    """Write a page for each campaign, one at a time, and the index of them."""
    from volbench import __version__
    from volbench.api.many_campaigns import open_campaigns
    from volbench.api.report_content import report_content
    from volbench.present.report.report_page import (
        SiteEntry,
        campaign_section,
        render_section,
        render_site_index,
        site_entry,
    )
    from volbench.store.journal import utc_now

    if output in (None, "-"):
        raise InputError("--site needs a folder", hint="name it with --output, such as -o site")
    folder = Path(str(output))
    make_output_folder(folder)
    entries: list[SiteEntry] = []
    for name, opened in dataset.names.items():
        # Opened anew, so that its frames are let go with it.
        (again,) = open_campaigns(opened.path).names.values()
        section = campaign_section(report_content(again, title=name))
        entry = site_entry(section, taken=[entry.file for entry in entries])
        write_output(folder / entry.file, render_section(section).encode())
        entries.append(entry)
    heading = title or f"{len(entries)} campaigns"
    index = render_site_index(entries, title=heading, version=__version__, utc=utc_now())
    write_output(folder / "index.html", index.encode())
    click.echo(f"written: {folder / 'index.html'} and {len(entries)} reports", err=True)
    note_owner(folder)


def _default_place(dataset: Dataset) -> str:
    """Return the report folder of the only campaign."""
    if len(dataset.names) > 1:
        raise InputError(
            f"the report of {len(dataset.names)} campaigns needs a file",
            hint="name it with --output, such as --output comparison.html",
        )
    return str(report_folder(dataset))
