"""Comparison of runs: a verdict for each cell and metric.

A cell is a workload, apart by whatever else was asked for. Repeats are the unit; see
`volbench.analyse.compare.repeat_statistics`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from statistics import median
from typing import Any, Self

import pandas as pd

from volbench.analyse.compare.comparability import (
    Comparability,
    WarningCounts,
    check_comparable,
    without_invalid,
)
from volbench.analyse.compare.comparison_groups import (
    ARM,
    groups_of,
    lay_out_cells,
    pairing_columns,
    repeats_of,
    sides_between,
)
from volbench.analyse.compare.comparison_result import (
    Compared,
    Verdict,
    change_text,
    change_words,
    together,
    untested_words,
)
from volbench.analyse.compare.repeat_statistics import CONFIDENCE, Group, contrast, holm, shortage
from volbench.analyse.frames.design import ASKED, asked_rate
from volbench.analyse.frames.job_frames import latency_column, left_out, measured, plain_rows
from volbench.analyse.frames.run_facts import STEADY, fact_columns, stack, steadiness_remarks
from volbench.analyse.frames.workload_words import FACTOR_NAMES, shared_limit
from volbench.errors import ComparisonError, InputError
from volbench.model.frames.column_names import Measure, find_column, find_measure, listed_names
from volbench.model.frames.columns import LABEL_PREFIX, REPLAYED, SUMMARY, WATCHED
from volbench.model.frames.metadata import find_fact, reported_between
from volbench.units import counted_noun, percent

_COLUMNS = {*(column.name for column in SUMMARY), *STEADY}
_UNMERGED = "{}: {} of {} repeats of several clients left out: {}"
_NO_BINS = "their percentiles need the latency bins of every client"
_NO_SUM = (
    "no time is known in which all clients ran, so there is no aggregate; use a longer runtime"
)
Bins = Callable[[str], pd.DataFrame]  # Returns the latency bins (the histogram frame) of a side
# Significance of a drift that is worth a remark, over all comparisons together.
# Noticed by: test_blocks.py::test_the_drift_that_an_unpaired_comparison_may_hide_is_reported
_DRIFT_ALPHA = 0.05
_IF_INVALID = (
    "volbench check shows the reasons; measure these runs again, or include them with"
    " --keep-invalid"
)
# Candidates that have a sentence each: more are a paragraph that nobody reads.
# Noticed by: test_comparison_summary.py::test_many_candidates_share_a_sentence
_MAX_SENTENCES = 6
# Ratios beyond which a number says nothing, and ends of an interval that leave all open.
# Noticed by: test_comparison_summary.py::test_ratios_without_intervals_say_what_is_better
_MAX_TIMES, _MAX_END = 100, 10
_OPEN = (Verdict.TOO_MANY, Verdict.INCONCLUSIVE)  # Nothing is known of such a difference
# Upper over lower end of an interval that leaves a difference open.
# Noticed by: test_comparison_summary.py::test_an_inconclusive_workload_is_not_called_equal
_WIDE = 2.0


@dataclass(frozen=True)
class Question:
    """A comparison to make."""

    # user-visible names; empty for IOPS and p99, or bandwidth where IOPS are unknown. (At a fixed
    # block size bandwidth says what IOPS say, and each further comparison widens all intervals.)
    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] = ()  # columns or facts that keep cells apart
    # a column or fact whose values are compared; empty to compare the sides as given
    between: str = ""
    base: str = ""  # the value of `between` that is the base; empty for the first
    order: tuple[str, ...] = ()  # of values of `between`; others follow, sorted
    confidence: float = CONFIDENCE  # family-wise, of all verdicts
    tolerance: float | None = None  # acceptable relative difference; None to report any
    allowed: tuple[str, ...] = ()  # facts that may differ
    keep_invalid: bool = False  # keep runs that a rule marked invalid

    def __post_init__(self) -> None:
        """Check confidence and tolerance."""
        check_share("confidence", self.confidence, least=0.5)
        check_share("tolerance", self.tolerance or 0.0, least=0)

    @classmethod
    def of(  # noqa: PLR0913 - the keywords of the Python interface, one by one
        cls,
        *,
        metric: str | Sequence[str],
        by: str | Sequence[str],
        tolerance: float | None,
        allow_different: str | Sequence[str],
        keep_invalid: bool,
        between: str = "",
        base: str = "",
        confidence: float = CONFIDENCE,
    ) -> Self:
        """Return a question whose names are given one by one or as "iops,p99"."""
        return cls(
            metrics=listed_names(metric),
            by=listed_names(by),
            between=between,
            base=base,
            confidence=confidence,
            tolerance=tolerance,
            allowed=listed_names(allow_different),
            keep_invalid=keep_invalid,
        )


def check_share(name: str, value: float, *, least: float) -> None:
    """Refuse a share that is not below 1: 5 is easily written for 5 %."""
    if not least <= value < 1:
        raise InputError(
            f"{name} {value:g} must be a fraction from {least:g} to below 1",
            hint="write 5 % as 0.05",
        )


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison."""

    rows: tuple[Compared, ...]  # one for each cell, metric and candidate
    remarks: tuple[str, ...]  # caveats, one sentence each
    confidence: float  # family-wise, of all verdicts
    # what differs beside the results
    comparability: Comparability = field(default_factory=Comparability)
    between: str = ""  # column whose values are compared; empty for folders


