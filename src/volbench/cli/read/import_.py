"""volbench import: fio results from other sources, as a campaign folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.options import NEW_CAMPAIGN, PATH, examples, flag
from volbench.cli.output import default_campaign_folder, recorded_command

if TYPE_CHECKING:
    from volbench.importer.import_campaign import Intake


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
    "{host}, {repeat} and {job} are the host, the repeat and the job.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Label of every imported host; repeatable.",
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
    """Read results of fio at and below PATHs, and write them as a campaign.

    fio's JSON of any version is read, alone or in other tools' reports, plain or compressed, with
    its logs beside it; results of fio's clients become a host each. Nothing there is changed.
    """
    from volbench.api import open_campaign
    from volbench.importer.folder_labels import parse_labels
    from volbench.importer.import_campaign import Wanted, import_results

    wanted = Wanted(
        paths=paths,
        into=output or default_campaign_folder(name or paths[0].resolve().stem),
        name=name,
        labels=parse_labels(labels),
        command=recorded_command(paths, output),
        **options,
    )
    intake = import_results(wanted)
    open_campaign(intake.into).store_tables()
    _report(intake)
    click.echo(json.dumps(_record(intake), indent=1) if as_json else str(intake.into))


def _report(intake: Intake) -> None:
    """Print on standard error what was imported, what was not, and why."""
    from volbench.model.campaign.planned_run import RunState

    for problem in intake.malformed:
        click.echo(f"not imported: {problem}", err=True)
    for remark in intake.remarks:
        click.echo(f"note: {remark}", err=True)
    states = [ready.state for ready in intake.runs]
    ended = "".join(
        f", {states.count(state)} {state.value}"
        for state in (RunState.FAILED, RunState.INTERRUPTED)
        if state in states
    )
    left = f"; malformed files: {len(intake.malformed)}" if intake.malformed else ""
    others = f"; other files: {intake.others}" if intake.others else ""
    click.echo(
        f"imported runs: {len(intake.runs)}{ended}; files with results: {intake.files};"
        f" logs: {intake.logs}{left}{others}. See them: volbench show {intake.into}",
        err=True,
    )


def _record(intake: Intake) -> dict[str, object]:
    return {
        "into": str(intake.into),
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
            for ready in intake.runs
        ],
        "malformed": [str(problem) for problem in intake.malformed],
        "notes": [str(remark) for remark in intake.remarks],
        "other_files": intake.others,
    }
