"""Trends as results: limits, changes of level and the state of each workload over campaigns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np
import pandas as pd

from volbench.analyse.compare.comparability import check_comparable, without_invalid
from volbench.analyse.compare.comparison import (
    check_share,
    find_measures,
    known_latency,
    values_of_measure,
)
from volbench.analyse.compare.comparison_groups import ADDED, ARM
from volbench.analyse.compare.level_changes import MIN_BEFORE, find_level_changes
from volbench.analyse.frames.design import WORKLOAD, asked_rate
from volbench.analyse.frames.job_frames import left_out, measured
from volbench.analyse.frames.matched_cells import cells_of_frame
from volbench.analyse.frames.resample import Floats, median
from volbench.analyse.frames.run_facts import STEP, option_columns, with_sums
from volbench.analyse.frames.workload_words import first_names, value_text
from volbench.analyse.significance import student_quantile
from volbench.errors import ComparisonError, quoted
from volbench.model.campaign.planned_run import RunState
from volbench.model.frames.column_names import Measure, find_column
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.frames.metadata import find_fact
from volbench.model.results.finding import Cause
from volbench.units import counted_noun, utc_text

# Campaigns of a reference period: from so few, limits hold all the same, but are wide (Student).
# Noticed by: test_workload_trends.py::test_too_few_campaigns_are_reported
MIN_REFERENCE = 4
# Campaigns of a reference period where there are enough: with fewer, limits are wider than most
# regressions. Noticed by: test_workload_trends.py::test_five_campaigns_are_enough
USUAL_REFERENCE = 8
# Pause between starts that separates two nights: nightly runs last up to half a day.
# Noticed by: test_workload_trends.py::test_nights_of_one_folder_are_campaigns
_NIGHT = pd.Timedelta(hours=6)
Facts = Mapping[str, Mapping[str, str]]
# Campaigns after which a longer reference hardly narrows the limits.
# Noticed by: test_workload_trends.py::test_the_reference_period_can_be_chosen
MAX_REFERENCE = 50
# Probability that an unchanged campaign is beyond a limit on the worse side, for all workloads: one
# in 27 years of nights.
# Noticed by: test_workload_trends.py::test_limits_are_computed_from_moving_ranges
FALSE_ALARMS = 1e-4
# The same in the first weeks, in which so rare an event has no useful limit.
# Noticed by: test_workload_trends.py::test_five_campaigns_are_enough
EARLY_FALSE_ALARMS = 0.01
# Campaigns of a reference period that is no longer an early one.
# Noticed by: test_workload_trends.py::test_limits_are_computed_from_moving_ranges
_LONG_REFERENCE = 10
# Relative change for the worse that is accepted by default: less is within the noise of cloud
# volumes. Noticed by: test_workload_trends.py::test_five_percent_are_tolerated
TOLERANCE = 0.05
# Mean distance of two normal values in standard deviations (NIST e-Handbook, d2).
# Noticed by: test_workload_trends.py::test_limits_are_computed_from_moving_ranges
_NEIGHBOURS = 1.128
# Degrees of freedom of a mean moving range, per difference: its asymptotic efficiency against the
# standard deviation (Cryer and Ryan, Journal of Quality Technology 22, 1990).
# Noticed by: test_workload_trends.py::test_limits_are_computed_from_moving_ranges
_FREEDOM = 0.605
# Share of the median that replaces zero, which has no logarithm.
# Noticed by: test_workload_trends.py::test_a_campaign_almost_without_io_has_a_logarithm
_FLOOR = 0.01
# Share of the runs of a campaign, and of all campaigns, from which the host disturbed most.
# Noticed by: test_workload_trends.py::test_a_night_with_a_busy_host_is_not_judged
_MOST_RUNS = 0.5
_MAX_NAMED = 5
# Times the centre from which limits show nothing: who looks once sees a tenfold change.
# Noticed by: test_workload_trends.py::test_limits_that_show_nothing_decide_nothing
_MAX_FACTOR = 10.0
# The same of an early reference: a workload of which half may be lost unnoticed is not yet stable.
# Noticed by: test_workload_trends.py::test_limits_that_show_nothing_decide_nothing
_MAX_EARLY_FACTOR = 2.0
# Last campaigns of a short series that are a fall together, though none is beyond its limits: the
# first of them widened these. Noticed by:
# test_workload_trends.py::test_a_fall_in_the_last_nights_is_not_stable
_LATE = 3, 2
# Share of unchanged series whose last campaigns, each of them, are as far below the earlier ones.
# Noticed by: the same
_LATE_FALSE_ALARMS = 0.02


class State(StrEnum):
    """What the values of a workload show."""

    REGRESSION = "regression"
    OUTSIDE = "outside limits"
    IMPROVED = "improved"
    STABLE = "stable"
    TOO_FEW = "too few to say"

    @property
    def is_bad(self) -> bool:
        """Whether the workload got worse."""
        return self in {State.REGRESSION, State.OUTSIDE}


@dataclass(frozen=True)
class Limits:
    """Control limits, and the centre between them."""

    low: float
    centre: float
    high: float


@dataclass(frozen=True)
class LevelChange:
    """A change of the level between two campaigns."""

    place: int  # first campaign of the new level, counted from 0 among the workload's own
    before: float  # median of the level before
    after: float  # median of the level after
    found: int  # campaign after which it was found; never before
    # what else differs between the two campaigns, such as ``kernel: 6.1 -> 6.8``
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Trend:
    """One metric of one workload over campaigns."""

    label: str  # the workload in words
    job: str  # its name in all campaigns; empty where it has several
    by: Mapping[str, str]  # further columns that distinguish workloads
    measure: Measure  # the metric
    campaigns: tuple[str, ...]  # their names, in order
    started_utc: tuple[str, ...]  # their starts; empty texts where they are not known
    results: Floats  # the metric in each
    reference: int  # number of campaigns of the reference period
    limits: Limits | None  # of the campaigns behind the reference period; None without
    changes: tuple[LevelChange, ...]  # of the level
    tolerance: float  # acceptable relative change for the worse
    shortage: str = ""  # reason for missing or useless limits
    is_blind: bool = False  # whether the limits are too wide to decide
    is_late: bool = False  # whether it fell in the last campaigns, which are too few to be a level
    disturbed: tuple[str, ...] = ()  # further campaigns, left out since the host disturbed them
    paced: tuple[str, ...] = ()  # further campaigns, left out since fio was asked to keep a rate
    last_jobs: tuple[str, ...] = ()  # names of the workload in its last campaign
    cleared: str = ""  # why a repetition refutes the alarm of its state
    asked: str = ""  # what fio was asked to keep, such as ``rate_iops=3000``

    @property
    def name(self) -> str:
        """Its workload and what else distinguishes it."""
        return ", ".join([self.label, *self.by.values()])

    @property
    def seen(self) -> set[str]:
        """Campaigns that measured it, also those that are left out."""
        return {*self.campaigns, *self.disturbed, *self.paced}

    @property
    def base(self) -> float:
        """Median of the reference period."""
        return float(np.median(self.results[: self.reference]))

    @property
    def level(self) -> float:
        """Median since the last change."""
        first = self.changes[-1].place if self.changes else 0
        return float(np.median(self.results[first:]))

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it got worse before or after too few campaigns to be a level, and not again."""
        first, worse = self.changes[0] if self.changes else None, self.loss(self.level)
        if self.is_late:
            return True
        if first is None or first.place >= MIN_BEFORE or worse <= self.tolerance:
            return False
        return worse - self.loss(first.after) <= self.tolerance

    @property
    def is_new(self) -> bool:
        """Whether the last campaign made the state what it is."""
        is_found = bool(self.changes) and self.changes[-1].found == len(self.results) - 1
        return self.state is State.OUTSIDE or (
            self.state in {State.REGRESSION, State.IMPROVED} and is_found
        )

    @property
    def outside(self) -> tuple[int, ...]:
        """Places of the campaigns behind the reference period that are beyond a limit."""
        if self.limits is None:
            return ()
        beyond = (self.results < self.limits.low) | (self.results > self.limits.high)
        return tuple(int(place) for place in np.flatnonzero(beyond) if place >= self.reference)

    @property
    def state(self) -> State:
        """What the values show."""
        if len(self.results) <= MIN_REFERENCE:
            return State.TOO_FEW
        worse = self.loss(self.level)
        if self.is_unconfirmed:
            return State.TOO_FEW
        if self.changes and worse > self.tolerance:
            return State.REGRESSION
        last = len(self.results) - 1
        if last in self.outside and self.loss(float(self.results[last])) > self.tolerance:
            return State.OUTSIDE
        if self.changes and -worse > self.tolerance:
            return State.IMPROVED
        return State.TOO_FEW if self.is_blind else State.STABLE

    @property
    def is_alarm(self) -> bool:
        """Whether it got worse, which no repetition refutes."""
        return self.state.is_bad and not self.cleared

    def loss(self, value: float) -> float:
        """Return by how much a value is worse than the reference period, as a share of it."""
        change = value / self.base - 1 if self.base else math.inf
        return -change if self.measure.more_is_better else change


