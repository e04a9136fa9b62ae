"""The search for the highest rate within a latency, on volumes whose answer is known."""

import random
from collections.abc import Callable

import pytest

from volbench.analyse.compare.rate_search import (
    RateSearch,
    Trial,
    asked_iops,
    searches_in,
    trial_of,
)
from volbench.analyse.frames.run_options import WITHIN
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind
from volbench.model.profile.profile_settings import MAX_TRIALS
from volbench.present.rate_words import bound_shortage, rate_words


def volume_of(capacity: float, most: float, noise: float, seed: int) -> Callable[[float], Trial]:
    """Return a volume that does `capacity` IOPS, and keeps its bound up to `most` of them."""
    draw = random.Random(seed)  # noqa: S311 - a simulation must be repeatable

    def run(asked: float) -> Trial:
        own = capacity * draw.gauss(1, noise)
        rate = min(asked or own, own)
        kept = rate <= most * draw.gauss(1, noise / 2)
        return Trial(asked, rate, (0.001 if kept else 0.1,), kept)

    return run


def searched(volume: Callable[[float], Trial]) -> RateSearch:
    """Search until the end."""
    trials: list[Trial] = []
    while len(trials) < MAX_TRIALS and (rate := RateSearch(trials).next_rate()) is not None:
        trials.append(volume(rate))
    return RateSearch(trials)


@pytest.mark.parametrize(("noise", "least"), [(0.0, 0.99), (0.02, 0.95)])
def test_answers_are_within_five_percent(noise: float, least: float) -> None:
    """Of 400 volumes, whatever share of their rate keeps the bound, hardly ever above the truth."""
    errors: list[float] = []
    draw = random.Random(59)  # noqa: S311 - same
    for seed in range(400):
        capacity, share = 10 ** draw.uniform(2, 6), draw.choice([draw.uniform(0.06, 1), 1.2])
        found = searched(volume_of(capacity, share * capacity, noise, seed)).kept
        assert found is not None
        errors.append(found.rate / (capacity * min(1.0, share)) - 1)
    assert sum(abs(error) <= 0.05 for error in errors) >= least * len(errors)
    assert sum(error > 0.05 for error in errors) <= (1 - least) * len(errors)


def test_a_bound_that_no_rate_keeps_ends_the_search() -> None:
    """Rates below a thirty-second of what the volume does are not tried."""
    search = searched(volume_of(32_000, 0, 0, 1))
    assert search.kept is None
    assert not search.is_contradictory
    assert [level.asked for level in search.levels][:2] == [1800, 3600]
    assert not Trial(1000, 900, (0.001,), met=True).is_kept
    assert Trial(1000, 980, (0.001,), met=True).is_kept


def test_repeats_that_differ_leave_the_answer_undecided() -> None:
    """One of three runs at the answer missed the bound."""
    rates = [(0.0, False), (90.0, False), (87.0, True), (87.0, False), (87.0, True)]
    search = RateSearch([Trial(asked, asked or 100, (1.0,), met) for asked, met in rates])
    assert search.is_contradictory


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rw": "randread"}, "900"),
        ({"rw": "randread", "numjobs": "4"}, "225"),
        ({"rw": "randrw", "rwmixread": "70"}, "630,270"),
        ({"rw": "rw", "rwmixwrite": "100"}, "1,899"),
    ],
)
def test_a_rate_is_shared_by_jobs_and_directions(options: dict[str, str], text: str) -> None:
    """Each job and each direction has an option of its own in fio."""
    volume = Volume(role="data", kind=VolumeKind.DEVICE, target="/dev/sdx")
    sections = (Section(name="a", options=options),)
    assert (
        asked_iops(Run(id="a", profile="p", job="a", volume=volume, sections=sections), 900) == text
    )


def test_the_worst_client_decides_and_rates_are_added_up() -> None:
    """Of two clients one misses the bound, so that the trial does."""
    row = {"direction": "read", "iops": 50.0, "rate_iops": "50", "numjobs": 1}
    rows = [{**row, "run": "a", "lat_p99_s": 0.001}, {**row, "run": "b", "lat_p99_s": 0.009}]
    assert trial_of(rows, ["p99 < 5ms"]) == Trial(100, 100, (0.009,), met=False)
    assert trial_of([{**row, "run": "a"}], ["p99 < 5ms"]) is None
    own = {"campaign": "c", "profile": "p", "job": "r", WITHIN: ("p99 < 5ms",)}
    whole = [{**own, **each, "repeat": 1} for each in rows]
    (found,) = searches_in([*whole, {**whole[0], "repeat": 2}])  # without the second client
    assert len(found.search.trials) == 1


@pytest.mark.parametrize(
    ("ios", "words"), [(112, "p99 needs 1,000 I/Os, a run has"), (1000, "no rate")]
)
def test_a_percentile_of_too_few_ios_decides_nothing(ios: int, words: str) -> None:
    """The lowest rate missed the bound, with a p99 of a single I/O."""
    own = {"campaign": "c", "profile": "p", "job": "r", "run": "a", WITHIN: ("p99 < 5ms",)}
    result = {"direction": "read", "total_ios": ios, "lat_p99_s": 0.02, "iops": 28.0}
    rows = [{**own, **result, "repeat": 1, "rate_iops": "28"}]
    (found,) = searches_in(rows)
    shortage = bound_shortage(rows, found)
    assert words in rate_words(found, shortage)
