"""volbench check: data-quality warnings of campaigns."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.named_campaign import with_paths
from volbench.cli.options import CAMPAIGNS, flag
from volbench.cli.output import TableOutput, table_options
from volbench.errors import FindingsError, InputError, did_you_mean

if TYPE_CHECKING:
    from volbench.present.formatting import Row


@click.command("check")
@CAMPAIGNS
@click.option("--rule", "rules", multiple=True, metavar="ID", help="This rule only; repeatable.")
@flag("--strict", "Exit with 10 on a warning or if a result is invalid.")
@table_options()
def command(
    campaigns: tuple[str | Path, ...], rules: tuple[str, ...], *, strict: bool, shown: TableOutput
) -> None:
    """List data-quality warnings of the campaigns in DIR..., with reasons and advice.

    Rules are described in docs/reference/findings.md. A result marked invalid does not measure
    what it claims to; a warning means that it may be misleading; a note gives context.
    """
    from volbench.dataset import open_campaigns
    from volbench.model.campaign.planned_run import RunState
    from volbench.present.tables.findings_table import findings_table, findings_text

    wanted = _known_rules(rules)
    opened = list(open_campaigns(*campaigns).names.values())
    rows = [
        row
        for campaign in opened
        for row in campaign.rows("findings")
        if not wanted or row["rule"] in wanted
    ]
    finished = sum(
        note.state is RunState.FINISHED for campaign in opened for note in campaign.runs.values()
    )
    folder = campaigns if len(opened) == 1 else ()
    shown.write(
        findings_table(rows),
        text=lambda width, colour: findings_text(
            [row | {"advice": with_paths(str(row["advice"]), folder)} for row in rows],
            runs=finished,
            width=width,
            colour=colour,
            is_brief=not wanted,
            paths=shlex.join(map(str, campaigns)),
        ),
    )
    if strict:
        _fail_on_warnings(rows)


def _known_rules(names: Sequence[str]) -> Collection[str]:
    """Return the names of rules if all of them exist."""
    if not names:
        return ()
    from volbench.analyse.findings import RULES

    known = [rule.id for rule in RULES]
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no rule {name!r}",
                hint=did_you_mean(name, known, f"rules are {', '.join(known)}"),
            )
    return names


def _fail_on_warnings(rows: Sequence[Row]) -> None:
    """Accept notes, and fail on anything more severe."""
    from volbench.model.results.finding import Severity
    from volbench.present.tables.findings_table import count_severities, counted

    counts = count_severities(rows)
    severe = {severity: counts[severity] for severity in (Severity.INVALID, Severity.WARNING)}
    if any(severe.values()):
        raise FindingsError(
            f"data-quality warnings: {counted(severe)}",
            hint="each finding says what to do; --rule ID looks at one rule only",
        )
