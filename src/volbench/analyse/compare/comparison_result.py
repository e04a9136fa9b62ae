"""Verdict of one comparison, with its interval and its wording."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import geometric_mean

from volbench.analyse.compare.repeat_statistics import CONFIDENCE, Contrast, Group, Interval
from volbench.model.frames.column_names import Measure
from volbench.units import percent

# Detectable ratio from which a comparison is inconclusive, and larger ones that are named.
# Noticed by: test_together.py::test_noise_of_2x_is_inconclusive
_TOO_NOISY = (2, 5, 10)
# Detectable difference over the tolerance from which a gate could not have seen a regression.
# Noticed by: test_together.py::test_a_gate_is_undecided_above_twice_the_tolerance
_BLIND_TOLERANCES = 2.0
# The same at least: a tolerance of 0 would make each gate blind.
# Noticed by: test_together.py::test_a_gate_is_undecided_above_twice_the_tolerance
_MIN_BLIND = 0.10


class Verdict(StrEnum):
    """Outcome of a comparison."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    NOT_SHOWN = "no significant difference"
    TOO_MANY = "inconclusive: too many comparisons at once"
    INCONCLUSIVE = "inconclusive: too noisy"
    TOO_FEW = "not tested"
    ASKED = "as asked"


class Regression(StrEnum):
    """Whether a candidate is worse than its base by more than is tolerated."""

    SHOWN = "shown"
    RULED_OUT = "ruled out"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Compared:
    """One metric of one cell of a candidate beside its base."""

    label: str  # the workload in words
    job: str  # its name on all sides; empty where it has several
    direction: str  # read, write, trim or sync
    kind: str  # what the cell does, such as ``random reads``
    by: Mapping[str, str]  # further columns that distinguish cells
    measure: Measure  # the metric
    base: str  # name of the base; candidate: name of what is compared with it
    candidate: str
    base_group: Group  # repeats of the base; candidate_group: of the candidate
    candidate_group: Group
    contrast: Contrast | None  # None with too few repeats
    shortage: str = ""  # reason for a missing contrast
    level: float = 0.95  # confidence at which this one comparison is judged, after Holm
    tolerance: float | None = None  # acceptable relative difference; None if not given
    base_asked: str = ""  # what fio was asked to keep, such as ``rate_iops=3000``
    candidate_asked: str = ""  # same, of the candidate
    confirmed: bool = False  # whether its repetition shows that it is worse
    # number of runs with a finding, by rule
    warnings: Mapping[str, int] = field(default_factory=dict)

    @property
    def interval(self) -> Interval | None:
        """The ratio, candidate over base, at the level at which it is judged."""
        return self.contrast.interval(self.level) if self.contrast else None

    @property
    def design(self) -> str:
        """What is paired: ``10 blocks``, ``3 same volumes``, or ``unpaired``."""
        units = self.contrast.units if self.contrast else 0
        return f"{units} {self.contrast.unit}" if self.contrast and units else "unpaired"

    @property
    def ratio(self) -> float:
        """The ratio, candidate over base; without an interval that of the medians, or NaN."""
        if interval := self.interval:
            return interval.estimate
        base, candidate = self.base_group.median, self.candidate_group.median
        return candidate / base if base > 0 and candidate > 0 else math.nan

    @property
    def is_as_asked(self) -> bool:
        """Whether it is a rate that fio was asked to keep, another on each side."""
        return not self.measure.is_latency and self.base_asked != self.candidate_asked

    @property
    def verdict(self) -> Verdict:
        """What the interval shows."""
        if self.is_as_asked:
            return Verdict.ASKED
        if self.contrast is None:
            return Verdict.TOO_FEW
        if self._is_tolerated(self.contrast.interval(self.level)):
            return Verdict.SAME
        return shown_by(self.contrast, self.level, more_is_better=self.measure.more_is_better)

    @property
    def regression(self) -> Regression | None:
        """Whether it is worse than tolerated; None without a tolerance."""
        if self.tolerance is None:
            return None
        interval = self.interval
        if self.confirmed:
            return Regression.SHOWN
        if interval is None or self.is_as_asked:
            return Regression.UNDECIDED
        sign = 1 if self.measure.more_is_better else -1
        worst, best = sorted((sign * interval.low, sign * interval.high))
        bound = sign - self.tolerance
        if best < bound:
            return Regression.SHOWN
        return Regression.UNDECIDED if worst < bound else Regression.RULED_OUT

    @property
    def is_alarm(self) -> bool:
        """Whether it is a regression, or looks like one but has too few repeats to be tested."""
        is_untested = self.regression is Regression.UNDECIDED and self.verdict is Verdict.TOO_FEW
        looks_worse = is_untested and self.loss(self.ratio) > (self.tolerance or 0.0)
        return looks_worse or self.regression is Regression.SHOWN

    def loss(self, ratio: float) -> float:
        """Return by how much a ratio to the base is worse, as a share."""
        return 1 - ratio if self.measure.more_is_better else ratio - 1

    @property
    def detectable(self) -> float:
        """The smallest relative difference that can be detected; NaN without a contrast."""
        return self.contrast.detectable(self.level) - 1 if self.contrast else math.nan

    @property
    def is_blind(self) -> bool:
        """Whether a regression is undecided and could not have been seen."""
        least = max(_BLIND_TOLERANCES * (self.tolerance or 0.0), _MIN_BLIND)
        is_undecided = self.regression is Regression.UNDECIDED
        return is_undecided and (self.is_as_asked or not self.detectable <= least)

    @property
    def words(self) -> str:
        """The verdict in words, such as ``faster 12 % [9, 15]`` or ``4x [3.9, 4.1]``."""
        if self.is_as_asked:
            sides = ((self.base, self.base_asked), (self.candidate, self.candidate_asked))
            return "as asked: " + ", ".join(f"{asked} in {side}" for side, asked in sides if asked)
        interval = self.interval
        if interval is None:
            looks = "" if math.isnan(self.ratio) else change_words(self.ratio, self.measure)
            again = f"{looks}, and again when repeated"
            return again if self.confirmed else untested_words(looks, self.shortage)
        verdict = self.verdict
        if verdict in {Verdict.TOO_MANY, Verdict.INCONCLUSIVE}:
            return f"{verdict.value}{self._reach}"
        if verdict is Verdict.NOT_SHOWN:
            return f"{verdict.value} (minimum detectable: {percent(self.detectable)} %)"
        if verdict is Verdict.SAME:
            ends = ", ".join(signed_percent(end - 1) for end in (interval.low, interval.high))
            return f"same within {percent(self.tolerance or 0)} % [{ends}]"
        return f"{verdict.value} {_size_words(interval)}"

    @property
    def _reach(self) -> str:
        """What an inconclusive comparison could have detected, alone or at all."""
        alone = self.contrast.detectable(CONFIDENCE) - 1 if self.contrast else math.nan
        if self.verdict is Verdict.TOO_MANY:
            return f" (by itself, {percent(alone)} % is detectable: choose it with --where)"
        even = max(times for times in _TOO_NOISY if times <= 1 + self.detectable)
        return f" to detect even a {even}x change"

    def _is_tolerated(self, interval: Interval) -> bool:
        if self.tolerance is None:
            return False
        return 1 - self.tolerance <= interval.low and interval.high <= 1 + self.tolerance