def compare(
    sides: Mapping[str, pd.DataFrame],
    findings: Mapping[str, pd.DataFrame],
    question: Question,
    *,
    bins: Bins | None = None,
) -> Comparison:
    """Compare candidates with a base.

    Args:
        sides: name to rows of the summary with their facts (`runfacts.with_facts`) and steady
            rates (`performance.with_steady`), the base first; with `between` they are taken
            together.
        bins: from which percentiles of several clients are merged; without it they are left out.
    """
    rows = stack([part.assign(side=name, origin=name) for name, part in sides.items()])
    rows["run"] = rows["origin"] + "\n" + rows["run"].astype(str)
    warnings = pd.concat(
        [part.assign(run=name + "\n" + part["run"].astype(str)) for name, part in findings.items()],
        ignore_index=True,
    )
    remarks = [
        f"{name}: {count} {'run' if count == 1 else 'runs'} {state}, left out"
        for name, part in sides.items()
        for state, count in left_out(part).items()
    ]
    rows = measured(rows)
    _check_left(
        rows, sides, remarks, hint="only finished, measured runs that match --where are compared"
    )
    facts = fact_columns(rows)
    by = [find_column(name, list(rows.columns)) for name in question.by]
    measures = find_measures(question.metrics, rows)
    allowed = [find_fact(name, facts) for name in question.allowed]
    base, between = next(iter(sides)), ""
    if question.between:
        between = find_column(question.between, list(rows.columns))
        named = question.between
        rows, base = sides_between(
            rows, between, named=named, base=question.base, order=question.order
        )
        facts = [name for name in facts if name != between]
        by += pairing_columns(rows, [between, *by], base)
    if not question.keep_invalid:
        arms = list(dict.fromkeys(rows["side"]))
        rows, excluded = without_invalid(rows, warnings)
        remarks += excluded
        _check_left(rows, sides, remarks, hint=_IF_INVALID)
        left = list(dict.fromkeys(rows["side"]))
        if between and not question.base and base not in left:
            base = left[0]
        _check_left(
            rows, [base] if len(left) > 1 else arms, remarks, hint=_IF_INVALID, column="side"
        )
    if between == ARM:  # what differs between arms is what is compared
        varying = rows.groupby(["side", "job", "group"])[facts].nunique().max()
        allowed += [name for name in facts if varying[name] <= 1]
    rows, unmatched = lay_out_cells(rows, by=by, between=between, named=question.between, base=base)
    remarks += unmatched
    comparability = check_comparable(
        rows,
        facts=[name for name in facts if name not in by],
        allowed=allowed,
        base=base,
        reported=reported_between(between),
    )
    remarks += [*comparability.remarks, *comparability.unknown]
    remarks += shared_limit(plain_rows(warnings), {*rows["run"]})
    measures = [known_latency(measure, rows) for measure in measures]
    remarks += steadiness_remarks(rows, [measure.column for measure in measures])
    remarks += [remark for measure in measures for remark in _unreported_remarks(measure, rows)]
    merged = cache(partial(_latency_bins, tuple(sides), bins))
    repeats = [
        repeats_of(rows, values_of_measure(rows, measure), column=measure.column, bins=merged)
        for measure in measures
    ]
    for measure, values in zip(measures, repeats, strict=True):
        remarks += _unmerged_remarks(measure, values)
    groups = [groups_of(part) for part in repeats]
    compared = list(_compare_cells(rows, measures, groups, by, base, warnings))
    remarks += [*_asked_remarks(compared), *_copy_remarks(compared), *_drift_remarks(compared)]
    return replace(
        _judge_together(compared, question, remarks), comparability=comparability, between=between
    )


