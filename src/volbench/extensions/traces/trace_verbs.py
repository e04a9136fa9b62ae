"""Verbs of traces: show and import."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import PATH, examples, output_option
from volbench.cli.output import ChartFile, TableOutput, chart_options, table_options
from volbench.cli.verb_groups import VerbGroup
from volbench.errors import InputError
from volbench.extensions.traces.trace_options import ANONYMISE, FORMATS, Format

_FRAMES = ("load", "sizes", "arrival", "seeks", "working-set", "hot-ranges", "mix", "reuse")


@click.group("trace", cls=VerbGroup)
def trace() -> None:
    """Show and import traces of single I/Os."""


@trace.command(
    "show",
    epilog=examples(
        "volbench trace show volbench-results/night",
        "volbench trace show trace.parquet --frame hot-ranges",
        "volbench trace show trace.parquet --chart trace.png",
    ),
)
@click.argument("path", metavar="FILE|DIR", type=PATH)
@click.option(
    "--frame",
    type=click.Choice(_FRAMES),
    default="load",
    show_default=True,
    help="Summary to show.",
)
@chart_options("offsets over time, rates and sizes")
@table_options()
def show_trace(path: Path, frame: str, *, picture: ChartFile, table_output: TableOutput) -> None:
    """Summarize a trace: FILE, or the one in the campaign folder DIR."""
    from volbench.extensions.traces.trace_file import find_trace, without_ios
    from volbench.extensions.traces.trace_frames import TraceSummary
    from volbench.extensions.traces.trace_tables import facts_sentence, frame_table_of

    found = find_trace(path)
    summary = TraceSummary(found)
    if not summary.devices:
        raise without_ios(found)
    table = frame_table_of(summary, frame.replace("-", "_"))
    if picture.chart:
        from volbench.extensions.traces.trace_chart import trace_plot

        mix = frame_table_of(summary, "mix")
        picture.write(trace_plot(summary, title=picture.title), mix)
    table_output.note(facts_sentence(summary))
    table_output.write(table)


@trace.command(
    "import",
    epilog=examples(
        "volbench trace import blkparse.txt -o trace.parquet",
        "volbench trace import io_traces.csv --from alibaba -o alibaba.parquet",
        "volbench trace import trace.parquet --anonymise -o shared.parquet",
    ),
)
@click.argument("path", metavar="FILE", type=PATH)
@click.option(
    "--from",
    "source",
    type=click.Choice(FORMATS),
    help="Format of the file. Default: detected from its first lines.",
)
@ANONYMISE
@output_option(type=PATH, required=True, metavar="FILE", help="File to write the trace to.")
def import_trace_verb(
    path: Path, source: Format | None, output: Path, *, is_anonymised: bool
) -> None:
    """Convert FILE of another tool into a trace, or anonymise a trace.

    Formats: text of blkparse, iologs of fio (version 2 and 3), and the published traces of Alibaba,
    Tencent and Thesios. Damaged lines are skipped and counted.
    """
    from volbench.extensions.traces.import_traces import import_trace
    from volbench.units import counted_noun

    if output.exists() and output.resolve() == path.resolve():
        raise InputError(f"{output} is the file to import", hint="name another file with -o")
    done = import_trace(path, output, source=source, is_anonymised=is_anonymised)
    click.echo(f"{output}: {counted_noun(done.count, 'I/O')} from {done.facts.source}", err=True)
    if done.facts.damaged_lines:
        lines = counted_noun(done.facts.damaged_lines, "damaged line")
        example = f", the first: {done.example!r}" if done.example else ""
        click.echo(f"{lines} skipped{example}", err=True)
