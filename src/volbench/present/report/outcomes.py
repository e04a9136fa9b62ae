"""Outcomes of the jobs of a campaign: highest rates and shares of declared limits.

They are of measured runs that finished. The directions of a run that reads and writes are added up;
of several repeats the median is taken. Direct I/O comes first, because a buffered result shows the
page cache as much as the volume.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from volbench.model.campaign.planned_run import RunState
from volbench.model.frames.expectation import SYNC
from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import Row, latency, number, text
from volbench.present.terminal.conclusion import range_words
from volbench.units import counted_noun, format_count, format_latency, format_rate

# From this share on a declared limit counts as reached: throttles let through a little less than
# they name. A trade-off. Noticed by: tests/present/report/test_outcomes.py
REACHED = 0.95
# Attributes of an outcome that are sums over clients
_SUMMED = ("iops", "bw_bytes_per_s", "repeats", "iops_range", "by_iops", "by_bw_bytes_per_s")


@dataclass(frozen=True)
class Outcome:
    """One job on one volume: the sum of all directions, median over the repeats.

    Both `direct` and `buffered` are false where an imported result reports neither.
    """

    job: str
    direct: bool
    iops: float
    bw_bytes_per_s: float
    p99_s: float
    limit_iops: float
    limit_bw_bytes_per_s: float
    repeats: int
    buffered: bool = False
    p99_of: str = ""
    # direction to its median rates, of a job that has several: what tables and charts show
    by_iops: Mapping[str, float] = field(default_factory=dict)
    by_bw_bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    iops_range: str = ""  # interval of several repeats, in words
    clients: str = ""  # whose sum it is, such as `` of 3 clients`` or `` per client``

    @property
    def repeats_words(self) -> str:
        """How many results the IOPS are of, and their interval if these are repeats."""
        if self.repeats == 1:
            return "one run"
        return ", ".join(filter(None, [f"median of {self.repeats}", self.iops_range]))


def job_outcomes(rows: Sequence[Row], *, invalid: Collection[str] = ()) -> list[Outcome]:
    """Return the outcomes of measured runs that finished, in the order of the plan.

    Args:
        invalid: runs whose numbers do not measure what they claim to; left out.
    """
    by_run: dict[str, list[Row]] = {}
    for row in rows:
        measured = row.get("phase") in (None, Phase.MEASURED.value)
        if (
            measured
            and text(row, "run") not in invalid
            and row.get("status") == RunState.FINISHED.value
            and (row.get("direction") != SYNC or text(row, "run") in by_run)  # Syncs come last
        ):
            by_run.setdefault(text(row, "run"), []).append(row)
    by_job: dict[tuple[str, ...], list[list[Row]]] = {}
    for run_rows in by_run.values():
        key = tuple(text(run_rows[0], name) for name in ("host", "profile", "job", "volume"))
        by_job.setdefault(key, []).append(run_rows)
    return [_outcome(runs) for runs in by_job.values()]


def _outcome(every: Sequence[Sequence[Row]]) -> Outcome:
    """Return one job's outcome from the rows of each of its repeats."""
    runs = [[row for row in rows if row.get("direction") != SYNC] for rows in every]
    syncs = [[row for row in rows if row.get("direction") == SYNC] for rows in every]
    first = runs[0][0]
    # Buffered writes end in memory: what an application waits for is the sync.
    is_buffered = all(
        _bypasses_cache(row) is False and row.get("direction") == "write" for row in runs[0]
    )
    tails = syncs if is_buffered and all(syncs) else runs
    iops = [sum(number(row, "iops") for row in rows) for rows in runs]
    known = [value for value in iops if not math.isnan(value)]
    return Outcome(
        job=text(first, "job"),
        direct=all(_bypasses_cache(row) is True for rows in runs for row in rows),
        iops=_median(iops),
        iops_range=range_words(known) if known else "",
        bw_bytes_per_s=_median(sum(number(row, "bw_bytes_per_s") for row in rows) for rows in runs),
        p99_s=_slowest_s(tails),
        p99_of=_p99_of(tails[0][0]),
        limit_iops=number(first, "limit_iops"),
        limit_bw_bytes_per_s=number(first, "limit_bw_bytes_per_s"),
        repeats=len(runs),
        buffered=any(_bypasses_cache(row) is False for rows in runs for row in rows),
        by_iops=_by_direction(runs, "iops"),
        by_bw_bytes_per_s=_by_direction(runs, "bw_bytes_per_s"),
    )


def _slowest_s(repeats: Sequence[Sequence[Row]]) -> float:
    """Return the median of the slowest p99 of each repeat; NaN where one is not known."""
    known = [[latency(row, "p99").seconds for row in rows] for rows in repeats]
    is_known = not any(math.isnan(value) for values in known for value in values)
    return _median(map(max, known)) if is_known else math.nan


def _p99_of(row: Row) -> str:
    """Return what a p99 is of: the column of its latency, or the calls of a sync."""
    if row.get("direction") == SYNC:
        return text(row, "sync_calls") or SYNC
    return latency(row, "p99").column


