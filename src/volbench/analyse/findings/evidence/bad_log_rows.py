"""bad-log-rows: lines of fio's logs could not be read."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import total
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding when the series leaves out lines of the logs."""
    del context
    bad = total(view, "bad_log_rows")
    if bad > 0:
        lines = "1 line" if bad == 1 else f"{bad:.0f} lines"
        yield RULE.finding(
            view,
            f"{lines} of fio's logs could not be read and are not in the series.",
            {"bad_log_rows": bad, "series_rows": float(len(view.series))},
        )


RULE = Rule(
    id="bad-log-rows",
    title="lines are missing from the series",
    severity=Severity.WARNING,
    looks_at="Lines of the logs that the series leaves out, because they are cut or no log lines.",
    why=(
        "A gap in the log looks like a stall, and verdicts on steadiness rest on the series. Totals"
        " and percentiles come from fio's result and are not concerned."
    ),
    advice="Look at the logs in the run's folder; a full disk cuts them. Then measure again.",
    check=check,
)
