"""Key results of a campaign: outcomes of its jobs, headline numbers, shares of declared limits.

They are of measured runs that finished. The directions of a run that reads and writes are added up;
of several repeats the median is taken. Direct I/O comes first, because a buffered result shows the
page cache as much as the volume.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from volbench.model.campaign.planned_run import RunState
from volbench.model.frames.expectation import SYNC
from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import Row, latency, number, text
from volbench.present.plots.labels import shape
from volbench.present.tables.table import Column, Source, Table
from volbench.present.terminal.conclusion import range_words
from volbench.units import counted_noun, format_count, format_latency, format_percent, format_rate

# From this share on a declared limit counts as reached: throttles let through a little less than
# they name. A trade-off. Noticed by: tests/present/report/test_outcomes.py
REACHED = 0.95
# Above this share a result needs an explanation: a throttle does not exceed its limit by 5 %. A
# trade-off. Noticed by: tests/present/report/test_outcomes.py
OVER = 1.05


@dataclass(frozen=True)
class Outcome:
    """One job on one volume: the sum of all directions, median over the repeats.

    Both `direct` and `buffered` are false where an imported result reports neither.
    """

    job: str
    role: str
    setting: str  # the workload, as on a terminal
    direct: bool
    iops: float
    bw_bytes_per_s: float
    p99_s: float
    limit_iops: float
    limit_bw_bytes_per_s: float
    repeats: int
    runs: tuple[str, ...] = ()
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
        return f"median of {self.repeats}{', ' * bool(self.iops_range)}{self.iops_range}"


@dataclass(frozen=True)
class KeyNumber:
    """A headline number with its label, its job, and its share of the declared limit."""

    label: str  # what it is, such as ``Highest IOPS, direct I/O``
    value: str  # with its unit, as shown alone
    source: str  # the job it is of
    share: str = ""  # of the declared limit, in words; empty without a limit
    # the value in the answer, such as ``498 IOPS``; empty where it is not part of it
    phrase: str = ""
    jobs: int = 1  # number of jobs that it is the best of
    of: str = ""  # which of the jobs, in words; empty for all


@dataclass(frozen=True)
class _Measure:
    """What a headline number is, and the best of several; `sign` is -1 where less is better."""

    name: str
    superlative: str
    column: str  # of an outcome; ``limit_`` and ``by_`` before it name its limit and directions
    text: Callable[[float], str]
    unit: str = ""
    sign: int = 1


_MEASURES = (
    _Measure("IOPS", "Highest IOPS", "iops", format_count, " IOPS"),
    _Measure("Bandwidth", "Highest bandwidth", "bw_bytes_per_s", format_rate),
    _Measure("p99 latency", "Lowest p99 latency", "p99_s", format_latency, " p99 latency", -1),
)


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
        role=text(first, "role"),
        setting=shape({**first, "direction": ""}),
        direct=all(_bypasses_cache(row) is True for rows in runs for row in rows),
        iops=_median(iops),
        iops_range=range_words(known) if known else "",
        bw_bytes_per_s=_median(sum(number(row, "bw_bytes_per_s") for row in rows) for rows in runs),
        p99_s=_slowest_s(tails),
        p99_of=_p99_of(tails[0][0]),
        limit_iops=number(first, "limit_iops"),
        limit_bw_bytes_per_s=number(first, "limit_bw_bytes_per_s"),
        repeats=len(runs),
        runs=tuple(text(rows[0], "run") for rows in runs),
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


_RATES_OF = ("by_iops", "by_bw_bytes_per_s")
_OF_SUMS = ("iops", "bw_bytes_per_s", "repeats", "iops_range", *_RATES_OF)


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
            **{name: getattr(sums, name) for name in _OF_SUMS},
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


def key_numbers(outcomes: Sequence[Outcome]) -> list[KeyNumber]:
    """Return the max rates and the min tail latency, of direct I/O where that is known of most."""
    direct = [outcome for outcome in outcomes if outcome.direct]
    unknown = [outcome for outcome in outcomes if not outcome.direct and not outcome.buffered]
    if direct and len(direct) >= len(unknown):
        chosen, kind = direct, "direct I/O"
    elif direct:
        chosen, kind = [*direct, *unknown], "page cache use unknown"
    else:
        chosen, kind = [*outcomes], "page cache use unknown"
        if len(unknown) < len(outcomes):
            kind = "through the page cache"
    of = " with direct I/O" if chosen is direct and len(direct) < len(outcomes) else ""
    numbers = []
    for measure in _MEASURES:
        ranked = [
            (measure.sign * value, outcome)
            for outcome in chosen
            if not math.isnan(value := getattr(outcome, measure.column))
        ]
        name = f"{measure.name if len(outcomes) == 1 else measure.superlative}, {kind}"
        if measure.sign < 0:
            ranked, name = _of_one_kind(ranked, name)
        if ranked:
            score, winner = max(ranked, key=lambda pair: pair[0])
            source = f"{winner.job}: {winner.setting}{',' * bool(winner.clients)}{winner.clients}"
            if len(ranked) < len(chosen):
                source += f"; {len(ranked)} of {len(chosen)} jobs report it"
            value = measure.text(measure.sign * score)
            by = getattr(winner, f"by_{measure.column}", {}).items()
            parts = " + ".join(f"{measure.text(rate)} {name}s" for name, rate in by)
            if measure.sign < 0 and any(outcome.by_iops for _, outcome in ranked):
                parts = "slowest direction" + " of each job" * (len(outcomes) > 1)
            source += f"; {parts}" * bool(parts)
            limit = getattr(winner, f"limit_{measure.column}", math.nan)
            used = format_percent(measure.sign * score / limit) if limit > 0 else ""
            share = f"{used} of the declared limit" * bool(used)
            repeats = winner.repeats_words if measure.column == "iops" else ""
            remarks = "; ".join(filter(None, (parts, repeats)))
            phrase = value + measure.unit + winner.clients + f" ({remarks})" * bool(remarks)
            if measure.sign < 0 and "_" not in winner.p99_of:
                phrase = f"{winner.p99_of} p99 {value}"
            phrase = phrase if len(outcomes) == 1 or measure.sign > 0 else ""
            numbers.append(KeyNumber(name, value, source, share, phrase, len(outcomes), of))
    return numbers


def _of_one_kind(
    ranked: list[tuple[float, Outcome]], name: str
) -> tuple[list[tuple[float, Outcome]], str]:
    """Return the outcomes with the kind of latency that most report, and a name that says it."""
    kinds = Counter(outcome.p99_of for _, outcome in ranked)
    if not kinds:
        return [], name
    [(kind, _)] = kinds.most_common(1)
    words = {"clat_p99_s": ", completion latency", "lat_p99_s": ", total latency"}
    return [pair for pair in ranked if pair[1].p99_of == kind], name + words.get(kind, f", {kind}")


@dataclass(frozen=True)
class AgainstLimit:
    """Result of one job as shares of the declared limits of its volume; NaN for no limit."""

    job: str
    role: str
    declared: str
    iops: float
    bw: float
    reading: str
    runs: tuple[str, ...] = ()


def against_limits(outcomes: Sequence[Outcome]) -> list[AgainstLimit]:
    """Return the jobs whose volume has a declared limit, with the meaning of their share."""
    compared = []
    for outcome in outcomes:
        iops = bandwidth = math.nan
        declared = []
        if outcome.limit_iops > 0:
            iops = outcome.iops / outcome.limit_iops
            declared.append(f"{format_count(outcome.limit_iops)} IOPS")
        if outcome.limit_bw_bytes_per_s > 0:
            bandwidth = outcome.bw_bytes_per_s / outcome.limit_bw_bytes_per_s
            declared.append(format_rate(outcome.limit_bw_bytes_per_s))
        known = [share for share in (iops, bandwidth) if not math.isnan(share)]
        if known:
            reading = _reading(max(known), direct=not outcome.buffered)
            limits = ", ".join(declared)
            compared.append(
                AgainstLimit(
                    outcome.job, outcome.role, limits, iops, bandwidth, reading, outcome.runs
                )
            )
    return compared


def _reading(share: float, *, direct: bool) -> str:
    """Return the meaning of the larger of a job's shares."""
    if share > OVER:
        return (
            "above: a burst, or declared too low" if direct else "above: served by the page cache"
        )
    if share >= REACHED:
        return "reached" if direct else "reached, through the page cache"
    return "below"


def limits_table(limits: Sequence[AgainstLimit]) -> Table[AgainstLimit]:
    """Return the results of jobs as shares of the declared limits of their volumes."""

    def share(label: str, of: Callable[[AgainstLimit], float]) -> Column[AgainstLimit]:
        return Column(
            label.lower(),
            lambda limit: format_percent(of(limit)) or "none declared",
            label=label,
            is_right=True,
            value=of,
            tooltip=lambda limit: "" if math.isnan(of(limit)) else f"{of(limit)!r} of the limit",
        )

    return Table(
        "limits",
        [
            Column("job", lambda limit: limit.job, label="Job"),
            Column("volume", lambda limit: limit.role, label="Volume"),
            Column("declared", lambda limit: limit.declared, label="Declared"),
            share("Of declared IOPS", lambda outcome: outcome.iops),
            share("Of declared bandwidth", lambda outcome: outcome.bw),
            Column("reading", lambda limit: limit.reading, label="Reading"),
        ],
        limits,
        title="Measured rates as shares of the declared limits. Within 5 % counts as reached.",
        source=lambda limit: Source(limit.runs),
    )
