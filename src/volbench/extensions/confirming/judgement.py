"""Judgement of a repetition: is an alarm confirmed, gone, or that of a slower host?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from volbench.analyse.compare.comparison import Comparison, Question
from volbench.analyse.compare.comparison_result import Compared, Regression
from volbench.analyse.compare.repeat_statistics import MIN_REPEATS, unpaired_contrast
from volbench.analyse.compare.workload_trends import (
    LevelChange,
    State,
    Trend,
    TrendQuestion,
    Trends,
)
from volbench.api.compare_campaigns import compare_folders, dataset_trends
from volbench.api.many_campaigns import Dataset, campaign_folders, open_campaigns
from volbench.api.one_campaign import campaign_data
from volbench.errors import InputError
from volbench.extensions.confirming.host_speed import slowdown, speed_words, speeds_of
from volbench.model.results.finding import Cause
from volbench.present.formatting import printable
from volbench.present.tables.compare_table import measure_name
from volbench.store.layout import Layout
from volbench.units import counted_noun, percent

_FRAMES = "verdicts", "findings", "device", "summary"
_LIMITS = [Cause.IOPS_LIMIT, Cause.BANDWIDTH_LIMIT]
# Least loss of speed of a host that excuses that of a workload, as a share of it.
# Noticed by: test_confirm.py::test_a_slower_host_excuses_its_own_loss
_MIN_EXCUSED = 0.8
# Time of an I/O in which its task wakes up, at most; it is neither CPU time nor run-queue delay.
# Noticed by: test_confirm.py::test_an_alarm_is_confirmed_by_a_repetition
_WAKEUP_S = 1e-4


class Outcome(StrEnum):
    """What a repetition says of an alarm."""

    CONFIRMED = "regression confirmed"
    GONE = "gone on repetition"
    HOST = "the host was slower, not the volume"


@dataclass(frozen=True)
class Alarm:
    """An alarm, and what is known of its repetition."""

    name: str  # its workload and metric
    loss: float  # by which the first result is worse than the reference, as a share
    again: float  # by which the repetition is; NaN where it has no result
    tolerance: float  # loss up to which a result is back to what it was
    host: float  # share by which the host of the first result was slower than usual
    host_again: float  # the same for the repetition
    possible: float = 1.0  # share of the speed that a host can have cost the first result
    possible_again: float = 1.0  # the same for the repetition
    is_rate: bool = True  # and not a latency, which grows by more than the speed falls

    @property
    def outcome(self) -> Outcome:
        """What the repetition says; a slower host excuses a loss about as large as its own."""
        if math.isnan(self.again) or self.again > self.tolerance:
            excused = self._is_excused(self.again, min(self.host_again, self.possible_again))
            return Outcome.HOST if excused else Outcome.CONFIRMED
        excused = self._is_excused(self.loss, min(self.host, self.possible))
        return Outcome.HOST if excused else Outcome.GONE

    def _is_excused(self, loss: float, by_host: float) -> bool:
        lost = loss if self.is_rate else loss / (1 + loss)
        return by_host > 0 and by_host >= _MIN_EXCUSED * lost

    @property
    def words(self) -> str:
        """The outcome with its numbers."""
        if math.isnan(self.again):
            return f"{self.name}: not refuted: the repetition has no result that counts"
        numbers = f"{_loss_words(self.loss)} at first, {_loss_words(self.again)} in the repetition"
        slow, possible = max((self.host_again, self.possible_again), (self.host, self.possible))
        end = "as well" if self.outcome is Outcome.CONFIRMED else "than usual"
        if possible < slow:
            end += ", but not the cause: " + (
                f"fio needs it for at most {percent(possible)} % of the time"
                if possible
                else "a limit held the rate"
            )
        host = f"; host {100 * slow:.0f} % slower {end}" if slow > 0 else ""
        return f"{self.name}: {self.outcome.value}: {numbers}{host}"


def _loss_words(loss: float) -> str:
    return f"{percent(abs(loss))} % {'worse' if loss > 0 else 'better'}"


def explained(result: Any, *asked: Any) -> Any:  # noqa: ANN401 - trends, or a comparison
    """Return a result that names a host that was slower than usual."""
    return _subject(result, *asked, "").explained


def judged_again(result: Any, *asked: Any, measure: Callable[[Path, set[str]], Path]) -> Any:  # noqa: ANN401 - as above
    """Return a result without the alarms that its jobs refute, measured again in a new folder."""
    subject = _subject(result, *asked)
    campaign, rows = subject.folder, subject.alarming
    jobs = {job for row in rows for job in subject.jobs_of(row)}
    if not jobs:
        return result
    said = f"{counted_noun(len(rows), 'alarm')}, to be confirmed: {', '.join(sorted(jobs))}"
    click.echo(printable(said), err=True)
    folder = measure(campaign, jobs)
    repeated = subject.again(folder)
    usual, own = subject.speeds
    speeds = own, _speeds_in(folder)
    hosts = [slowdown(each[-1], usual)[0] if each and usual else 0.0 for each in speeds]
    found = []
    for row in rows:
        jobs, is_rate = set(subject.jobs_of(row)), row.measure.more_is_better
        first, again = (_possible_loss(path, jobs, is_rate=is_rate) for path in (campaign, folder))
        found.append(Alarm(*(*subject.losses(row, repeated), *hosts, first, again, is_rate)))
        click.echo(printable(found[-1].words), err=True)
    outcomes = {id(row): alarm.outcome for row, alarm in zip(rows, found, strict=True)}
    refuted = {row: said.value for row, said in outcomes.items() if said is not Outcome.CONFIRMED}
    remarks = (*result.remarks, *(alarm.words for alarm in found))
    return replace(result, rows=subject.judged(refuted, repeated), remarks=remarks)


def _subject(result: Any, *asked: Any) -> Any:  # noqa: ANN401 - of either kind
    return (_Comparison if isinstance(result, Comparison) else _Trends)(result, *asked)


@dataclass(frozen=True)
class _Trends:
    """Trends, whose last campaign may be measured again."""

    result: Trends
    dataset: Dataset
    question: TrendQuestion
    where: str

    @cached_property
    def known(self) -> dict[str, tuple[float, ...]]:
        return speeds_of(self.dataset.summary())

    @property
    def explained(self) -> Trends:
        """The trends with a slower host in the last campaign, and beside changes."""
        words = {name: speed_words(own, [*self.known.values()]) for name, own in self.known.items()}

        def changed(row: Trend, change: LevelChange) -> LevelChange:
            before, after = (
                words.get(row.campaigns[at], "") for at in (change.place - 1, change.place)
            )
            said = (f"host {after}",) if after and after != before else ()
            return replace(change, facts=(*change.facts, *said))

        rows = tuple(
            replace(row, changes=tuple(changed(row, each) for each in row.changes))
            for row in self.result.rows
        )
        last = words.get(self.result.last, "")
        said = (f"host {last} than usual in {self.result.last}",) if last else ()
        return replace(self.result, rows=rows, remarks=(*self.result.remarks, *said))

    @property
    def folder(self) -> Path:
        return self.dataset.names[self.result.last].path

    @property
    def alarming(self) -> list[Trend]:
        rows = self.result.rows
        return [row for row in rows if row.is_alarm and row.campaigns[-1] == self.result.last]

    @property
    def speeds(self) -> tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]:
        """Calibrations of the host in all campaigns, and in the last one."""
        own = [self.known[name] for name in self.known if name == self.result.last]
        return [*self.known.values()], own

    @staticmethod
    def jobs_of(row: Trend) -> Sequence[str]:
        return row.last_jobs

    def again(self, folder: Path) -> Trends:
        campaigns = [*self.dataset.names.values(), campaign_data(folder)]
        return dataset_trends(Dataset(campaigns, where=self.where), self.question)

    @staticmethod
    def losses(row: Trend, repeated: Trends) -> tuple[str, float, float, float]:
        limit = row.limits and (row.limits.low if row.measure.more_is_better else row.limits.high)
        least = row.loss(row.level) / 2
        if row.state is State.OUTSIDE and isinstance(limit, float):
            least = row.loss(limit)
        values = [
            float(each.results[-1])
            for each in repeated.rows
            if (each.name, each.measure) == (row.name, row.measure)
            and each.campaigns[-1] == repeated.last
        ]
        again = row.loss(values[0]) if values else math.nan
        name = f"{row.name} {measure_name(row.measure)}"
        return name, row.loss(float(row.results[-1])), again, max(row.tolerance, least)

    def judged(self, refuted: Mapping[int, str], _: Trends) -> tuple[Trend, ...]:
        return tuple(replace(row, cleared=refuted.get(id(row), "")) for row in self.result.rows)


def _possible_loss(path: Path, jobs: set[str], *, is_rate: bool) -> float:
    """Return the share of the speed of jobs that their host can have cost; 0 at a limit."""
    verdicts, findings, device, summary = (
        rows[rows["job"].isin(jobs)] for rows in map(campaign_data(path).frame, _FRAMES)
    )
    if verdicts["bottleneck"].isin(_LIMITS).any() or (findings["rule"] == "throttled").any():
        return 0.0
    used = (summary["cpu_usr"] + summary["cpu_sys"]).max() / 100
    waits = device["tool_wait_percent"].sum() / max(len(device), 1) / 100  # unknown ones are 0
    return float(used + waits + _WAKEUP_S * summary["iops"].max()) if is_rate else 1.0  # or p99


def _speeds_in(path: str | Path) -> list[Sequence[float]]:
    """Return the calibrations of hosts in campaigns; results of fio have none."""
    with suppress(InputError):
        folders = campaign_folders(Path(path), with_results=False)
        return [*speeds_of(open_campaigns(*folders).summary()).values()]
    return []


def _are_at_limits(path: str | Path) -> bool:
    """Return whether a limit held the rate of each run, so that its host did not."""
    verdicts = open_campaigns(*campaign_folders(Path(path), with_results=False)).frame("verdicts")
    return bool(len(verdicts) and verdicts["bottleneck"].isin(_LIMITS).all())


@dataclass(frozen=True)
class _Comparison:
    """A comparison, whose candidate may be measured again."""

    result: Comparison
    campaigns: Sequence[str | Path]
    question: Question
    where: str

    @property
    def explained(self) -> Comparison:
        """The comparison with the hosts that were slower than that of the base."""
        usual, *others = map(_speeds_in, self.campaigns)
        limited = ", but a limit held the rate of every run"
        said = [
            f"host {words} in {Path(folder).name} than in {Path(self.campaigns[0]).name}"
            f"{limited if _are_at_limits(folder) else ''}"
            for folder, speeds in zip(self.campaigns[1:], others, strict=True)
            for words in sorted({speed_words(own, usual) for own in speeds if usual} - {""})
        ]
        return replace(self.result, remarks=(*self.result.remarks, *said))

    @property
    def folder(self) -> Path:
        folder = Path(self.campaigns[-1])
        if len(self.campaigns) != 2 or not Layout(folder).campaign.exists():
            raise InputError(
                "--confirm measures one CANDIDATE again, which is the folder of a campaign",
                hint="name two campaigns: volbench compare BASE CANDIDATE --baseline --confirm",
            )
        return folder

    @property
    def alarming(self) -> list[Compared]:
        if self.question.tolerance is None:
            raise InputError("--confirm measures regressions again", hint="add --baseline")
        return [row for row in self.result.rows if row.is_alarm and row.job]

    @property
    def speeds(self) -> tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]:
        """Calibrations of the host of the base, and of the candidate."""
        return _speeds_in(self.campaigns[0]), _speeds_in(self.campaigns[1])

    @staticmethod
    def jobs_of(row: Compared) -> Sequence[str]:
        return [row.job]

    def again(self, folder: Path) -> Comparison:
        return compare_folders([self.campaigns[0], folder], self.question, where=self.where)

    @staticmethod
    def losses(row: Compared, repeated: Comparison) -> tuple[str, float, float, float]:
        ratios = [each.ratio for each in _same_cell(row, repeated)]
        first, again = map(row.loss, (row.ratio, *(ratios or [math.nan])[:1]))
        name = f"{', '.join([row.label, *row.by.values()])} {measure_name(row.measure)}"
        return name, first, again, max(row.tolerance or 0.0, first / 2)

    def judged(self, refuted: Mapping[int, str], repeated: Comparison) -> tuple[Compared, ...]:
        """The rows: a single run that is slower is a regression if its repetition shows it."""
        alarming = {id(row) for row in self.alarming}

        def of(row: Compared) -> Compared:
            if id(row) in refuted:
                return replace(row, tolerance=None)
            untested = [] if row.contrast or id(row) not in alarming else _same_cell(row, repeated)
            return replace(row, confirmed=any(map(_is_shown, untested)))

        return tuple(map(of, self.result.rows))


def _same_cell(row: Compared, repeated: Comparison) -> list[Compared]:
    key = row.label, row.by, row.measure
    return [each for each in repeated.rows if (each.label, each.by, each.measure) == key]


def _is_shown(repeated: Compared) -> bool:
    """Return whether a repetition is worse than the base, which may be a single run."""
    base, candidate = repeated.base_group, repeated.candidate_group
    has_zero = any((group.values <= 0).any() for group in (base, candidate))
    if not repeated.contrast and candidate.repeats >= MIN_REPEATS and not has_zero:
        found = unpaired_contrast(base, candidate, resolution=repeated.measure.resolution)
        repeated = replace(repeated, contrast=found)
    return repeated.regression is Regression.SHOWN
