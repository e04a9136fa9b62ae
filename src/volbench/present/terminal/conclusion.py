"""Conclusion of a measurement in sentences: each workload, its reservations, and a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pandas as pd

from volbench.analyse.compare.comparison import Question, compare, headlines
from volbench.analyse.frames.job_frames import measured, plain_rows, pool, with_latencies
from volbench.analyse.time.steady_state import State
from volbench.errors import ComparisonError
from volbench.model.frames.metadata import FACTS, Source
from volbench.model.results.finding import Severity
from volbench.present.formatting import printable
from volbench.present.plots.labels import shape
from volbench.units import format_count, format_latency, format_rate


class Results(Protocol):
    """A campaign whose frames can be read."""

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name."""

    def facts(self) -> pd.DataFrame:
        """Return the summary with what is known of hosts and volumes."""


_WORKLOAD = ["volume", "job", "group", "direction"]
_NOT_JUDGED = "not judged"  # So short that the run has no verdict at all


def conclusion(dataset: Results, *, folder: Path) -> list[str]:
    """Return what was measured, one line per volume and workload, then the warnings."""
    rows = measured(dataset.frame("summary")).sort_values(["role", "rw", "job"], kind="stable")
    findings = dataset.frame("findings")
    invalid = findings[findings["severity"] == Severity.INVALID.value]
    valid = rows[~rows["run"].isin(invalid["run"])]
    lines = [
        *_rejected(rows, invalid),
        *_results(valid, dataset.frame("histogram"), dataset.frame("verdicts")),
        *_reservations(dataset, rows, folder),
    ]
    return [*lines, *_comparison(dataset)] if len(set(rows["volume"])) > 1 else lines


def _rejected(rows: pd.DataFrame, invalid: pd.DataFrame) -> Iterator[str]:
    """Yield how many results of each workload are invalid, why, and what to do about it."""
    for _, group in rows.groupby(_WORKLOAD, sort=False):
        reasons = invalid[invalid["run"].isin(group["run"])]
        if reasons.empty:
            continue
        count, first = reasons["run"].nunique(), reasons.iloc[0]
        yield (
            f"{_name(group)}: {count} of {group['run'].nunique()} runs invalid and left out"
            f" ({', '.join(reasons['rule'].unique())})."
            f" {printable(first['message']).removesuffix('.')}."
            f" What to do: {printable(first['advice'])}"
        )


def _results(rows: pd.DataFrame, histogram: pd.DataFrame, verdicts: pd.DataFrame) -> Iterator[str]:
    """Yield IOPS, bandwidth and p99 of each workload: medians of its repeats, p99 of all I/Os."""
    if rows.empty:
        return
    rows, kind = with_latencies(rows, ("p99",))
    tails = pool(rows, _WORKLOAD, ["p99"], histogram=histogram, kind=kind)["p99"]
    changed = verdicts[verdicts["verdict"].isin([State.STEPPED, State.DRIFTING])]
    for place, (_, group) in enumerate(rows.groupby(_WORKLOAD, sort=False)):
        iops = group["iops"].dropna()
        if iops.empty:
            continue
        count = len(iops)
        spread = f" (median of {count}, {format_count(iops.min())} to {format_count(iops.max())})"
        ends = changed[
            changed["run"].isin(group["run"]) & (changed["direction"] == group["direction"].iloc[0])
        ]["level_iops"].dropna()
        changing = f"; the rate changed, at the end it was {format_count(ends.median())} IOPS"
        yield (
            f"{_name(group)}:"
            f" {format_count(iops.median())} IOPS{' on average' if len(ends) else ''}"
            f"{spread if count > 1 else ''}{changing if len(ends) else ''},"
            f" {format_rate(group['bw_bytes_per_s'].median())},"
            f" p99{' of all I/Os' if count > 1 else ''} {format_latency(float(tails.iloc[place]))}."
        )


def _name(group: pd.DataFrame) -> str:
    return f"{printable(str(group['volume'].iloc[0]))}: {shape(plain_rows(group)[0])}"


def _reservations(dataset: Results, rows: pd.DataFrame, folder: Path) -> Iterator[str]:
    """Yield how many runs were steady, and how many have warnings, by rule."""
    runs = set(rows["run"])
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
        yield f"Steady: {steady} of {len(runs)} runs{f' ({others})' if others else ''}."
    findings = dataset.frame("findings")
    heavy = findings[findings["run"].isin(runs) & (findings["severity"] != Severity.NOTE.value)]
    if heavy.empty:
        yield "No warnings."
        return
    counts = heavy.drop_duplicates(["run", "rule"])["rule"].value_counts()
    names = ", ".join(f"{rule} {count}" for rule, count in counts.items())
    yield f"Runs with warnings: {heavy['run'].nunique()} ({names}); see volbench check {folder}"


def _comparison(dataset: Results) -> Sequence[str]:
    """Return the comparison of each volume with the first, or why there is none."""
    facts = dataset.facts()
    of_volumes = [name for name, fact in FACTS.items() if fact.source is Source.VOLUME]
    question = Question(
        between="volume",
        base=str(measured(facts).sort_values("role", kind="stable")["volume"].iloc[0]),
        allowed=tuple(name for name in (*of_volumes, "volume_bytes") if name in facts),
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
