"""The summary of the report in plain words: plan, states and numbers enter, sentences leave.

Main numbers are of measured Runs that finished. The directions of a Run that reads and writes are
added up; of several repeats the median is taken. Direct I/O comes first, because a buffered result
shows the page cache as much as the volume.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from volbench.model.campaign.planned_run import RunState
from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import Row, instant, latency, number, text
from volbench.present.report.content import ReportContent
from volbench.present.terminal.import_notice import came_from, sources
from volbench.present.terminal.outcome import count_states
from volbench.units import format_count, format_latency, format_rate, format_size

REACHED = 0.95
"""Share of a declared limit from which on it counts as reached. volbench's own choice."""
OVER = 1.05
"""Share from which on a result stands above the limit, and needs explaining. volbench's own."""

NAMED = 6
"""Names that a sentence lists before it counts the rest."""

_STATE_WORDS = {
    RunState.FINISHED: "finished",
    RunState.FAILED: "failed",
    RunState.INTERRUPTED: "was interrupted",
    RunState.RUNNING: "was still running when the report was made",
    RunState.PLANNED: "never ran",
    RunState.NOT_NEEDED: "turned out not to be needed",
}


@dataclass(frozen=True)
class Outcome:
    """One job on one volume: all directions together, median over the repeats.

    Neither `direct` nor `buffered` holds where an imported result does not tell.
    """

    job: str
    role: str
    host: str
    setting: str
    direct: bool
    iops: float
    bw_bytes_per_s: float
    p99_s: float
    limit_iops: float
    limit_bw_bytes_per_s: float
    repeats: int
    runs: tuple[str, ...] = ()
    buffered: bool = False


@dataclass(frozen=True)
class KeyNumber:
    """A main number: what it is, how much, and of which job."""

    label: str
    value: str
    source: str


def outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Return the outcomes of measured Runs that finished, in the order of the plan."""
    by_run: dict[str, list[Row]] = {}
    for row in rows:
        measured = row.get("phase") in (None, Phase.MEASURED.value)
        if (
            measured
            and row.get("status") == RunState.FINISHED.value
            and row.get("direction") != "sync"
        ):
            by_run.setdefault(text(row, "run"), []).append(row)
    by_job: dict[tuple[str, ...], list[list[Row]]] = {}
    for run_rows in by_run.values():
        key = tuple(text(run_rows[0], name) for name in ("host", "profile", "job", "volume"))
        by_job.setdefault(key, []).append(run_rows)
    return [_outcome(runs) for runs in by_job.values()]


def _outcome(runs: Sequence[Sequence[Row]]) -> Outcome:
    """Return one job's outcome from the rows of each of its repeats."""
    first = runs[0][0]
    return Outcome(
        job=text(first, "job"),
        role=text(first, "role"),
        host=text(first, "host"),
        setting=_setting(first),
        direct=all(row.get("direct") is True for rows in runs for row in rows),
        iops=_median(sum(number(row, "iops") for row in rows) for rows in runs),
        bw_bytes_per_s=_median(sum(number(row, "bw_bytes_per_s") for row in rows) for rows in runs),
        p99_s=_median(max(latency(row, "p99").seconds for row in rows) for rows in runs),
        limit_iops=number(first, "limit_iops"),
        limit_bw_bytes_per_s=number(first, "limit_bw_bytes_per_s"),
        repeats=len(runs),
        runs=tuple(text(rows[0], "run") for rows in runs),
        buffered=any(row.get("direct") is False for rows in runs for row in rows),
    )


def _median(values: Iterable[float]) -> float:
    """Return the median of the values that were told, NaN for none."""
    told = [value for value in values if not math.isnan(value)]
    return statistics.median(told) if told else math.nan


def _setting(row: Row) -> str:
    """Return what a job did in a few words, such as ``randwrite, 4k blocks, depth 16``."""
    block, depth = number(row, "block_bytes"), number(row, "iodepth")
    parts = [text(row, "rw")]
    parts += [] if math.isnan(block) else [f"{format_size(block)} blocks"]
    parts += [] if math.isnan(depth) else [f"depth {depth:.0f}"]
    if row.get("direct") is False:
        parts.append("through the page cache")
    return ", ".join(part for part in parts if part)


def what_ran(content: ReportContent, rows: Sequence[Row]) -> list[str]:
    """Return sentences on what was run, where and when."""
    campaign = content.campaign
    profiles = listed(dict.fromkeys(run.profile for run in campaign.runs))
    hosts = dict.fromkeys(run.host for run in campaign.runs)
    volumes = dict.fromkeys(f"{run.volume.role} ({run.volume.target})" for run in campaign.runs)
    where = "this machine" if list(hosts) == ["local"] else listed(hosts)
    where = f"{len(hosts)} hosts ({where})" if len(hosts) > NAMED else where
    started = sorted(text(row, "started_utc") for row in rows if row.get("started_utc"))
    when = f"planned at {instant(campaign.created_utc)}"
    if started:
        when = f"from {instant(started[0])} to {instant(started[-1])} (start of the last Run)"
    if campaign.is_imported:
        measured = when if started else "at a time that the files do not tell"
        return [
            came_from(campaign),
            sources(campaign),
            f"It was measured on {where}, on {listed(volumes)}, {measured}.",
        ]
    return [f"Profile {profiles} ran on {where}, on {listed(volumes)}, {when}."]


