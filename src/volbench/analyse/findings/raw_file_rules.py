"""Rules on raw files and I/O errors: bad-log-rows, damaged-files, io-errors."""

from __future__ import annotations

import os
from collections.abc import Iterator

from volbench.analyse.findings.rule import Observation, rule, tool_name
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import device_rows, results_of, total
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Severity


@rule(
    "lines are missing from the series",
    looks_at="Lines of the logs that the series leaves out: cut off, or not in fio's log format.",
    why=(
        "A gap in the log looks like a stall, and verdicts on steadiness rest on the series. Totals"
        " and percentiles come from fio's result and are not affected."
    ),
    advice="Look at the logs in the run's folder; a full disk cuts them. Then measure again.",
)
def bad_log_rows(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the number of log lines that the series leaves out."""
    bad = total(view, "bad_log_rows")
    if bad > 0:
        lines = "1 line of fio's logs is" if bad == 1 else f"{bad:.0f} lines of fio's logs are"
        yield Observation(
            f"{lines} unreadable and missing from the series.",
            {"bad_log_rows": bad, "series_rows": float(len(view.series))},
        )


@rule(
    "files of the run are damaged",
    looks_at=(
        "Whether every file of a finished run can be read: its result (invalid when not), its logs,"
        " the samples of the device."
    ),
    why=(
        "What cannot be read is missing from tables and charts, and rules that need it stay silent."
    ),
    advice="Restore the campaign folder from a copy, or do the run again.",
)
def damaged_files(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the files that could not be read."""
    words = view.summary["damage"].dropna().drop_duplicates()
    if len(words):
        lost = "The result is lost" if view.is_damaged else "A part of the result is lost"
        yield Observation(
            f"{lost}: {'; '.join(words)}.",
            {"series_rows": float(len(view.series)), "device_rows": float(len(view.device))},
            severity=Severity.INVALID if view.is_damaged else None,
        )


@rule(
    "I/O errors during the run",
    severity=Severity.INVALID,
    looks_at="fio's error of a run that went on regardless, and the device's own error counter.",
    why="An I/O that fails is often faster, or far slower, than one that works.",
    advice="Look at the kernel's log (dmesg) and at the health of the device.",
)
def io_errors(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the error that the tool met, and those that the device counted."""
    codes = sorted({result["error"] for result in results_of(view) if result["error"] > 0})
    if codes:
        words = f"errno {codes[0]:.0f}, {os.strerror(int(codes[0]))}"
        yield Observation(f"{tool_name(view.run)} met an I/O error ({words}).", {"errno": codes[0]})
    rows = device_rows(view)
    bad = rows[(rows["io_errors"] > 0).fillna(value=False)] if len(rows) else rows
    if not bad.empty:
        count, device = float(bad["io_errors"].sum()), str(bad["device"].iloc[0])
        begin_s = float(bad["t_s"].iloc[0] - bad["interval_s"].iloc[0])
        yield Observation(
            f"{count:.0f} requests to {device} failed.",
            {"io_errors": count, "device": device},
            window=(begin_s, float(bad["t_s"].iloc[-1])),
        )
