"""Conclusion of a measurement in sentences: each workload, its reservations, and a comparison."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd

from volbench.analyse.compare.comparison import Question, compare, headlines
from volbench.analyse.compare.expected_bounds import Verdict
from volbench.analyse.compare.repeat_statistics import location_interval
from volbench.analyse.frames.design import MIN_REPEAT_RATIO
from volbench.analyse.frames.job_frames import OPTIONS, measured, plain_rows, with_latencies
from volbench.errors import ComparisonError, quoted
from volbench.model.frames.expectation import SYNC
from volbench.model.results.finding import Severity
from volbench.model.results.steadiness import State
from volbench.present.formatting import Row, flag, number, pattern, printable, text
from volbench.present.plots.labels import SHORT_NAMES, option_named, option_text, shape
from volbench.present.tables.expectations_table import expectation_words
from volbench.units import counted_noun, format_count, format_latency, format_percent, format_rate


class Results(Protocol):
    """A campaign whose frames can be read."""

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name."""

    def facts(self) -> pd.DataFrame:
        """Return the summary with what is known of hosts and volumes."""


_WORKLOAD = ["host", "volume", "job", "group", "direction"]
_ORDER = ["role", "rw", "direction", "block_bytes", "iodepth", "numjobs", "job"]
_MIN_SWEEP = 3  # Two settings are a pair. Noticed by: test_conclusion.py
_NEAR = 0.9  # Share of the highest rate behind a knee. Noticed by: test_conclusion.py
_TWO_LATENCIES = "two-latencies"  # Rule on I/Os of two kinds
_NOT_JUDGED = "not judged"  # So short that the run has no verdict at all


def conclusion(dataset: Results, *, folder: Path, expected: Sequence[Verdict] = ()) -> list[str]:
    """Return the conclusion, a fact to a line.

    The answers to expectations come first, then the comparison of volumes, each workload or sweep,
    and the warnings.
    """
    answers = filter(None, [expectation_words(expected)])
    return [*answers, *answer_lines(dataset), _warnings(dataset, folder)]


def answer_lines(dataset: Results, *, is_brief: bool = False) -> list[str]:
    """Return the comparison of volumes or arms, each workload or sweep, and how many are steady.

    Args:
        is_brief: without the name of the only volume, and without workloads of two latencies.
    """
    rows = measured(dataset.frame("summary")).sort_values(_ORDER, kind="stable")
    arms, volumes = rows["arm"].nunique(), rows["volume"].nunique()
    if arms > volumes:  # a volume was named twice
        rows["volume"] += " (" + rows["arm"] + ")"
    findings = dataset.frame("findings")
    invalid = findings[findings["severity"] == Severity.INVALID.value]
    valid = rows[~rows["run"].isin(invalid["run"])]
    lines = [
        *_rejected(rows, invalid),
        *_results(valid, dataset.frame("verdicts")),
        *(() if is_brief else _two_latencies(valid, findings)),
        *_steadiness(dataset, rows),
    ]
    compared: Sequence[str] = []
    if arms > volumes:
        compared = _comparison(dataset, "arm")
    elif volumes > 1:
        compared = _comparison(dataset, "volume")
    places = {_place(row) for row in plain_rows(rows)}
    if is_brief and len(places) == 1:
        prefix = f"{places.pop()}: "
        lines = [line.removeprefix(prefix) for line in lines]
    return [*compared, *lines]


def _rejected(rows: pd.DataFrame, invalid: pd.DataFrame) -> Iterator[str]:
    """Yield how many results of each workload are invalid, why, and what to do about it."""
    for _, group in rows.groupby(_WORKLOAD, sort=False):
        reasons = invalid[invalid["run"].isin(group["run"])]
        if reasons.empty:
            continue
        count, first = reasons["run"].nunique(), reasons.iloc[0]
        yield (
            f"{_name(plain_rows(group.head(1))[0])}: {count} of"
            f" {counted_noun(group['run'].nunique(), 'run')} invalid and left out"
            f" ({', '.join(reasons['rule'].unique())})."
            f" {printable(first['message']).removesuffix('.')}."
            f" What to do: {printable(first['advice'])}"
        )


