"""volbench import: results that others measured, into a campaign folder."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from volbench.importer.folder_labels import parse_labels
from volbench.importer.import_campaign import Intake, Wanted, import_results
from volbench.model.campaign.planned_run import RunState


@click.command("import")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="New campaign folder. Default: volbench-results/NAME-TIME.",
)
@click.option("--name", default="", help="Name of the campaign. Default: that of the folder.")
@click.option(
    "--labels",
    "pattern",
    default="",
    metavar="PATTERN",
    help="Take labels from the names of folders below PATH: '{provider}/{volume_type}/{host}'. "
    "{host}, {repeat} and {job} are the host, the repeat and the job.",
)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label for all.")
@click.option("--host", default="", help="Host of results that tell none.")
@click.option(
    "--fio-version",
    default="",
    metavar="VERSION",
    help="Version of fio that wrote logs without a result, such as 3.33.",
)
@click.option("--strict", is_flag=True, help="Import nothing when a file is malformed.")
@click.option("--json", "as_json", is_flag=True, help="Print what was imported as JSON.")
def command(
    paths: tuple[Path, ...],
    into: Path | None,
    name: str,
    pattern: str,
    labels: tuple[str, ...],
    host: str,
    fio_version: str,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    r"""Read results of fio at and below PATHs, and write them as a campaign.

    \b
    volbench import results/ --into campaign
    volbench import results/ --labels '{provider}/{volume_type}/{host}' --into clouds
    volbench import fio.json --host vm1 --label volume_type=P15 --into vm1

    fio's JSON of any version is read, alone or in other tools' reports, plain or compressed, with
    its logs beside it; results of fio's clients become a host each. Nothing there is changed.
    """
    wanted = Wanted(
        paths=paths,
        into=into or _default_folder(name or paths[0].resolve().stem),
        name=name,
        labels=parse_labels(labels),
        pattern=pattern,
        host=host,
        fio_version=fio_version,
        strict=strict,
        command=_shown_command(paths, into),
    )
    intake = import_results(wanted)
    _tell(intake)
    click.echo(json.dumps(_record(intake), indent=1) if as_json else str(intake.into))


def _default_folder(name: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return Path("volbench-results") / f"{name}-{stamp}"


def _shown_command(paths: tuple[Path, ...], into: Path | None) -> tuple[str, ...]:
    """Return the command line for the record, with this machine's own paths made short."""
    short = {str(path): path.resolve().name for path in paths}
    if into is not None:
        short |= {str(into): into.name, f"--into={into}": f"--into={into.name}"}
    return ("volbench", *(short.get(argument, argument) for argument in sys.argv[1:]))


def _tell(intake: Intake) -> None:
    """Say on standard error what was imported, and what was not, and why."""
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
        f"imported Runs: {len(intake.runs)}{ended}; files with results: {intake.files};"
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
