"""volbench sql and upload: many campaigns, here and in object storage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import CAMPAIGN, Quantity, examples, option_group
from volbench.cli.output import TableOutput, binary_output, table_options
from volbench.errors import InputError
from volbench.store.layout import is_address
from volbench.units import parse_size

if TYPE_CHECKING:
    import pyarrow as pa

    from volbench.api.one_campaign import CampaignData
    from volbench.extensions.object_storage.object_storage import ObjectStorage
    from volbench.extensions.object_storage.sql_query import Parts, QueryLimits


def _limits(memory_bytes: int, timeout_s: float, threads: int | None) -> QueryLimits:
    from volbench.extensions.object_storage.sql_query import QueryLimits

    return QueryLimits(memory_bytes=memory_bytes, timeout_s=timeout_s, threads=threads or 0)


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
@option_group(
    "limits",
    _limits,
    click.option(
        "--memory",
        "memory_bytes",
        type=Quantity("SIZE", parse_size),
        default="4g",
        show_default=True,
        help="Memory limit of the query.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=300.0,
        show_default=True,
        metavar="SECONDS",
        help="Time limit of the query.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Threads of DuckDB. Default: one per core.",
    ),
)
@table_options("parquet", "xlsx", "latex")
def sql(
    query: str, places: Sequence[str], *, limits: QueryLimits, table_output: TableOutput
) -> None:
    """Run the SQL QUERY over all campaigns at the given places, or below the current folder.

    Every frame is a table: summary, series, device, percentiles, histogram, verdicts, findings
    and aggregate. Needs the extra volbench[sql].
    """
    from volbench.extensions.object_storage.sql_query import plain_answer
    from volbench.model.frames.column_names import find_column
    from volbench.present.export.frame_export import export_frame, file_name
    from volbench.present.formatting import records
    from volbench.present.tables.table import frame_table

    answer = plain_answer(_answer(query, places or ["."], limits=limits))
    if table_output.format == "table" and table_output.output == "-":
        table_output.write(frame_table("answer", records(answer)))
        return
    kind = "csv" if table_output.format == "table" else table_output.format
    if table_output.columns:
        answer = answer[[find_column(name, list(answer.columns)) for name in table_output.columns]]
    with binary_output(table_output.output, default_name=file_name("answer", kind)) as sink:
        export_frame(answer, frame_name="answer", format=kind, into=sink, raw=table_output.is_raw)


def _answer(query: str, places: Sequence[str], *, limits: QueryLimits) -> pa.Table:
    """Answer a query over every frame of all places.

    Args:
        places: campaign folders, folders that hold some, exported datasets, or addresses of these
            in object storage, such as ``s3://bucket/prefix``.
    """
    from volbench.api.many_campaigns import Dataset, View, open_campaigns
    from volbench.extensions.object_storage.sql_query import local_parts, run_query

    missing = [place for place in places if not is_address(place) and not Path(place).is_dir()]
    if missing:
        raise InputError(
            f"there is no folder {missing[0]}",
            hint="name campaign folders, or a folder that contains some",
        )
    parts, campaigns_read = _remote([place for place in places if is_address(place)])
    filesystem = parts[0].filesystem if parts else None
    folders = []
    for place in (place for place in places if not is_address(place)):
        local = local_parts(Path(place))
        if local.files:
            parts.append(local)
        else:
            folders.append(place)
    campaigns_read += open_campaigns(*folders).names.values() if folders else []
    campaigns = Dataset(campaigns_read) if campaigns_read else None

    def view(name: str) -> View:
        sources = View() if campaigns is None else campaigns.view(name)
        for part in parts:
            sources.files.extend(part.files.get(name, ()))
        return sources

    return run_query(query, view, filesystem=filesystem, limits=limits)


def _remote(addresses: Sequence[str]) -> tuple[list[Parts], list[CampaignData]]:
    """Return the dataset and the campaigns at addresses in object storage."""
    if not addresses:
        return [], []
    from volbench.extensions.object_storage.object_storage import open_copies, open_storage
    from volbench.extensions.object_storage.sql_query import remote_parts

    parts, campaigns = [], []
    for storage in map(open_storage, addresses):
        sizes = storage.sizes()
        copies = open_copies(storage, sizes)
        campaigns += copies
        parts += [] if copies else [remote_parts(storage, sizes)]
    if len(parts) > 1:
        raise InputError(
            "only one dataset in object storage can be read at a time",
            hint="name the prefix that holds both",
        )
    return parts, campaigns


def _check(context: click.Context, _: click.Parameter, address: str | None) -> None:
    """Check an address, and end the program."""
    if address is None:
        return
    storage = _free_storage(address)
    storage.require_writable()
    click.echo(f"a campaign can be uploaded: {storage.address}", err=True)
    context.exit()


def _free_storage(address: str) -> ObjectStorage:
    """Connect to the storage of an address at which there is no campaign yet."""
    from volbench.extensions.object_storage.object_storage import PLAN, open_storage

    storage = open_storage(address)
    if storage.has(PLAN):
        raise InputError(
            f"there is a campaign at {storage.address}", hint="give each campaign its own prefix"
        )
    return storage


@click.command(
    "upload",
    epilog=examples(
        "volbench upload results/quick s3://bucket/results/quick",
        "volbench upload --check s3://bucket/results/quick",
    ),
)
@click.option(
    "--check",
    metavar="s3://BUCKET/PREFIX",
    callback=_check,
    is_eager=True,
    expose_value=False,
    help="Check whether a campaign can be uploaded there, without a DIR, and exit.",
)
@CAMPAIGN
@click.argument("address", metavar="s3://BUCKET/PREFIX")
def upload(campaign: Path, address: str) -> None:
    """Upload the campaign in DIR to object storage.

    Tables are brought up to date first, so that nothing else has to be fetched to read results. The
    plan is uploaded last: without it, a prefix is not a campaign.
    """
    from volbench.api.one_campaign import open_campaign
    from volbench.extensions.object_storage.object_storage import PLAN

    opened = open_campaign(campaign)
    if opened.is_running:
        raise InputError(
            f"the campaign in {campaign} is running", hint="upload it when it has ended"
        )
    opened.store_tables()
    storage = _free_storage(address)
    names = sorted(
        path.relative_to(campaign).as_posix()
        for path in campaign.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".")
    )
    storage.upload(campaign, [*(name for name in names if name != PLAN), PLAN])
    click.echo(f"uploaded: {storage.address}", err=True)
