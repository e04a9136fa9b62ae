"""never-written: reads of blocks that hold nothing are no reads of the volume."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import amount, percent
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import bytes_until_end, device_rows, total
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.cold_volume import ColdProbe
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_count, format_rate

_REACHED = 0.5
_OVER = 1.05
_MOSTLY_EMPTY = 0.5


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding when a run likely read blocks that were never written."""
    read = total(view, "io_bytes", direction="read")
    if view.is_buffered or not read > 0:
        return
    rows = device_rows(view)
    if not rows.empty:
        device = bytes_until_end(rows, "read_bw_bytes_per_s", runtime=math.inf)
        if device < _REACHED * read:
            yield RULE.finding(
                view,
                f"fio says {amount(read)} were read past the page cache; the device read"
                f" {amount(device)} ({percent(device / read)}).",
                {"tool_bytes": read, "device_bytes": device},
                direction="read",
                severity=Severity.INVALID,
            )
            return
    if context.earlier(view).is_written:
        return
    if view.cold is not None and view.cold.never_written:
        yield _probed(view, view.cold)
    elif not view.writes:
        yield from _too_fast(view)


def _probed(view: RunView, probe: ColdProbe) -> Finding:
    """Return that a probe found blocks of zeros before anything was measured."""
    share = probe.zero_share or 0.0
    return RULE.finding(
        view,
        f"Before the campaign {percent(share)} of the sampled blocks held only zeros, and nothing"
        " in it had written to the volume when this run read.",
        {"zero_share_percent": 100 * share},
        direction="read",
        severity=Severity.INVALID if share >= _MOSTLY_EMPTY else None,
    )


def _too_fast(view: RunView) -> Iterator[Finding]:
    """Yield a finding when reads of a volume nobody wrote to beat what is declared for it."""
    limits = view.run.limits
    iops, rate = total(view, "iops"), total(view, "bw_bytes_per_s")
    most_iops = max(limits.iops or math.inf, limits.burst_iops or 0.0)
    most_bytes = max(
        limits.bandwidth_bytes_per_s or math.inf, limits.burst_bandwidth_bytes_per_s or 0.0
    )
    if iops <= _OVER * most_iops and rate <= _OVER * most_bytes:
        return
    yield RULE.finding(
        view,
        f"Reads ran at {format_count(iops)} IOPS and {format_rate(rate)}, above what is declared,"
        " and nothing in this campaign had written to the volume.",
        {"iops": iops, "bw_bytes_per_s": rate},
        direction="read",
    )


RULE = Rule(
    id="never-written",
    title="reads of blocks that were never written",
    severity=Severity.WARNING,
    looks_at=(
        "Reads with `direct=1` of which less than half reached the device: a filesystem answers"
        " for holes and unwritten extents by itself, and the number is invalid. Reads of a volume"
        " that nothing in the campaign wrote to: when the cold-volume probe found more than 1 % of"
        " its blocks all zero (invalid from half of them on), or when they beat the declared"
        " limits."
    ),
    why=(
        "A block that was never written needs no lookup: storage answers zeros at once, far faster"
        " than it can read."
    ),
    advice=(
        "Write every block first: add a precondition phase that writes the whole file or device,"
        " or run volbench warmup."
    ),
    check=check,
)
