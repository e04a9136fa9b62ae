"""volbench check: data-quality warnings of campaigns."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import CAMPAIGNS
from volbench.cli.table_output import TableOutput, table_options


@click.command("check")
@CAMPAIGNS
@click.option("--rule", "rules", multiple=True, metavar="ID", help="This rule only; repeatable.")
@click.option("--strict", is_flag=True, help="Exit with 10 on a warning or if a result is invalid.")
@table_options()
def command(
    campaigns: tuple[Path, ...], rules: tuple[str, ...], *, strict: bool, shown: TableOutput
) -> None:
    """List data-quality warnings of the campaigns in DIR..., why they matter, and what to do.

    Rules are described in docs/reference/findings.md. A result marked invalid does not measure
    what it claims to; a warning means that it may be misleading; a note gives context.
    """
    from volbench.api import open_campaign
    from volbench.cli.read.findings_output import Checked, check_rules, fail_on_warnings
    from volbench.present.tables.findings_table import findings_table, findings_text

    checked = Checked.of([open_campaign(path) for path in campaigns], rules=check_rules(rules))
    shown.write(
        findings_table(checked.rows),
        text=lambda width, colour: findings_text(
            checked.rows, runs=checked.runs, width=width, colour=colour
        ),
    )
    if strict:
        fail_on_warnings(checked)