@dataclass(frozen=True)
class Together:
    """All workloads of a candidate as evidence of a regression, by the sign test.

    The directions of a workload slow down together, so that it has one ratio: their geometric mean.
    """

    candidate: str  # what is compared with the base
    measure: Measure  # the metric
    ratios: tuple[float, ...]  # of the workloads, candidate over base
    is_repeated: bool  # whether they have enough repeats, spread over time, to be judged
    tolerance: float  # acceptable relative difference
    alpha: float  # greatest probability of so many by chance

    @property
    def beyond(self) -> int:
        """Number of workloads that are worse than the tolerance."""
        return sum(map(self._is_beyond, self.ratios))

    @property
    def p_value(self) -> float:
        """Probability of so many or more, where as many are better as worse than the tolerance."""
        count = len(self.ratios)
        return sum(math.comb(count, n) for n in range(self.beyond, count + 1)) / float(2**count)

    @property
    def mean(self) -> float:
        """Geometric mean of the ratios."""
        return geometric_mean(self.ratios)

    @property
    def is_worse(self) -> bool:
        """Whether more workloads are worse than independent noise of each explains."""
        return self._is_beyond(self.mean) and self.p_value <= self.alpha

    @property
    def is_regression(self) -> bool:
        """Whether neither chance nor one slow period explains that so many are worse."""
        return self.is_repeated and self.is_worse

    @property
    def sentence(self) -> str:
        """Number of workloads, their mean, and what it is worth, in a sentence."""
        worth = (
            f"which is unlikely to be chance (sign test, p = {self.p_value:.2g})"
            if self.is_repeated
            else "but too few repeats to be evidence: a slow period of the host or the storage"
            " while one side was measured would do the same"
        )
        beyond = f" by more than {percent(self.tolerance)} %" if self.tolerance else ""
        return (
            f"{self.candidate}, {self.measure.name}: {self.beyond} of {len(self.ratios)}"
            f" workloads are worse{beyond}"
            f" (geometric mean {change_words(self.mean, self.measure)}), {worth}"
        )

    def _is_beyond(self, ratio: float) -> bool:
        more = self.measure.more_is_better
        return ratio < 1 - self.tolerance if more else ratio > 1 + self.tolerance


