"""Findings of several campaigns for `volbench check`: chosen, counted, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from volbench.analyse.findings import RULES
from volbench.api import CampaignData
from volbench.errors import FindingsError, InputError
from volbench.model.campaign.planned_run import RunState
from volbench.model.profile.fio_option import nearest
from volbench.model.results.finding import Severity
from volbench.present.formatting import Row, records
from volbench.present.tables.findings_table import count_severities, counted


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes:
        rows: of the findings frames, campaign after campaign.
        runs: how many finished Runs were looked at.
    """

    rows: Sequence[Row]
    runs: int

    @classmethod
    def of(cls, campaigns: Sequence[CampaignData], *, rules: Collection[str]) -> Checked:
        """Check campaigns; with no rules named, by all of them."""
        rows = [row for campaign in campaigns for row in records(campaign.findings())]
        notes = [note for campaign in campaigns for note in campaign.runs.values()]
        return cls(
            rows=[row for row in rows if not rules or row["rule"] in rules],
            runs=sum(note.state is RunState.FINISHED for note in notes),
        )


def check_rules(names: Sequence[str]) -> Collection[str]:
    """Return the names of rules as they were given.

    Raises:
        InputError: there is no such rule.
    """
    known = [rule.id for rule in RULES]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise InputError(
                f"there is no rule {name!r}",
                hint=f"did you mean `{near}`?" if near else f"rules are {', '.join(known)}",
            )
    return names


def findings_json(checked: Checked) -> str:
    """Return Findings as a JSON list, the evidence of each as an object."""
    told = [{**row, "evidence": json.loads(str(row["evidence"]))} for row in checked.rows]
    return json.dumps(told, indent=1)


def fail_if_doubtful(checked: Checked) -> None:
    """Do nothing when there are notes at most.

    Raises:
        FindingsError: a Finding is a warning or says that a number is invalid.
    """
    counts = count_severities(checked.rows)
    heavy = {severity: counts[severity] for severity in (Severity.INVALID, Severity.WARNING)}
    if any(heavy.values()):
        raise FindingsError(
            f"numbers are in doubt: {counted(heavy)}",
            hint="each Finding says what to do; --rule ID looks at one rule only",
            context={severity.value: count for severity, count in counts.items()},
        )
