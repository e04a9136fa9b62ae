"""volbench sql: questions in SQL over the frames of many campaigns."""

from __future__ import annotations

from collections.abc import Sequence

import click

from volbench.cli.options import examples, output_option
from volbench.cli.outputs import binary_output
from volbench.cli.read.sql_sources import open_sources
from volbench.present.export.frame_export import FORMATS, export_frame, file_name
from volbench.present.tables.result_tables import show_table
from volbench.present.tables.sql_answers import answer_table, plain_answer


@click.command(
    "sql",
    epilog=examples(
        'volbench sql "select job, median(iops) from summary group by job" results',
        'volbench sql "describe summary" results',
        'volbench sql "select * from findings" s3://bucket/dataset --format csv',
    ),
)
@click.argument("query", metavar="QUERY")
@click.argument("places", nargs=-1, metavar="[DIR|s3://BUCKET/PREFIX]...")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["table", *FORMATS]),
    default="table",
    show_default=True,
    help="Of the answer; table is for a terminal.",
)
@click.option(
    "--endpoint",
    default="",
    metavar="URL",
    help="Of a storage of your own that speaks S3, such as https://minio.example:9000.",
)
@output_option(metavar="PATH", default="-", help="File or folder; - is standard output.")
def command(query: str, places: Sequence[str], kind: str, endpoint: str, output: str) -> None:
    """Ask QUERY of all campaigns in the places, the current folder without any.

    Every frame is a table: summary, series, device, percentiles, histogram, verdicts, findings
    and aggregate. Needs the extra volbench[sql].
    """
    answer = plain_answer(open_sources(places or ["."], endpoint=endpoint).answer(query))
    if kind == "table" and output == "-":
        show_table(answer_table(answer))
        return
    kind = "csv" if kind == "table" else kind
    with binary_output(output, default_name=file_name("answer", kind)) as sink:
        export_frame(answer, frame_name="answer", format=kind, into=sink)
