"""volbench import: fio results from other sources, as a campaign folder."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.options import NEW_CAMPAIGN, PATH, examples, flag
from volbench.cli.output import default_campaign_folder, progress_line, typed_command
from volbench.errors import quoted
from volbench.present.factor_words import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volbench.errors import Problem
    from volbench.extensions.importer.import_campaign import ImportReport

# Words of a message that say what it is about: paths, options and numbers
_OF_ONE_FILE = re.compile(r"\S*[\d/=.]\S*|'[^']*'")
# Problems of one kind that are listed one by one. Noticed by:
# tests/extensions/importer/test_import_verb.py::test_a_problem_of_many_files_is_reported_once
_LISTED_EACH = 3


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
    help="Name of the campaign. Default: name of the campaign folder.",
)
@click.option(
    "--labels",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Take labels from the names of folders below PATH: '{provider}/{volume_type}/{host}'. "
    "{host}, {repeat} and {job} set the host, the repeat and the job. Repeatable: the first "
    "pattern that matches a path applies.",
)
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label of all hosts; repeatable."
)
@click.option(
    "--host", default="", metavar="NAME", help="Host of results that do not name their host."
)
@click.option(
    "--fio-version",
    default="",
    metavar="VERSION",
    help="fio version of latency logs that have no result, such as 3.33.",
)
@flag("--strict", "Import nothing if a file is malformed.")
def import_verb(
    paths: tuple[Path, ...],
    output: Path | None,
    name: str,
    labels: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - the others are passed on by the names that they have there
) -> None:
    """Import fio results at and below PATHs as a campaign.

    Accepts fio's JSON of any version, alone or inside reports of other tools, plain or compressed,
    with its logs beside it, its normal and terse output, and logs alone; each of fio's clients
    becomes a host.
    Pages and programs, such as .md and .py, count only if PATH is one. The sources are not changed.
    """
    from volbench.api.many_campaigns import open_campaign, store_tables
    from volbench.extensions.importer.import_campaign import ImportRequest, staged_import
    from volbench.extensions.importer.run_names import parse_labels
    from volbench.store.worker_processes import cores

    request = ImportRequest(
        paths=paths,
        into=output or default_campaign_folder(name or paths[0].resolve().stem),
        name=name,
        labels=parse_labels(labels),
        command=typed_command(paths, output),
        **options,
    )
    with progress_line() as tell, staged_import(replace(request, tell=tell)) as report:
        into, folder, lines = report.into, report.folder, _report_lines(report)
        del report  # its runs would stay in memory beside those of the opened campaign
        campaign = open_campaign(folder)
        store_tables(campaign, processes=cores(), tell=tell)
        lines += campaign.answer
    click.echo("\n".join(lines), err=True)
    click.echo(str(into))


def _report_lines(report: ImportReport) -> list[str]:
    from volbench.model.campaign.planned_run import RunState

    states = [ready.state for ready in report.runs]
    ended = "".join(
        f", {states.count(state)} {state.value}"
        for state in (RunState.FAILED, RunState.INTERRUPTED)
        if state in states
    )
    left = f"; malformed files: {len(report.malformed)}" if report.malformed else ""
    others = f"; other files: {report.others}" if report.others else ""
    return [
        *_by_message("not imported", report.malformed),
        *_by_message("note", report.remarks),
        (
            f"imported runs: {len(report.runs)}{ended}; files with results: {report.files};"
            f" logs: {report.logs}{left}{others}. See them: volbench show {quoted(report.into)}"
        ),
    ]


def _by_message(heading: str, problems: Sequence[Problem]) -> list[str]:
    """Return a line for each problem; one in all for more than three of a kind."""
    grouped: dict[str, list[Problem]] = {}
    for problem in problems:
        kind = _OF_ONE_FILE.sub("", f"{problem.message} {problem.hint}")
        grouped.setdefault(kind, []).append(problem)
    lines = []
    for group in grouped.values():
        is_same = len({problem.message for problem in group}) == 1
        if len(group) == 1 or (len(group) <= _LISTED_EACH and not is_same):
            lines += [f"{heading}: {problem}" for problem in group]
            continue
        message, hint = group[0].message, group[0].hint
        advice = f" ({hint})" if hint else ""
        if len(group) <= _LISTED_EACH:
            paths = listed([str(replace(each, message="", hint="")) for each in group])
            lines.append(f"{heading}: {paths}: {message}{advice}")
            continue
        path = replace(group[0], message="", hint="")
        if is_same:
            lines.append(f"{heading}: {path} and {len(group) - 1} more: {message}{advice}")
        else:
            more = f"{len(group) - 1} more of this kind"
            lines.append(f"{heading}: {path}: {message}{advice}; and {more}")
    return lines