@dataclass(frozen=True)
class Trends:
    """All trends of a question; `remarks` are caveats, one sentence each."""

    rows: tuple[Trend, ...]
    remarks: tuple[str, ...]
    campaigns: tuple[str, ...] = ()  # names of all campaigns, also of those left out, in order

    @property
    def last(self) -> str:
        """Name of the last campaign."""
        return self.campaigns[-1]

    @property
    def judged(self) -> tuple[Trend, ...]:
        """Workloads that occur in enough campaigns; all workloads if none does."""
        few = State.TOO_FEW
        enough = tuple(t for t in self.rows if t.is_blind or t.changes or t.state is not few)
        return enough or self.rows

    @property
    def undecided(self) -> tuple[Trend, ...]:
        """Workloads of the last campaign that have too few campaigns to say."""
        few = (trend for trend in self.rows if trend.state is State.TOO_FEW)
        return tuple(trend for trend in few if self.last in trend.seen)

    @property
    def false_alarms(self) -> float:
        """Greatest probability that an unchanged campaign is beyond a limit for the worse."""
        shares = [_false_alarms(trend.reference) for trend in self.rows if trend.limits]
        return max(shares, default=math.nan)


def record_of(trend: Trend) -> dict[str, object]:
    """Return a trend as plain values for other programs: base SI units, None for unknown."""
    limits = trend.limits
    return {
        "workload": trend.label,
        "job": trend.job or None,
        **trend.by,
        "metric": trend.measure.column,
        "state": trend.state.value,
        "is_new": trend.is_new,
        "cleared": trend.cleared or None,
        "campaigns": len(trend.campaigns),
        "reference_campaigns": trend.reference,
        "reference_value": trend.base,
        "limit_low": limits.low if limits else None,
        "limit_high": limits.high if limits else None,
        "value": trend.level,
        "loss_percent": 100 * trend.loss(trend.level),
        "last_campaign": trend.campaigns[-1],
        "last_started_utc": trend.started_utc[-1] or None,
        "last_value": float(trend.results[-1]),
        "outside": [trend.campaigns[place] for place in trend.outside],
        "disturbed": list(trend.disturbed),
        "paced": list(trend.paced),
        "shortage": trend.shortage or None,
        "changes": [
            {
                "campaign": trend.campaigns[change.place],
                "started_utc": trend.started_utc[change.place] or None,
                "found_campaign": trend.campaigns[change.found],
                "before": change.before,
                "after": change.after,
                "facts": list(change.facts),
            }
            for change in trend.changes
        ],
    }


