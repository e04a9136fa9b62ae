"""volbench sql: SQL queries over the frames of many campaigns."""

from __future__ import annotations

from collections.abc import Sequence

import click

from volbench.cli.options import examples
from volbench.cli.outputs import binary_output
from volbench.cli.table_output import TableOutput, table_options
from volbench.units import parse_size


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
    "--endpoint",
    default="",
    metavar="URL",
    help="Address of an S3-compatible storage, such as https://minio.example:9000.",
)
@click.option(
    "--memory", default="4g", show_default=True, metavar="SIZE", help="Memory of a query."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Time after which a query is interrupted.",
)
@click.option(
    "--threads", type=click.IntRange(min=1), help="Threads of DuckDB. Default: one per core."
)
@table_options("parquet", "xlsx", "latex")
def command(
    query: str,
    places: Sequence[str],
    endpoint: str,
    memory: str,
    timeout: float,
    threads: int | None,
    *,
    shown: TableOutput,
) -> None:
    """Run the SQL QUERY over all campaigns in the places; without any, in this folder.

    Every frame is a table: summary, series, device, percentiles, histogram, verdicts, findings
    and aggregate. Needs the extra volbench[sql].
    """
    from volbench.cli.read.sql_sources import open_sources
    from volbench.model.frames.column_names import find_column
    from volbench.present.export.frame_export import export_frame, file_name
    from volbench.present.formatting import records
    from volbench.present.tables.results_table import frame_table
    from volbench.store.sql_answers import plain_answer
    from volbench.store.sql_query import QueryLimits

    limits = QueryLimits(memory_bytes=parse_size(memory), timeout_s=timeout, threads=threads or 0)
    sources = open_sources(places or ["."], endpoint=endpoint)
    answer = plain_answer(sources.answer(query, limits=limits))
    if shown.format == "table" and shown.output == "-":
        shown.write(frame_table("answer", records(answer)))
        return
    kind = "csv" if shown.format == "table" else shown.format
    if shown.columns:
        answer = answer[[find_column(name, list(answer.columns)) for name in shown.columns]]
    with binary_output(shown.output, default_name=file_name("answer", kind)) as sink:
        export_frame(answer, frame_name="answer", format=kind, into=sink)
