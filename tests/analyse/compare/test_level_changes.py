"""Changes of level over nights that are generated: found soon, found once, and seldom invented."""

import numpy as np
import pytest

from volbench.analyse.compare.level_changes import FoundChange, find_level_changes
from volbench.analyse.frames.resample import Floats

NIGHTS = 350


def changes_of(logs: Floats, *, least_step: float = 0.01) -> list[FoundChange]:
    """Return the changes of a rate."""
    return [*find_level_changes(logs, worse=-1, least_step=least_step)]


def noise(seed: int, *, nights: int = NIGHTS, size: float = 0.05, linked: float = 0.0) -> Floats:
    """Return normal noise, each night correlated with the one before it."""
    values = np.random.default_rng(seed).standard_normal(nights)
    for night in range(1, nights):
        values[night] *= np.sqrt(1 - linked**2)
        values[night] += linked * values[night - 1]
    return size * values


def falls(logs: Floats) -> int:
    """Return the number of changes for the worse."""
    changes = changes_of(logs)
    return sum(
        np.mean(logs[change.place : change.found + 1]) < np.mean(logs[: change.place])
        for change in changes
    )


def test_a_tenth_is_found_within_three_nights_at_five_percent_noise() -> None:
    """In most of 20 series; nearly always within a week, and dated to the night."""
    found, dated = [], []
    for seed in range(20):
        logs = noise(seed, nights=74)
        logs[60:] += np.log(0.9)
        new = [change for change in changes_of(logs) if change.found >= 60]
        found.append(new[0].found - 59 if new else np.inf)
        dated += [abs(change.place - 60) <= 2 for change in new[:1]]
    assert np.median(found) <= 3
    assert np.mean(np.array(found) <= 7) > 0.85
    assert np.mean(dated) > 0.8


@pytest.mark.slow
def test_a_year_has_less_than_one_false_alarm() -> None:
    """In the mean of 20 years that are only noise."""
    assert 2 < sum(falls(noise(seed)) for seed in range(20)) < 20


@pytest.mark.slow
def test_a_rise_needs_more_evidence() -> None:
    """It is not urgent, and its end would be a false alarm."""
    counts = [(falls(noise(seed)), len(changes_of(noise(seed)))) for seed in range(20)]
    worse, both = np.sum(counts, axis=0)
    assert both - worse < 0.7 * worse


@pytest.mark.slow
def test_what_was_found_stays_as_it_was() -> None:
    """More nights never move or withdraw a change."""
    logs = noise(3, nights=120)
    logs[40:] -= 0.1
    logs[80:] += 0.2
    all_of_them = changes_of(logs)
    assert len(all_of_them) >= 2
    for nights in range(5, 120):
        early = changes_of(logs[:nights])
        assert early == [change for change in all_of_them if change.found < nights]


def test_small_changes_take_longer() -> None:
    """One half of the noise needs weeks, and is found all the same."""
    logs = noise(5, nights=160)
    logs[60:] -= 0.04
    (change, *_) = [change for change in changes_of(logs) if change.found >= 60]
    assert change.found > 65


@pytest.mark.slow
def test_single_bad_nights_are_not_a_level() -> None:
    """Neither one, nor one night in 50."""
    logs = noise(2, nights=60)
    logs[50] -= 3
    assert not changes_of(logs)
    bad = [np.random.default_rng([1, seed]).random(NIGHTS) < 0.02 for seed in range(10)]
    assert sum(falls(noise(seed) - 0.4 * bad[seed]) for seed in range(10)) <= 20


def test_small_dips_do_not_hide_a_large_change() -> None:
    """Nights of a volume at its limit: some are half a percent low, and the last ones a fifth."""
    nights = [398.01, 396.47, 396.22, 398.16, 397.04, 398.23, 398.26, 396.77, 398.21, 398.31]
    logs = np.log([*nights, 398.23, 398.21, 398.31, 398.23, 398.21, 397.98, 318.22, 318.26])
    assert changes_of(logs, least_step=0.05) == [FoundChange(16, 17)]


def test_one_bad_night_of_a_quiet_volume_is_not_a_level() -> None:
    """Beside a normal night it is one of two, and less than half of a new level."""
    logs = noise(2, nights=60, size=0.001)
    logs[40] -= 0.4
    assert not changes_of(logs, least_step=0.05)


@pytest.mark.slow
def test_slow_noise_is_not_a_change() -> None:
    """Correlated nights are wider noise."""
    count = sum(falls(noise(seed, linked=0.3)) for seed in range(10))
    assert count <= 20


def test_equal_values_have_a_scatter() -> None:
    """A series without noise has no change in its last digits, and has its large one."""
    logs = np.zeros(40)
    logs[1::2] = 1e-6
    assert not changes_of(logs)
    logs[30:] -= 0.1
    assert changes_of(logs) == [FoundChange(30, 31)]


@pytest.mark.parametrize("nights", [0, 1, 4])
def test_a_few_nights_have_no_change(nights: int) -> None:
    """Three of the old level and two of the new are the fewest."""
    assert not changes_of(np.array([0.0, 0, 0, -9])[:nights])
