"""volbench export: a frame of a campaign for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.api import open_campaign
from volbench.cli.options import CAMPAIGN
from volbench.cli.outputs import binary_output
from volbench.model.columns import FRAMES
from volbench.present.export import FORMATS, export_frame, export_frames


@click.command("export")
@CAMPAIGN
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    default="csv",
    show_default=True,
    help="Of the file; xlsx needs the extra volbench[xlsx].",
)
@click.option(
    "--frame",
    "name",
    type=click.Choice([*FRAMES, "all"]),
    default="summary",
    show_default=True,
    help="Which frame; all writes each of them (into a folder, or as sheets of one workbook).",
)
@click.option("--into", metavar="PATH", default="-", help="File or folder; - is standard output.")
def command(campaign: Path, kind: str, name: str, into: str) -> None:
    """Write a frame of the campaign in DIR, every number in full precision, base SI units."""
    opened = open_campaign(campaign)
    if name == "all":
        if into == "-":
            raise click.UsageError("--frame all needs --into: a folder, or a file for xlsx")
        frames = {frame_name: opened.frame(frame_name) for frame_name in FRAMES}
        export_frames(frames, format=kind, into=Path(into))
        return
    with binary_output(into, default_name=f"{name}.{kind}") as sink:
        export_frame(opened.frame(name), frame_name=name, format=kind, into=sink)