def client_outcomes(outcomes: Sequence[Outcome], aggregate: Sequence[Row]) -> list[Outcome]:
    """Return the outcomes of jobs that several clients ran at one time as sums over the clients.

    Args:
        outcomes: of each client.
        aggregate: rows of that frame; where a job has no sum, all outcomes stay those of clients.
    """
    settings = {outcome.job: outcome for outcome in outcomes}
    by_job: dict[tuple[str, int], dict[int, list[Row]]] = {}
    for row in aggregate:
        job, clients = text(row, "job"), int(number(row, "clients"))
        if job in settings and row.get("direction") != "sync" and number(row, "iops") >= 0:
            by_job.setdefault((job, clients), {}).setdefault(int(number(row, "step")), []).append(
                row
            )
    if {job for job, _ in by_job} != {*settings}:  # sums of some jobs beside clients of others
        # Several clients are no repeats of one: no interval comes from them.
        is_shared = {text(row, "job") for row in aggregate}
        return [
            replace(each, clients=" per client", iops_range="") if each.job in is_shared else each
            for each in outcomes
        ]
    return [
        replace(
            settings[job],
            **{name: getattr(sums, name) for name in _SUMMED},
            # that of syncs is not in a sum of reads and writes
            p99_s=sums.p99_s if settings[job].p99_of[-2:] in {"", "_s"} else settings[job].p99_s,
            clients=f" of {counted_noun(clients, 'client')}",
        )
        for (job, clients), steps in by_job.items()
        for sums in [_outcome(list(steps.values()))]
    ]


def _by_direction(runs: Sequence[Sequence[Row]], column: str) -> dict[str, float]:
    """Return the median of each direction; nothing for a job with one."""
    rows = [row for rows_of_run in runs for row in rows_of_run]
    directions = dict.fromkeys(text(row, "direction") for row in rows)
    return {
        name: _median(number(row, column) for row in rows if text(row, "direction") == name)
        for name in directions
        if len(directions) > 1
    }


def _bypasses_cache(row: Row) -> object:
    """Return whether I/O bypassed the page cache; None if unknown. The nbd engine has none."""
    return True if text(row, "volume").startswith("nbd") else row.get("direct")


def _median(values: Iterable[float]) -> float:
    """Return the median of the known values, NaN for none."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else math.nan


def highest_rates(outcomes: Sequence[Outcome]) -> str:
    """Return the highest rates in words, of direct I/O where that is known of most jobs.

    Of a single job its p99 follows; empty where no job has a number.
    """
    direct = [outcome for outcome in outcomes if outcome.direct]
    unknown = [outcome for outcome in outcomes if not outcome.direct and not outcome.buffered]
    chosen = list(outcomes)
    if direct:
        chosen = direct if len(direct) >= len(unknown) else [*direct, *unknown]
    phrases = [
        *_highest(chosen, "iops", format_count, " IOPS"),
        *_highest(chosen, "bw_bytes_per_s", format_rate, ""),
    ]
    if len(outcomes) == 1:
        return ", ".join([*phrases, *_p99_phrase(outcomes[0])])
    if not phrases:
        is_known = any(not math.isnan(outcome.p99_s) for outcome in outcomes)
        return "No rate was reported" if is_known else ""
    of = " with direct I/O" if chosen is direct and len(direct) < len(outcomes) else ""
    return f"Up to {' and '.join(phrases)}{of}"


def _highest(
    outcomes: Sequence[Outcome], column: str, format_value: Callable[[float], str], unit: str
) -> list[str]:
    """Return the highest rate of a column with its directions and repeats; empty for none."""
    known = [each for each in outcomes if not math.isnan(getattr(each, column))]
    if not known:
        return []
    best = max(known, key=lambda each: getattr(each, column))
    by_direction = getattr(best, f"by_{column}").items()
    remarks = [" + ".join(f"{format_value(rate)} {name}s" for name, rate in by_direction)]
    remarks += [best.repeats_words] if column == "iops" else []
    joined = "; ".join(filter(None, remarks))
    value = format_value(getattr(best, column))
    return [f"{value}{unit}{best.clients}" + (f" ({joined})" if joined else "")]


def _p99_phrase(outcome: Outcome) -> list[str]:
    """Return the p99 of a job, of its slowest direction or of its syncs; empty if unknown."""
    if math.isnan(outcome.p99_s):
        return []
    value = format_latency(outcome.p99_s)
    if outcome.p99_of and "_" not in outcome.p99_of:
        return [f"{outcome.p99_of} p99 {value}"]
    slowest = " (slowest direction)" if outcome.by_iops else ""
    return [f"{value} p99 latency{outcome.clients}{slowest}"]


def shares_of_limits(outcomes: Sequence[Outcome]) -> list[float]:
    """Return the larger share of its declared limits that each job with a limit has."""
    shares = []
    for outcome in outcomes:
        pairs = (
            (outcome.iops, outcome.limit_iops),
            (outcome.bw_bytes_per_s, outcome.limit_bw_bytes_per_s),
        )
        known = [rate / limit for rate, limit in pairs if limit > 0 and not math.isnan(rate)]
        shares += [max(known)] if known else []
    return shares
