"""Findings of several campaigns, selected by rule and counted, for `volbench check`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from volbench.api import CampaignData
from volbench.errors import FindingsError, InputError
from volbench.model.campaign.planned_run import RunState
from volbench.model.profile.fio_option import nearest
from volbench.model.results.finding import Severity
from volbench.present.formatting import Row
from volbench.present.tables.findings_table import count_severities, counted


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes:
        rows: of the findings frames, campaign after campaign.
        runs: number of finished runs that were checked.
    """

    rows: Sequence[Row]
    runs: int

    @classmethod
    def of(cls, campaigns: Sequence[CampaignData], *, rules: Collection[str]) -> Checked:
        """Check campaigns; with no rules named, by all of them."""
        rows = [row for campaign in campaigns for row in campaign.rows("findings")]
        notes = [note for campaign in campaigns for note in campaign.runs.values()]
        return cls(
            rows=[row for row in rows if not rules or row["rule"] in rules],
            runs=sum(note.state is RunState.FINISHED for note in notes),
        )


def check_rules(names: Sequence[str]) -> Collection[str]:
    """Return the names of rules if all of them exist.

    Raises:
        InputError: there is no such rule.
    """
    if not names:
        return ()
    from volbench.analyse.findings import RULES

    known = [rule.id for rule in RULES]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise InputError(
                f"there is no rule {name!r}",
                hint=f"did you mean `{near}`?" if near else f"rules are {', '.join(known)}",
            )
    return names


def fail_on_warnings(checked: Checked) -> None:
    """Accept notes, and fail on anything more severe.

    Raises:
        FindingsError: there is a warning, or a result is invalid.
    """
    counts = count_severities(checked.rows)
    severe = {severity: counts[severity] for severity in (Severity.INVALID, Severity.WARNING)}
    if any(severe.values()):
        raise FindingsError(
            f"data-quality warnings: {counted(severe)}",
            hint="each finding says what to do; --rule ID looks at one rule only",
            context={severity.value: count for severity, count in counts.items()},
        )