def ending(content: ReportContent) -> str:
    """Return how many Runs ended how."""
    counts = count_states(content.campaign, content.states)
    spared = counts.pop(RunState.NOT_NEEDED, 0)
    total = sum(counts.values())
    if counts.get(RunState.FINISHED) == total:
        more = f" {spared} more were planned and not needed." if spared else ""
        return "The only Run finished." if total == 1 else f"All {total} Runs finished.{more}"
    total += spared
    counts |= {RunState.NOT_NEEDED: spared} if spared else {}
    parts = [f"{count} {_plural_state(state, count)}" for state, count in counts.items()]
    return f"Of {total} Runs, {listed(parts)}."


def _plural_state(state: RunState, count: int) -> str:
    words = _STATE_WORDS[state]
    return words.replace("was ", "were ", 1) if count > 1 else words


def key_numbers(found: Sequence[Outcome], *, invalid: Collection[str] = ()) -> list[KeyNumber]:
    """Return the greatest rates and the least tail latency, of direct I/O where there is any.

    Args:
        found: the outcomes.
        invalid: Runs whose numbers do not measure what they claim to; passed over while there are
            others.
    """
    valid = [outcome for outcome in found if not {*invalid}.intersection(outcome.runs)] or found
    direct = [outcome for outcome in valid if outcome.direct]
    chosen = direct or list(valid)
    cached = [outcome for outcome in chosen if outcome.buffered]
    kind = "through the page cache" if cached else "direct or not is unknown"
    kind = "direct I/O" if direct else kind
    measures: tuple[tuple[str, Callable[[Outcome], float], Callable[[float], str], int], ...] = (
        ("Highest IOPS", lambda outcome: outcome.iops, format_count, 1),
        ("Highest bandwidth", lambda outcome: outcome.bw_bytes_per_s, format_rate, 1),
        ("Lowest p99 latency", lambda outcome: outcome.p99_s, format_latency, -1),
    )
    numbers = []
    for label, measure, show, sign in measures:
        ranked = [(sign * measure(o), o) for o in chosen if not math.isnan(measure(o))]
        if ranked:
            score, winner = max(ranked, key=lambda pair: pair[0])
            source = f"{winner.job}: {winner.setting}"
            numbers.append(KeyNumber(f"{label}, {kind}", show(sign * score), source))
    return numbers


def cautions(found: Sequence[Outcome]) -> list[str]:
    """Return what a reader must keep in mind about these numbers."""
    buffered = [outcome.job for outcome in found if outcome.buffered]
    sentences = []
    if buffered:
        sentences.append(
            f"{listed(buffered)} went through the page cache (direct=0): such numbers show the"
            " memory of the host as much as the volume."
        )
    repeats = max((outcome.repeats for outcome in found), default=0)
    if repeats > 1:
        sentences.append(f"Main numbers are the median of {repeats} repeats.")
    elif found:
        sentences.append("Each job ran once, so how much the numbers vary is not known.")
    return sentences


@dataclass(frozen=True)
class AgainstLimit:
    """One job held against the declared limits of its volume.

    Shares are told twice, as text that is empty for none, and as a number that is NaN then.
    """

    job: str
    role: str
    iops_share: str
    bw_share: str
    reading: str
    iops: float
    bw: float


def declared(found: Sequence[Outcome]) -> list[str]:
    """Return a sentence for each volume on what is declared for it."""
    told: dict[str, list[str]] = {}
    for outcome in found:
        limits = []
        if outcome.limit_iops > 0:
            limits.append(f"{format_count(outcome.limit_iops)} IOPS")
        if outcome.limit_bw_bytes_per_s > 0:
            limits.append(format_rate(outcome.limit_bw_bytes_per_s))
        if limits:
            told.setdefault(f"{outcome.role}: {listed(limits)}", []).append(outcome.job)
    return [
        f"Declared for {limits} ({listed(dict.fromkeys(jobs))})." for limits, jobs in told.items()
    ]


def against_limits(found: Sequence[Outcome]) -> list[AgainstLimit]:
    """Return the jobs whose volume has a declared limit, with what their share of it means."""
    compared = []
    for outcome in found:
        iops = outcome.iops / outcome.limit_iops if outcome.limit_iops > 0 else math.nan
        bandwidth = math.nan
        if outcome.limit_bw_bytes_per_s > 0:
            bandwidth = outcome.bw_bytes_per_s / outcome.limit_bw_bytes_per_s
        told = [share for share in (iops, bandwidth) if not math.isnan(share)]
        if told:
            reading = _reading(max(told), direct=not outcome.buffered)
            shares = (_percent(iops), _percent(bandwidth))
            compared.append(
                AgainstLimit(outcome.job, outcome.role, *shares, reading, iops, bandwidth)
            )
    return compared


def _percent(share: float) -> str:
    return (
        ""
        if math.isnan(share)
        else f"{share * 100:.3g} %"
        if share < 1
        else f"{share:.0%}".replace("%", " %")
    )


def _reading(share: float, *, direct: bool) -> str:
    """Return what the greater of a job's shares means."""
    if share > OVER:
        return "above: a burst, or declared too low" if direct else "above: the page cache took it"
    if share >= REACHED:
        return "reached" if direct else "reached, through the page cache"
    return "below"


def listed(names: Iterable[str], *, most: int = NAMED, joint: str = ", ") -> str:
    """Return names as a list in a sentence; of many, the first and how many more there are."""
    every = list(names)
    if len(every) > most:
        return f"{joint.join(every[: most - 1])}{joint}and {len(every) - most + 1} more"
    *head, last = every or [""]
    return f"{joint.join(head)} and {last}" if head else last
