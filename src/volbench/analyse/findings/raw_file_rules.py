"""Rules on raw files: bad-log-rows, damaged-files and contradicting results."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import Observation, rule
from volbench.analyse.frames.run_view import (
    Result,
    RunView,
    device_rows,
    is_partial,
    rate_per_s,
    results_of,
    runtime_s,
    total,
)
from volbench.model.results.finding import Severity

# fio counts its runtime in milliseconds: rates of shorter runs are not comparable.
# Noticed by: test_raw_files.py::test_rounding_is_not_a_contradiction
_MIN_RUNTIME_S = 0.1
# Relative tolerance within a result: in 139 results of fio 2.2 to 3.42 it is below 0.005.
# Noticed by: test_raw_files.py::test_a_contradictory_number_makes_the_result_invalid
_MAX_ROUNDING = 0.01
# Tolerance of a bandwidth: old versions print whole KiB/s.
# Noticed by: test_raw_files.py::test_rounding_is_not_a_contradiction
_ROUNDING_BYTES_PER_S = 1024.0
_MIN_WHOLE = 1_000_000  # From here on, decimals do not matter
# Tolerance of the sum of a log: fio loses the last window, and windows differ in width.
# Noticed by: test_raw_files.py::test_the_log_adds_up_to_the_result
_MAX_LOG_SHARE = 0.15
# Windows from which the lost one is within that tolerance.
# Noticed by: test_raw_files.py::test_the_log_adds_up_to_the_result
_MIN_WINDOWS = 10


@rule(
    "lines are missing from the series",
    looks_at=(
        "Lines of the logs that are not in the series because they are truncated, not in fio's log"
        " format, or less than an interval. A run shorter than one interval has none."
    ),
    why=(
        "A gap in the log looks like a stall, and verdicts on steadiness depend on the series."
        " Totals and percentiles come from fio's result and are not affected."
    ),
    advice="Look at the logs in the run's folder; a full disk truncates them. Then measure again.",
)
def bad_log_rows(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the number of log lines that the series leaves out."""
    by_section = {row["group"]: row["bad_log_rows"] for row in view.results}
    bad = sum(value for value in by_section.values() if isinstance(value, int))
    if bad and not (view.series.empty and runtime_s(view) < view.run.sample_s):
        lines = "1 line of fio's logs is" if bad == 1 else f"{bad:,} lines of fio's logs are"
        reason = (
            "unreadable and" if len(view.series) else "unreadable or less than an interval, and"
        )
        yield Observation(
            f"{lines} {reason} missing from the series.",
            {"bad_log_rows": float(bad), "series_rows": float(len(view.series))},
        )


