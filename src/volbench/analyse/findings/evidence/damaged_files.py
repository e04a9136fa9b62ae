"""damaged-files: files of a run that finished can't be read any more."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding when reading a run's files did not go through."""
    del context
    words = view.summary["damage"].dropna().drop_duplicates()
    if len(words):
        lost = "Its result is lost" if view.is_damaged else "A part of it is lost"
        yield RULE.finding(
            view,
            f"{lost}: {'; '.join(words)}.",
            {"series_rows": float(len(view.series)), "device_rows": float(len(view.device))},
            severity=Severity.INVALID if view.is_damaged else None,
        )


RULE = Rule(
    id="damaged-files",
    title="files of the run are damaged",
    severity=Severity.WARNING,
    looks_at=(
        "Whether every file of a finished run can be read: its result (invalid when not), its logs,"
        " the samples of the device."
    ),
    why=(
        "What can't be read is missing from tables and charts, and rules that need it say nothing."
    ),
    advice="Restore the campaign folder from a copy, or do the run again.",
    check=check,
)
