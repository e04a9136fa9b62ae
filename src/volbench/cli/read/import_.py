"""volbench import: fio results from other sources, as a campaign folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.options import NEW_CAMPAIGN, PATH, examples, flag
from volbench.cli.output import default_campaign_folder, progress_line, recorded_command

if TYPE_CHECKING:
    from volbench.importer.import_campaign import ImportReport


@click.command(
    "import",
    epilog=examples(
        "volbench import results/ -o campaign",
        "volbench import results/ --labels '{volume_type}/{host}' -o clouds",
        "volbench import fio.json --host vm1 --label volume_type=P15 -o vm1",
    ),
)
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@NEW_CAMPAIGN
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="Name of the campaign. Default: that of the folder.",
)
@click.option(
    "--labels",
    "pattern",
    default="",
    metavar="PATTERN",
    help="Take labels from the names of folders below PATH: '{provider}/{volume_type}/{host}'. "
    "{host}, {repeat} and {job} set the host, the repeat and the job.",
)
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label of all hosts; repeatable."
)
@click.option("--host", default="", metavar="NAME", help="Host of results that name none.")
@click.option(
    "--fio-version",
    default="",
    metavar="VERSION",
    help="Version of fio that wrote logs without a result, such as 3.33.",
)
@flag("--strict", "Import nothing when a file is malformed.")
@flag("--json", "Print what was imported as JSON.", "as_json")
def command(
    paths: tuple[Path, ...],
    output: Path | None,
    name: str,
    labels: tuple[str, ...],
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - the others are passed on by the names that they have there
) -> None:
    """Import fio results at and below PATHs as a campaign.

    Accepts fio's JSON of any version, alone or inside reports of other tools, plain or compressed,
    with its logs beside it; each of fio's clients becomes a host. The sources are not changed.
    """
    from volbench.api import open_campaign
    from volbench.importer.folder_labels import parse_labels
    from volbench.importer.import_campaign import ImportRequest, import_results
    from volbench.ingest.run_files import parsed_results
    from volbench.store.worker_processes import cores

    request = ImportRequest(
        paths=paths,
        into=output or default_campaign_folder(name or paths[0].resolve().stem),
        name=name,
        labels=parse_labels(labels),
        command=recorded_command(paths, output),
        **options,
    )
    with progress_line() as tell:
        report = import_results(replace(request, tell=tell))
        with parsed_results(report.parsed):
            open_campaign(report.into).store_tables(processes=cores(), tell=tell)
    _print_report(report)
    click.echo(json.dumps(_record(report), indent=1) if as_json else str(report.into))


def _print_report(report: ImportReport) -> None:
    """Print on stderr what was imported, what was not, and why."""
    from volbench.model.campaign.planned_run import RunState

    for problem in report.malformed:
        click.echo(f"not imported: {problem}", err=True)
    for remark in report.remarks:
        click.echo(f"note: {remark}", err=True)
    states = [ready.state for ready in report.runs]
    ended = "".join(
        f", {states.count(state)} {state.value}"
        for state in (RunState.FAILED, RunState.INTERRUPTED)
        if state in states
    )
    left = f"; malformed files: {len(report.malformed)}" if report.malformed else ""
    others = f"; other files: {report.others}" if report.others else ""
    click.echo(
        f"imported runs: {len(report.runs)}{ended}; files with results: {report.files};"
        f" logs: {report.logs}{left}{others}. See them: volbench show {report.into}",
        err=True,
    )


def _record(report: ImportReport) -> dict[str, object]:
    return {
        "into": str(report.into),
        "runs": [
            {
                "run": ready.run.id,
                "host": ready.run.host,
                "job": ready.run.job,
                "repeat": ready.run.repeat,
                "state": ready.state.value,
                "reason": ready.reason,
                "source": ready.run.imported.files[0].source if ready.run.imported else "",
            }
            for ready in report.runs
        ],
        "malformed": [str(problem) for problem in report.malformed],
        "notes": [str(remark) for remark in report.remarks],
        "other_files": report.others,
    }
