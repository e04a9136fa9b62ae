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


_NOT_JUDGED = "not judged"  # So short that the run has no verdict at all


def conclusion(dataset: Results, *, folder: Path) -> list[str]:
    """Return what was measured, one line per volume and workload, then the warnings."""
    rows = measured(dataset.frame("summary")).sort_values(["role", "rw", "job"], kind="stable")
    lines = [*_results(rows, dataset.frame("histogram")), *_reservations(dataset, rows, folder)]
    return [*lines, *_comparison(dataset)] if len(set(rows["volume"])) > 1 else lines


def _results(rows: pd.DataFrame, histogram: pd.DataFrame) -> Iterator[str]:
    """Yield IOPS, bandwidth and p99 of each workload: medians of its repeats, p99 of all I/Os."""
    rows, kind = with_latencies(rows, ("p99",))
    keys = ["volume", "job", "group", "direction"]
    tails = pool(rows, keys, ["p99"], histogram=histogram, kind=kind)["p99"]
    for place, (_, part) in enumerate(rows.groupby(keys, sort=False)):
        iops = part["iops"].dropna()
        if iops.empty:
            continue
        count = len(iops)
        spread = f" (median of {count}, {format_count(iops.min())} to {format_count(iops.max())})"
        yield (
            f"{printable(str(part['volume'].iloc[0]))}: {shape(plain_rows(part)[0])}:"
            f" {format_count(iops.median())} IOPS{spread if count > 1 else ''},"
            f" {format_rate(part['bw_bytes_per_s'].median())},"
            f" p99{' of all I/Os' if count > 1 else ''} {format_latency(float(tails.iloc[place]))}."
        )


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