def _drift_remarks(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield the largest drift within a side of comparisons that are not paired, in one sentence."""
    found = [
        (drift, side, row)
        for row in compared
        if row.contrast and not row.contrast.units
        for side, group in ((row.base, row.base_group), (row.candidate, row.candidate_group))
        if (drift := group.drift(_DRIFT_ALPHA / (2 * len(compared)))) is not None
    ]
    if found:
        drift, side, row = max(found, key=lambda each: abs(each[0]))
        yield (
            f"not paired: {row.label} {row.measure.name} drifted by"
            f" {change_text(math.exp(drift))} over the repeats of {side}, which may hide a"
            " difference or look like one; measure both sides in blocks of one campaign"
        )


def _copy_remarks(compared: Sequence[Compared]) -> Iterator[str]:
    rated = [row for row in compared if not row.measure.is_latency]
    for candidate in dict.fromkeys(row.candidate for row in rated):
        of_candidate = [row for row in rated if row.candidate == candidate]
        if all(row.candidate_group.has_values_of(row.base_group) for row in of_candidate):
            yield (
                f"all rates of {candidate} equal those of {of_candidate[0].base} to the last digit:"
                " both may be the same results"
            )


def _check_left(
    rows: pd.DataFrame,
    sides: Collection[str],
    remarks: Sequence[str],
    *,
    hint: str,
    column: str = "origin",
) -> None:
    present = set(rows[column])
    for name in sides:
        if name not in present:
            reasons = "".join(f"; {remark}" for remark in remarks)
            raise ComparisonError(f"no runs are left in {name}{reasons}", hint=hint)


def _compare_cells(
    rows: pd.DataFrame,
    measures: Sequence[Measure],
    groups: Sequence[Mapping[tuple[str, str], Group]],
    by: Sequence[str],
    base: str,
    findings: pd.DataFrame,
) -> Iterator[Compared]:
    """Yield a comparison of each cell, metric and candidate, not yet judged together."""
    warnings = WarningCounts(findings)
    candidates = [side for side in dict.fromkeys(rows["side"]) if side != base]
    for number, cell in rows.groupby("cell", sort=True):
        first = cell.iloc[0]
        runs = {str(side): set(side_rows) for side, side_rows in cell.groupby("side")["run"]}
        asked = {str(side): _asked_of(side_rows) for side, side_rows in cell.groupby("side")}
        jobs = [str(job) for job in cell["job"].unique()]
        directions = [str(direction) for direction in cell["direction"].unique()]
        common: dict[str, Any] = {
            "label": str(first["label"]),
            "job": jobs[0] if len(jobs) == 1 else "",
            "direction": "/".join(directions),
            "kind": _kind_of_cell(cell),
            "by": {name.removeprefix(LABEL_PREFIX): str(first[f"by_{name}"]) for name in by},
        }
        for measure, by_side in zip(measures, groups, strict=True):
            for side in candidates:
                first_group, group = (by_side.get((str(number), name)) for name in (base, side))
                if first_group is None or group is None:
                    continue
                missing = shortage(first_group, group)
                yield Compared(
                    measure=measure,
                    base_group=first_group,
                    candidate_group=group,
                    contrast=None
                    if missing
                    else contrast(first_group, group, resolution=measure.resolution),
                    shortage=missing,
                    base=base,
                    candidate=side,
                    base_asked=asked[base],
                    candidate_asked=asked[side],
                    warnings=warnings.of(runs[base] | runs[side], directions),
                    **common,
                )


def _asked_of(rows: pd.DataFrame) -> str:
    known = rows[[name for name in ASKED if name in rows]].drop_duplicates()
    return ", ".join(dict.fromkeys(filter(None, map(asked_rate, plain_rows(known)))))


def _asked_remarks(compared: Sequence[Compared]) -> Iterator[str]:
    rates: dict[str, dict[str, None]] = {}
    for row in compared:
        for side, asked in ((row.base, row.base_asked), (row.candidate, row.candidate_asked)):
            if asked:
                rates.setdefault(asked, {}).setdefault(side)
    for asked, sides in rates.items():
        yield f"as asked in {' and '.join(sides)}: {asked}; such a result says no limit of a volume"


def find_measures(names: Sequence[str], rows: pd.DataFrame) -> list[Measure]:
    """Return the metrics of some names; without names IOPS and p99, or bandwidth."""
    chosen = names or (("iops", "p99") if rows["iops"].notna().any() else ("bw",))
    return [find_measure(name, list(_COLUMNS)) for name in chosen]


def values_of_measure(rows: pd.DataFrame, measure: Measure) -> pd.Series[float]:
    """Return a metric of each row; fsync and its kin report total latency only."""
    values = rows[measure.column]
    if measure.column.startswith("clat_"):
        values = values.where(rows["direction"] != "sync", rows[measure.column[1:]])
    return values


def _latency_bins(sides: Collection[str], bins: Bins | None) -> pd.DataFrame | None:
    if bins is None:
        return None
    parts = [(name, bins(name)) for name in sides]
    return pd.concat(
        [each.assign(run=name + "\n" + each["run"].astype(str)) for name, each in parts],
        ignore_index=True,
    )


def _unmerged_remarks(measure: Measure, repeats: pd.DataFrame) -> list[str]:
    """Return how many repeats of several clients have no value of a metric, in one sentence."""
    lost = int(repeats["value"].isna().sum())
    reason = _NO_BINS if measure.is_latency else _NO_SUM
    return [_UNMERGED.format(measure.name, lost, len(repeats), reason)] if lost else []


def known_latency(measure: Measure, rows: pd.DataFrame) -> Measure:
    """Return the metric on the kind of latency that all rows have."""
    if not measure.column.startswith("lat_"):
        return measure
    statistic = measure.column.removeprefix("lat_").removesuffix("_s")
    return replace(measure, column=latency_column(rows, statistic))


def _unreported_remarks(measure: Measure, rows: pd.DataFrame) -> list[str]:
    workloads = [
        str(label)
        for (label, _), group in rows.groupby(["label", "direction"], sort=False)
        if values_of_measure(group, measure).isna().all()
    ]
    return [f"{measure.name} is not reported by {', '.join(workloads)}"] if workloads else []


def _kind_of_cell(cell: pd.DataFrame) -> str:
    """Return what a cell does, such as ``random reads``; ``reads`` if the order is unknown."""
    if len(cell["rw"].unique()) > 1:
        return "different patterns"
    direction, pattern = str(cell["direction"].iloc[0]), cell["rw"].iloc[0]
    plural = {"read": "reads", "write": "writes", "trim": "trims"}.get(direction)
    if plural is None:
        return direction
    if not isinstance(pattern, str) or not pattern:
        return plural
    order = "random" if pattern.startswith("rand") else "sequential"
    return f"{pattern if pattern in {WATCHED, REPLAYED} else order} {plural}"


def _judge_together(
    compared: Collection[Compared], question: Question, remarks: Sequence[str]
) -> Comparison:
    if not compared:
        raise ComparisonError(
            "there is nothing to compare" + "".join(f"; {remark}" for remark in remarks),
            hint="a workload needs I/O and the metric on both sides; a watched disk may be idle",
        )
    tested = [verdict for verdict in compared if verdict.contrast]
    p_values = [verdict.contrast.p_value for verdict in tested if verdict.contrast]
    levels = iter(holm(p_values, confidence=question.confidence))
    rows = [
        replace(
            verdict,
            level=next(levels) if verdict.contrast else question.confidence,
            tolerance=question.tolerance,
        )
        for verdict in compared
    ]
    lost = [
        every.sentence for every in together(rows, confidence=question.confidence) if every.is_worse
    ]
    return Comparison(tuple(rows), (*remarks, *lost), question.confidence)


def headlines(comparison: Comparison) -> list[str]:
    """Return the answer in a sentence for each candidate, on the first metric.

    Example: ``B against A, iops: 18 % faster for random reads (95 % CI 12 to 24 %); no
    significant difference for random writes (95 % CI -4 to +6 %).``
    """
    metric = comparison.rows[0].measure
    of_candidate: dict[str, list[Compared]] = {}
    is_number = comparison.rows[0].base[:1].isdecimal()  # which says nothing without its factor
    factor = f"{FACTOR_NAMES.get(comparison.between, '')} ".lstrip() if is_number else ""
    for row in comparison.rows:
        if row.measure == metric:
            of_candidate.setdefault(row.candidate, []).append(row)
    if len(of_candidate) > _MAX_SENTENCES:
        return [_of_many(of_candidate, f"{comparison.rows[0].base}, {metric.name}")]
    return [
        f"{factor}{candidate} against {rows[0].base}, {metric.name}: {'; '.join(_said_once(rows))}."
        for candidate, rows in of_candidate.items()
    ]


def _of_many(of_candidate: Mapping[str, Sequence[Compared]], against: str) -> str:
    """Return how many candidates are faster or slower, and how far the first and last are."""
    sides: Counter[str] = Counter()
    middle: dict[str, float] = {}
    for name, rows in of_candidate.items():
        found = {row.verdict for row in rows}
        sure = sorted(found & {Verdict.FASTER, Verdict.SLOWER})
        sides[" and ".join(sure) or max(found, key=[*Verdict].index)] += 1
        middle[name] = median(row.ratio for row in rows)
    ends = sorted(middle, key=middle.__getitem__)[:: len(middle) - 1]
    widest = max(middle.values())
    words = " to ".join(f"{change_text(middle[name], widest)} ({name})" for name in ends)
    counts = ", ".join(f"{count} {side}" for side, count in sides.most_common())
    return f"{len(middle)} candidates against {against}: {counts}. Medians: {words}."


def _said_once(rows: Sequence[Compared]) -> list[str]:
    """Return the clauses, with what they share once: that nothing is shown, or not tested, and why.

    Kinds of workloads that do not differ, some since their repeats scatter, are one clause.
    """
    clauses, reason = list(_clauses(rows)), untested_words("", rows[0].shortage)
    is_open = {row.verdict for row in rows} <= {Verdict.NOT_SHOWN, *_OPEN}
    if is_open and len(clauses) > 1 and len({row.kind for row in rows}) > 1:
        return [_nothing_shown(rows)]
    if clauses[1:] and all(f", {reason}" in clause for clause in clauses):
        clauses = [*(clause.replace(f", {reason}", "") for clause in clauses), reason]
    return clauses


def _nothing_shown(rows: Sequence[Compared]) -> str:
    """Return that no workload differs as far as the repeats show, and how far they may."""
    widest = max(rows, key=_width)
    low, *_, high = sorted(row.ratio for row in rows)
    return (
        f"no difference shown in any of {len(rows)} workloads: estimates {_ends(low, high)}"
        f" ({_interval_words(widest)}, the widest); more repeats of both in one campaign would"
        " decide"
    )


def _clauses(rows: Sequence[Compared]) -> Iterator[str]:
    """Yield a clause for each kind of workload; kinds without a difference share one."""
    same: dict[str, list[str]] = {}
    asked = [row for row in rows if row.verdict is Verdict.ASKED]
    for kind in dict.fromkeys(row.kind for row in rows if row.verdict is not Verdict.ASKED):
        of_kind = [row for row in rows if row.kind == kind and row.verdict is not Verdict.ASKED]
        verdicts = {row.verdict for row in of_kind}
        if verdicts <= {Verdict.SAME, Verdict.NOT_SHOWN, *_OPEN}:
            parts = (
                [row for row in of_kind if row.verdict in part]
                for part in ([Verdict.SAME, Verdict.NOT_SHOWN], *([each] for each in _OPEN))
            )
            for part in filter(None, parts):
                sameness, named = _sameness(part)
                share = f"{len(part)} of {len(of_kind)} " if len(part) < len(of_kind) else ""
                same.setdefault(sameness, []).append(f"{share}{named}")
        elif len(of_kind) == 1:
            yield _clause_of_one(of_kind[0])
        else:
            yield _clause_of_several(of_kind)
    for sameness, kinds in same.items():
        listed = " and ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))
        yield f"{sameness} for {listed}"
    for words in dict.fromkeys(row.words for row in asked):
        yield f"{words} for {counted_noun(sum(row.words == words for row in asked), 'workload')}"


def _sameness(rows: Sequence[Compared]) -> tuple[str, str]:
    """Return the verdict on a kind of workload, and the kind with what the verdict leaves open."""
    if all(row.verdict is Verdict.SAME for row in rows):
        return f"same within {percent(rows[0].tolerance or 0)} %", rows[0].kind
    widest = max((row for row in rows if row.interval), key=_width)
    of_many = f", the widest of {len(rows)} workloads" if len(rows) > 1 else ""
    verdict = max((row.verdict for row in rows), key=[*Verdict].index)
    is_open = verdict in _OPEN or _width(widest) > _WIDE
    size = _common_size(rows, widest) if is_open else ""
    decides = "; more repeats of both in one campaign would decide" if size else ""
    return (
        f"{size}{verdict.value}",
        f"{rows[0].kind} ({_interval_words(widest)}{of_many}{decides})",
    )


def _interval_words(row: Compared) -> str:
    """Return the interval of a row that shows no difference, unless it leaves everything open."""
    low, high = (row.interval.low, row.interval.high) if row.interval else (math.nan, math.nan)
    if low < 1 / _MAX_END and high > _MAX_END:
        reason = "the repeats vary so much"
        if row.verdict is Verdict.TOO_MANY:
            reason = "so many comparisons leave so much open"
        return f"{reason} that even a tenth or {_MAX_END} times is possible"
    return f"{_level(row)} {_ends(low, high)}"


def _common_size(rows: Sequence[Compared], widest: Compared) -> str:
    """Return how much faster, or slower, all workloads of a kind were; empty if not alike."""
    ratios = [row.ratio for row in rows]
    is_alike = min(ratios) > 1 or max(ratios) < 1  # never true for NaN
    top = widest.interval.high if widest.interval else 0.0
    top = 0.0 if top > _MAX_END else top  # beyond, the interval is not in numbers
    return f"looks {_range_words(ratios, rows[0].measure, top)}, but " if is_alike else ""


def _width(row: Compared) -> float:
    return row.interval.high / row.interval.low if row.interval else 0.0


def _level(row: Compared) -> str:
    level = f"{100 * row.level:.3g}"
    return f"{'over 99.9' if level == '100' else level} % CI"


def _ends(low: float, high: float) -> str:
    """Return the ends of an interval of ratios, such as ``-12 to +30 %``."""
    low_text, high_text = _end_text(low, high), _end_text(high)
    if low_text.endswith(" %") and high_text.endswith(" %"):
        low_text = low_text.removesuffix(" %")
    return f"{low_text} to {high_text}"


def _end_text(ratio: float, widest: float = 0.0) -> str:
    return change_text(ratio, widest) if ratio <= _MAX_TIMES else f"more than {_MAX_TIMES:g}x"


def _clause_of_one(row: Compared) -> str:
    interval = row.interval
    if interval is None:
        return f"{row.kind}: {row.words}"
    low, high = sorted(abs(end - 1) for end in (interval.low, interval.high))
    ends = f"{percent(low)} to {percent(high)} %"
    if interval.high >= 2:
        ends = _ends(interval.low, interval.high)
    size = change_text(interval.estimate, interval.high).lstrip("+-")
    return f"{size} {row.verdict.value} for {row.kind} ({_level(row)} {ends})"


def _clause_of_several(rows: Sequence[Compared]) -> str:
    """Return how many workloads of a kind have which verdict, and by how much."""
    parts = []
    for verdict in (Verdict.FASTER, Verdict.SLOWER):
        matching = [row for row in rows if row.verdict is verdict]
        if matching:
            parts.append(
                f"{verdict.value} for {len(matching)} of {len(rows)} ({_range_text(matching)})"
            )
    unknown = [row for row in rows if row.verdict is Verdict.TOO_FEW]
    if unknown:
        few = f"{len(unknown)} of " if len(unknown) < len(rows) else ""
        ratios = [row.ratio for row in unknown if not math.isnan(row.ratio)]
        looks = _range_words(ratios, unknown[0].measure) if ratios else ""
        untested = untested_words(looks, min(row.shortage for row in unknown))
        parts.append(f"{untested} ({few}{counted_noun(len(rows), 'workload')})")
    return f"{rows[0].kind}: {', '.join(parts)}"


def _range_text(rows: Sequence[Compared]) -> str:
    ratios = sorted(row.ratio for row in rows)
    low, high = _end_text(ratios[0], ratios[-1]), _end_text(ratios[-1])
    return low if low == high else f"{low} to {high}"


def _range_words(ratios: Sequence[float], measure: Measure, widest: float = 0.0) -> str:
    """Return the range of ratios: ``1.05x to 2.7x slower``, or ``3 % slower to 4 % faster``."""
    widest = max(*ratios, widest)
    if change_text(widest).endswith("x") and min(ratios) <= 1:  # 0.9x is no size of a loss
        ends_text = (_end_text(end, widest) for end in (min(ratios), max(ratios)))
        return f"{' to '.join(dict.fromkeys(ends_text))} the base"
    ends = sorted({min(ratios), max(ratios)}, key=lambda ratio: abs(math.log(ratio)))
    if min(ratios) < 1 < max(ratios):  # the worse end first
        ends.sort(reverse=not measure.more_is_better)
    low, high = (
        f"{'more than ' if end > _MAX_TIMES else ''}"
        f"{change_words(min(end, _MAX_TIMES), measure, widest)}"
        for end in (ends[0], ends[-1])
    )
    word = high.rpartition(" ")[2]
    return low if low == high else f"{low.removesuffix(f' {word}')} to {high}"
