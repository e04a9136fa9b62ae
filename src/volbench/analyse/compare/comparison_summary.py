"""Summary of a comparison: one sentence for each candidate, and the mean over workloads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Compared, Verdict, change_text, percent
from volbench.analyse.compare.repeat_statistics import ONE_RUN

_FEW = 3  # Number of workloads from which a mean over them says more than the workloads themselves


def headlines(comparison: Comparison) -> list[str]:
    """Return the answer in a sentence for each candidate, on the first metric.

    Example: ``B against A, iops: 18 % faster for random reads (95 % CI 12 to 24 %); no
    difference shown for random writes (95 % CI -4 to +6 %).``
    """
    metric = comparison.rows[0].measure
    return [
        f"{candidate} against {rows[0].base}, {metric.name}: {'; '.join(_clauses(rows))}."
        for candidate, rows in _by_candidate(
            [row for row in comparison.rows if row.measure == metric]
        )
    ]


@dataclass(frozen=True)
class WorkloadMean:
    """Geometric mean of the ratios of a metric over workloads, without an interval.

    The spread is that over workloads: it says nothing about chance, which one run a side cannot
    show.
    """

    candidate: str  # what is compared with the base
    metric: str  # name of the metric
    ratios: tuple[float, ...]  # of the workloads, candidate to base
    reason: str  # why there is no interval

    @property
    def mean(self) -> float:
        """Geometric mean of the ratios."""
        return float(np.exp(np.mean(np.log(self.ratios))))

    @property
    def sentence(self) -> str:
        """Mean, extremes and reason in a sentence."""
        return (
            f"{self.candidate}, {self.metric}: geometric mean of {len(self.ratios)} workloads"
            f" {change_text(self.mean)}, from {change_text(min(self.ratios))} to"
            f" {change_text(max(self.ratios))}; {self.reason}, no interval."
        )


def means_over_workloads(comparison: Comparison) -> list[WorkloadMean]:
    """Return the mean of each metric of each candidate where no interval is known."""
    means = []
    for candidate, rows in _by_candidate(comparison.rows):
        for measure in dict.fromkeys(row.measure for row in rows):
            own = [row for row in rows if row.measure == measure]
            ratios = [row.ratio for row in own if not math.isnan(row.ratio)]
            if len(ratios) < _FEW or any(row.interval for row in own):
                continue
            means.append(WorkloadMean(candidate, measure.name, tuple(ratios), _reason(own)))
    return means


def _reason(rows: Sequence[Compared]) -> str:
    return ONE_RUN if all(row.shortage == ONE_RUN for row in rows) else "too few repeats"


def _by_candidate(rows: Sequence[Compared]) -> Iterator[tuple[str, list[Compared]]]:
    for candidate in dict.fromkeys(row.candidate for row in rows):
        yield candidate, [row for row in rows if row.candidate == candidate]


def _clauses(rows: Sequence[Compared]) -> Iterator[str]:
    """Yield a clause for each kind of workload; kinds without a difference share one."""
    same: dict[str, list[str]] = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        own = [row for row in rows if row.kind == kind]
        verdicts = {row.verdict for row in own}
        if verdicts <= {Verdict.SAME, Verdict.NOT_SHOWN}:
            words, named = _sameness(own)
            same.setdefault(words, []).append(named)
        elif len(own) == 1:
            yield _of_one(own[0])
        else:
            yield _of_several(own)
    for words, kinds in same.items():
        yield f"{words} for {_joined(kinds)}"


def _sameness(rows: Sequence[Compared]) -> tuple[str, str]:
    """Return the verdict on a kind of workload, and the kind with what the verdict leaves open."""
    if all(row.verdict is Verdict.SAME for row in rows):
        return f"same within {percent(rows[0].tolerance or 0)} %", rows[0].kind
    widest = max((row for row in rows if row.interval), key=_width)
    of_many = f"of {len(rows)} workloads the widest " if len(rows) > 1 else ""
    ends = _ends(widest.interval.low, widest.interval.high) if widest.interval else ""
    noisy = sum(row.is_inconclusive for row in rows)
    if noisy == len(rows):
        return "inconclusive", f"{rows[0].kind} ({of_many}{_level(widest)} {ends})"
    left_open = f"; {noisy} inconclusive" if noisy else ""
    return "no difference shown", f"{rows[0].kind} ({of_many}{_level(widest)} {ends}{left_open})"


def _width(row: Compared) -> float:
    return row.interval.high / row.interval.low if row.interval else 0.0


def _level(row: Compared) -> str:
    """Return the confidence of an interval, which is never 100 %."""
    shown = f"{100 * row.level:.3g}"
    return f"{'over 99.9' if shown == '100' else shown} % CI"


def _ends(low: float, high: float) -> str:
    """Return the ends of an interval of ratios, such as ``-12 to +30 %``."""
    low_text, high_text = change_text(low), change_text(high)
    if low_text.endswith(" %") and high_text.endswith(" %"):
        low_text = low_text.removesuffix(" %")
    return f"{low_text} to {high_text}"


def _of_one(row: Compared) -> str:
    interval = row.interval
    if interval is None:
        known = "unknown" if math.isnan(row.ratio) else change_text(row.ratio)
        return f"{known} for {row.kind} (no interval)"
    size = percent(abs(interval.estimate - 1))
    low, high = sorted(abs(end - 1) for end in (interval.low, interval.high))
    ends = f"{_level(row)} {percent(low)} to {percent(high)} %"
    return f"{size} % {row.verdict.value} for {row.kind} ({ends})"


def _of_several(rows: Sequence[Compared]) -> str:
    """Return how many workloads of a kind have which verdict, and by how much."""
    parts = []
    for verdict in (Verdict.FASTER, Verdict.SLOWER):
        found = [row for row in rows if row.verdict is verdict]
        if found:
            parts.append(f"{verdict.value} for {len(found)} of {len(rows)} ({_range(found)})")
    unknown = [row for row in rows if row.verdict is Verdict.TOO_FEW]
    if unknown:
        few = f"of {len(unknown)}" if len(unknown) < len(rows) else f"over {len(rows)}"
        parts.append(f"{_range(unknown)} {few} workloads (no interval)")
    return f"{rows[0].kind}: {', '.join(parts)}"


def _range(rows: Sequence[Compared]) -> str:
    ratios = sorted(row.ratio for row in rows if not math.isnan(row.ratio))
    if not ratios:
        return "unknown"
    low, high = (change_text(ratio) for ratio in (ratios[0], ratios[-1]))
    return low if low == high else f"{low} to {high}"


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