@rule(
    "files of the run are damaged",
    looks_at=(
        "Whether every file of a finished run can be read: its result (invalid if not), its"
        " logs, and the samples of the device."
    ),
    why="Unreadable data is missing from tables and charts, and rules that need it cannot report.",
    advice="Restore the campaign folder from a copy, or repeat the run.",
)
def damaged_files(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the files that could not be read."""
    reasons = dict.fromkeys(str(row["damage"]) for row in view.results if row["damage"])
    if reasons:
        lost = "The result is lost" if view.is_damaged else "Part of the result is lost"
        yield Observation(
            f"{lost}: {'; '.join(reasons)}.",
            {"series_rows": float(len(view.series)), "device_rows": float(len(view.device))},
            severity=Severity.INVALID if view.is_damaged else None,
        )


@rule(
    "numbers of the result contradict each other",
    severity=Severity.INVALID,
    looks_at=(
        "IOPS against I/Os / runtime, bandwidth against bytes / runtime, and bytes against I/Os x"
        " block size, within 1 %; the sum of the IOPS log against the number of I/Os, within 15 %."
    ),
    why="Numbers that contradict each other are unreliable: either may be wrong.",
    advice="Compare these numbers in fio.json, and measure again.",
)
def inconsistent_result(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield pairs of numbers that should agree."""
    for result in results_of(view):
        if not result["runtime_s"] >= _MIN_RUNTIME_S:
            continue
        for unit, stated, derived in _stated_and_derived(result, view):
            rounding = _ROUNDING_BYTES_PER_S if unit == "bytes/s" else 1.0
            if not abs(stated - derived) > _MAX_ROUNDING * derived + rounding:  # NaN is unknown
                continue
            message = (
                f"The result states {_exact_number(stated)} {unit}, but its other numbers imply"
                f" {_exact_number(derived)} {unit}."
            )
            late = _depth_of_ramp(view, result.section) * result["numjobs"]
            most_late_bytes = late * result["block_max_bytes"]
            is_late = unit == "bytes" and 0 < stated - derived <= most_late_bytes
            if is_late:
                message = (
                    "fio counts I/Os that began in the ramp and completed after it in the bytes"
                    f" alone: the IOPS are {100 * (1 - derived / stated):.0f} % too low."
                )
            yield Observation(
                message,
                {"stated": stated, "derived": derived, "section": result.section},
                direction=result.direction,
                severity=Severity.NOTE if is_late else None,
            )
    yield from _log_sums(view)


def _exact_number(value: float) -> str:
    return f"{value:,.0f}" if value >= _MIN_WHOLE else f"{value:,.8g}"


def _stated_and_derived(result: Result, view: RunView) -> Iterator[tuple[str, float, float]]:
    """Yield unit, stated value and derived value of numbers; NaN, if unknown, is never unequal."""
    runtime_s, ios = result["runtime_s"], result["total_ios"]
    if _counts_ramp(view, result.section):
        yield "bytes/s", result["bw_bytes_per_s"], result["io_bytes"] / runtime_s
        return
    whole = ("iops_overall", "bw_overall_bytes_per_s")
    names = ("iops", "bw_bytes_per_s") if math.isnan(result[whole[0]]) else whole
    yield "IOPS", result[names[0]], ios / runtime_s
    yield "bytes/s", result[names[1]], result["io_bytes"] / runtime_s
    if "num_range" not in view.run.options:  # a trim of several ranges is one I/O
        low, high = ios * result["block_min_bytes"], ios * result["block_max_bytes"]
        yield "bytes", result["io_bytes"], min(max(result["io_bytes"], low), high)


def _counts_ramp(view: RunView, section: str) -> bool:
    versions = [str(row.get("fio_version") or "") for row in view.results]
    has_ramp = _depth_of_ramp(view, section) > 0
    return has_ramp and any(version.startswith("fio-2.") for version in versions)


def _depth_of_ramp(view: RunView, section: str) -> int:
    for workload in view.workloads:
        has_ramp = workload.is_on("ramp_time") or workload.is_on("ramp_size")
        if workload.section == section and has_ramp:
            return workload.depth
    return 0


def _log_sums(view: RunView) -> Iterator[Observation]:
    is_whole = len(view.run.sections) == 1 and not total(view, "bad_log_rows") > 0
    is_whole = is_whole and not is_partial(view.series).any()  # the result has all I/Os
    if not is_whole or "log_window_value" in view.run.effective(view.run.sections[0]):
        return
    for direction in dict.fromkeys(result.direction for result in results_of(view)):
        ends_s, iops = rate_per_s(view, "iops", direction=direction)
        wanted = total(view, "total_ios", direction=direction)
        if len(ends_s) < _MIN_WINDOWS or math.isnan(wanted):
            continue
        widths_s = [ends_s[0], *(ends_s[1:] - ends_s[:-1])]
        summed = math.fsum(widths_s * iops)
        whole_s = max(ends_s[-1], runtime_s(view))  # the log lacks the part of a window at its end
        wanted *= 1 - min(whole_s - ends_s[-1], widths_s[-1]) / whole_s
        late = _depth_of_ramp(view, view.run.sections[0].name) * view.workloads[0].numjobs
        if max(wanted - summed, summed - wanted - late) > _MAX_LOG_SHARE * wanted:
            yield Observation(
                f"The IOPS log adds up to {summed:,.0f} I/Os, the result has {wanted:,.0f}"
                " up to the end of the log.",
                {"stated": wanted, "derived": summed},
                direction=direction,
                severity=Severity.WARNING,
            )


@rule(
    "I/O errors during the run",
    severity=Severity.INVALID,
    looks_at=(
        "The error that fio reported in a run that continued, and the error counter of the device."
    ),
    why="A failed I/O is often much faster, or much slower, than a successful one.",
    advice="Check the kernel's log (dmesg) and the health of the device.",
)
def io_errors(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the error that the tool met, and those that the device counted."""
    codes = sorted({result["error"] for result in results_of(view) if result["error"] > 0})
    if codes:
        error = f"errno {codes[0]:.0f}, {os.strerror(int(codes[0]))}"
        yield Observation(f"fio reported an I/O error ({error}).", {"errno": codes[0]})
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
