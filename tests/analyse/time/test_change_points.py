"""Jumps at places that are known, and noise in which nothing jumps."""

import numpy as np
import pytest

from tests.analyse.noise import noisy, times
from volbench.analyse.time.change_points import (
    block_length_s,
    block_medians,
    find_changes,
    place_in_gaps,
    plateaus,
)


@pytest.mark.parametrize("interval_s", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("ratio", [0.85, 1.2, 0.4])
def test_a_step_of_a_short_series_is_found_to_the_sample(interval_s: float, ratio: float) -> None:
    """With 60 samples and 2 % noise a step is found within one sample in 28 of 30 series."""
    hits = 0
    for seed in range(30):
        values = noisy(60, cv=0.02, seed=seed)
        place = 20 + seed % 20
        values[place:] *= ratio
        found = find_changes(times(60, interval_s), values)
        hits += len(found) == 1 and abs(found[0].t_s - place * interval_s) <= interval_s * 1.001
    assert hits >= 28


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("cv", [0.03, 0.15])
def test_noise_is_not_a_change(phi: float, cv: float) -> None:
    """At most 2 of 40 series of an hour in which nothing happened have a change."""
    series = (noisy(3600, cv=cv, phi=phi, seed=seed) for seed in range(40))
    assert sum(bool(find_changes(times(3600), values)) for values in series) <= 2


@pytest.mark.parametrize("lost", [(0.1, 0.4), (0.3, 0.3), (1.0, 0.6)])
def test_a_pause_shorter_than_a_sample_is_not_a_change(lost: tuple[float, float]) -> None:
    """What is lost in two neighbouring samples, wherever they are, leaves one level."""
    for place in range(58):
        values = np.full(60, 300.0)
        values[place : place + 2] *= 1 - np.array(lost)
        assert find_changes(times(60, 0.5), values) == ()


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
def test_a_change_within_a_sample_is_one_change(share: float) -> None:
    """Credits that run out between two samples leave one change, to the sample."""
    values = np.concatenate([np.full(20, 1500.0), [300 + 1200 * share], np.full(29, 300.0)])
    (change,) = find_changes(times(50, 0.5), values)
    assert change.t_s in {10.0, 10.5}
    assert (change.before, change.after) == (1500.0, 300.0)


def test_a_dip_has_two_edges() -> None:
    """Two changes, three stretches; three samples are more than one event of a sample."""
    values = noisy(120, cv=0.02, seed=2)
    values[40:80] *= 0.5
    t_s = times(120)
    assert [change.t_s for change in find_changes(t_s, values)] == [40, 80]
    parts = plateaus(t_s, values)
    assert [(part.from_s, part.to_s) for part in parts] == [(0, 40), (40, 80), (80, 120)]
    assert [part.level for part in parts] == pytest.approx([1000, 500, 1000], rel=0.02)
    values = np.full(60, 300.0)
    values[30:33] *= 0.8
    assert [change.t_s for change in find_changes(times(60, 0.5), values)] == [15.0, 16.5]


def test_a_long_stall_is_a_change_to_zero() -> None:
    """Zeros have no logarithm, and are a level all the same."""
    values = noisy(120, cv=0.02, seed=3)
    values[60:] = 0.0
    (change,) = find_changes(times(120), values)
    assert (change.t_s, change.after) == (60, 0.0)


def test_a_ramp_is_not_split_into_steps() -> None:
    """An even decline has no moment at which it jumped; four seconds that scatter are noise."""
    values = noisy(3600, cv=0.03, phi=0.5, seed=5) * np.linspace(1.2, 0.8, 3600)
    assert find_changes(times(3600), values) == ()
    iops = [710, 726, 737, 741, 717, 723, 742, 737, 742, 721, 560, 717, 530, 657, 726, 696, 698]
    iops += [719, 742, 711, 699, 734, 723, 741, 742, 732, 742, 737, 720, 741, 733, 634, 700]
    assert find_changes(times(len(iops)), np.array(iops, dtype=float)) == ()


@pytest.mark.parametrize("values", [[], [5.0], [0.0] * 60, [7.0] * 60])
def test_constant_series_have_no_change(values: list[float]) -> None:
    """Nothing, one sample, only zeros and a constant have no change."""
    assert find_changes(times(len(values)), np.array(values)) == ()


def test_steps_below_the_minimum_are_ignored() -> None:
    """A clean fall by 10 % counts at 5 %, and not at 15 %."""
    values = noisy(1200, cv=0.01, seed=6)
    values[600:] *= 0.9
    assert len(find_changes(times(1200), values)) == 1
    assert find_changes(times(1200), values, least_step=0.15) == ()


def test_blocks_are_30_s_unless_that_gives_few() -> None:
    """An hour is cut into 30 s, a minute into seconds; one wild sample moves no block."""
    assert block_length_s(times(3600)) == 30
    assert block_length_s(times(60)) == 1
    assert block_length_s(times(60), 5.0) == 5
    blocks = block_medians(times(7), np.array([1.0, 2.0, 90.0, 4.0, 5.0, 6.0, 9.0]), block_s=3.0)
    assert blocks.tolist() == [2.0, 5.0]


@pytest.mark.parametrize("after", [500.0, 2000.0])
def test_a_jump_among_excluded_samples_is_located_there(after: float) -> None:
    """Ten disturbed seconds are 10 % slower; the jump in the seventh of them is placed in it."""
    t_s, values = times(60), np.array([1000.0] * 26 + [after] * 34)
    values[20:30] *= 0.9
    kept = (t_s <= 20) | (t_s > 30)
    seen = find_changes(t_s[kept], values[kept])
    (placed,) = place_in_gaps(seen, t_s[kept], t_s, values)
    assert (seen[0].t_s, placed.t_s) == (20, 26)
    assert (placed.before, placed.after) == (1000, after)
    assert place_in_gaps(seen, t_s, t_s, values) == seen
