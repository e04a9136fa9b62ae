"""volbench check: what puts the numbers of campaigns in doubt."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from volbench.api import open_campaign
from volbench.cli.read.findings_output import Checked, check_rules, fail_if_doubtful, findings_json
from volbench.present.tables.findings_table import show_findings


@click.command("check")
@click.argument(
    "campaigns",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR...",
)
@click.option("--rule", "rules", multiple=True, metavar="ID", help="This rule only; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the Findings as JSON records.")
@click.option("--strict", is_flag=True, help="Exit with 10 on a warning or on an invalid number.")
def command(
    campaigns: tuple[Path, ...], rules: tuple[str, ...], *, as_json: bool, strict: bool
) -> None:
    """Tell what puts the numbers of the campaigns in DIR... in doubt, why, and what to do.

    Every rule stands in docs/reference/findings.md. A warning means that a number may say something
    else than it seems to; an invalid one does not measure what it claims to; a note is context.
    """
    checked = Checked.of([open_campaign(path) for path in campaigns], rules=check_rules(rules))
    if as_json:
        click.echo(findings_json(checked))
    else:
        show_findings(checked.rows, runs=checked.runs, stream=sys.stdout)
    if strict:
        fail_if_doubtful(checked)