@dataclass(frozen=True)
class TrendQuestion:
    """A trend to look for."""

    # user-visible names; empty for IOPS and p99, or bandwidth where IOPS are unknown
    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] = ()  # columns that keep workloads apart
    reference: int | None = None  # number of campaigns of the reference period; None to choose
    tolerance: float = TOLERANCE  # acceptable relative change for the worse
    keep_invalid: bool = False  # keep runs that a rule marked invalid, or that the host disturbed
    allowed: tuple[str, ...] = ()  # options of fio that may differ over the campaigns

    def __post_init__(self) -> None:
        """Check the tolerance: 5 is easily written for 5 %."""
        check_share("tolerance", self.tolerance, least=0)


def find_trends(
    summary: pd.DataFrame,
    findings: pd.DataFrame,
    question: TrendQuestion,
    *,
    facts: Facts | None = None,
    sums: pd.DataFrame | None = None,
) -> Trends:
    """Return the trend of each workload and metric over campaigns, in order of their starts.

    Args:
        summary: of all campaigns; with its options (`run_facts.with_options`) these are compared.
        sums: over the clients of each step, the frame ``aggregate``; None for none.
    """
    if sums is None or sums.empty:
        summary = _nights(summary)
    rows, remarks = _valid_rows(summary, findings, question)
    rows = rows if sums is None or sums.empty else with_sums(rows, sums)
    if rows.empty:
        raise _no_trend(remarks)
    by = [find_column(name, list(rows.columns)) for name in question.by]
    measures = [known_latency(m, rows) for m in find_measures(question.metrics, rows)]
    starts, dated = _starts(summary)
    cells = cells_of_frame(
        rows,
        rows["campaign"].astype(str).tolist(),
        compared=by,
        apart=[*rows[by].astype(str).itertuples(index=False, name=None)],
        always=WORKLOAD,
    )
    rows = rows.assign(
        _place=rows["campaign"].map({name: place for place, name in enumerate(starts)}),
        _cell=cells.numbers,
        _label=cells.labels,
        _noisy=False if question.keep_invalid else _is_disturbed(rows, findings),
    )
    apart = _volumes_apart(rows, by)
    rows["_cell"] = rows.groupby(["_cell", *apart], sort=False, dropna=False).ngroup()
    by += apart
    remarks += _check_options(rows, question, by)
    trends = [
        trend
        for _, group in rows.groupby("_cell", sort=False)
        for measure in measures
        if (trend := _trend(group, by, measure, starts, question)) is not None
    ]
    if not trends:
        raise _no_trend(remarks)
    judged = max(1, sum(not trend.shortage for trend in trends))
    limited = [_add_late_fall(_add_limits(trend, judged), judged) for trend in trends]
    done = [_add_facts(trend, facts or {}) for trend in limited]
    if not dated:
        remarks.append("some campaigns have no start time: all are sorted by name")
    names = tuple(starts)
    return Trends(tuple(done), (*remarks, *_left_out_remarks(trends, names)), names)


