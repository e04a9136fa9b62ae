"""io-errors: requests failed while the run went on."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule, Window
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import device_rows, results_of
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for errors that the tool met, and one for those the device counted."""
    del context
    codes = sorted({result["error"] for result in results_of(view) if result["error"] > 0})
    if codes:
        yield RULE.finding(
            view, f"The tool met an error (errno {codes[0]:.0f}).", {"errno": codes[0]}
        )
    rows = device_rows(view)
    bad = rows[(rows["io_errors"] > 0).fillna(value=False)] if len(rows) else rows
    if not bad.empty:
        count = float(bad["io_errors"].sum())
        yield RULE.finding(
            view,
            f"{count:.0f} requests to {bad['device'].iloc[0]} ended in an error.",
            {"io_errors": count, "device": str(bad["device"].iloc[0])},
            window=Window(
                float(bad["t_s"].iloc[0] - bad["interval_s"].iloc[0]), float(bad["t_s"].iloc[-1])
            ),
        )


RULE = Rule(
    id="io-errors",
    title="I/O errors while it ran",
    severity=Severity.INVALID,
    looks_at="fio's error of a run that went on regardless, and the device's own error counter.",
    why="An I/O that fails is often faster, or far slower, than one that works.",
    advice="Look at the kernel's log (dmesg) and at the health of the device.",
    check=check,
)
