"""swapping: the host was short of memory."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import host_rows_in_run
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_rate

_LEAST_BYTES_PER_S = 1e6


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding when the host swapped while the run went on."""
    del context
    rows = host_rows_in_run(view)
    if rows.empty:
        return
    rate = float(rows["swap_bytes_per_s"].mean())
    if rate >= _LEAST_BYTES_PER_S:
        yield RULE.finding(
            view,
            f"The host swapped {format_rate(rate)} on average.",
            {"swap_bytes_per_s": rate, "worst_bytes_per_s": float(rows["swap_bytes_per_s"].max())},
        )


RULE = Rule(
    id="swapping",
    title="the host was swapping",
    severity=Severity.WARNING,
    looks_at="Pages swapped in and out: 1 MB/s or more, mean over the run (volbench's own choice).",
    why="Swapping costs CPU, blocks the tool, and is I/O itself, perhaps on the same disk.",
    advice="Free memory, or turn swap off for the measurement.",
    check=check,
)