def together(rows: Sequence[Compared], *, confidence: float) -> list[Together]:
    """Return the evidence of all workloads for each candidate and metric with known ratios.

    Rows without a contrast count only where no row has one.
    """
    sets: dict[tuple[str, Measure], list[Compared]] = {}
    for row in rows:
        if not math.isnan(row.ratio) and not row.is_as_asked:
            sets.setdefault((row.candidate, row.measure), []).append(row)
    found = []
    for (candidate, measure), group in sets.items():
        repeated = [row for row in group if row.contrast]
        workloads: dict[tuple[str, ...], list[float]] = {}
        for row in repeated or group:
            core, _, rest = row.label.partition(",")
            key = (*core.split()[:2], rest, *row.by.values())  # without the direction
            workloads.setdefault(key, []).append(row.ratio)
        found.append(
            Together(
                candidate=candidate,
                measure=measure,
                ratios=tuple(map(geometric_mean, workloads.values())),
                is_repeated=bool(repeated),
                tolerance=group[0].tolerance or 0.0,
                alpha=(1 - confidence) / len(sets),
            )
        )
    return found


def _size_words(interval: Interval) -> str:
    """Return the size of a change with its interval, as a ratio from twice the base."""
    if interval.estimate >= 2:
        return f"{interval.estimate:.3g}x [{interval.low:.3g}, {interval.high:.3g}]"
    low, high = sorted(100 * abs(end - 1) for end in (interval.low, interval.high))
    size, width = 100 * abs(interval.estimate - 1), min(high - low, 2 * low)
    digits = 0 if width >= 2 else 1 if width >= 0.2 else 2  # to show it
    return f"{size:.{digits}f} % [{low:.{digits}f}, {high:.{digits}f}]"


def signed_percent(share: float) -> str:
    """Return a share as a percentage with its sign."""
    return ("-" if share < 0 else "+") + percent(abs(share))


def change_text(ratio: float, widest: float = 0.0) -> str:
    """Return a ratio to the base for people: ``+18 %``, or ``35x`` from twice the base.

    Ratios of one sentence have one unit, that of the widest.
    """
    return f"{signed_percent(ratio - 1)} %" if max(ratio, widest) < 2 else f"{ratio:.3g}x"


def shown_by(contrast: Contrast, level: float, *, more_is_better: bool = True) -> Verdict:
    """Return what a ratio shows at a confidence."""
    interval = contrast.interval(level)
    if not interval.excludes(1):
        if contrast.detectable(level) < _TOO_NOISY[0]:
            return Verdict.NOT_SHOWN
        is_alone = contrast.detectable(CONFIDENCE) < _TOO_NOISY[0]
        return Verdict.TOO_MANY if is_alone else Verdict.INCONCLUSIVE
    is_faster = (interval.low > 1) == more_is_better
    return Verdict.FASTER if is_faster else Verdict.SLOWER


def untested_words(change: str, shortage: str) -> str:
    """Return a change without an interval: ``looks 18 % faster, not tested: 2 repeats``."""
    change = "equal" if change == "0 %" else change
    return f"{f'looks {change}, ' if change else ''}{Verdict.TOO_FEW.value}: {shortage}"


def change_words(ratio: float, measure: Measure, widest: float = 0.0) -> str:
    """Return a ratio to the base with its meaning: ``18 % faster``, ``35x slower`` or ``0 %``."""
    size = change_text(ratio, widest).lstrip("+-")
    word = Verdict.FASTER if (ratio > 1) == measure.more_is_better else Verdict.SLOWER
    return size if size == "0 %" else f"{size} {word.value}"


def row_of(verdict: Compared) -> dict[str, object]:
    """Return a comparison as plain values for other programs: base SI units, None for unknown."""
    interval = verdict.interval
    return {
        "workload": verdict.label,
        "job": verdict.job or None,
        "direction": verdict.direction,
        **verdict.by,
        "metric": verdict.measure.column,
        "more_is_better": verdict.measure.more_is_better,
        "base": verdict.base,
        "candidate": verdict.candidate,
        **_side(verdict.base_group, verdict.base_asked, "base"),
        **_side(verdict.candidate_group, verdict.candidate_asked, "candidate"),
        "unit_compared": verdict.contrast.unit if verdict.contrast else None,
        "design": verdict.design,
        "ratio": None if math.isnan(verdict.ratio) else verdict.ratio,
        "ratio_low": interval.low if interval else None,
        "ratio_high": interval.high if interval else None,
        "confidence": verdict.level if interval else None,
        "p_value": verdict.contrast.p_value if verdict.contrast else None,
        "detectable_percent": 100 * verdict.detectable if verdict.contrast else None,
        "verdict": verdict.verdict.value,
        "words": verdict.words,
        "regression": verdict.regression.value if verdict.regression else None,
        "warnings": ", ".join(f"{rule} {count}" for rule, count in verdict.warnings.items())
        or None,
    }


def _side(group: Group, asked: str, name: str) -> dict[str, object]:
    return {
        f"{name}_value": group.median,
        f"{name}_repeats": group.repeats,
        f"{name}_volumes": group.volumes,
        f"{name}_asked": asked or None,
    }


def size_words(change: float) -> str:
    """Return a relative change as text: digits beyond ten times say nothing."""
    return f"{percent(change)} %" if 1 + change <= _TOO_NOISY[-1] else "more than 10x"