def _nights(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of a single campaign as a campaign of each night, as imported results are."""
    starts = pd.to_datetime(rows["started_utc"], utc=True, format="ISO8601").sort_values()
    numbers = starts.diff().gt(_NIGHT).cumsum()
    if len(rows["campaign"].unique()) > 1 or starts.isna().any() or not numbers.any():
        return rows
    firsts = starts.groupby(numbers).min()
    form = "%Y-%m-%d" if firsts.dt.date.is_unique else "%Y-%m-%d %H:%M"
    return rows.assign(campaign=numbers.map(firsts.dt.strftime(form)))


def _volumes_apart(rows: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the arms, labels and volumes of which a campaign has several for a workload.

    They are no repeats. A volume that is called otherwise in each campaign is one, as are hosts
    that measure one path.
    """
    labels = [str(name) for name in rows if str(name).startswith(LABEL_PREFIX)]
    keys = ["campaign", "_cell", *by]
    first = len(keys)
    for name in (ARM, *labels, "volume"):
        if name in rows and name not in keys:
            several = rows.groupby(keys, dropna=False)[name].nunique(dropna=False).max() > 1
            keys += [name] if several else []
    return keys[first:]


def _no_trend(remarks: Sequence[str]) -> ComparisonError:
    return ComparisonError(
        "there is no trend to show" + "".join(f"; {remark}" for remark in remarks),
        hint="only finished, measured runs that match --where and report the metric are used",
    )


def _valid_rows(
    summary: pd.DataFrame, findings: pd.DataFrame, question: TrendQuestion
) -> tuple[pd.DataFrame, list[str]]:
    remarks = [
        f"{count} {'run' if count == 1 else 'runs'} {state}, left out"
        for state, count in left_out(summary).items()
    ]
    rows = measured(summary).assign(side="all campaigns")
    if not question.keep_invalid:
        rows, excluded = without_invalid(rows, findings)
        remarks += excluded
    return rows, remarks


def _check_options(
    rows: pd.DataFrame, question: TrendQuestion, by: Sequence[str]
) -> tuple[str, ...]:
    options = [name for name in option_columns(rows) if not name.startswith("_")]
    options += [name for name in ("ioengine", "size_bytes") if name in rows]
    columns = {"side": rows["campaign"], "cell": rows["_cell"], "label": rows["_label"]}
    sides = rows.assign(**columns).sort_values("_place", kind="stable")
    comparability = check_comparable(
        sides.drop_duplicates(["cell", *options]),  # the first campaign of each change
        facts=[name for name in options if name not in by],
        allowed=[find_fact(name, options) for name in question.allowed],
        base=str(sides["campaign"].iloc[0]),
        compares_values=False,
    )
    return tuple(comparability.remarks)


def _starts(rows: pd.DataFrame) -> tuple[dict[str, str], bool]:
    begun = rows[rows["status"] != RunState.PLANNED.value]
    starts = begun.groupby("campaign", sort=False)["started_utc"].min()
    dated = bool(starts.notna().all())
    ordered = starts.sort_values(kind="stable") if dated else starts.sort_index()
    return {
        str(name): start if isinstance(start, str) else "" if pd.isna(start) else utc_text(start)
        for name, start in ordered.items()
    }, dated


def _trend(
    group: pd.DataFrame,
    by: Sequence[str],
    measure: Measure,
    starts: Mapping[str, str],
    question: TrendQuestion,
) -> Trend | None:
    first, jobs = group.iloc[0], group["job"].unique()
    known = _totals(group, measure)
    medians = known.groupby(group["_place"]).median()
    if not len(medians):
        return None
    names, asked = list(starts), _asked_rates(group.loc[known.index])
    paced = [place for place in medians.index if asked[place]] if not all(asked.values()) else []
    medians = medians.drop(paced)
    is_most = group["_noisy"][known.index].groupby(group["_place"]).mean() >= _MOST_RUNS
    # where most campaigns are disturbed, they are like each other
    is_most = is_most[medians.index]
    disturbed = medians.index[is_most & (is_most.mean() < _MOST_RUNS)]
    medians = medians.drop(disturbed)
    campaigns = tuple(names[int(str(place))] for place in medians.index)
    numbers = np.asarray(medians, dtype=np.float64)
    changes = _level_changes(numbers, measure, question.tolerance)
    until = min((change.place for change in changes), default=len(numbers))
    reference = reference_length(len(numbers), question.reference, until)
    return Trend(
        label=str(first["_label"]),
        asked="" if paced else next(iter(asked.values())),
        job=str(jobs[0]) if len(jobs) == 1 else "",
        last_jobs=tuple(group["job"][group["_place"].eq(group["_place"].max())].unique()),
        by={name.removeprefix(LABEL_PREFIX): value_text(name, first[name]) for name in by},
        measure=measure,
        campaigns=campaigns,
        started_utc=tuple(starts[name] for name in campaigns),
        results=numbers,
        reference=reference,
        limits=None,
        changes=changes,
        tolerance=question.tolerance,
        shortage=_shortage(len(numbers), reference, until),
        disturbed=tuple(names[int(str(place))] for place in disturbed),
        paced=tuple(names[int(str(place))] for place in paced),
    )


def _asked_rates(group: pd.DataFrame) -> dict[object, str]:
    """Return what fio was asked to keep in each campaign, by its place; empty for nothing."""
    firsts = group.groupby("_place").first()
    return {
        place: asked_rate({str(name): value for name, value in row.dropna().items()})
        for place, row in firsts.iterrows()
    }


def _totals(group: pd.DataFrame, measure: Measure) -> pd.Series[float]:
    """Return a metric of each result; a rate of clients that ran at one time is their total."""
    values = values_of_measure(group, measure).astype(float)
    if measure.column not in ADDED or "aggregate_clients" not in group:
        return values.dropna()
    clients = group["aggregate_clients"]
    steps = values.groupby([group["campaign"], group[STEP]])
    totals = group[f"aggregate_{measure.column}"].astype(float)
    totals = totals.where(clients.eq(steps.transform("size")), steps.transform("sum"))
    are_known = totals[clients.gt(1)].notna().any()
    return (values.mask(clients.gt(1), totals) if are_known else values).dropna()


def _is_disturbed(rows: pd.DataFrame, findings: pd.DataFrame) -> list[bool]:
    noisy = findings[findings["rule"] == Cause.HOST_NOISE.value]
    named = set(zip(noisy["run"], noisy["direction"], strict=True))
    return [pair in named for pair in zip(rows["run"], rows["direction"], strict=True)]


def _level_changes(values: Floats, measure: Measure, tolerance: float) -> tuple[LevelChange, ...]:
    found = find_level_changes(
        _logs(values), worse=-1 if measure.more_is_better else 1, least_step=tolerance or 0.01
    )
    bounds = [0, *(change.place for change in found), len(values)]
    levels = [median(values[first:last]) for first, last in pairwise(bounds)]
    return tuple(
        LevelChange(change.place, before, after, change.found)
        for change, (before, after) in zip(found, pairwise(levels), strict=True)
    )


def _logs(values: Floats) -> Floats:
    floor = _FLOOR * median(values) or 1e-12
    logs: Floats = np.log(np.maximum(values, floor))
    return logs


def reference_length(count: int, wanted: int | None, changed: int) -> int:
    """Return the length of the reference period, which ends before the first change, or `count`."""
    usual = max(1, min(USUAL_REFERENCE, count - 1), count // 2)
    return min(wanted or min(MAX_REFERENCE, usual), count, changed)


def _shortage(count: int, reference: int, until: int) -> str:
    if count <= MIN_REFERENCE:
        return f"{count} of at least {MIN_REFERENCE + 1} campaigns"
    if reference < MIN_BEFORE and until < count:
        campaigns = counted_noun(reference, "campaign")
        return f"{campaigns} before {'is' if reference == 1 else 'are'} too few to confirm it"
    if reference < MIN_REFERENCE:
        return (
            f"no limits: the reference period has {reference} of at least {MIN_REFERENCE} campaigns"
        )
    if reference == count:
        return "no limits: no campaign after the reference period"
    return ""


def limits_of(
    reference: Floats, rows: int, resolution: float, false_alarms: float | None = None
) -> tuple[float, float, float]:
    """Return lower limit, centre and upper limit, of `rows` trends that share the false alarms."""
    logs = _logs(reference)
    count = len(logs)
    share = (_false_alarms(count) if false_alarms is None else false_alarms) / rows
    scatter = float(np.abs(np.diff(logs)).mean()) / _NEIGHBOURS
    width = student_quantile(_FREEDOM * (count - 1), 1 - share) * math.sqrt(1 + 1 / count)
    half = max(width * scatter, math.log1p(resolution))
    low, centre, high = (math.exp(float(logs.mean()) + side * half) for side in (-1, 0, 1))
    return low, centre, high


def _false_alarms(reference: int) -> float:
    return FALSE_ALARMS if reference >= _LONG_REFERENCE else EARLY_FALSE_ALARMS


def _add_limits(trend: Trend, rows: int) -> Trend:
    if trend.shortage:
        return trend
    reference = trend.results[: trend.reference]
    limits = Limits(*limits_of(reference, rows, trend.measure.resolution))
    is_early = len(reference) < _LONG_REFERENCE
    most = _MAX_EARLY_FACTOR if is_early else _MAX_FACTOR
    if (factor := limits.high / limits.centre) > most:
        shown = f"{min(factor, _MAX_FACTOR):.2g}x"
        why = f"{len(reference)} reference campaigns are too few to show a change below {shown}"
        return replace(trend, limits=limits, shortage=why, is_blind=True)
    return replace(trend, limits=limits)


def _add_late_fall(trend: Trend, rows: int) -> Trend:
    """Add the fall in the last campaigns of a short series that is stable otherwise."""
    if trend.state is not State.STABLE or trend.reference >= _LONG_REFERENCE or trend.changes:
        return trend
    for after in _LATE:
        before, last = trend.results[:-after], trend.results[-after:]
        if len(before) < MIN_BEFORE:
            continue
        low, _, high = limits_of(before, rows, trend.measure.resolution, _LATE_FALSE_ALARMS)
        more_is_better, level = trend.measure.more_is_better, median(before)
        beyond = last < low if more_is_better else last > high
        fall = LevelChange(len(before), level, median(last), len(trend.results) - 1)
        late = replace(
            trend,
            changes=(fall,),
            reference=len(before),
            limits=None,
            shortage=f"the last {after} campaigns are too few to confirm it",
            is_late=True,
        )
        if beyond.all() and late.loss(fall.after) > trend.tolerance:
            return late
    return trend


def _add_facts(trend: Trend, facts: Facts) -> Trend:
    def of(change: LevelChange) -> LevelChange:
        places = (change.place - 1, change.place)
        before, after = (facts.get(trend.campaigns[place], {}) for place in places)
        differing = [n for n in before if n in after and before[n] != after[n]]
        return replace(change, facts=tuple(f"{n}: {before[n]} -> {after[n]}" for n in differing))

    return replace(trend, changes=tuple(of(change) for change in trend.changes))


def _left_out_remarks(trends: Sequence[Trend], campaigns: Sequence[str]) -> list[str]:
    """Return which campaigns count in no trend or not in all, each with its reason."""
    count = counted_noun(len(trends), "trend")
    noisy = Counter(trend.disturbed for trend in trends if trend.disturbed)
    rule = quoted(Cause.HOST_NOISE.value)
    said = [
        f"left out of {rows} of {count}: {first_names(names[::-1], _MAX_NAMED)}: the host disturbed"
        f" at least half of the runs; see volbench check --rule {rule} DIR"
        for names, rows in noisy.items()
    ]
    paced = Counter(trend.paced for trend in trends if trend.paced)
    said += [
        f"left out of {rows} of {count}: {first_names(names[::-1], _MAX_NAMED)}: fio was asked to"
        " keep a rate there, which says nothing about the volume"
        for names, rows in paced.items()
    ]
    seen = {name for trend in trends for name in trend.seen}
    if empty := [name for name in campaigns[::-1] if name not in seen]:
        said.append(f"no valid result in {first_names(empty, _MAX_NAMED)}")
    elif gone := [trend.name for trend in trends if campaigns[-1] not in trend.seen]:
        said.append(f"not in {campaigns[-1]}: {first_names(gone, _MAX_NAMED)}")
    return said