def _two_latencies(rows: pd.DataFrame, findings: pd.DataFrame) -> Iterator[str]:
    """Yield each workload whose I/Os are of two kinds of latency: no mean stands for both."""
    found = findings[findings["rule"] == _TWO_LATENCIES]
    for _, group in rows.groupby(_WORKLOAD, sort=False):
        row = plain_rows(group.head(1))[0]
        mine = found[found["run"].isin(group["run"]) & (found["direction"] == row["direction"])]
        if len(mine):
            runs = counted_noun(group["run"].nunique(), "run")
            yield (
                f"{_name(row)}: two kinds of latency in {mine['run'].nunique()} of {runs}."
                f" {printable(mine.iloc[0]['message'])}"
            )


@dataclass(frozen=True)
class _Workload:
    """Repeats of one workload on one volume."""

    row: Row  # of one of them
    iops: pd.Series
    bw_bytes_per_s: float
    tail_s: float  # p99, or that of the syncs which buffered writes wait for
    tail_of: str  # name of these syncs; empty for that of the I/Os
    end_iops: float  # at the end of those whose rate changed; NaN for none

    @property
    def tail(self) -> str:
        """The p99, with the name of the syncs it is of."""
        return f"{self.tail_of} p99 {format_latency(self.tail_s)}".strip()

    @property
    def sentence(self) -> str:
        """IOPS, bandwidth and p99."""
        count, is_changing = len(self.iops), not math.isnan(self.end_iops)
        ends = _range_words(self.iops.to_list())
        changing = average = ""
        if is_changing:
            changing = f"; the rate changed, at the end it was {format_count(self.end_iops)} IOPS"
            average = " on average"
        low, high = self.iops.min(), self.iops.max()
        if low > 0 and high / low >= MIN_REPEAT_RATIO:
            return (
                f"{_name(self.row)}: {format_count(low)} to {format_count(high)} IOPS in {count}"
                f" repeats{changing}. They differ by a factor of {high / low:.2g}: one rate would"
                " mislead. Look at the repeats over time, remove the cause, and measure again."
            )
        return (
            f"{_name(self.row)}:"
            f" {format_count(self.iops.median())} IOPS{average}"
            f"{f' (median of {count}, {ends})' if count > 1 else ''}{changing},"
            f" {format_rate(self.bw_bytes_per_s)},"
            f" {self.tail}."
        )


def _range_words(iops: Sequence[float]) -> str:
    """Return the interval of repeats that expectations are judged by; of a few, their ends."""
    interval = location_interval(iops)
    if not math.isnan(interval.low):
        low, high = format_count(interval.low), format_count(interval.high)
        return f"{format_percent(interval.confidence)} CI {low} to {high}"
    return " to ".join(dict.fromkeys(map(format_count, (min(iops), max(iops)))))


def _results(rows: pd.DataFrame, verdicts: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each workload; one for all of those that sweep an option."""
    if rows.empty:
        return
    syncs = rows[rows["direction"] == SYNC]
    changed = verdicts[verdicts["verdict"].isin([State.STEPPED, State.DRIFTING])]
    sweeps: dict[tuple[str, ...], list[_Workload]] = {}
    for _, group in rows.groupby(_WORKLOAD, sort=False):
        row, iops = plain_rows(group.head(1))[0], group["iops"].dropna()
        if iops.empty:
            continue
        tail_s, tail_of = _tail_s(group), ""
        waited = syncs[
            syncs["run"].isin(group["run"]) & (syncs["group"].fillna("") == text(row, "group"))
        ]
        if len(waited) and flag(row, "direct") == "no" and row["direction"] == "write":
            tail_s = _tail_s(waited)
            tail_of = text(plain_rows(waited.head(1))[0], "sync_calls") or SYNC
        ends = changed[
            changed["run"].isin(group["run"]) & (changed["direction"] == row["direction"])
        ]["level_iops"]
        workload = _Workload(
            row,
            iops,
            float(group["bw_bytes_per_s"].median()),
            tail_s,
            tail_of,
            float(ends.median()) if len(ends) else math.nan,
        )
        place = (text(row, "host"), text(row, "volume"), pattern(row), text(row, "direct"))
        sweeps.setdefault(place, []).append(workload)
    for workloads in sweeps.values():
        options = [name for name in OPTIONS if len({number(w.row, name) for w in workloads}) > 1]
        if options and len(workloads) >= _MIN_SWEEP:
            yield _sweep_sentence(workloads, options)
        else:
            yield from (workload.sentence for workload in workloads)


def _tail_s(repeats: pd.DataFrame) -> float:
    """Return the median p99 of the kind that these repeats have; NaN where one has none."""
    p99, _ = with_latencies(repeats, ("p99",))
    return float(p99["p99"].median(skipna=False))


def _sweep_sentence(workloads: Sequence[_Workload], options: Sequence[str]) -> str:
    """Return the range of a sweep, its highest rates, and the smallest setting that comes close."""
    by_rate = sorted(workloads, key=lambda each: each.iops.median())
    best, widest = by_rate[-1], max(workloads, key=lambda each: each.bw_bytes_per_s)
    ends = [f"{format_count(each.iops.median())}" for each in (by_rate[0], best)]
    ranges = [
        f"{SHORT_NAMES[name]} {option_text(name, min(values))} to {option_text(name, max(values))}"
        for name in options
        for values in [[number(each.row, name) for each in workloads]]
    ]

    def setting(workload: _Workload) -> str:
        return " and ".join(option_named(name, number(workload.row, name)) for name in options)

    sentence = (
        f"{_name({**best.row, **dict.fromkeys(options)})}, {', '.join(ranges)}:"
        f" {' to '.join(dict.fromkeys(ends))} IOPS, highest at {setting(best)}"
        f" ({format_rate(best.bw_bytes_per_s)}, {best.tail})"
    )
    if widest is not best and "block_bytes" in options:
        sentence += f"; {format_rate(widest.bw_bytes_per_s)} at {setting(widest)}"
    near = next(each for each in workloads if each.iops.median() >= _NEAR * best.iops.median())
    if near is not best and "block_bytes" not in options:
        share = format_percent(near.iops.median() / best.iops.median())
        sentence += f"; {setting(near)} reaches {share} of that at {near.tail}"
    changing = sum(not math.isnan(each.end_iops) for each in workloads)
    if changing:
        sentence += f"; the rate changed during {changing} of {len(workloads)} workloads"
    return f"{sentence}."


def _name(row: Row) -> str:
    return f"{_place(row)}: {shape(row)}"


def _place(row: Row) -> str:
    host = text(row, "host")
    away = "" if host in {"", "local", "unknown"} else f"{host} "
    return away + text(row, "volume")


def _steadiness(dataset: Results, rows: pd.DataFrame) -> Iterator[str]:
    """Yield how many runs were steady."""
    runs = set(rows["run"])
    if rows["iops"].isna().all() and rows["bw_bytes_per_s"].isna().all():
        return
    verdicts = dataset.frame("verdicts")
    verdicts = verdicts[verdicts["run"].isin(runs)]
    states = Counter(
        next((state for state in kept if state != State.STEADY), State.STEADY)
        for _, kept in verdicts.groupby("run")["verdict"]
    )
    steady = states.pop(State.STEADY, 0)
    states.update([_NOT_JUDGED] * (len(runs) - steady - states.total()))
    others = ", ".join(f"{count} {state}" for state, count in states.items())
    if set(states) <= {State.TOO_SHORT, _NOT_JUDGED} and not steady:
        yield "Too short to say whether it is steady: use a longer --runtime."
    else:
        count = counted_noun(len(runs), "run")
        yield f"Steady: {steady} of {count}{f' ({others})' if others else ''}."


def _warnings(dataset: Results, folder: Path) -> str:
    """Return how many runs have warnings, by rule."""
    runs = measured(dataset.frame("summary"))["run"]
    findings = dataset.frame("findings")
    heavy = findings[findings["run"].isin(runs) & (findings["severity"] != Severity.NOTE.value)]
    if heavy.empty:
        return "No warnings."
    counts = heavy.drop_duplicates(["run", "rule"])["rule"].value_counts()
    names = ", ".join(f"{rule} {count}" for rule, count in counts.items())
    affected = heavy["run"].nunique()
    return f"Runs with warnings: {affected} ({names}); see volbench check {quoted(folder)}"


def _comparison(dataset: Results, between: str) -> Sequence[str]:
    """Return the comparison of each volume or arm with the first, or why there is none."""
    facts = dataset.facts()
    question = Question(
        between=between,
        base=str(measured(facts).sort_values("role", kind="stable")[between].iloc[0]),
    )
    try:
        comparison = compare(
            {"": facts},
            {"": dataset.frame("findings")},
            question,
            bins=lambda _: dataset.frame("histogram"),
        )
        return headlines(comparison)
    except ComparisonError as error:
        return [f"Not compared: {error.message}"]
